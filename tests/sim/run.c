/* SPDX-License-Identifier: MIT */
/* One run: the scheduler that picks who moves next, until everything has come to rest. */
#include "sim.h"

#include <stdlib.h>

enum {
	DRAIN_MS = 120000,     /* virtual time after which what is not out never will be */
	TURNS_MAX = 400000,    /* of the scheduler */
	TURNS_PER_MESSAGE = 12 /* at least so many with faults */
};

struct sim *sim_new(void)
{
	return calloc(1, sizeof(struct sim));
}

static void open_world(struct sim *sim, uint64_t seed)
{
	const struct ob_memdb_conf conf = {
		.kind = sim->plan.kind,
		.clock = &sim->clock.clock,
		.partition_count = sim->plan.partitions,
		.history = sim_check_row,
		.history_arg = sim,
		.watch = sim->plan.relay.name,
		.pass_time = sim_pass_time,
		.pass_time_arg = sim,
	};
	const struct ob_reader reader = { .name = ob_str(sim->plan.relay.name),
					  .target = ob_str(sim->plan.relay.reads) };
	const struct ob_place beginning = { OB_START_BEGINNING, 0 };
	struct ob_err err = OB_ERR_INIT;
	bool made;

	sim->hash = seed;
	sim->partition_count = sim->plan.partitions;
	sim->arena = OB_ARENA_INIT(1 << 20);
	sim->deliveries = OB_ARENA_INIT(1 << 28);
	ob_memsink_log_init(&sim->log, false);
	sim->db = ob_memdb_new(&conf);
	if (ob_store_memory_open(sim->db, &sim->observer, &err) < 0 ||
	    ob_store_reader_make(sim->observer, &reader, &beginning, &made, &err) < 0)
		abort();
	for (uint32_t i = 0; i < SIM_WRITERS; i++) {
		if (ob_store_memory_open(sim->db, &sim->writers[i].store, &err) < 0)
			abort();
	}
	for (uint32_t i = 0; i < SIM_KEYS_MAX; i++)
		sim->locked_by[i] = -1;
	sim->slot_count = sim->plan.processes * sim->plan.workers;
	for (uint32_t i = 0; i < sim->slot_count; i++)
		sim->slot_free_us[i] = sim_now(sim) + sim_between(&sim->rng, 0, 50) * 1000;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (sim->slots[i])
			sim_actor_end(sim, sim->slots[i], 0);
	}
	for (uint32_t i = 1; i <= sim->actor_count; i++)
		free(sim->actors[i]);
	for (uint32_t i = 0; i < SIM_WRITERS; i++)
		ob_store_free(sim->writers[i].store);
	ob_store_free(sim->observer);
	ob_memdb_free(sim->db);
	ob_memsink_log_done(&sim->log);
	ob_arena_done(&sim->arena);
	ob_arena_done(&sim->deliveries);
	free(sim->events);
	free(sim);
}

/* ---- time ------------------------------------------------------------- */

static int64_t later(int64_t wake_us, int64_t paused_us)
{
	return wake_us > paused_us ? wake_us : paused_us;
}

/* When somebody next has something to do. */
static int64_t next_wake(const struct sim *sim, bool leasers_only)
{
	int64_t wake = INT64_MAX;

	for (uint32_t i = 0; i < sim->slot_count; i++) {
		const struct sim_actor *actor = sim->slots[i];
		int64_t at;

		if (!actor) {
			at = sim->slot_free_us[i];
		} else {
			at = later(actor->leaser_wake_us, actor->leaser_paused_us);
			if (!leasers_only && !actor->leaving) {
				int64_t of_worker =
					later(actor->worker_wake_us, actor->worker_paused_us);

				at = of_worker < at ? of_worker : at;
			}
		}
		wake = at < wake ? at : wake;
	}
	return wake;
}

/* Leasers run on time, unless they are paused: another thread's slowness is not theirs. */
static bool step_due_leaser(struct sim *sim)
{
	uint32_t start = (uint32_t)ob_rng_below(&sim->rng, sim->slot_count);

	for (uint32_t i = 0; i < sim->slot_count; i++) {
		struct sim_actor *actor = sim->slots[(start + i) % sim->slot_count];

		if (actor && sim_leaser_due(sim, actor)) {
			sim_step_leaser(sim, actor);
			return true;
		}
	}
	return false;
}

static bool step_due_worker(struct sim *sim)
{
	uint32_t start = (uint32_t)ob_rng_below(&sim->rng, sim->slot_count);

	for (uint32_t i = 0; i < sim->slot_count; i++) {
		struct sim_actor *actor = sim->slots[(start + i) % sim->slot_count];

		if (actor && sim_worker_due(sim, actor)) {
			sim_step_worker(sim, actor);
			return true;
		}
	}
	return false;
}

/*
 * A store call takes time, before and after it has its effect: what is known from its reply is old
 * by then.
 */
