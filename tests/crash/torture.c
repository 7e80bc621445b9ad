/* SPDX-License-Identifier: MIT */
/*
 * Torture: producers that write all the time, some in transactions that commit late with lower
 * numbers, some with savepoints that are rolled back, with delayed messages, priorities and
 * messages that nobody takes; three workers of which one is killed or paused past its lease every
 * few seconds; a receiver that refuses, dawdles and hangs up; an operator who retries, skips and
 * discards; and retention that removes what is through. TORTURE_SECONDS says how long, TORTURE_SEED
 * repeats the schedule. Afterwards: nothing lost, no ghost, in order per key, none before its time,
 * and repeated at most what was in flight.
 */
#include "torture.h"

#include "config.h"
#if HAVE_REDIS
#include "redis_server.h"
#endif

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
	OPERATE_MS = 400, /* between two commands of the operator */
	BLOCKED = 7,      /* the customer whose first message nobody takes */
	/* What is confirmed while one read before it is not is recorded two reads later. */
	IN_FLIGHT = RIG_IN_FLIGHT + 3 * RIG_BATCH,
	EARLY_US = 2000, /* a database may count in milliseconds */
};

/* What the tests differ in. */
struct manner {
	const char *name, *relay;
	bool holds; /* a message that is refused for good, or not due yet, holds its key */
	const struct torture_receiver *receiver;
};

#define RETRY "retry: { base_delay: 200ms, max_backoff: 2s, max_attempts: 1000 }"

static const char *const rejected_release = "on_dead: release, hold_delayed: false, " RETRY;
static const char *const rejected_hold = "on_dead: hold, hold_delayed: true, " RETRY;

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

struct person {
	struct ob_child command;
	int64_t next_ms;
	unsigned commands;
};

static struct rig rig;
static struct producer producers[PRODUCERS], saver;
static struct nemesis nemesis;
static struct person person;
static struct manner manner;
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

static void insert_one(void *held, const char *hex, uint32_t customer, const char *event)
{
	const struct place *place = rig_place();
	char sql[320];

	(void)snprintf(sql, sizeof(sql),
		       "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
		       "VALUES (%s%s%s, 'customer', '%03" PRIu32 "', '%s', '{\"total\":1}')",
		       place->id_left, hex, place->id_right, customer, event);
	place->also(held, sql);
}

static void insert(void *held, const struct shop_order *order, size_t at)
{
	char hex[33];
	uint32_t customer;

	shop_event(order, at, &customer, hex);
	insert_one(held, hex, customer, "OrderPlaced");
}

/* Three events, of which the second is taken back before the commit. */
static void *save(void *arg)
{
	const struct place *place = rig_place();
	struct producer *p = arg;
	void *held = place->hold(rig.url, "SELECT 1");

	while (!atomic_load(&closing)) {
		bool committed[] = { true, false, true };
		struct shop_order *order = shop_begin(&p->shop, 3);

		if (ob_rng_below(&p->shop.rng, 100) < p->shop.rollback_pc)
			committed[0] = committed[2] = false;
		place->also(held, place->begin);
		insert(held, order, 0);
		place->also(held, "SAVEPOINT halfway");
		insert(held, order, 1);
		place->also(held, "ROLLBACK TO SAVEPOINT halfway");
		insert(held, order, 2);
		place->also(held, committed[0] ? "COMMIT" : "ROLLBACK");
		if (shop_end(&p->shop, order, committed, &p->err) < 0)
			break;
		(void)poll(NULL, 0, 3 * PACE_MS);
	}
	place->let_go(held);
	return NULL;
}

static void open_shop(struct producer *p, uint64_t seed, void *(*run)(void *arg))
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(shop_open(&p->shop, &rig.books, rig.url, seed, &err) == 0, "%s", err.msg);
	p->shop.rollback_pc = 20;
	p->shop.mix = (struct shop_mix){
		.poison_pc = 1,
		.doomed_pc = 3,
		.delayed_pc = 10,
		.lane_pc = 10,
		.delay_ms = 1500,
		.delayed_holds = manner.holds,
		.blocked = manner.holds ? BLOCKED : 0,
	};
	if (p == &producers[PRODUCERS - 1])
		p->shop.hold_ms = rig_place()->concurrent ? LATE_MS : LATE_SQLITE_MS;
	ck_assert_int_eq(pthread_create(&p->thread, NULL, run, p), 0);
}

