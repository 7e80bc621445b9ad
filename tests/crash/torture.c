/* SPDX-License-Identifier: MIT */
/*
 * Torture: producers that write all the time, some of them in long transactions that commit
 * late with lower numbers, against three workers of which one is killed or paused past its
 * lease every few seconds. TORTURE_SECONDS says how long, TORTURE_SEED repeats the
 * schedule. Afterwards: nothing lost, no ghost, in order per key, repeated at most what was
 * in flight.
 */
#include "base/rng.h"
#include "rig.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	WORKERS = 3,
	PRODUCERS = 3,       /* the last one is slow */
	PACE_MS = 3,         /* between two transactions of a producer */
	LATE_MS = 700,       /* how long the slow one keeps a transaction open, */
	LATE_SQLITE_MS = 40, /* where nobody else can write meanwhile */
	GAP_MS = 2500,       /* between two mishaps, at most */
	PAUSE_MS = RIG_LEASE_MS + RIG_LEASE_MS / 2,
};

struct producer {
	struct shop shop;
	pthread_t thread;
	struct ob_err err;
};

struct nemesis {
	struct ob_rng rng;
	struct ob_child workers[WORKERS];
	int64_t wake_ms[WORKERS]; /* of a paused one; 0: it works */
	int64_t next_ms;
	unsigned kills, pauses;
};

static struct rig rig;
static struct producer producers[PRODUCERS];
static struct nemesis nemesis;
static atomic_bool closing;

static long number_of(const char *variable, long dflt)
{
	const char *text = getenv(variable);

	return text && *text ? strtol(text, NULL, 10) : dflt;
}

/* ---- producers ----------------------------------------------------------- */

static void *produce(void *arg)
{
	struct producer *p = arg;

	while (!atomic_load(&closing)) {
		struct ob_err err = OB_ERR_INIT;

		/* away, locked or the victim of a deadlock: nothing was written */
		if (shop_step(&p->shop, RIG_SOON_MS, &err) < 0 && err.kind != OB_ERR_DOWN) {
			p->err = err;
			return NULL;
		}
		(void)poll(NULL, 0, PACE_MS);
	}
	return NULL;
}

static void open_shops(uint64_t seed)
{
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; i < PRODUCERS; i++) {
		struct producer *p = &producers[i];

		ck_assert_msg(shop_open(&p->shop, &rig.books, rig.url, seed + (uint64_t)i, &err) ==
				      0,
			      "%s", err.msg);
		if (i == PRODUCERS - 1)
			p->shop.hold_ms = rig_place()->concurrent ? LATE_MS : LATE_SQLITE_MS;
		ck_assert_int_eq(pthread_create(&p->thread, NULL, produce, p), 0);
	}
}

static void close_shops(void)
{
	atomic_store(&closing, true);
	for (int i = 0; i < PRODUCERS; i++) {
		ck_assert_int_eq(pthread_join(producers[i].thread, NULL), 0);
		ck_assert_msg(producers[i].err.kind == OB_ERR_NONE, "a producer failed: %s",
			      producers[i].err.msg);
		shop_close(&producers[i].shop);
	}
}

/* ---- mishaps ------------------------------------------------------------- */

static void plan(int64_t now_ms)
{
	nemesis.next_ms = now_ms + GAP_MS / 4 + (int64_t)ob_rng_below(&nemesis.rng, GAP_MS * 3 / 4);
}

static void start_workers(void)
{
	for (int i = 0; i < WORKERS; i++)
		rig_start(&rig, &nemesis.workers[i], NULL, "worker.log");
	plan(rig_now_ms());
}

static void resume(int i)
{
	ob_child_signal(&nemesis.workers[i], SIGCONT);
	nemesis.wake_ms[i] = 0;
}

static void strike(int64_t now_ms)
{
	int i = (int)ob_rng_below(&nemesis.rng, WORKERS);
	struct ob_child *victim = &nemesis.workers[i];
	bool kill = ob_rng_below(&nemesis.rng, 2) == 0;

	plan(now_ms);
	if (nemesis.wake_ms[i])
		return; /* it has had its share */
	ck_assert_msg(ob_child_look(victim) == OB_CHILD_RUNS, "it ended by itself with %d:\n%s",
		      victim->code, rig_log(&rig, "worker.log"));
	rig.crashes++;
	if (kill) {
		nemesis.kills++;
		ob_child_signal(victim, SIGKILL);
		ck_assert(ob_child_wait_end(victim, RIG_SOON_MS));
		rig_start(&rig, victim, NULL, "worker.log");
	} else {
		nemesis.pauses++;
		rig_pause(&rig, victim);
		nemesis.wake_ms[i] = rig_now_ms() + PAUSE_MS;
	}
}

static void torment(int64_t end_ms)
{
	for (int64_t now = rig_now_ms(); now < end_ms; now = rig_now_ms()) {
		for (int i = 0; i < WORKERS; i++) {
			if (nemesis.wake_ms[i] && now >= nemesis.wake_ms[i])
				resume(i);
		}
		if (now >= nemesis.next_ms)
			strike(now);
		rig_breathe();
	}
	for (int i = 0; i < WORKERS; i++) {
		if (nemesis.wake_ms[i])
			resume(i);
	}
}

/* ---- the run ------------------------------------------------------------- */

static void report(long seconds, uint64_t seed)
{
	(void)printf("# torture %s: %ld s, seed %" PRIu64 ", %" PRIu64
		     " committed, %zu rolled back, "
		     "%u kills, %u pauses, %zu lines\n",
		     rig_place()->name, seconds, seed, rig.books.journal.committed,
		     rig.books.journal.count - (size_t)rig.books.journal.committed, nemesis.kills,
		     nemesis.pauses, rig_lines(&rig));
	(void)fflush(stdout);
}

OB_TEST(under_torture_nothing_is_lost_reordered_or_made_up)
{
	long seconds = number_of("TORTURE_SECONDS", 8);
	uint64_t seed = (uint64_t)number_of("TORTURE_SEED", 1);
	char name[64];

	(void)snprintf(name, sizeof(name), "TORTURE_SEED=%" PRIu64, seed);
	rig_init(&rig, name, seed);
	ob_rng_init(&nemesis.rng, seed);
	start_workers();
	open_shops(seed);
	torment(rig_now_ms() + seconds * 1000);
	close_shops();
	rig_until(&rig, rig_waiting(&rig) == 0, RIG_SOON_MS);
	for (int i = 0; i < WORKERS; i++)
		rig_stop(&rig, &nemesis.workers[i]);
	report(seconds, seed);
	ck_assert_uint_gt(nemesis.kills + nemesis.pauses, 0);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig_audit(&rig);
	rig_done(&rig);
}
OB_TEST_END

RIG_SUITE("torture", under_torture_nothing_is_lost_reordered_or_made_up)
