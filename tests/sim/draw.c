/* SPDX-License-Identifier: MIT */
/* What a seed says: sizes, policies, and how much goes wrong. */
#include "sim.h"

int64_t sim_between(struct ob_rng *rng, int64_t low, int64_t high)
{
	return low + (int64_t)ob_rng_below(rng, (uint64_t)(high - low) + 1);
}

bool sim_chance(struct sim *sim, uint32_t of_1000)
{
	return ob_rng_below(&sim->rng, 1000) < of_1000;
}

static uint32_t pick(struct ob_rng *rng, uint32_t low, uint32_t high)
{
	return (uint32_t)sim_between(rng, low, high);
}

static bool one_in(struct ob_rng *rng, uint32_t n)
{
	return ob_rng_below(rng, n) == 0;
}

static enum ob_ordering draw_ordering(struct ob_rng *rng)
{
	uint64_t draw = ob_rng_below(rng, 100);

	if (draw < 10)
		return OB_ORDER_NONE;
	return draw < 30 ? OB_ORDER_PARTITION : OB_ORDER_KEY;
}

static void draw_relay(struct sim_plan *plan, struct ob_rng *rng)
{
	static char destination[] = "{aggregate_type}";
	struct ob_config_relay *relay = &plan->relay;
	int64_t ttl_ms = sim_between(rng, 300, 2500);

	*relay = (struct ob_config_relay){
		.name = "main",
		.reads = "default",
		.workers = plan->workers,
		.ordering = draw_ordering(rng),
		.batch_size = one_in(rng, 3) ? pick(rng, 1, 4) : pick(rng, 5, 60),
		.batch_bytes = one_in(rng, 5) ? sim_between(rng, 20, 400) : 1 << 20,
		.idle_backoff_ms = sim_between(rng, 20, 800),
		.shutdown_timeout_ms = 2000,
		.hold_delayed = one_in(rng, 2),
		.on_dead = one_in(rng, 3) ? OB_ON_DEAD_HOLD : OB_ON_DEAD_RELEASE,
		.route.destination = destination,
	};
	relay->leasing.partition_count = plan->partitions;
	relay->leasing.lease_ttl_ms = ttl_ms;
	relay->leasing.lease_renew_ms = ttl_ms / pick(rng, 3, 5);
	relay->leasing.heartbeat_ttl_ms = ttl_ms + sim_between(rng, 0, 2000);
	relay->retry.max_attempts = pick(rng, 1, 5);
	relay->retry.base_delay_ms = sim_between(rng, 1, 300);
	relay->retry.max_backoff_ms = relay->retry.base_delay_ms + sim_between(rng, 0, 2000);
	relay->retry.multiplier = 1.0 + (double)pick(rng, 0, 2);
	relay->retry.jitter = (double)pick(rng, 0, 5) / 10.0;
}

static void draw_faults(struct sim_plan *plan, struct ob_rng *rng)
{
	plan->poison_retry = one_in(rng, 3) ? 0 : pick(rng, 1, 60);
	plan->poison_reject = one_in(rng, 3) ? 0 : pick(rng, 1, 40);
	plan->flaky_retry = one_in(rng, 2) ? 0 : pick(rng, 1, 50);
	/* Now and then nearly everything is refused: that must be taken as an outage. */
	if (one_in(rng, 12))
		plan->flaky_retry = pick(rng, 600, 900);
	if (plan->calm)
		return;
	plan->flaky_lost = one_in(rng, 2) ? 0 : pick(rng, 1, 25);
	plan->flaky_down = one_in(rng, 2) ? 0 : pick(rng, 1, 25);
	/* Where the order is a partition's, it may hold all that could pass. */
	if (one_in(rng, 4) && plan->relay.ordering != OB_ORDER_PARTITION) {
		plan->poison_hang_up = pick(rng, 1, 2);
		plan->relay.batch_bytes = 1 << 20;
		if (one_in(rng, 2))
			plan->relay.batch_size = pick(rng, 100, 200);
	}
	plan->flaky_hang_up = one_in(rng, 3) ? pick(rng, 1, 20) : 0;
	plan->store_errors = one_in(rng, 2) ? 0 : pick(rng, 1, 60);
	plan->slow_calls = one_in(rng, 2) ? 0 : pick(rng, 1, 12);
	plan->chaos = one_in(rng, 5) ? 0 : pick(rng, 1, 12);
	plan->operate = one_in(rng, 3) ? 0 : pick(rng, 1, 25);
}

static void draw_sink(struct sim_plan *plan, struct ob_rng *rng)
{
	plan->sink_ordered = one_in(rng, 2);
	plan->store_late = one_in(rng, 2);
	plan->window = one_in(rng, 3) ? pick(rng, 1, 5) : pick(rng, 6, 100);
	plan->ack_polls = one_in(rng, 2) ? 0 : pick(rng, 1, 6);
	plan->acks_per_poll = one_in(rng, 3) ? pick(rng, 1, 4) : 0;
	plan->ack_delay_us = one_in(rng, 2) ? 0 : sim_between(rng, 100, 20000);
}

void sim_draw_plan(struct sim_plan *plan, struct ob_rng *rng, uint64_t seed)
{
	*plan = (struct sim_plan){
		.seed = seed,
		.calm = one_in(rng, 8),
		.kind = (enum ob_memdb_kind)(one_in(rng, 5) ? OB_MEMDB_PLAIN : pick(rng, 0, 1)),
		.processes = pick(rng, 1, 3),
		.workers = one_in(rng, 3) ? 2 : 1,
		.partitions = pick(rng, 1, 8),
		.keys = one_in(rng, 5) ? pick(rng, 20, SIM_KEYS_MAX) : pick(rng, 1, 12),
		.messages = pick(rng, 100, 400),
		.rollback = pick(rng, 10, 20),
	};
	draw_sink(plan, rng);
	draw_relay(plan, rng);
	draw_faults(plan, rng);
}
