/* SPDX-License-Identifier: MIT */
/* What goes wrong, and when it is over. */
#include "sim.h"

#include <stdlib.h>

/* ---- the sink's verdicts ---------------------------------------------- */

static struct ob_memsink_verdict draw_verdict(struct sim *sim, struct sim_message *m)
{
	const struct sim_plan *plan = &sim->plan;
	bool at_send = sim_chance(sim, 200);

	/* This one stays as it is: it must end dead. */
	if (m && m->poison == SIM_POISON_HANG_UP && !sim->cured)
		return (struct ob_memsink_verdict){ .kind = OB_ERR_DOWN, .hung_up = true };
	if (sim->healed || !m)
		return (struct ob_memsink_verdict){ .kind = OB_ERR_NONE };
	if (m->poison == SIM_POISON_REJECT)
		return (struct ob_memsink_verdict){ .kind = OB_ERR_REJECT, .at_send = at_send };
	if (m->turns_bad > 0 || sim_chance(sim, plan->flaky_retry)) {
		m->turns_bad -= m->turns_bad > 0;
		return (struct ob_memsink_verdict){ .kind = OB_ERR_RETRY, .at_send = at_send };
	}
	if (sim_chance(sim, plan->flaky_lost))
		return (struct ob_memsink_verdict){ .kind = sim_chance(sim, 300) ? OB_ERR_RETRY
										 : OB_ERR_DOWN,
						    .stored = true };
	if (sim_chance(sim, plan->flaky_hang_up))
		return (struct ob_memsink_verdict){ .kind = OB_ERR_DOWN, .hung_up = true };
	if (sim_chance(sim, plan->flaky_down))
		return (struct ob_memsink_verdict){ .kind = OB_ERR_DOWN, .at_send = at_send };
	return (struct ob_memsink_verdict){ .kind = OB_ERR_NONE };
}

struct ob_memsink_verdict sim_judge(void *arg, const struct ob_delivery *delivery)
{
	struct sim_actor *actor = arg;
	struct sim *sim = actor->sim;
	struct ob_memsink_verdict verdict =
		draw_verdict(sim, sim_message_of(sim, &delivery->message->id));

	sim->counts.retries += verdict.kind == OB_ERR_RETRY;
	sim->counts.rejects += verdict.kind == OB_ERR_REJECT;
	sim->counts.lost_acks += verdict.stored;
	(void)sim_check_send(sim, actor, delivery->message, delivery->tag, verdict.kind,
			     verdict.stored);
	return verdict;
}

/* ---- disturbing ------------------------------------------------------- */

static struct sim_actor *choose_actor(struct sim *sim)
{
	return sim->slots[ob_rng_below(&sim->rng, sim->slot_count)];
}

static int64_t a_while_ms(struct sim *sim)
{
	int64_t ttl_ms = sim->plan.relay.leasing.lease_ttl_ms;

	return sim_between(&sim->rng, 1, sim_chance(sim, 600) ? 3 * ttl_ms : ttl_ms / 2);
}

static void crash(struct sim *sim, struct sim_actor *actor)
{
	uint32_t process = actor->slot / sim->plan.workers;

	if (!sim_chance(sim, 300)) {
		sim_actor_crash(sim, actor);
		return;
	}
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (sim->slots[i] && i / sim->plan.workers == process)
			sim_actor_crash(sim, sim->slots[i]);
	}
}

static void take_sink_away(struct sim *sim)
{
	int64_t ms = sim_between(&sim->rng, 1, 4000);

	sim->counts.sink_outages++;
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (sim->slots[i])
			sim_sink_away(sim, sim->slots[i], ms);
	}
}

static void slow_down(struct sim *sim, struct sim_actor *actor)
{
	actor->sink_plan.ack_delay_us = sim_between(&sim->rng, 10000, 3000000);
	actor->slow_until_us = sim_now(sim) + a_while_ms(sim) * 1000;
	sim->counts.slow_sinks++;
}

