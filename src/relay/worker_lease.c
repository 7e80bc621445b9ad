/* SPDX-License-Identifier: MIT */
/* The worker's side of the leases: what it may touch, what it has lost, what it has drained. */
#include "relay/faultpoints.h"
#include "relay/worker_impl.h"

static void answer(struct ob_relay_worker *worker, uint32_t hash, bool drained);

/* Forget one lane of it. What is at the sink would otherwise still go out. */
static void forget(struct ob_relay_worker *worker, uint32_t partition)
{
	struct ob_worker_tally *tally = &worker->tally[partition];

	if (worker->flight.sent_of_partition[partition] > 0)
		ob_worker_reset_sink(worker);
	ob_flight_drop_partition(&worker->flight, partition);
	ob_track_drop(worker->track, partition);
	worker->unrecorded -= tally->unrecorded;
	*tally = (struct ob_worker_tally){ 0 };
}

void ob_worker_lose(struct ob_relay_worker *worker, uint32_t hash, bool say)
{
	struct ob_worker_part *part = &worker->parts[hash];

	if (say)
		answer(worker, hash, false);
	worker->draining -= part->owned && part->draining;
	worker->untaken -= part->owned && !part->taken;
	part->owned = part->draining = part->said = part->taken = false;
	for (uint32_t lane = 0; lane < OB_LANES; lane++)
		forget(worker, ob_worker_number(worker, hash, lane));
}

static void copy_view(struct ob_relay_worker *worker)
{
	struct ob_lease_view *view = worker->conf.view;

	uint32_t partition_count;

	(void)pthread_mutex_lock(&view->lock);
	worker->view_version = atomic_load(&view->version);
	worker->view_count = view->count;
	partition_count = view->partition_count;
	worker->owner = view->owner;
	memcpy(worker->view, view->leases, view->count * sizeof(view->leases[0]));
	(void)pthread_mutex_unlock(&view->lock);
	if (partition_count == 0 || partition_count == worker->partition_count)
		return;
	/*
	 * It changes only while nobody holds a lease: what we thought to own we have lost. It must
	 * go by its old numbers, which mean other partitions from now on.
	 */
	for (uint32_t p = 0; p < worker->partition_count; p++) {
		if (worker->parts[p].owned)
			ob_worker_lose(worker, p, false);
	}
	worker->partition_count = partition_count;
}

static void take_lease(struct ob_relay_worker *worker, const struct ob_view_lease *lease)
{
	struct ob_worker_part *part = &worker->parts[lease->partition];

	if (part->owned && part->grant != lease->grant)
		ob_worker_lose(worker, lease->partition, false);
	/*
	 * What we published under the lease before may yet turn out not to be recorded, and then
	 * must be first again: nothing after it may go out until that is known.
	 */
	if (!part->owned && ob_worker_is_settling(worker, lease->partition)) {
		worker->view_waits = true;
		return;
	}
	if (!part->owned) {
		*part = (struct ob_worker_part){
			.owned = true,
			.epoch = lease->epoch,
			.grant = lease->grant,
		};
		worker->untaken++;
	}
	part->deadline_us = lease->deadline_us;
	if (lease->draining == part->draining)
		return;
	part->draining = lease->draining;
	part->said = false;
	if (lease->draining) {
		worker->draining++;
	} else {
		worker->draining--;
		ob_worker_make_hungry(worker);
	}
}

bool ob_worker_take_view(struct ob_relay_worker *worker)
{
	size_t at = 0;

	if (atomic_load(&worker->conf.view->version) == worker->view_version &&
	    (!worker->view_waits || worker->settles))
		return false;
	worker->view_waits = false;
	copy_view(worker);
	/* The view is sorted by number: walk both. */
	for (uint32_t p = 0; p < OB_PARTITIONS_MAX; p++) {
		if (at < worker->view_count && worker->view[at].partition == p) {
			/* What was refused to us stays lost until the leaser has read again. */
			if (!worker->view[at].lost)
				take_lease(worker, &worker->view[at]);
			at++;
		} else if (worker->parts[p].owned) {
			ob_worker_lose(worker, p, false);
		}
	}
	return true;
}

