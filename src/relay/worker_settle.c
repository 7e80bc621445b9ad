/* SPDX-License-Identifier: MIT */
/*
 * The worker's settle: progress over what has an outcome, and the exceptions, go to the store
 * together, fenced by the journal.
 */
#include "base/cleanup.h"
#include "log/cover.h"
#include "relay/faultpoints.h"
#include "relay/worker_impl.h"

#include <assert.h>

/* ---- when ------------------------------------------------------------ */

/*
 * A message that is not confirmed while others, read later, are: the position goes on without it.
 * It becomes an exception first, in the same transaction, so it is not lost when we crash (P1); and
 * one slow receiver does not make all that others have confirmed be repeated then (P4).
 */
static void spill_stragglers(struct ob_relay_worker *worker, int64_t now)
{
	struct ob_flight *flight = &worker->flight;
	bool idle = flight->ready.next == &flight->ready && worker->unrecorded > 0;

	/* During an outage nothing passes: a spill would turn all of it into exceptions for
	 * nothing. */
	if (now < worker->spill_us || flight->in_flight == 0 ||
	    worker->breaker.state != OB_BREAKER_CLOSED)
		return;
	worker->spill_us = now + OB_WORKER_SETTLE_US;

	uint64_t span = ob_track_spill(worker->track, idle ? now - OB_WORKER_SPILL_US : INT64_MIN);

	for (uint32_t i = 0; span > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state >= OB_ENTRY_QUEUED && entry->state <= OB_ENTRY_JUDGE &&
		    entry->span > 0 && entry->span <= span)
			ob_flight_spill(flight, entry);
	}
}

bool ob_worker_settle_due(struct ob_relay_worker *worker)
{
	const struct ob_flight *flight = &worker->flight;
	const struct ob_entry *oldest = ob_flight_outcome(flight);
	int64_t now = ob_worker_now(worker);

	if (worker->settles)
		return !worker->job_runs;
	spill_stragglers(worker, now);
	if (flight->spills > 0 || now >= worker->flush_us ||
	    (worker->unrecorded > 0 && flight->count == 0))
		return true;
	if (!oldest)
		return false;
	return flight->unsettled >= worker->conf.relay->batch_size ||
	       flight->in_flight + flight->queued == 0 ||
	       now - oldest->since_us >= OB_WORKER_SETTLE_US;
}

/* ---- what ------------------------------------------------------------ */

static bool add_change(struct ob_relay_worker *worker, const struct ob_entry *entry,
		       enum ob_outcome_kind kind)
{
	struct ob_change *change = &worker->changes[worker->change_count];
	struct ob_str error = ob_str(entry->error ? entry->error : "");
	bool promote;

	if (!ob_exception_decide(&worker->decide, entry->message, kind, entry->delay_ms, error,
				 change, &promote))
		return false;
	worker->change_count++;
	worker->tally[change->partition].changed = true;
	if (promote)
		worker->promotes[worker->promote_count++] = (struct ob_promote){
			.partition = entry->message->partition,
			.queue = ob_exception_queue(&worker->decide, entry->message),
		};
	return true;
}

/* It has an outcome: progress need not wait for it any more. Once for each message. */
static void count_outcome(struct ob_relay_worker *worker, struct ob_entry *entry, bool changes)
{
	struct ob_worker_tally *tally = &worker->tally[entry->message->partition];

	/* An exception that stays as it is leaves nothing to record: no row would ever tell. */
	if (entry->counted || (entry->span == 0 && !changes))
		return;
	entry->counted = true;
	if (entry->span > 0)
		ob_track_close(worker->track, entry->span, entry->message->partition);
	entry->span = 0;
	tally->unrecorded++;
	worker->unrecorded++;
	tally->published += entry->outcome == OB_OUTCOME_PUBLISHED;
	tally->failed += entry->outcome == OB_OUTCOME_RETRY || entry->outcome == OB_OUTCOME_DEAD;
}