/* The number of partitions can only change while no lease is valid: keep everyone away. */
static void begin_resize(struct sim *sim)
{
	int64_t ms = 3 * sim->plan.relay.leasing.lease_ttl_ms;
	bool gently = sim_chance(sim, 400);

	sim->resize_to = (uint32_t)sim_between(&sim->rng, 1, 10);
	sim->resize_until_us = sim_now(sim) + ms * 1000;
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (sim->slots[i] && gently)
			sim_actor_stop(sim, sim->slots[i], OB_STOP_DRAIN);
		else if (sim->slots[i])
			sim_actor_pause(sim, sim->slots[i], ms, true, true);
	}
}

static void retain(struct sim *sim)
{
	const struct ob_retain settings = {
		.published_ms = sim_between(&sim->rng, 0, 500),
		.dead_ms = sim_chance(sim, 500) ? OB_NEVER_MS : sim_between(&sim->rng, 0, 3000),
		.limit = 50,
	};
	struct ob_err err = OB_ERR_INIT;
	struct ob_retained done;

	ob_arena_reset(&sim->arena, SIZE_MAX);
	if (ob_store_retain(sim->observer, &settings, &sim->arena, &done, &err) < 0)
		abort();
}

/* The connection that holds the worker's session lock is lost: the others see it at once. */
static void cut(struct sim *sim, struct sim_actor *actor)
{
	ob_memdb_cut(actor->leaser_inner);
	actor->cut = true;
	sim->counts.cuts++;
	/* It may take its time to notice. */
	if (sim_chance(sim, 500))
		sim_actor_pause(sim, actor, a_while_ms(sim), false, true);
}

/* An operator frees leases, whoever holds them. */
static void free_leases(struct sim *sim)
{
	uint32_t partition = (uint32_t)ob_rng_below(&sim->rng, sim->partition_count);
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_free_leases(sim->observer, sim->plan.relay.name, &partition,
				 sim_chance(sim, 700), &err) < 0)
		abort();
	sim->counts.freed++;
	sim_check_leases(sim);
}

/* Back to an earlier place: what comes after it is delivered again. */
static void seek_back(struct sim *sim)
{
	struct ob_place place = { OB_START_BEGINNING, 0 };
	struct ob_reader *readers;
	struct ob_err err = OB_ERR_INIT;
	size_t count;

	ob_arena_reset(&sim->arena, SIZE_MAX);
	if (ob_store_readers(sim->observer, &sim->arena, &readers, &count, &err) < 0)
		abort();
	if (readers[0].low_pos > 10)
		place = (struct ob_place){ OB_START_SEQ,
					   sim_between(&sim->rng, readers[0].low_pos - 10,
						       readers[0].low_pos) };
	sim_note(sim, SIM_EV_SEEK, NULL, NULL, place.at, 0, 0);
	if (ob_store_reader_seek(sim->observer, sim->plan.relay.name, &place, &err) < 0)
		abort();
	sim->counts.seeks++;
	sim_check_leases(sim);
}

/* The database is restored into another cluster, where transaction ids begin anew. */
static void restore(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (sim->slots[i])
			sim_actor_crash(sim, sim->slots[i]);
	}
	sim_roll_back_all(sim);
	ob_memdb_move_cluster(sim->db);
	sim->foreign = true;
	sim->counts.restores++;
	sim_note(sim, SIM_EV_RESTORE, NULL, NULL, 0, 0, 0);
}

void sim_adopt(struct sim *sim)
{
	struct ob_err err = OB_ERR_INIT;
	uint64_t rows;

	if (!sim->foreign)
		return;
	if (ob_store_adopt(sim->observer, &rows, &err) < 0)
		abort();
	sim->foreign = false;
	sim_note(sim, SIM_EV_RESTORE, NULL, NULL, 1, (int64_t)rows, 0);
}

static void disturb_database(struct sim *sim)
{
	uint64_t what = ob_rng_below(&sim->rng, 10);

	if (what < 3)
		free_leases(sim);
	else if (what == 3)
		seek_back(sim);
	else if (what == 4 && sim->plan.kind == OB_MEMDB_SNAPSHOT && !sim->foreign)
		restore(sim);
	else
		retain(sim);
}

