/* SPDX-License-Identifier: MIT */
/* The worker's fetch: when to look for work, where, and how much. */
#include "relay/faultpoints.h"
#include "relay/mutants.h"
#include "relay/worker_impl.h"

/* The partitions that may be read now, another one first each time. */
static size_t choose_partitions(struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);
	size_t count = 0, n = worker->view_count;

	for (size_t i = 0; i < n; i++) {
		uint32_t p = worker->view[(i + worker->rotation) % n].partition;
		const struct ob_worker_part *part = &worker->parts[p];

		if (part->owned && !part->draining && now < part->deadline_us) {
			/* The grant: an epoch may come again, with other rows. */
			worker->fetch_epochs[count] = part->grant;
			worker->fetch_parts[count++] = p;
		}
	}
	worker->rotation++;
	if (OB_IS_MUTANT(EMPTY_SET) && n == 0) {
		for (; count < worker->partition_count; count++)
			worker->fetch_parts[count] = (uint32_t)count;
	}
	return count;
}

bool ob_worker_can_fetch(const struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);

	if (ob_worker_claims(worker) || OB_IS_MUTANT(EMPTY_SET))
		return true;
	for (size_t i = 0; i < worker->view_count; i++) {
		const struct ob_worker_part *part = &worker->parts[worker->view[i].partition];

		if (part->owned && !part->draining && now < part->deadline_us)
			return true;
	}
	return false;
}

/* How many messages there is room for, worth a call. */
static uint32_t room(struct ob_relay_worker *worker)
{
	uint32_t batch = worker->conf.relay->batch_size;
	uint32_t left = worker->flight.conf.max_messages - worker->flight.count;

	if (left < (batch + 1) / 2 || worker->flight.bytes >= worker->flight.conf.max_bytes)
		return 0;
	/*
	 * While the sink is away nothing is read; for the probe one message is enough, if it is no
	 * suspect.
	 */
	if (worker->breaker.state != OB_BREAKER_CLOSED) {
		if (ob_worker_probe(worker) ||
		    ob_breaker_allows(&worker->breaker, ob_worker_now(worker)) == 0)
			return 0;
		if (ob_worker_claims(worker) && worker->suspects.accused < batch)
			batch = 1 + worker->suspects.accused;
	}
	return left < batch ? left : batch;
}

static bool is_due(struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);

	if (worker->stopping != OB_STOP_NO || now < worker->store_retry_us)
		return false;
	if (atomic_exchange(&worker->nudged, false))
		worker->hungry = true;
	return worker->hungry || now >= worker->idle_until_us || now >= worker->retry_due_us;
}

static int read_rows(struct ob_relay_worker *worker, struct ob_batch *batch, uint32_t limit,
		     size_t partitions, struct ob_err *err)
{
	struct ob_fetch fetch = {
		.target = worker->conf.relay->name,
		.partitions = worker->fetch_parts,
		.partition_count = partitions,
		.epochs = worker->fetch_epochs,
		.generation = OB_IS_MUTANT(ONE_GENERATION)
				      ? 1
				      : worker->generation + worker->flight.forgotten,
		.limit = limit,
		.max_bytes = (size_t)worker->conf.relay->batch_bytes,
		.ordering = worker->flight.conf.ordering,
	};

	fetch.exclude_count = ob_flight_seqs(&worker->flight, &fetch.exclude);
	return ob_store_fetch(worker->conf.store, &fetch, batch, err);
}

static int claim_rows(struct ob_relay_worker *worker, struct ob_flight_batch *batch, uint32_t limit,
		      struct ob_err *err)
{
	int64_t ttl_ms = worker->conf.relay->claim_ttl_ms;
	char name[OB_UUID_TEXT_SIZE];

	/* The same token after a failed call: if it got through, its rows come now. */
	if (ob_uuid_is_nil(&worker->token)) {
		for (size_t i = 0; i < sizeof(worker->token.b); i++)
			worker->token.b[i] = (uint8_t)ob_rng_next(&worker->rng);
	}
	ob_uuid_format(&worker->conf.id, name);
	batch->token = worker->token;
	batch->deadline_us = ob_worker_now(worker) + (ttl_ms - ttl_ms / 5) * 1000;

	struct ob_claim claim = {
		.target = worker->conf.relay->name,
		.token = worker->token,
		.worker = name,
		.limit = limit,
		.max_bytes = (size_t)worker->conf.relay->batch_bytes,
		.ttl_ms = ttl_ms,
	};
	int r = ob_store_claim(worker->conf.store, &claim, &batch->batch, err);

	if (r >= 0)
		worker->token = (struct ob_uuid){ 0 };
	return r;
}

/* When to look again. A fetch that came back short has seen everything there was. */
static void plan_next(struct ob_relay_worker *worker, const struct ob_batch *batch, uint32_t limit,
		      uint32_t accepted)
{
	bool full = batch->count >= limit ||
		    batch->bytes * 2 >= (size_t)worker->conf.relay->batch_bytes;
	int64_t now = ob_worker_now(worker);

	if (batch->count > 0)
		ob_backoff_reset(&worker->idle_backoff);
	if (accepted < batch->count)
		worker->generation++;
	worker->hungry = accepted > 0 && full;
	worker->idle_until_us = now + ob_backoff_next_ms(&worker->idle_backoff) * 1000;
	worker->forgotten = worker->flight.forgotten;
	worker->held_keys = worker->flight.held_keys;
}

bool ob_worker_fetch(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t began = ob_worker_now(worker);
	bool claims = ob_worker_claims(worker);
	uint32_t limit;
	size_t partitions;

	if (!is_due(worker))
		return false;
	limit = room(worker);
	partitions = claims ? 0 : choose_partitions(worker);
	if (limit == 0 || (!claims && partitions == 0))
		return false;

	struct ob_flight_batch *batch = ob_flight_fetch_begin(&worker->flight);

	if (!batch)
		return false;
	(void)OB_FAULT(OB_FAULT_FETCH_BEFORE);
	if (began >= worker->retry_due_us)
		worker->retry_due_us = INT64_MAX;

	int r = claims ? claim_rows(worker, batch, limit, &err)
		       : read_rows(worker, &batch->batch, limit, partitions, &err);

	if (r < 0) {
		ob_batch_reset(&batch->batch);
		(void)ob_flight_fetch_end(&worker->flight, batch);
		worker->generation++;
		worker->hungry = true;
		ob_worker_store_failed(worker, "fetching", &err);
		return true;
	}
	(void)OB_FAULT(OB_FAULT_FETCH_AFTER);
	ob_worker_store_ok(worker);
	worker->data.fetches++;
	worker->data.fetched += batch->batch.count;
	worker->data.last_fetch_us = ob_worker_now(worker) - began;
	worker->data.fetch_us += (uint64_t)worker->data.last_fetch_us;
	plan_next(worker, &batch->batch, limit, ob_flight_fetch_end(&worker->flight, batch));
	return true;
}

bool ob_worker_wants_news(const struct ob_relay_worker *worker)
{
	return worker->stopping == OB_STOP_NO && !worker->hungry && worker->store_retry_us == 0;
}

bool ob_worker_check_news(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;
	bool news = false;

	if (!ob_worker_wants_news(worker))
		return false;
	/* A hint only: when it fails, the next fetch will say why. */
	if (ob_store_wake_check(worker->conf.store, &news, &err) < 0 || !news)
		return false;
	worker->hungry = true;
	return true;
}