static void add_settling(struct ob_relay_worker *worker, struct ob_entry *entry,
			 struct ob_flight_batch *batch)
{
	worker->settling[worker->settling_count++] =
		(struct ob_settling){ entry, entry->order, batch };
}

static void collect_outcomes(struct ob_relay_worker *worker)
{
	struct ob_entry *next;

	for (struct ob_entry *entry = ob_flight_outcome(&worker->flight); entry; entry = next) {
		next = ob_flight_outcome_next(&worker->flight, entry);
		ob_flight_unspill(&worker->flight, entry);
		count_outcome(worker, entry, add_change(worker, entry, entry->outcome));
		ob_flight_settle_begin(&worker->flight, entry);
		add_settling(worker, entry, NULL);
	}
}

static void collect_spills(struct ob_relay_worker *worker)
{
	struct ob_flight *flight = &worker->flight;

	for (uint32_t i = 0; flight->spills > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state == OB_ENTRY_FREE || entry->spill != OB_SPILL_WANTED)
			continue;
		(void)add_change(worker, entry, OB_OUTCOME_SPILL);
		if (entry->span > 0)
			ob_track_close(worker->track, entry->span, entry->message->partition);
		entry->span = 0;
		entry->spill = OB_SPILL_SETTLING;
		entry->batch->refs++; /* the settler reads its key, even if we lose it meanwhile */
		add_settling(worker, entry, entry->batch);
	}
}

static int by_queue(const void *a, const void *b)
{
	const struct ob_promote *x = a, *y = b;

	if (x->partition != y->partition)
		return x->partition < y->partition ? -1 : 1;

	size_t n = x->queue.n < y->queue.n ? x->queue.n : y->queue.n;
	int r = n > 0 ? memcmp(x->queue.p, y->queue.p, n) : 0;

	return r != 0 ? r : (x->queue.n > y->queue.n) - (x->queue.n < y->queue.n);
}

/* Each queue once: many rows of one key may be parked together. */
static void unite_promotes(struct ob_relay_worker *worker)
{
	size_t kept = 0;

	if (worker->promote_count < 2)
		return;
	qsort(worker->promotes, worker->promote_count, sizeof(worker->promotes[0]), by_queue);
	for (size_t i = 0; i < worker->promote_count; i++) {
		if (kept == 0 || by_queue(&worker->promotes[kept - 1], &worker->promotes[i]) != 0)
			worker->promotes[kept++] = worker->promotes[i];
	}
	worker->promote_count = kept;
}

/*
 * A journal row for each partition that has changes, or progress over messages; on a flush also
 * over what was not ours. With changes the row is needed even where progress stands still: it is
 * the fence.
 */
static void collect_settle_parts(struct ob_relay_worker *worker, bool flush)
{
	uint32_t numbers = OB_LANES * worker->partition_count;

	worker->part_count = 0;
	for (uint32_t p = 0; p < numbers; p++) {
		struct ob_worker_tally *tally = &worker->tally[p];
		const struct ob_progress *progress;
		uint64_t span;

		if ((tally->unrecorded == 0 && !tally->changed && !flush) ||
		    !ob_track_has(worker->track, p))
			continue;
		if (!ob_track_recordable(worker->track, p, &progress, &span) && !tally->changed)
			continue;
		tally->changed = false;
		worker->settle_spans[worker->part_count] = span;
		worker->settle_parts[worker->part_count++] = (struct ob_settle_part){
			.partition = p,
			.epoch = worker->parts[ob_worker_hash(worker, p)].epoch,
			.batch = ob_track_batch(worker->track, p) + 1,
			.progress = *progress,
			.published = tally->published,
			.failed = tally->failed,
		};
	}
}

static struct ob_settle_part *find_settle_part(struct ob_relay_worker *worker, uint32_t partition);

/*
 * An exception that is out before progress covers its row: without it the row would be read from
 * the log, and sent again. An operator may have made it of a row that nobody had read, or an owner
 * before us whose progress over it was not recorded.
 */