static void open_shops(uint64_t seed)
{
	for (int i = 0; i < PRODUCERS; i++)
		open_shop(&producers[i], seed + (uint64_t)i, produce);
	open_shop(&saver, seed + PRODUCERS, save);
}

static void close_shop(struct producer *p)
{
	ck_assert_int_eq(pthread_join(p->thread, NULL), 0);
	ck_assert_msg(p->err.kind == OB_ERR_NONE, "a producer failed: %s", p->err.msg);
	shop_close(&p->shop);
}

static void close_shops(void)
{
	atomic_store(&closing, true);
	for (int i = 0; i < PRODUCERS; i++)
		close_shop(&producers[i]);
	close_shop(&saver);
}

/* The first message of one customer, which nobody takes: all others of its lane wait for it. */
static void block(void)
{
	void *held = rig_place()->hold(rig.url, "SELECT 1");

	insert_one(held, "019000000000700080000000000000b1", BLOCKED, "Blocker");
	rig_place()->let_go(held);
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
		      victim->code, rig_tail(&rig, "worker.log"));
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

/* ---- the operator -------------------------------------------------------- */

static const char *const verbs[][8] = {
	{ "retry", "--state", "dead", "--event", "OrderPlaced", "--yes" },
	{ "skip", "--state", "dead", "--event", "Poison", "--yes" },
	{ "discard", "--state", "pending,delayed,failed,parked,dead", "--event", "Doomed",
	  "--yes" },
	{ "retry", "--state", "failed", "--event", "OrderPlaced", "--yes" },
	{ "list", "--limit", "5" },
	{ "status" },
	{ "readers", "list" },
};
enum { RETRY_DEAD, SKIP_POISON, DISCARD_DOOMED, VERBS = sizeof(verbs) / sizeof(verbs[0]) };

/* One command at a time. */
static void operate(int64_t now_ms)
{
	if (person.command.state == OB_CHILD_RUNS) {
		if (ob_child_look(&person.command) != OB_CHILD_ENDED)
			return;
		ck_assert_msg(person.command.code == 0, "a command ended with %d:\n%s",
			      person.command.code, rig_tail(&rig, "commands.log"));
		person.commands++;
	}
	if (now_ms < person.next_ms)
		return;
	person.next_ms = now_ms + (int64_t)ob_rng_below(&nemesis.rng, OPERATE_MS);
	rig_start_command(&rig, &person.command, verbs[ob_rng_below(&nemesis.rng, VERBS)],
			  "commands.log");
}

/* Run it to its end, after the one that runs. */
static void decide(const char *const *words)
{
	if (person.command.state == OB_CHILD_RUNS)
		ck_assert(ob_child_wait_end(&person.command, RIG_SOON_MS));
	rig_start_command(&rig, &person.command, words, "commands.log");
	ck_assert(ob_child_wait_end(&person.command, RIG_SOON_MS));
	ck_assert_msg(person.command.code == 0, "%s", rig_tail(&rig, "commands.log"));
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
		if (manner.receiver->vex)
			manner.receiver->vex(&nemesis.rng, now);
		operate(now);
		rig_breathe();
	}
	for (int i = 0; i < WORKERS; i++) {
		if (nemesis.wake_ms[i])
			resume(i);
	}
}

/* ---- afterwards ---------------------------------------------------------- */

/* What must wait, and nothing else does. */
static void drain(void)
{
	uint64_t dead = rig.books.poison + manner.holds;

	manner.receiver->calm(&rig);
	if (manner.holds) {
		/* P6: one key was held all the time, and it is the only one. */
		rig_until(&rig,
			  (decide(verbs[RETRY_DEAD]), decide(verbs[DISCARD_DOOMED]),
			   decide(verbs[SKIP_POISON]),
			   rig_waiting(&rig) == dead + rig.books.of_blocked),
			  RIG_SOON_MS);
		ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), rig.books.of_blocked);
		decide((const char *const[]){ "skip", "--state", "dead", "--event", "Blocker",
					      "--yes", NULL });
	}
	rig_until(&rig, rig_waiting(&rig) == dead, RIG_SOON_MS);
	/* P1: what nobody takes is not lost, it stands there. */
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), dead);
}

static int by_id(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ob_uuid));
}