/* ---- the journal ----------------------------------------------------- */

static size_t collect_untaken(struct ob_relay_worker *worker, struct ob_owned *owned)
{
	size_t count = 0;

	for (uint32_t hash = 0; hash < worker->partition_count; hash++) {
		const struct ob_worker_part *part = &worker->parts[hash];

		for (uint32_t lane = 0; part->owned && !part->taken && lane < OB_LANES; lane++)
			owned[count++] = (struct ob_owned){
				.partition = ob_worker_number(worker, hash, lane),
				.epoch = part->epoch,
			};
	}
	return count;
}

/* All lanes of a partition, or none: someone with a later lease was there before us. */
static int take_journal(struct ob_relay_worker *worker, const struct ob_owned *owned, size_t count,
			struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++) {
		if (!owned[i].lost)
			r = ob_track_take(worker->track, owned[i].partition, owned[i].batch,
					  &owned[i].progress, err);
	}
	for (size_t i = 0; i < count && r >= 0; i++) {
		uint32_t hash = ob_worker_hash(worker, owned[i].partition);
		struct ob_worker_part *part = &worker->parts[hash];

		if (owned[i].lost && part->owned)
			ob_worker_lose(worker, hash, true);
		if (part->owned && !part->taken) {
			part->taken = true;
			worker->untaken--;
		}
	}
	return r;
}