static void keep_those_ahead(struct ob_relay_worker *worker)
{
	OB_CLEANUP(ob_cover_close) struct ob_cover cover = { 0 };
	const struct ob_settle_part *covered = NULL;

	for (size_t i = 0; i < worker->change_count; i++) {
		struct ob_change *change = &worker->changes[i];
		const struct ob_settle_part *part = find_settle_part(worker, change->partition);

		if (change->kind != OB_CHANGE_REMOVE || !part)
			continue;
		if (part != covered) {
			ob_cover_close(&cover);
			(void)ob_cover_open(&cover, &part->progress);
			covered = part;
		}
		if (ob_cover_has(&cover, change->seq, change->txid))
			continue;
		change->kind = OB_CHANGE_SET;
		change->state = OB_STATE_DONE;
		change->due = OB_DUE_NEVER;
		change->queue = OB_STR_NULL;
	}
}

static struct ob_settle_part *find_settle_part(struct ob_relay_worker *worker, uint32_t partition)
{
	size_t low = 0, high = worker->part_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (worker->settle_parts[mid].partition < partition)
			low = mid + 1;
		else
			high = mid;
	}
	return low < worker->part_count && worker->settle_parts[low].partition == partition
		       ? &worker->settle_parts[low]
		       : NULL;
}

/* ---- afterwards ------------------------------------------------------ */

static void count_settled(struct ob_relay_worker *worker, const struct ob_entry *entry)
{
	switch (entry->outcome) {
	case OB_OUTCOME_PUBLISHED:
		worker->data.published++;
		worker->data.bytes += entry->message->payload.n;
		break;
	case OB_OUTCOME_RETRY: {
		int64_t due = ob_worker_now(worker) + entry->delay_ms * 1000;

		worker->data.retries++;
		worker->data.failed++;
		if (due < worker->retry_due_us)
			worker->retry_due_us = due;
		break;
	}
	case OB_OUTCOME_DEAD:
		worker->data.failed++;
		worker->data.dead++;
		break;
	case OB_OUTCOME_PARK:
		worker->data.parked++;
		break;
	case OB_OUTCOME_DELAY:
	case OB_OUTCOME_SPILL:
		break;
	}
	/* The queue of an exception that is out, or parked without a head, may have a new head. */
	if (entry->outcome != OB_OUTCOME_PUBLISHED || entry->message->excepted)
		worker->exceptions_due = true;
}

/* One outcome or spill of a settle that was answered. */
static void end_one(struct ob_relay_worker *worker, const struct ob_settling *settling)
{
	struct ob_entry *entry = settling->entry;
	bool spill = settling->batch != NULL;

	if (spill) {
		settling->batch->refs--;
		if (entry->order != settling->order || entry->state == OB_ENTRY_FREE)
			return;
	}

	const struct ob_settle_part *part = find_settle_part(worker, entry->message->partition);
	/* Without a row there was nothing to write about it: progress will tell. */
	enum ob_settled settled = part ? part->settled : OB_SETTLED;

	/*
	 * MOVED: an operator took the number; the epoch is still ours, so it is settled again with
	 * the next one. LOST: the partition is another's, and he will send what we could not record
	 * (P7): it is forgotten here, and nobody is told of it as if it were certain.
	 */

	if (settled == OB_SETTLE_MOVED && spill) {
		entry->spill = OB_SPILL_WANTED;
	} else if (settled == OB_SETTLE_MOVED) {
		ob_flight_settle_failed(&worker->flight, entry);
	} else {
		if (settled == OB_SETTLED && !spill)
			count_settled(worker, entry);
		if (settled == OB_SETTLED && !spill &&
		    (entry->outcome == OB_OUTCOME_RETRY || entry->outcome == OB_OUTCOME_DEAD))
			ob_worker_tell(worker, entry, entry->outcome == OB_OUTCOME_DEAD);
		worker->data.lost += settled == OB_SETTLE_LOST;
		ob_flight_settled(&worker->flight, entry);
	}
}

