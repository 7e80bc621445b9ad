/* SPDX-License-Identifier: MIT */
/* The worker's read: when to read, which partitions, how much, and what becomes of the rows. */
#include "base/glob.h"
#include "relay/faultpoints.h"
#include "relay/worker_impl.h"

#include <assert.h>

/* The lanes in the order in which they are served: above, normal, below. */
static const uint32_t lane_order[OB_LANES] = { 1, 0, 2 };

static bool may_read(const struct ob_relay_worker *worker, uint32_t hash, int64_t now)
{
	const struct ob_worker_part *part = &worker->parts[hash];

	return part->owned && part->taken && !part->draining && now < part->deadline_us;
}

bool ob_worker_can_read(const struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);

	for (size_t i = 0; i < worker->view_count; i++) {
		if (may_read(worker, worker->view[i].partition, now))
			return true;
	}
	return false;
}

void ob_worker_make_hungry(struct ob_relay_worker *worker)
{
	for (uint32_t lane = 0; lane < OB_LANES; lane++)
		worker->hungry[lane] = true;
}

bool ob_worker_is_hungry(const struct ob_relay_worker *worker)
{
	return worker->exceptions_due || worker->hungry[0] || worker->hungry[1] ||
	       worker->hungry[2];
}

/*
 * While a lane has a backlog, a message of a lane above it must not wait for all that stands before
 * it in the log: lanes are read by themselves then, those above first and again every few
 * milliseconds. -1: all lanes in one walk.
 */
static int choose_lane(struct ob_relay_worker *worker, int64_t now)
{
	for (uint32_t i = 0; worker->apart && i < OB_LANES; i++) {
		if (!worker->hungry[lane_order[i]])
			continue;
		for (uint32_t above = 0; above < i; above++) {
			if (now - worker->lane_read_us[lane_order[above]] >= OB_WORKER_LANE_US)
				return (int)lane_order[above];
		}
		return (int)lane_order[i];
	}
	/* All are at the end: together again. */
	worker->apart = false;
	return -1;
}

static size_t choose_parts(struct ob_relay_worker *worker, int lane, int64_t now)
{
	size_t count = 0;

	for (uint32_t i = 0; i < OB_LANES; i++) {
		for (size_t v = 0; (lane < 0 || lane == (int)i) && v < worker->view_count; v++) {
			uint32_t hash = worker->view[v].partition;
			uint32_t partition = ob_worker_number(worker, hash, i);

			if (!may_read(worker, hash, now))
				continue;
			worker->read_parts[count++] = (struct ob_read_part){
				.partition = partition,
				.from = *ob_track_read_from(worker->track, partition),
			};
		}
	}
	return count;
}

/* How many messages there is room for, worth a call. */
static uint32_t room_for_read(struct ob_relay_worker *worker)
{
	uint32_t batch = worker->conf.relay->batch_size;
	uint32_t left = worker->flight.conf.max_messages - worker->flight.count;
	/* What a call costs is shared by what it brings: while the sink is busy, a whole batch. */
	bool busy = worker->flight.queued + worker->flight.in_flight > batch / 2;

	if (left < 2 || left < (busy ? batch : (batch + 1) / 2) ||
	    worker->flight.bytes >= worker->flight.conf.max_bytes ||
	    !ob_track_has_room(worker->track))
		return 0;
	/*
	 * While the sink is away, what is in memory is enough to probe it with, unless all that may
	 * be sent are suspects: others must pass for them to be found out. Where it answered, and
	 * refused all of these, another one may pass.
	 */
	if (worker->breaker.state != OB_BREAKER_CLOSED && !worker->breaker.alarm &&
	    (ob_worker_has_probe(worker) ||
	     ob_breaker_allows(&worker->breaker, ob_worker_now(worker)) == 0))
		return 0;
	return left;
}

static bool is_due(struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);

	if (worker->stopping != OB_STOP_NO || now < worker->store_retry_us)
		return false;
	if (atomic_exchange(&worker->nudged, false) || now >= worker->idle_until_us ||
	    now >= worker->retry_due_us)
		ob_worker_make_hungry(worker);
	return ob_worker_is_hungry(worker);
}

