/* SPDX-License-Identifier: MIT */
/* The worker's settle: what the sink has acknowledged is written down, fenced by our leases. */
#include "relay/faultpoints.h"
#include "relay/mutants.h"
#include "relay/worker_impl.h"

bool ob_worker_settle_due(const struct ob_relay_worker *worker)
{
	const struct ob_entry *oldest = ob_flight_outcome(&worker->flight);

	if (!oldest)
		return false;
	return worker->flight.unsettled >= worker->conf.relay->batch_size ||
	       worker->flight.in_flight + worker->flight.queued == 0 ||
	       ob_worker_now(worker) - oldest->since_us >= OB_WORKER_SETTLE_US;
}

/* Most keys failing at once is an outage: no message pays for it. */
static void look_for_outage(struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);
	bool closed = worker->breaker.state == OB_BREAKER_CLOSED;

	if (!ob_breaker_is_mass(&worker->breaker, now))
		return;
	worker->data.breaker_opened += closed;
	if (ob_breaker_mass(&worker->breaker, now)) {
		worker->data.alarms++;
		if (worker->conf.log)
			ob_log(worker->conf.log, OB_LOG_ERROR,
			       "most keys fail at once: taken as an outage, nothing is given up",
			       OB_KV("relay", worker->conf.relay->name));
	}
	ob_flight_drop_failures(&worker->flight, now);
}

/* The oldest outcomes; with row claims, those of one claim. */
static size_t collect(struct ob_relay_worker *worker)
{
	struct ob_entry *entry = ob_flight_outcome(&worker->flight);
	const struct ob_flight_batch *claim =
		entry && ob_worker_claims(worker) ? entry->batch : NULL;
	size_t count = 0;

	for (; entry; entry = ob_flight_outcome_next(&worker->flight, entry)) {
		if (claim && entry->batch != claim)
			continue;
		worker->settling[count] = entry;
		worker->outcomes[count] = (struct ob_outcome){
			.message = entry->message,
			.kind = entry->outcome,
			.delay_ms = entry->delay_ms,
			.error = ob_str(entry->error ? entry->error : ""),
		};
		count++;
	}
	return count;
}

/* The leases of the outcomes' partitions, with the epochs under which they were fetched. */
static size_t collect_leases(struct ob_relay_worker *worker, size_t outcomes)
{
	bool seen[OB_PARTITIONS_MAX] = { false };
	size_t count = 0;

	for (size_t i = 0; i < outcomes; i++) {
		uint32_t p = worker->outcomes[i].message->partition;

		if (seen[p])
			continue;
		seen[p] = true;
		worker->lost[count] = false;
		worker->leases[count++] = (struct ob_lease){ p, worker->parts[p].epoch };
	}
	return count;
}

static bool is_lost(const struct ob_relay_worker *worker, size_t leases, uint32_t partition)
{
	for (size_t i = 0; i < leases; i++) {
		if (worker->lost[i] && worker->leases[i].partition == partition)
			return true;
	}
	return false;
}

/* Count what was applied, as exactly as the store tells, and let it go. */
static void let_go(struct ob_relay_worker *worker, size_t count, size_t leases, bool any_lost)
{
	int64_t now = ob_worker_now(worker);

	for (size_t i = 0; i < count; i++) {
		const struct ob_outcome *outcome = &worker->outcomes[i];
		struct ob_entry *entry = worker->settling[i];
		bool lost = any_lost && is_lost(worker, leases, outcome->message->partition);

		if (!lost && outcome->kind == OB_OUTCOME_PUBLISHED)
			worker->data.published++;
		if (!lost &&
		    (outcome->kind == OB_OUTCOME_RETRY || outcome->kind == OB_OUTCOME_DEAD))
			worker->data.failed++;
		if (!lost && outcome->kind == OB_OUTCOME_DEAD)
			worker->data.dead++;
		if (!lost && outcome->kind == OB_OUTCOME_RETRY) {
			int64_t due = now + outcome->delay_ms * 1000;

			worker->data.retries++;
			if (due < worker->retry_due_us)
				worker->retry_due_us = due;
		}
		/* Whatever was not plainly published may have set other rows free. */
		if (outcome->kind != OB_OUTCOME_PUBLISHED || outcome->message->attempts > 0)
			worker->hungry = true;
		ob_flight_settled(&worker->flight, entry);
	}
}

static void drop_lost(struct ob_relay_worker *worker, size_t leases)
{
	for (size_t i = 0; i < leases; i++) {
		uint32_t partition = worker->leases[i].partition;

		if (!worker->lost[i])
			continue;
		ob_worker_say_lost(worker, partition);
		ob_worker_lose(worker, partition);
		if (worker->conf.log)
			ob_log(worker->conf.log, OB_LOG_WARN,
			       "lease was taken by another worker, its results are discarded",
			       OB_KV("relay", worker->conf.relay->name),
			       OB_KI("partition", partition));
	}
}

bool ob_worker_settle(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_settled settled;
	int64_t began = ob_worker_now(worker);

	look_for_outage(worker);

	size_t count = collect(worker);
	bool claims = ob_worker_claims(worker);
	size_t leases = claims || count == 0 ? 0 : collect_leases(worker, count);

	if (count == 0)
		return true;

	struct ob_settle settle = {
		.target = worker->conf.relay->name,
		.owner = worker->owner,
		.leases = worker->leases,
		.lease_count = leases,
		.token = claims ? &worker->settling[0]->batch->token : NULL,
		.outcomes = worker->outcomes,
		.outcome_count = count,
		.ordering = worker->flight.conf.ordering,
		.delete_published = worker->conf.relay->after_publish == OB_AFTER_DELETE,
		.hold_dead = worker->conf.relay->on_dead == OB_ON_DEAD_HOLD,
	};

	/* Only outcomes that the sink itself has acknowledged (or refused) are among these. */
	(void)OB_FAULT(OB_FAULT_SETTLE_BEFORE);
	if (ob_store_settle(worker->conf.store, &settle, worker->lost, &settled, &err) < 0) {
		ob_worker_store_failed(worker, "settling", &err);
		return true;
	}
	(void)OB_FAULT(OB_FAULT_SETTLE_AFTER);
	ob_worker_store_ok(worker);
	worker->data.settles++;
	worker->data.lost += settled.lost;
	worker->data.vanished += settled.vanished;
	worker->data.last_settle_us = ob_worker_now(worker) - began;
	worker->data.settle_us += (uint64_t)worker->data.last_settle_us;
	let_go(worker, count, leases, settled.lost > 0);
	drop_lost(worker, leases);
	return true;
}