static void end_part(struct ob_relay_worker *worker, size_t at)
{
	const struct ob_settle_part *part = &worker->settle_parts[at];
	struct ob_worker_tally *tally = &worker->tally[part->partition];
	uint32_t hash = ob_worker_hash(worker, part->partition);

	/* It may be gone already: it was settled concurrently. */
	if (!ob_track_has(worker->track, part->partition))
		return;
	switch (part->settled) {
	case OB_SETTLED:
		ob_track_recorded(worker->track, part->partition, worker->settle_spans[at],
				  part->batch);
		/* What was confirmed after an open message still waits for it. */
		worker->unrecorded -= tally->unrecorded;
		*tally = (struct ob_worker_tally){
			.unrecorded = ob_track_unrecorded(worker->track, part->partition),
		};
		worker->unrecorded += tally->unrecorded;
		return;
	case OB_SETTLE_MOVED:
		ob_track_set_batch(worker->track, part->partition, part->batch);
		return;
	case OB_SETTLE_LOST:
		break;
	}
	if (worker->conf.log)
		ob_log(worker->conf.log, OB_LOG_WARN,
		       "partition was taken over by another worker, its results are discarded",
		       OB_KV("relay", worker->conf.relay->name), OB_KI("partition", hash));
	ob_worker_lose(worker, hash, true);
}

/* The slowest of late: a slow one is remembered at once and forgotten over the next ten or so. */
static void note_settle_time(struct ob_relay_worker *worker, int64_t took_us)
{
	worker->settle_slow_us -= worker->settle_slow_us / 8;
	if (took_us > worker->settle_slow_us)
		worker->settle_slow_us = took_us;
}

static void end_settle(struct ob_relay_worker *worker)
{
	(void)OB_FAULT(OB_FAULT_SETTLE_AFTER);
	worker->data.settles++;
	worker->data.last_settle_us = ob_worker_now(worker) - worker->settle_began_us;
	worker->data.settle_us += (uint64_t)worker->data.last_settle_us;
	if (worker->part_count > 0)
		note_settle_time(worker, worker->data.last_settle_us);
	ob_histogram_note(&worker->data.times.settle, ob_histogram_us, worker->data.last_settle_us);
	for (size_t i = 0; i < worker->settling_count; i++)
		end_one(worker, &worker->settling[i]);
	for (size_t i = 0; i < worker->part_count; i++)
		end_part(worker, i);
	for (size_t i = 0; i < worker->part_count; i++)
		ob_progress_done(&worker->settle_parts[i].progress);
	worker->part_count = worker->settling_count = 0;
	worker->settles = false;
}

/* ---- concurrently with the next read --------------------------------- */

/*
 * Only while something is to be read. Outcomes that hold a key do so until the settle has ended,
 * and a read that began before parks what it brings of that key (flight.c).
 */
static bool may_run_beside(const struct ob_relay_worker *worker)
{
	return worker->conf.settler && ob_worker_is_hungry(worker) &&
	       worker->stopping == OB_STOP_NO && ob_worker_now(worker) >= worker->unaided_until_us;
}

static bool begin_settle_job(struct ob_relay_worker *worker)
{
	if (!worker->conf.settler->start(worker->conf.settler, &worker->job.base))
		return false;
	worker->job_runs = true;
	return true;
}

bool ob_worker_is_settling(const struct ob_relay_worker *worker, uint32_t hash)
{
	for (size_t i = 0; worker->settles && i < worker->part_count; i++) {
		if (ob_worker_hash(worker, worker->settle_parts[i].partition) == hash)
			return true;
	}
	return false;
}