/* P8: none came before it was due. */
static void audit_times(void)
{
	struct books *books = &rig.books;
	char *text = rig_file(&rig, "events.ndjson"), *rest, *line;
	uint64_t checked = 0;

	qsort(books->dues, books->due_count, sizeof(*books->dues), by_id);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct shop_due key;
		const char *at = strstr(line, "\"received\":");
		struct ob_str id = { line + strlen("{\"id\":\""), 36 };

		ck_assert_msg(at && ob_uuid_parse(id, &key.id), "%s", line);
		const struct shop_due *due =
			bsearch(&key, books->dues, books->due_count, sizeof(*books->dues), by_id);
		if (!due)
			continue;
		checked++;
		int64_t received = strtoll(at + strlen("\"received\":"), NULL, 10);
		ck_assert_msg(received >= due->due_us - EARLY_US,
			      "%s: %" PRId64 " us too early: %s", rig.name, due->due_us - received,
			      line);
	}
	ck_assert_uint_ge(checked, books->due_count);
	free(text);
}

static void report(long seconds, uint64_t seed)
{
	const struct ob_audit_journal *journal = &rig.books.journal;

	(void)printf("# torture %s, %s: %ld s, seed %" PRIu64 ", %" PRIu64
		     " committed, %zu rolled back or poison, %zu delayed, %u kills, %u pauses, "
		     "%" PRIu64 " hang-ups, %u commands, %zu lines, log of %" PRId64 " rows\n",
		     rig_place()->name, manner.name, seconds, seed, journal->committed,
		     journal->count - (size_t)journal->committed, rig.books.due_count,
		     nemesis.kills, nemesis.pauses, manner.receiver->hung_up(&rig), person.commands,
		     rig_lines(&rig), rig_place()->number(rig.url, "SELECT count(*) FROM outbox"));
	(void)fflush(stdout);
}

/* ---- the run ------------------------------------------------------------- */

static void torture(const struct manner *how)
{
	long seconds = number_of("TORTURE_SECONDS", 6);
	uint64_t seed = (uint64_t)number_of("TORTURE_SEED", 1);
	char name[64], sink[TORTURE_SINK] = "", more[TORTURE_SINK] = "", relay[2 * TORTURE_SINK];

	manner = *how;
	manner.receiver->start(seed, manner.holds, sink, more);
	(void)snprintf(relay, sizeof(relay), "%s%s", manner.relay, more);
	(void)snprintf(name, sizeof(name), "TORTURE_SEED=%" PRIu64 ", %s", seed, manner.name);
	rig_extra.store = "retention: { published: 1s, every: 1s, batch: 200 }";
	rig_extra.sink = sink;
	rig_extra.relay = relay;
	rig_init(&rig, name, seed);
	if (manner.holds)
		block();
	ob_rng_init(&nemesis.rng, seed);
	start_workers();
	open_shops(seed);
	torment(rig_now_ms() + seconds * 1000);
	close_shops();
	drain();
	for (int i = 0; i < WORKERS; i++)
		rig_stop(&rig, &nemesis.workers[i]);
	if (manner.receiver->collect)
		manner.receiver->collect(&rig);
	report(seconds, seed);
	ck_assert_uint_gt(nemesis.kills + nemesis.pauses, 0);
	audit_times();
	rig.repeats = manner.receiver->hung_up(&rig) * manner.receiver->repeats_each;
	rig.in_flight = IN_FLIGHT;
	rig_audit(&rig);
	manner.receiver->stop();
	rig_done(&rig);
}

OB_TEST(under_torture_nothing_is_lost_reordered_or_made_up)
{
	torture(&(struct manner){ "released", rejected_release, false, &torture_exec });
}
OB_TEST_END

OB_TEST(under_torture_a_key_that_is_held_holds_nobody_else)
{
	torture(&(struct manner){ "held", rejected_hold, true, &torture_exec });
}
OB_TEST_END

OB_TEST(under_torture_messages_of_a_key_may_be_under_way_together)
{
#if HAVE_REDIS
	const char *missing = redis_server_missing();

	if (missing)
		(void)printf("# SKIP %s\n", missing);
	else
		torture(&(struct manner){ "many of a key", rejected_release, false,
					  &torture_redis });
#else
	(void)printf("# SKIP this build has no Redis\n");
#endif
}
OB_TEST_END

RIG_SUITE("torture", under_torture_nothing_is_lost_reordered_or_made_up,
	  under_torture_a_key_that_is_held_holds_nobody_else,
	  under_torture_messages_of_a_key_may_be_under_way_together)
