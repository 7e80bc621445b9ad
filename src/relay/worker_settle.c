/* SPDX-License-Identifier: MIT */
/* The worker's settle: what the sink has acknowledged is written down, fenced by our leases. */
#include "relay/faultpoints.h"
#include "relay/mutants.h"
#include "relay/worker_impl.h"

#include <assert.h>

bool ob_worker_settle_due(const struct ob_relay_worker *worker)
{
	const struct ob_entry *oldest = ob_flight_outcome(&worker->flight);

	if (!oldest || worker->job_runs)
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

static bool is_lost(const struct ob_relay_worker *worker, uint32_t partition)
{
	for (size_t i = 0; i < worker->lease_count; i++) {
		if (worker->lost[i] && worker->leases[i].partition == partition)
			return true;
	}
	return false;
}

/* Count what was applied, as exactly as the store tells, and let it go. */
static void let_go(struct ob_relay_worker *worker, bool any_lost)
{
	int64_t now = ob_worker_now(worker);

	for (size_t i = 0; i < worker->settling_count; i++) {
		const struct ob_outcome *outcome = &worker->outcomes[i];
		struct ob_entry *entry = worker->settling[i];
		bool lost = any_lost && is_lost(worker, outcome->message->partition);

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
		if (outcome->kind != OB_OUTCOME_PUBLISHED || outcome->message->attempts > 0) {
			worker->hungry = true;
			worker->generation++;
		}
		ob_flight_settled(&worker->flight, entry);
	}
}

static void drop_lost(struct ob_relay_worker *worker)
{
	for (size_t i = 0; i < worker->lease_count; i++) {
		const struct ob_lease *lease = &worker->leases[i];
		const struct ob_worker_part *part = &worker->parts[lease->partition];

		if (!worker->lost[i])
			continue;
		if (worker->conf.log)
			ob_log(worker->conf.log, OB_LOG_WARN,
			       "lease was taken by another worker, its results are discarded",
			       OB_KV("relay", worker->conf.relay->name),
			       OB_KI("partition", lease->partition));
		/* It may be gone already: it was settled beside us. */
		if (!part->owned)
			continue;
		assert(part->epoch == lease->epoch);
		ob_worker_say_lost(worker, lease->partition);
		ob_worker_lose(worker, lease->partition);
	}
}

static void take_in(struct ob_relay_worker *worker, const struct ob_settled *settled,
		    int64_t began_us)
{
	(void)OB_FAULT(OB_FAULT_SETTLE_AFTER);
	worker->data.settles++;
	worker->data.lost += settled->lost;
	worker->data.vanished += settled->vanished;
	worker->generation += settled->lost + settled->vanished > 0;
	worker->data.last_settle_us = ob_worker_now(worker) - began_us;
	worker->data.settle_us += (uint64_t)worker->data.last_settle_us;
	let_go(worker, settled->lost > 0);
	drop_lost(worker);
}

/* ---- beside the next fetch ------------------------------------------- */

/*
 * Only where something is to be fetched meanwhile, and only what was plainly published: all
 * else changes what may be fetched, and its key waits for it.
 */
static bool may_run_beside(const struct ob_relay_worker *worker)
{
	if (!worker->conf.settler || ob_worker_claims(worker) || !worker->hungry ||
	    worker->stopping != OB_STOP_NO || ob_worker_now(worker) < worker->alone_until_us)
		return false;
	for (size_t i = 0; i < worker->settling_count; i++) {
		const struct ob_outcome *outcome = &worker->outcomes[i];

		if (outcome->kind != OB_OUTCOME_PUBLISHED || outcome->message->attempts > 0)
			return false;
	}
	return true;
}

static bool begin_beside(struct ob_relay_worker *worker, const struct ob_settle *settle)
{
	worker->job = (struct ob_settle_job){ .settle = *settle, .lost = worker->lost };
	if (!worker->conf.settler->start(worker->conf.settler, &worker->job))
		return false;
	worker->job_runs = true;
	worker->job_began_us = ob_worker_now(worker);
	for (size_t i = 0; i < worker->settling_count; i++)
		ob_flight_settle_begin(&worker->flight, worker->settling[i]);
	return true;
}

bool ob_worker_is_settling(const struct ob_relay_worker *worker, uint32_t partition)
{
	for (size_t i = 0; worker->job_runs && i < worker->lease_count; i++) {
		if (worker->leases[i].partition == partition)
			return true;
	}
	return false;
}

/* Outcomes again, but for those whose lease was lost meanwhile. */
static void put_back(struct ob_relay_worker *worker)
{
	ob_flight_settle_failed(&worker->flight);
	for (size_t i = 0; i < worker->settling_count; i++) {
		struct ob_entry *entry = worker->settling[i];

		if (!worker->parts[entry->message->partition].owned)
			ob_flight_drop(&worker->flight, entry, ob_worker_now(worker));
	}
}

/* By ourselves now, and for a while: there may be no room for another connection. */
static void beside_failed(struct ob_relay_worker *worker, const struct ob_err *err)
{
	int64_t alone_ms = ob_backoff_next_ms(&worker->alone_backoff);

	worker->alone_until_us = ob_worker_now(worker) + alone_ms * 1000;
	ob_metrics_error(worker->conf.metrics, ob_clock_real_us(worker->conf.clock), err, NULL);
	if (worker->conf.log)
		ob_log(worker->conf.log, OB_LOG_WARN,
		       "settling on a second connection failed, going on with one",
		       OB_KV("relay", worker->conf.relay->name), OB_KI("for_ms", alone_ms),
		       OB_KV("error", err->msg));
}

bool ob_worker_settle_end(struct ob_relay_worker *worker)
{
	const struct ob_settle_job *job = &worker->job;

	if (!worker->job_runs || !worker->conf.settler->ended(worker->conf.settler, false))
		return false;
	worker->job_runs = false;
	if (job->r >= 0) {
		ob_backoff_reset(&worker->alone_backoff);
		take_in(worker, &job->settled, worker->job_began_us);
		return true;
	}
	put_back(worker);
	if (job->err.kind == OB_ERR_FATAL)
		ob_worker_store_failed(worker, "settling", &job->err);
	else
		beside_failed(worker, &job->err);
	return true;
}

/* ---- all of it ------------------------------------------------------- */

bool ob_worker_settle(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_settled settled;
	int64_t began = ob_worker_now(worker);

	look_for_outage(worker);
	bool claims = ob_worker_claims(worker);

	worker->settling_count = collect(worker);
	if (worker->settling_count == 0)
		return true;
	worker->lease_count = claims ? 0 : collect_leases(worker, worker->settling_count);

	struct ob_settle settle = {
		.target = worker->conf.relay->name,
		.owner = worker->owner,
		.leases = worker->leases,
		.lease_count = worker->lease_count,
		.token = claims ? &worker->settling[0]->batch->token : NULL,
		.outcomes = worker->outcomes,
		.outcome_count = worker->settling_count,
		.ordering = worker->flight.conf.ordering,
		.delete_published = worker->conf.relay->after_publish == OB_AFTER_DELETE,
		.hold_dead = worker->conf.relay->on_dead == OB_ON_DEAD_HOLD,
	};

	/* Only outcomes that the sink itself has acknowledged (or refused) are among these. */
	(void)OB_FAULT(OB_FAULT_SETTLE_BEFORE);
	if (may_run_beside(worker) && begin_beside(worker, &settle))
		return true;
	if (ob_store_settle(worker->conf.store, &settle, worker->lost, &settled, &err) < 0) {
		ob_worker_store_failed(worker, "settling", &err);
	} else {
		ob_worker_store_ok(worker);
		take_in(worker, &settled, began);
	}
	return true;
}
