/* SPDX-License-Identifier: MIT */
/* The worker's side of the leases: what it may touch, what it has lost, what it has drained. */
#include "relay/faultpoints.h"
#include "relay/mutants.h"
#include "relay/worker_impl.h"

/* Not ours any more: forget all of it. What is at the sink would otherwise still go out. */
void ob_worker_lose(struct ob_relay_worker *worker, uint32_t partition)
{
	struct ob_worker_part *part = &worker->parts[partition];

	if (part->draining && part->owned)
		worker->draining--;
	part->owned = part->draining = part->said = false;
	if (worker->flight.sent_of_partition[partition] > 0)
		ob_worker_reset_sink(worker);
	ob_flight_drop_partition(&worker->flight, partition, ob_worker_now(worker));
}

static void copy_view(struct ob_relay_worker *worker)
{
	struct ob_lease_view *view = worker->conf.view;

	(void)pthread_mutex_lock(&view->lock);
	worker->view_version = atomic_load(&view->version);
	worker->view_count = view->count;
	worker->partition_count = view->partition_count;
	worker->owner = view->owner;
	memcpy(worker->view, view->leases, view->count * sizeof(view->leases[0]));
	(void)pthread_mutex_unlock(&view->lock);
}

static void take_lease(struct ob_relay_worker *worker, const struct ob_view_lease *lease)
{
	struct ob_worker_part *part = &worker->parts[lease->partition];

	if (part->owned && part->grant != lease->grant)
		ob_worker_lose(worker, lease->partition);
	/*
	 * What we published under the lease before may yet turn out not to be recorded, and then
	 * must be first again: nothing behind it may go out until that is known.
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
		worker->hungry = true;
	}
	part->deadline_us = lease->deadline_us;
	if (lease->draining == part->draining)
		return;
	part->draining = lease->draining;
	part->said = false;
	if (lease->draining) {
		worker->draining++;
		ob_flight_drop_queued(&worker->flight, lease->partition, ob_worker_now(worker));
	} else {
		worker->draining--;
		worker->hungry = true;
	}
}

bool ob_worker_take_view(struct ob_relay_worker *worker)
{
	size_t at = 0;

	if (!worker->conf.view ||
	    (atomic_load(&worker->conf.view->version) == worker->view_version &&
	     (!worker->view_waits || worker->job_runs)))
		return false;
	worker->view_waits = false;
	copy_view(worker);
	/* The view is sorted by number: walk both. */
	for (uint32_t p = 0; p < OB_PARTITIONS_MAX; p++) {
		if (at < worker->view_count && worker->view[at].partition == p) {
			/* What was refused to us stays lost until the leaser has looked again. */
			if (!worker->view[at].lost)
				take_lease(worker, &worker->view[at]);
			at++;
		} else if (worker->parts[p].owned) {
			ob_worker_lose(worker, p);
		}
	}
	return true;
}

/* Tell the leaser about one of its leases, if it is still the same one. */
static void answer(struct ob_relay_worker *worker, uint32_t partition, bool drained)
{
	struct ob_lease_view *view = worker->conf.view;

	(void)pthread_mutex_lock(&view->lock);
	for (size_t i = 0; i < view->count; i++) {
		struct ob_view_lease *lease = &view->leases[i];

		if (lease->partition != partition || lease->grant != worker->parts[partition].grant)
			continue;
		if (drained && lease->draining) {
			lease->drained = true;
			worker->parts[partition].said = true;
		}
		if (!drained)
			lease->lost = true;
		atomic_fetch_add(&view->answers, 1);
		break;
	}
	(void)pthread_mutex_unlock(&view->lock);
}

void ob_worker_say_lost(struct ob_relay_worker *worker, uint32_t partition)
{
	answer(worker, partition, false);
}

static bool is_empty(const struct ob_relay_worker *worker, uint32_t partition)
{
	if (OB_IS_MUTANT(DRAIN_SETTLING) && ob_worker_is_settling(worker, partition))
		return worker->flight.sent_of_partition[partition] == 0;
	return worker->flight.of_partition[partition] == 0;
}

void ob_worker_say_drained(struct ob_relay_worker *worker)
{
	for (uint32_t p = 0; worker->draining > 0 && p < OB_PARTITIONS_MAX; p++) {
		struct ob_worker_part *part = &worker->parts[p];

		if (part->owned && part->draining && !part->said && is_empty(worker, p))
			answer(worker, p, true);
	}
}

bool ob_worker_may_send(const struct ob_relay_worker *worker, const struct ob_entry *entry)
{
	const struct ob_worker_part *part = &worker->parts[entry->message->partition];
	int64_t now = ob_worker_now(worker);

	if (ob_worker_claims(worker))
		return now < entry->batch->deadline_us;
	if (OB_IS_MUTANT(EMPTY_SET) && worker->view_count == 0)
		return true;
	if (OB_IS_MUTANT(LATE_SEND) && part->owned)
		return true;
	return part->owned && !part->draining && now < part->deadline_us;
}
