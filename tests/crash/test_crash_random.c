/* SPDX-License-Identifier: MIT */
/*
 * Two workers, killed at random moments while the shop writes, each replaced at
 * once. The seed decides who and when; CRASH_SEED sets the first one, CRASH_ROUNDS how many.
 */
#include "base/rng.h"
#include "rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 2, RIGS = 4, KILLS = 6, GAP_MS = 900 };

struct run {
	struct rig rig;
	struct ob_rng rng;
	struct ob_child workers[WORKERS];
	unsigned kills;
	int64_t next_ms;
};

static long number_of(const char *variable, long dflt)
{
	const char *text = getenv(variable);

	return text ? strtol(text, NULL, 10) : dflt;
}

static void begin(struct run *run, uint64_t seed)
{
	char name[64];

	*run = (struct run){ 0 };
	(void)snprintf(name, sizeof(name), "CRASH_SEED=%llu", (unsigned long long)seed);
	rig_init(&run->rig, name, seed);
	ob_rng_init(&run->rng, seed);
	for (int i = 0; i < WORKERS; i++)
		rig_start(&run->rig, &run->workers[i], NULL, "worker.log");
	run->next_ms = rig_now_ms() + (int64_t)ob_rng_below(&run->rng, GAP_MS);
}

static void kill_one(struct run *run)
{
	struct ob_child *victim = &run->workers[ob_rng_below(&run->rng, WORKERS)];

	ck_assert_msg(ob_child_look(victim) == OB_CHILD_RUNS, "%s: it ended by itself with %d:\n%s",
		      run->rig.name, victim->code, rig_tail(&run->rig, "worker.log"));
	ob_child_signal(victim, SIGKILL);
	ck_assert(ob_child_wait_end(victim, RIG_SOON_MS));
	ck_assert_int_eq(victim->code, -SIGKILL);
	run->rig.crashes++;
	run->kills++;
	rig_start(&run->rig, victim, NULL, "worker.log");
	run->next_ms = rig_now_ms() + (int64_t)ob_rng_below(&run->rng, GAP_MS);
}

static void end(struct run *run)
{
	rig_until(&run->rig, rig_waiting(&run->rig) == 0, RIG_SOON_MS);
	for (int i = 0; i < WORKERS; i++)
		rig_stop(&run->rig, &run->workers[i]);
	rig_audit(&run->rig);
	rig_done(&run->rig);
}

static void run_round(uint64_t seed)
{
	static struct run runs[RIGS];
	bool busy = true;

	for (int i = 0; i < RIGS; i++)
		begin(&runs[i], seed + (uint64_t)i);
	while (busy) {
		busy = false;
		for (int i = 0; i < RIGS; i++) {
			if (runs[i].kills == KILLS)
				continue;
			busy = true;
			rig_write(&runs[i].rig);
			if (rig_now_ms() >= runs[i].next_ms)
				kill_one(&runs[i]);
		}
		rig_breathe();
	}
	for (int i = 0; i < RIGS; i++)
		end(&runs[i]);
}

OB_TEST(kills_at_random_moments_lose_nothing)
{
	long rounds = number_of("CRASH_ROUNDS", 1), seed = number_of("CRASH_SEED", 1);

	for (long i = 0; i < rounds; i++)
		run_round((uint64_t)(seed + i * RIGS));
}
OB_TEST_END

RIG_SUITE("crash_random", kills_at_random_moments_lose_nothing)
