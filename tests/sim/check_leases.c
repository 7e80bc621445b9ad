/* SPDX-License-Identifier: MIT */
/* The leases: one owner at a time, epochs that only grow, and who has lost what. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

static struct sim_actor *actor_of(const struct sim *sim, const struct ob_uuid *owner)
{
	for (uint32_t i = 0; i < sim->slot_count; i++) {
		struct sim_actor *actor = sim->slots[i];

		if (actor && ob_uuid_eq(&actor->leaser.owner, owner))
			return actor;
	}
	return NULL;
}

static void lose(struct sim *sim, struct sim_actor *actor, uint32_t partition)
{
	actor->lost_lease = true;
	sim_excuse(sim, actor, partition);
	if (sim->plan.calm)
		sim_break(sim, NULL, "lease", "w%u lost partition %u without any fault",
			  actor->number, partition);
}

static void check_change(struct sim *sim, const struct sim_lease *was, const struct sim_lease *is,
			 uint32_t partition)
{
	struct sim_actor *before = was->owned ? actor_of(sim, &was->owner) : NULL;
	bool kept = is->owned && ob_uuid_eq(&was->owner, &is->owner);
	bool valid = was->owned && was->until_us > sim->clock.real_us;

	if (was->there && is->there && is->epoch < was->epoch)
		sim_break(sim, NULL, "lease", "the epoch of partition %u fell from %llu to %llu",
			  partition, (unsigned long long)was->epoch, (unsigned long long)is->epoch);
	if (is->owned && !(was->owned && kept) && is->epoch == was->epoch && was->there)
		sim_break(sim, NULL, "lease", "partition %u has a new owner and the old epoch",
			  partition);
	/* Taken away before its time: it goes on until it knows. */
	if (before && before != sim->current && valid && !kept) {
		before->robbed_until_us[partition] = was->until_us;
		sim->counts.reaped += sim->current != NULL;
	}
	if (is->owned && !kept && valid && before != sim->current)
		sim_break(sim, NULL, "lease", "partition %u is taken while its lease is valid",
			  partition);
	if (is->owned && was->owned && is->epoch != was->epoch)
		sim->counts.takeovers++;
	if (was->owned && !is->owned && before == sim->current)
		sim->counts.moves++;
	if (before && (before != sim->current || is->owned) && !(kept && is->epoch == was->epoch))
		lose(sim, before, partition);
}

/* Nobody else may believe that a partition is theirs while one does. */
static void check_views(struct sim *sim)
{
	const struct sim_actor *holder[SIM_PARTITIONS_MAX] = { NULL };

	for (uint32_t i = 0; i < sim->slot_count; i++) {
		const struct sim_actor *actor = sim->slots[i];

		if (!actor || actor->leaving)
			continue;
		for (size_t k = 0; k < actor->view.count; k++) {
			const struct ob_view_lease *lease = &actor->view.leases[k];

			if (lease->deadline_us <= sim_now(sim) || lease->lost || lease->drained ||
			    lease->partition >= SIM_PARTITIONS_MAX ||
			    actor->robbed_until_us[lease->partition] > sim->clock.real_us)
				continue;
			if (holder[lease->partition])
				sim_break(sim, NULL, "lease",
					  "w%u and w%u both believe to own partition %u",
					  holder[lease->partition]->number, actor->number,
					  lease->partition);
			holder[lease->partition] = actor;
		}
	}
}

void sim_check_leases(struct sim *sim)
{
	struct sim_lease now[SIM_PARTITIONS_MAX] = { 0 };
	struct ob_partition *rows = NULL;
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0;

	ob_arena_reset(&sim->arena, SIZE_MAX);
	if (ob_store_partitions(sim->observer, sim->plan.relay.name, &sim->arena, &rows, &count,
				&err) < 0)
		abort();
	for (size_t i = 0; i < count && rows[i].number < SIM_PARTITIONS_MAX; i++)
		now[rows[i].number] = (struct sim_lease){
			.there = true,
			.owned = !ob_uuid_is_nil(&rows[i].owner),
			.owner = rows[i].owner,
			.epoch = rows[i].epoch,
			.until_us = rows[i].until_us,
		};
	for (uint32_t p = 0; p < SIM_PARTITIONS_MAX; p++) {
		const struct sim_lease *was = &sim->leases[p], *is = &now[p];

		if (was->owned != is->owned || was->epoch != is->epoch ||
		    !ob_uuid_eq(&was->owner, &is->owner)) {
			check_change(sim, was, is, p);
			sim_note(sim, SIM_EV_LEASE, NULL, actor_of(sim, &is->owner), p,
				 (int64_t)is->epoch, is->owned);
		} else if (is->owned && is->until_us <= sim->clock.real_us) {
			struct sim_actor *actor = actor_of(sim, &is->owner);

			if (actor && !actor->leaving)
				lose(sim, actor, p);
		}
		now[p].free_since_us = was->free_since_us;
		sim->leases[p] = *is;
	}
	check_views(sim);
}

/*
 * A worker that is gone counts until its heartbeat is over, which is no longer than a lease
 * lasts; then the others have a second to take what was its.
 */
void sim_check_owners(struct sim *sim)
{
	int64_t now = sim_now(sim);
	int64_t grace = sim->quiet_us + sim->plan.relay.leasing.lease_ttl_ms * 1000;

	for (uint32_t p = 0; p < sim->partition_count; p++) {
		struct sim_lease *lease = &sim->leases[p];

		if (lease->owned && lease->until_us > sim->clock.real_us) {
			lease->free_since_us = 0;
			continue;
		}
		if (lease->free_since_us == 0)
			lease->free_since_us = now;

		int64_t since = lease->free_since_us > grace ? lease->free_since_us : grace;

		if (sim->quiet_us > 0 && now > since + 1000000)
			sim_break(sim, NULL, "lease", "partition %u is nobody's for %.1f s", p,
				  (double)(now - lease->free_since_us) / 1e6);
	}
}