/* ---- what a read brought --------------------------------------------- */

static bool matches_patterns(const char *const *patterns, size_t count, struct ob_str text)
{
	for (size_t i = 0; i < count; i++) {
		if (ob_glob_match(ob_str(patterns[i]), text))
			return true;
	}
	return count == 0;
}

bool ob_worker_is_wanted(const struct ob_worker_conf *conf, const struct ob_message *message)
{
	const struct ob_config_relay *relay = conf->relay;

	return matches_patterns(relay->types, relay->type_count, message->event_type) &&
	       matches_patterns(relay->aggregates, relay->aggregate_count,
				message->aggregate_type) &&
	       (!conf->wants || conf->wants(conf->wants_arg, message));
}

static void take_in(struct ob_relay_worker *worker, struct ob_flight_batch *batch, uint64_t span,
		    bool high)
{
	int64_t now = ob_worker_now(worker);

	for (uint32_t i = 0; i < batch->batch.count; i++) {
		struct ob_message *message = &batch->batch.messages[i];
		bool is_high = message->priority > 0;

		if (is_high != high ||
		    (!message->excepted && !ob_worker_is_wanted(&worker->conf, message)))
			continue;
		if (!message->excepted)
			ob_track_open(worker->track, span, message->partition);

		bool taken = ob_flight_take_in(&worker->flight, batch, message,
					       message->excepted ? 0 : span, now);
		assert(taken); /* the limits left room */
		(void)taken;
	}
}

/* Record where the read leads to; then its messages are open. */
static int open_span(struct ob_relay_worker *worker, struct ob_flight_batch *batch, size_t parts,
		     struct ob_err *err)
{
	uint64_t span = ob_track_span(worker->track, ob_worker_now(worker));
	int r = 0;

	for (size_t i = 0; i < parts && r >= 0; i++) {
		const struct ob_read_part *part = &worker->read_parts[i];

		if (part->reached)
			r = ob_track_reach(worker->track, part->partition, &part->after, err);
	}
	if (r < 0)
		return r;
	take_in(worker, batch, span, true);
	take_in(worker, batch, span, false);
	return 0;
}

/* When to read again. A read that came back short has seen everything there was. */
static void plan_next(struct ob_relay_worker *worker, const struct ob_batch *batch, int lane,
		      const struct ob_read_done *done)
{
	int64_t now = ob_worker_now(worker);

	if (batch->count > 0)
		ob_backoff_reset(&worker->idle_backoff);
	for (uint32_t i = 0; i < OB_LANES; i++) {
		if (lane >= 0 && lane != (int)i)
			continue;
		worker->hungry[i] = done->more;
		worker->lane_read_us[i] = now;
	}
	worker->apart = lane >= 0 || done->more;
	/* Those of the other lanes are still to be read. */
	worker->exceptions_due = done->more_exceptions || (lane >= 0 && worker->exceptions_due);
	worker->idle_until_us = now + ob_backoff_next_ms(&worker->idle_backoff) * 1000;
}

/* What the next read asks for. */
static void plan_read(struct ob_relay_worker *worker, uint32_t left, int lane)
{
	const struct ob_config_relay *relay = worker->conf.relay;
	/* Room for exceptions: little while none are known, since it is taken from the log's. */
	uint32_t most = worker->exceptions_due ? left / 2 : (left + 15) / 16;
	uint32_t share = most < relay->batch_size ? most : relay->batch_size;
	uint32_t limit = left - share < relay->batch_size ? left - share : relay->batch_size;
	struct ob_read *read = &worker->read_job.read;

	worker->read_lane = lane;
	worker->read_job = (struct ob_read_job){
		.base = { .call = ob_read_job_call, .err = OB_ERR_INIT },
		.read = {
			.reader = relay->name,
			.target = relay->reads,
			.parts = worker->read_parts,
			.part_count = choose_parts(worker, lane, ob_worker_now(worker)),
			.limit = limit,
			.max_bytes = (size_t)relay->batch_bytes,
			.exception_limit = share,
			.ordering = worker->flight.conf.ordering,
			.end_seq = worker->conf.end_seq,
		},
		.batch = &worker->read_batch->batch,
	};
	read->exclude_count = ob_flight_exceptions(&worker->flight, &read->exclude);
}