bool ob_worker_take_over(struct ob_relay_worker *worker)
{
	struct ob_err err = OB_ERR_INIT;
	size_t count;
	int r;

	if (worker->untaken == 0 || worker->stopping != OB_STOP_NO ||
	    ob_worker_now(worker) < worker->store_retry_us)
		return false;

	struct ob_owned *owned = calloc((size_t)worker->untaken * OB_LANES, sizeof(*owned));

	if (!owned) {
		(void)ob_err_set(&err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating partitions");
		ob_worker_store_failed(worker, "taking partitions over", &err);
		return true;
	}
	count = collect_untaken(worker, owned);
	(void)OB_FAULT(OB_FAULT_TAKE_OVER_BEFORE);
	r = ob_store_take_over(worker->conf.store, worker->conf.relay->name, &worker->owner, owned,
			       count, &err);
	if (r >= 0) {
		(void)OB_FAULT(OB_FAULT_TAKE_OVER_AFTER);
		r = take_journal(worker, owned, count, &err);
	}
	for (size_t i = 0; i < count; i++)
		ob_progress_done(&owned[i].progress);
	free(owned);
	if (r < 0) {
		ob_worker_store_failed(worker, "taking partitions over", &err);
	} else {
		ob_worker_store_ok(worker);
		ob_worker_make_hungry(worker);
	}
	return true;
}

/* ---- answers --------------------------------------------------------- */

/* Tell the leaser about one of its leases, if it is still the same one. */
static void answer(struct ob_relay_worker *worker, uint32_t hash, bool drained)
{
	struct ob_lease_view *view = worker->conf.view;

	(void)pthread_mutex_lock(&view->lock);
	for (size_t i = 0; i < view->count; i++) {
		struct ob_view_lease *lease = &view->leases[i];

		if (lease->partition != hash || lease->grant != worker->parts[hash].grant)
			continue;
		if (drained && lease->draining) {
			lease->drained = true;
			worker->parts[hash].said = true;
		}
		if (!drained)
			lease->lost = true;
		atomic_fetch_add(&view->answers, 1);
		break;
	}
	(void)pthread_mutex_unlock(&view->lock);
}

static bool is_empty(const struct ob_relay_worker *worker, uint32_t hash)
{
	for (uint32_t lane = 0; lane < OB_LANES; lane++) {
		if (worker->flight.of_partition[ob_worker_number(worker, hash, lane)] > 0)
			return false;
	}
	return !ob_worker_has_unrecorded(worker, hash) && !ob_worker_is_settling(worker, hash);
}

/* Has it been read further than is recorded, though nothing of it was ours to send? */
static bool is_ahead(const struct ob_relay_worker *worker, uint32_t hash)
{
	for (uint32_t lane = 0; lane < OB_LANES; lane++) {
		uint32_t partition = ob_worker_number(worker, hash, lane);
		const struct ob_progress *progress;
		uint64_t span;

		if (ob_track_has(worker->track, partition) &&
		    ob_track_recordable(worker->track, partition, &progress, &span))
			return true;
	}
	return false;
}

/*
 * Where the reading stands is recorded before a partition is given back. Else one that nothing is
 * written to would stay where it was first taken, hold retention, and be read from there each time.
 */
void ob_worker_say_drained(struct ob_relay_worker *worker)
{
	for (uint32_t p = 0; worker->draining > 0 && p < worker->partition_count; p++) {
		struct ob_worker_part *part = &worker->parts[p];

		if (!part->owned || !part->draining || part->said || !is_empty(worker, p))
			continue;
		if (is_ahead(worker, p))
			worker->flush_us = 0;
		else
			answer(worker, p, true);
	}
}

/* Is there anything of this partition number besides what is queued? */
static bool has_begun(const struct ob_relay_worker *worker, uint32_t partition)
{
	if (worker->tally[partition].unrecorded > 0)
		return true;
	for (uint32_t i = 0; i < worker->flight.conf.max_messages; i++) {
		const struct ob_entry *entry = &worker->flight.entries[i];

		if (entry->state != OB_ENTRY_FREE && entry->message->partition == partition &&
		    (entry->state > OB_ENTRY_QUEUED || entry->spill != OB_SPILL_NONE))
			return true;
	}
	return false;
}

/*
 * What was not sent goes to the next owner. Where nothing of the partition was sent, forgetting is
 * enough: the position stands before it, and if we keep the partition after all, so do we. Else it
 * must become exceptions: what was sent and confirmed after it could not be recorded otherwise, and
 * would be sent again (P4).
 */
static void give_up(struct ob_relay_worker *worker, struct ob_entry *entry)
{
	uint32_t partition = entry->message->partition;

	if (!entry->message->excepted && has_begun(worker, partition)) {
		ob_flight_give_up(&worker->flight, entry, ob_worker_now(worker));
		return;
	}
	if (!entry->message->excepted)
		ob_track_rewind(worker->track, partition);
	ob_flight_drop(&worker->flight, entry);
}

bool ob_worker_give_up_queued(struct ob_relay_worker *worker)
{
	struct ob_flight *flight = &worker->flight;
	bool worked = false;

	if (flight->queued == 0 || (worker->draining == 0 && worker->stopping == OB_STOP_NO))
		return false;
	for (uint32_t i = 0; flight->queued > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];

		/* One that is being settled as an exception is dropped when it is one. */
		if (entry->state != OB_ENTRY_QUEUED || entry->spill == OB_SPILL_SETTLING)
			continue;
		if (worker->stopping == OB_STOP_NO &&
		    !worker->parts[ob_worker_hash(worker, entry->message->partition)].draining)
			continue;
		give_up(worker, entry);
		worked = true;
	}
	return worked;
}

/*
 * Time that what is sent now will need to be settled, by the settles of late: whoever takes the
 * partition over before that sends it again (P4). Never more than half of the time for which a
 * lease is trusted, or a slow database would stop everything.
 */
static int64_t settle_reserve_us(const struct ob_relay_worker *worker, int64_t now)
{
	int64_t most = worker->conf.relay->leasing.lease_ttl_ms * 1000 * 2 / 5;
	int64_t running = worker->settles ? now - worker->settle_began_us : 0;
	int64_t reserve = running > worker->settle_slow_us ? running : worker->settle_slow_us;

	return reserve < most ? reserve : most;
}

int64_t ob_worker_send_until(const struct ob_relay_worker *worker, uint32_t hash, int64_t now)
{
	return worker->parts[hash].deadline_us - settle_reserve_us(worker, now);
}
