/* SPDX-License-Identifier: MIT */
/* What goes wrong, and when it is over. */
#include "sim.h"

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

static void clean(struct sim *sim)
{
	struct ob_cleanup cleanup = { .published_ms = sim_between(&sim->rng, 0, 500),
				      .dead_ms = OB_NEVER_MS,
				      .limit = 50 };
	struct ob_err err = OB_ERR_INIT;
	uint64_t published, dead;

	(void)ob_store_cleanup(sim->observer, &cleanup, &published, &dead, &err);
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
	} else if (what < 70) {
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
			clean(sim);
		else if (actor && !actor->stopping)
			sim_actor_stop(sim, actor, OB_STOP_DRAIN);
	} else if (what >= 95) {
		clean(sim);
	} else if (what >= 90 && sim->resize_until_us == 0) {
		begin_resize(sim);
	} else if (what >= 84) {
		take_sink_away(sim);
	} else if (actor) {
		disturb_actor(sim, actor, what);
	}
}

/* ---- and what is over ------------------------------------------------- */

static void try_resize(struct sim *sim)
{
	struct ob_err err = OB_ERR_INIT;

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