/* Take in what the read brought. */
static void finish_read(struct ob_relay_worker *worker)
{
	struct ob_read_job *job = &worker->read_job;
	struct ob_flight_batch *batch = worker->read_batch;
	uint32_t count = batch->batch.count;

	if (job->base.r >= 0) {
		job->base.r = open_span(worker, batch, job->read.part_count, &job->base.err);
		plan_next(worker, &batch->batch, worker->read_lane, &job->done);
		for (size_t i = 0; i < job->read.part_count; i++)
			ob_progress_done(&worker->read_parts[i].after);
	}
	ob_flight_read_end(batch);
	worker->read_batch = NULL;
	if (job->base.r < 0) {
		ob_worker_make_hungry(worker);
		ob_worker_store_failed(worker, "reading", &job->base.err);
		return;
	}
	(void)OB_FAULT(OB_FAULT_READ_AFTER);
	ob_worker_store_ok(worker);
	worker->data.fetches++;
	worker->data.fetched += count;
	worker->data.last_fetch_us = ob_worker_now(worker) - worker->read_began_us;
	worker->data.fetch_us += (uint64_t)worker->data.last_fetch_us;
	ob_histogram_note(&worker->data.times.fetch, ob_histogram_us, worker->data.last_fetch_us);
	ob_histogram_note(&worker->data.times.batch, ob_histogram_messages, count);
}

/* Handing a call to another thread costs some microseconds: worth it when the sink is busy. */
bool ob_worker_reads_ahead(const struct ob_relay_worker *worker)
{
	const struct ob_flight *flight = &worker->flight;

	return worker->conf.read_ahead &&
	       flight->queued + flight->in_flight >= worker->conf.read_ahead_from;
}

static bool begin_read_job(struct ob_relay_worker *worker)
{
	struct ob_store_thread *thread = worker->conf.read_ahead;

	if (!ob_worker_reads_ahead(worker))
		return false;
	worker->reading = thread->start(thread, &worker->read_job.base);
	return worker->reading;
}

bool ob_worker_read(struct ob_relay_worker *worker)
{
	struct ob_read_job *job = &worker->read_job;
	uint32_t left;

	if (!is_due(worker) || !ob_worker_can_read(worker))
		return false;
	left = room_for_read(worker);
	worker->read_batch = left > 0 ? ob_flight_read_begin(&worker->flight) : NULL;
	if (!worker->read_batch)
		return false;
	worker->read_began_us = ob_worker_now(worker);
	(void)OB_FAULT(OB_FAULT_READ_BEFORE);
	if (worker->read_began_us >= worker->retry_due_us)
		worker->retry_due_us = INT64_MAX;
	plan_read(worker, left, choose_lane(worker, worker->read_began_us));
	if (begin_read_job(worker))
		return true;
	job->base.r = job->base.call(&job->base, worker->conf.store, &job->base.err);
	finish_read(worker);
	return true;
}

bool ob_worker_read_end(struct ob_relay_worker *worker)
{
	if (!worker->conf.read_ahead->ended(worker->conf.read_ahead, false))
		return false;
	worker->reading = false;
	finish_read(worker);
	return true;
}

/* ---- news ------------------------------------------------------------ */

bool ob_worker_wants_news(const struct ob_relay_worker *worker)
{
	return worker->stopping == OB_STOP_NO && !ob_worker_is_hungry(worker) &&
	       worker->store_retry_us == 0 && !worker->reading;
}

bool ob_worker_check_news(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;
	bool news = false;

	if (!ob_worker_wants_news(worker))
		return false;
	/* A hint only: when it fails, the next read will say why. */
	if (ob_store_wake_check(worker->conf.store, &news, &err) < 0 || !news)
		return false;
	worker->data.woken++;
	ob_worker_make_hungry(worker);
	return true;
}