static void disturb_actor(struct sim *sim, struct sim_actor *actor, uint64_t what)
{
	if (what < 22) {
		crash(sim, actor);
	} else if (what < 38) {
		sim_actor_pause(sim, actor, a_while_ms(sim), true, true);
	} else if (what < 46) {
		sim_actor_pause(sim, actor, a_while_ms(sim), true, false);
	} else if (what < 54) {
		sim_actor_pause(sim, actor, a_while_ms(sim), false, true);
	} else if (what < 62) {
		actor->store_away_us = sim_now(sim) + a_while_ms(sim) * 1000;
		sim->counts.store_outages++;
	} else if (what < 66) {
		cut(sim, actor);
	} else if (what < 72) {
		sim_sink_away(sim, actor, sim_between(&sim->rng, 1, 300));
	} else if (what < 78) {
		slow_down(sim, actor);
	} else {
		sim_actor_stop(sim, actor, what < 82 ? OB_STOP_NOW : OB_STOP_DRAIN);
	}
}

void sim_disturb(struct sim *sim)
{
	uint64_t what = ob_rng_below(&sim->rng, 100);
	struct sim_actor *actor = choose_actor(sim);

	if (sim->plan.calm) {
		if (what < 50)
			retain(sim);
		else if (actor && !actor->stopping)
			sim_actor_stop(sim, actor, OB_STOP_DRAIN);
	} else if (what >= 93) {
		disturb_database(sim);
	} else if (what >= 89 && sim->resize_until_us == 0) {
		begin_resize(sim);
	} else if (what >= 84) {
		take_sink_away(sim);
	} else if (actor) {
		disturb_actor(sim, actor, what);
	}
}

/* ---- and what is over ------------------------------------------------- */

/* Does anyone go on with a lease that an operator took away? Its numbers would mean others. */
static bool is_anyone_robbed(const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		for (uint32_t p = 0; sim->slots[i] && p < SIM_PARTITIONS_MAX; p++) {
			if (sim->slots[i]->robbed_until_us[p] > sim->clock.real_us)
				return true;
		}
	}
	return false;
}

static void try_resize(struct sim *sim)
{
	struct ob_err err = OB_ERR_INIT;

	if (is_anyone_robbed(sim))
		return;
	if (ob_store_resize(sim->observer, sim->resize_to, &err) < 0) {
		if (sim_now(sim) > sim->resize_until_us)
			sim->resize_until_us = 0;
		return;
	}
	sim->resize_until_us = 0;
	sim->resized = true;
	sim->partition_count = sim->resize_to;
	sim->counts.resizes++;
	sim_note(sim, SIM_EV_RESIZE, NULL, NULL, sim->resize_to, 0, 0);
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		if (!sim->slots[i])
			continue;
		sim->slots[i]->lost_lease = true;
		sim_excuse(sim, sim->slots[i], -1);
	}
	sim_learn_partitions(sim);
	sim_check_leases(sim);
}

void sim_settle_down(struct sim *sim)
{
	int64_t now = sim_now(sim);

	if (sim->resize_until_us > 0)
		try_resize(sim);
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		struct sim_actor *actor = sim->slots[i];

		if (!actor && now >= sim->slot_free_us[i] && sim->resize_until_us == 0) {
			sim_actor_start(sim, i);
			continue;
		}
		if (actor && actor->sink_away_us > 0 && now >= actor->sink_away_us) {
			actor->sink_plan.down = false;
			actor->sink_away_us = 0;
			sim_note(sim, SIM_EV_SINK_UP, NULL, actor, 0, 0, 0);
		}
		if (actor && actor->slow_until_us > 0 && now >= actor->slow_until_us) {
			actor->sink_plan.ack_delay_us = sim->plan.ack_delay_us;
			actor->slow_until_us = 0;
		}
	}
}