/* On our own connection now, and for a while: there may be no room for another one. */
static void beside_failed(struct ob_relay_worker *worker, const struct ob_err *err)
{
	int64_t unaided_ms = ob_backoff_next_ms(&worker->unaided_backoff);

	worker->unaided_until_us = ob_worker_now(worker) + unaided_ms * 1000;
	ob_metrics_error(worker->conf.metrics, OB_ERROR_OF_STORE,
			 ob_clock_real_us(worker->conf.clock), err, NULL);
	if (worker->conf.log)
		ob_log(worker->conf.log, OB_LOG_WARN,
		       "settling on a second connection failed, going on with one",
		       OB_KV("relay", worker->conf.relay->name), OB_KI("for_ms", unaided_ms),
		       OB_KV("error", err->msg));
}

bool ob_worker_settle_end(struct ob_relay_worker *worker)
{
	const struct ob_settle_job *job = &worker->job;

	if (!worker->job_runs || !worker->conf.settler->ended(worker->conf.settler, false))
		return false;
	worker->job_runs = false;
	if (job->base.r >= 0) {
		ob_backoff_reset(&worker->unaided_backoff);
		end_settle(worker);
		return true;
	}
	if (job->base.err.kind == OB_ERR_FATAL)
		ob_worker_store_failed(worker, "settling", &job->base.err);
	else
		beside_failed(worker, &job->base.err);
	return true;
}

bool ob_worker_has_unrecorded(const struct ob_relay_worker *worker, uint32_t hash)
{
	for (uint32_t lane = 0; lane < OB_LANES; lane++) {
		if (worker->tally[ob_worker_number(worker, hash, lane)].unrecorded > 0)
			return true;
	}
	return false;
}

/* ---- all of it ------------------------------------------------------- */

static void collect_settle(struct ob_relay_worker *worker)
{
	int64_t now = ob_worker_now(worker);
	bool flush = now >= worker->flush_us;

	worker->settling_count = worker->change_count = worker->promote_count = 0;
	collect_outcomes(worker);
	collect_spills(worker);
	unite_promotes(worker);
	collect_settle_parts(worker, flush);
	keep_those_ahead(worker);
	for (size_t i = 0; i < worker->part_count; i++) {
		struct ob_progress own = { 0 };

		/* The track may move on while the settler still reads it. */
		ob_progress_set(&own, &worker->settle_parts[i].progress);
		worker->settle_parts[i].progress = own;
	}
	if (flush)
		worker->flush_us = now + OB_WORKER_FLUSH_US;
	worker->job = (struct ob_settle_job){
		.base = { .call = ob_settle_job_call },
		.settle = {
			.reader = worker->conf.relay->name,
			.owner = worker->owner,
			.parts = worker->settle_parts,
			.part_count = worker->part_count,
			.changes = worker->changes,
			.change_count = worker->change_count,
			.promotes = worker->promotes,
			.promote_count = worker->promote_count,
		},
	};
}

/*
 * A settle whose reply was lost may have happened. So it is tried again as it is, until the store
 * has answered it: with other contents under the same number, what it says could contradict what is
 * there.
 */
bool ob_worker_settle(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;

	if (!worker->settles) {
		if (ob_breaker_is_mass(&worker->breaker, ob_worker_now(worker))) {
			worker->silent_us = 0;
			ob_worker_outage(worker,
					 "most keys fail at once: taken as an outage, "
					 "nothing is given up",
					 "");
		}
		worker->settle_began_us = ob_worker_now(worker);
		collect_settle(worker);
		if (worker->settling_count + worker->part_count == 0)
			return false;
		worker->settles = true;
	}
	if (worker->part_count == 0) {
		/* Confirmed, but one before them is not: they leave memory, progress will tell. */
		end_settle(worker);
		return true;
	}
	/* Only outcomes that the sink itself has acknowledged (or refused) are among these. */
	(void)OB_FAULT(OB_FAULT_SETTLE_BEFORE);
	if (may_run_beside(worker) && begin_settle_job(worker))
		return true;
	if (ob_store_settle(worker->conf.store, &worker->job.settle, &err) < 0) {
		ob_worker_store_failed(worker, "settling", &err);
	} else {
		ob_worker_store_ok(worker);
		end_settle(worker);
	}
	return true;
}