void sim_pass_time(void *arg)
{
	struct sim *sim = arg;
	int64_t ttl_us = sim->plan.relay.leasing.lease_ttl_ms * 1000;
	int64_t us = sim_between(&sim->rng, 0, sim->plan.calm || sim->healed ? 100 : 2000);

	if (!sim->current)
		return;
	if (!sim->healed && sim_chance(sim, sim->plan.slow_calls)) {
		us = sim_between(&sim->rng, ttl_us / 10, ttl_us * 3 / 2);
		sim->counts.slow_calls++;
		sim_was_late(sim, NULL, us);
	}
	ob_clock_advance_us(&sim->clock, us);
}

static void pass_time(struct sim *sim, int64_t us)
{
	int64_t leaser = next_wake(sim, true);
	int64_t now = sim_now(sim);

	if (leaser < now + us)
		us = leaser > now ? leaser - now : 1;
	ob_clock_advance_us(&sim->clock, us);
}

static void advance(struct sim *sim)
{
	int64_t wake;

	if (step_due_leaser(sim))
		return;
	switch (ob_rng_below(&sim->rng, 20)) {
	case 0:
		pass_time(sim, sim_between(&sim->rng, 1000, 60000));
		break;
	case 1:
	case 2:
	case 3:
	case 4:
		wake = next_wake(sim, false) - sim_now(sim);
		pass_time(sim, wake > 0 && wake < 1000000 ? wake : 100);
		break;
	default:
		pass_time(sim, sim_between(&sim->rng, 10, 1000));
	}
}

/* ---- turns ------------------------------------------------------------ */

static void turn(struct sim *sim)
{
	uint64_t what = ob_rng_below(&sim->rng, 100);

	sim_settle_down(sim);
	if (sim_chance(sim, sim->plan.calm ? 2 : sim->plan.chaos))
		sim_disturb(sim);
	if (sim_chance(sim, sim->plan.operate))
		sim_operate(sim);
	if (what < 25)
		sim_produce(sim);
	else if (what < 70 ? step_due_worker(sim) : what < 80 && step_due_leaser(sim))
		return;
	else
		advance(sim);
}

static void run_with_faults(struct sim *sim)
{
	uint32_t turns = 0;

	while (!sim->broken &&
	       (sim_producing(sim) || turns < TURNS_PER_MESSAGE * sim->plan.messages)) {
		turn(sim);
		if (++turns > TURNS_MAX)
			sim_break(sim, NULL, "turns", "the producers do not come to an end");
	}
}

static void heal(struct sim *sim)
{
	sim->healed = true;
	sim->resize_until_us = 0;
	if (sim->foreign)
		sim_adopt(sim);
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (sim->slots[i])
			sim_actor_heal(sim, sim->slots[i]);
	}
	sim_note(sim, SIM_EV_PHASE, NULL, NULL, 1, 0, 0);
}

static bool all_there(const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (!sim->slots[i] || sim->slots[i]->stopping)
			return false;
	}
	return true;
}

/* In some runs we look a little longer, whether every partition finds its owner. */
static bool has_been_quiet(const struct sim *sim)
{
	int64_t ttl_us = sim->plan.relay.leasing.lease_ttl_ms * 1000;

	return sim->plan.seed % 3 != 0 ||
	       (sim->quiet_us > 0 && sim_now(sim) > sim->quiet_us + ttl_us + 1500000);
}

/* Nothing goes wrong any more: everything that nothing holds must get out. */
static void drain(struct sim *sim)
{
	int64_t until = sim_now(sim) + (int64_t)DRAIN_MS * 1000;
	uint32_t turns = 0;

	while (!sim->broken && sim_now(sim) < until && turns++ < TURNS_MAX) {
		int64_t wake;

		sim_settle_down(sim);
		if (step_due_leaser(sim) || step_due_worker(sim))
			continue;
		if (sim->quiet_us == 0 && all_there(sim))
			sim->quiet_us = sim_now(sim);
		sim_check_owners(sim);
		sim_produce_passers(sim);
		if (sim_is_drained(sim) && has_been_quiet(sim))
			return;
		/* Nobody is woken to the microsecond. */
		wake = next_wake(sim, false) - sim_now(sim);
		pass_time(sim, wake > 10000 ? wake : 10000);
	}
}

bool sim_run(struct sim *sim, uint64_t seed)
{
	sim->clock = OB_CLOCK_VIRTUAL(1700000000000000);
	ob_rng_init(&sim->rng, seed);
	sim_draw_plan(&sim->plan, &sim->rng, seed);
	sim->counts.calm_runs = sim->plan.calm;
	sim->counts.snapshot_runs = sim->plan.kind == OB_MEMDB_SNAPSHOT;
	sim->counts.gap_runs = sim->plan.kind == OB_MEMDB_GAPS;
	sim->counts.plain_runs = sim->plan.kind == OB_MEMDB_PLAIN;
	open_world(sim, seed);
	run_with_faults(sim);
	if (!sim->broken)
		heal(sim);
	drain(sim);
	if (!sim->broken)
		sim_check_end(sim);
	if (!sim->broken && sim_chance(sim, 500)) {
		sim->cured = true;
		sim_operate_dead(sim, sim_chance(sim, 700) ? OB_VERB_RETRY : OB_VERB_SKIP);
		sim_note(sim, SIM_EV_PHASE, NULL, NULL, 2, 0, 0);
		drain(sim);
		if (!sim->broken)
			sim_check_end(sim);
	}
	return !sim->broken;
}
