/* SPDX-License-Identifier: MIT */
/* The transactional worker: leases, the journal, reading, and when. */
#include "relay/tx_worker_impl.h"

#include <stdlib.h>

enum {
	EXCEPTIONS = 256,
	CAREFUL_LIMIT = 16,   /* messages of a batch after one has failed */
	CAREFUL_BATCHES = 16, /* so many of these without a failure, and it is over */
	RECORD_US = 10000000, /* progress over what was not ours is recorded this often */
	CHECK_US = 5000,      /* ask a store that has no fd for news */
	IDLE_MS = 10,
	STORE_MS = 50,
	STORE_CAP_MS = 1000,
};

bool ob_tx_worker_suits(const struct ob_sink *sink)
{
	return sink && (sink->ops->in_store || sink->ops->statement);
}

static int64_t now_of(const struct ob_tx_worker *w)
{
	return ob_clock_boot_us(w->conf.clock);
}

/* ---- making ---------------------------------------------------------- */

static bool tx_make_room(struct ob_tx_worker *w)
{
	size_t room = w->room = (size_t)w->conf.relay->batch_size + EXCEPTIONS + 1;

	w->read_parts = calloc(OB_TX_NUMBERS, sizeof(*w->read_parts));
	w->settles = calloc(OB_TX_NUMBERS, sizeof(*w->settles));
	w->failures = calloc(room, sizeof(*w->failures));
	w->handled = calloc(room, sizeof(*w->handled));
	w->changes = calloc(room, sizeof(*w->changes));
	w->promotes = calloc(room, sizeof(*w->promotes));
	w->held = calloc(room, sizeof(*w->held));
	w->held_parts = calloc(room, sizeof(*w->held_parts));
	return w->read_parts && w->settles && w->failures && w->handled && w->changes &&
	       w->promotes && w->held && w->held_parts;
}

int ob_tx_worker_new(const struct ob_worker_conf *conf, struct ob_tx_worker **ret_worker,
		     struct ob_err *err)
{
	const struct ob_config_relay *relay = conf->relay;
	struct ob_tx_worker *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a worker");
	w->conf = *conf;
	w->hungry = true;
	w->policy = (struct ob_policy){
		.retry = { relay->retry.base_delay_ms, relay->retry.max_backoff_ms,
			   relay->retry.multiplier, relay->retry.jitter },
		.max_attempts = relay->retry.max_attempts,
	};
	w->decide = (struct ob_decide){
		.ordering = (enum ob_ordering)relay->ordering,
		.hold_dead = relay->on_dead == OB_ON_DEAD_HOLD,
		.hold_delayed = relay->hold_delayed,
	};
	ob_rng_init(&w->rng, conf->seed);
	ob_batch_init(&w->batch);
	ob_backoff_init(&w->store_backoff, STORE_MS, STORE_CAP_MS);
	ob_backoff_init(&w->idle_backoff, IDLE_MS, relay->idle_backoff_ms);
	if (conf->sink->ops->statement)
		r = ob_message_sql_parse(conf->store->ops, conf->sink->ops->statement(conf->sink),
					 &w->sql, err);
	if (r == 0 && !tx_make_room(w))
		r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a worker");
	if (r < 0) {
		ob_tx_worker_free(w);
		return r;
	}
	*ret_worker = w;
	return 0;
}

void ob_tx_worker_free(struct ob_tx_worker *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < OB_TX_NUMBERS; i++)
		ob_progress_done(&w->parts[i].progress);
	ob_batch_done(&w->batch);
	ob_message_sql_free(w->sql);
	free(w->read_parts);
	free(w->settles);
	free(w->failures);
	free(w->handled);
	free(w->changes);
	free(w->promotes);
	free(w->held);
	free(w->held_parts);
	free(w);
}

/* ---- failing --------------------------------------------------------- */

static void fail_worker(struct ob_tx_worker *w, const struct ob_err *err)
{
	w->err = *err;
	w->state = OB_WORKER_FAILED;
	(void)ob_metrics_error(w->conf.metrics, OB_ERROR_OF_STORE, ob_clock_real_us(w->conf.clock),
			       err, NULL);
	if (w->conf.log)
		ob_log(w->conf.log, OB_LOG_ERROR, "worker cannot go on, stopping",
		       OB_KV("relay", w->conf.relay->name), OB_KV("error", err->msg));
}

/* What we know may be wrong after a failure: a commit may have happened. It is read anew. */
static void forget_progress(struct ob_tx_worker *w)
{
	w->untaken = 0;
	for (uint32_t h = 0; h < w->partition_count; h++) {
		w->leases[h].taken = false;
		w->untaken += w->leases[h].owned;
	}
}

static void store_failed(struct ob_tx_worker *w, const char *doing, const struct ob_err *err)
{
	int64_t wait_ms = ob_backoff_next_ms(&w->store_backoff);

	w->data.store_errors++;
	w->hungry = true;
	w->retry_us = now_of(w) + wait_ms * 1000;
	forget_progress(w);
	if (err->kind == OB_ERR_FATAL) {
		fail_worker(w, err);
		return;
	}
	bool news = ob_metrics_error(w->conf.metrics, OB_ERROR_OF_STORE,
				     ob_clock_real_us(w->conf.clock), err, NULL);
	if (news && w->conf.log)
		ob_log(w->conf.log, OB_LOG_WARN, "store failed, trying again",
		       OB_KV("relay", w->conf.relay->name), OB_KV("doing", doing),
		       OB_KI("delay_ms", wait_ms), OB_KV("error", err->msg));
}

static void store_ok(struct ob_tx_worker *w)
{
	w->retry_us = 0;
	ob_backoff_reset(&w->store_backoff);
}

/* ---- leases ---------------------------------------------------------- */

static void answer_view(struct ob_tx_worker *w, uint32_t hash, bool drained)
{
	struct ob_lease_view *view = w->conf.view;

	(void)pthread_mutex_lock(&view->lock);
	for (size_t i = 0; i < view->count; i++) {
		struct ob_view_lease *lease = &view->leases[i];

		if (lease->partition != hash)
			continue;
		if (drained)
			lease->drained = lease->draining;
		else if (lease->grant == w->leases[hash].grant)
			lease->lost = true;
		atomic_fetch_add(&view->answers, 1);
		break;
	}
	(void)pthread_mutex_unlock(&view->lock);
}

static void drop_lease(struct ob_tx_worker *w, uint32_t hash)
{
	struct ob_tx_lease *lease = &w->leases[hash];

	if (!lease->owned)
		return;
	w->lease_count--;
	w->untaken -= !lease->taken;
	lease->owned = lease->taken = false;
}

void ob_tx_worker_lose(struct ob_tx_worker *w, uint32_t partition)
{
	uint32_t hash = partition % w->partition_count;

	answer_view(w, hash, false);
	drop_lease(w, hash);
}

static void tx_take_lease(struct ob_tx_worker *w, const struct ob_view_lease *from)
{
	struct ob_tx_lease *lease = &w->leases[from->partition];

	if (lease->owned && lease->grant == from->grant)
		return;
	drop_lease(w, from->partition);
	*lease = (struct ob_tx_lease){ .owned = true, .epoch = from->epoch, .grant = from->grant };
	w->lease_count++;
	w->untaken++;
	w->hungry = true;
}

/* Nothing is in memory between two steps: what is asked back is drained at once. */
static bool take_view(struct ob_tx_worker *w)
{
	struct ob_lease_view *view = w->conf.view;
	bool keep[OB_PARTITIONS_MAX] = { false };
	uint32_t count;

	if (atomic_load(&view->version) == w->view_version)
		return false;
	(void)pthread_mutex_lock(&view->lock);
	w->view_version = atomic_load(&view->version);
	count = view->partition_count;
	if (count != w->partition_count && count > 0) {
		for (uint32_t h = 0; h < w->partition_count; h++)
			drop_lease(w, h);
		w->partition_count = count;
	}
	for (size_t i = 0; i < view->count; i++) {
		struct ob_view_lease *lease = &view->leases[i];

		if (lease->draining && !lease->drained) {
			lease->drained = true;
			atomic_fetch_add(&view->answers, 1);
		}
		keep[lease->partition] = !lease->draining && !lease->lost;
		if (keep[lease->partition])
			tx_take_lease(w, lease);
	}
	(void)pthread_mutex_unlock(&view->lock);
	for (uint32_t h = 0; h < w->partition_count; h++) {
		if (!keep[h])
			drop_lease(w, h);
	}
	return true;
}

/* The fence: whoever had the partition before can record nothing any more. */
static bool tx_take_over(struct ob_tx_worker *w)
{
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0;

	if (w->untaken == 0 || now_of(w) < w->retry_us)
		return false;
	struct ob_owned *owned = calloc((size_t)w->untaken * OB_LANES, sizeof(*owned));
	for (uint32_t h = 0; owned && h < w->partition_count; h++) {
		for (uint32_t lane = 0;
		     lane < OB_LANES && w->leases[h].owned && !w->leases[h].taken; lane++)
			owned[count++] =
				(struct ob_owned){ .partition = lane * w->partition_count + h,
						   .epoch = w->leases[h].epoch };
	}
	int r = owned ? ob_store_take_over(w->conf.store, w->conf.relay->name, &w->conf.id, owned,
					   count, &err)
		      : ob_err_set(&err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating partitions");
	for (size_t i = 0; i < count && r >= 0; i++) {
		uint32_t hash = owned[i].partition % w->partition_count;

		if (owned[i].lost) {
			ob_tx_worker_lose(w, owned[i].partition);
			continue;
		}
		w->parts[owned[i].partition].batch = owned[i].batch;
		ob_progress_set(&w->parts[owned[i].partition].progress, &owned[i].progress);
		ob_progress_done(&owned[i].progress);
		w->untaken -= w->leases[hash].owned && !w->leases[hash].taken;
		w->leases[hash].taken = w->leases[hash].owned;
	}
	free(owned);
	if (r < 0)
		store_failed(w, "taking partitions over", &err);
	else
		store_ok(w);
	return true;
}

/* ---- reading --------------------------------------------------------- */

static void collect_read(struct ob_tx_worker *w)
{
	w->read_count = 0;
	for (uint32_t lane = 0; lane < OB_LANES; lane++) {
		for (uint32_t h = 0; h < w->partition_count; h++) {
			uint32_t p = lane * w->partition_count + h;

			if (w->leases[h].taken)
				w->read_parts[w->read_count++] =
					(struct ob_read_part){ .partition = p,
							       .from = w->parts[p].progress };
		}
	}
}

static int compare_parts(const void *a, const void *b)
{
	uint32_t x = ((const struct ob_read_part *)a)->partition;
	uint32_t y = ((const struct ob_read_part *)b)->partition;

	return x < y ? -1 : x > y;
}

static int read_batch(struct ob_tx_worker *w, bool *ret_more, struct ob_err *err)
{
	struct ob_read_done done = { 0 };
	struct ob_read read = {
		.reader = w->conf.relay->name,
		.target = w->conf.relay->reads,
		.parts = w->read_parts,
		.limit = w->careful ? CAREFUL_LIMIT : w->conf.relay->batch_size,
		.max_bytes = (size_t)w->conf.relay->batch_bytes,
		.exception_limit = w->careful ? CAREFUL_LIMIT : EXCEPTIONS,
		.ordering = w->decide.ordering,
		.end_seq = w->conf.end_seq,
	};

	collect_read(w);
	qsort(w->read_parts, w->read_count, sizeof(*w->read_parts), compare_parts);
	read.part_count = w->read_count;
	int r = ob_store_read(w->conf.store, &read, &w->batch, &done, err);
	w->data.fetches++;
	*ret_more = done.more || done.more_exceptions;
	return r;
}

/* Nothing for us: where we stand is known in memory, and written down from time to time. */
static bool may_leave_unrecorded(const struct ob_tx_worker *w)
{
	return w->batch.count == 0 && now_of(w) - w->recorded_us < RECORD_US;
}

static void note_careful(struct ob_tx_worker *w)
{
	bool failed = false;

	for (uint32_t i = 0; i < w->batch.count; i++)
		failed = failed || w->failures[i].failed;
	if (failed)
		w->careful = CAREFUL_BATCHES;
	else if (w->careful > 0)
		w->careful--;
}

static void tx_run_batch(struct ob_tx_worker *w)
{
	struct ob_err err = OB_ERR_INIT;
	bool lost = false;

	for (uint32_t i = 0; i < w->batch.count; i++)
		w->failures[i].failed = false;
	w->settle_count = 0;
	if (may_leave_unrecorded(w)) {
		for (size_t i = 0; i < w->read_count; i++)
			ob_progress_set(&w->parts[w->read_parts[i].partition].progress,
					&w->read_parts[i].after);
		return;
	}
	if (ob_tx_batch_run(w, &lost, &err) < 0) {
		store_failed(w, "running handlers", &err);
		return;
	}
	store_ok(w);
	w->recorded_us = now_of(w);
	w->hungry = w->hungry || lost;
	w->data.fetched += lost ? 0 : w->batch.count;
	note_careful(w);
}

static bool read_and_run(struct ob_tx_worker *w)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t now = now_of(w);
	bool more = false;

	if (atomic_exchange(&w->nudged, false) || now >= w->idle_until_us)
		w->hungry = true;
	if (!w->hungry || w->lease_count == 0 || w->untaken > 0 || now < w->retry_us ||
	    atomic_load(&w->conf.view->cut))
		return false;
	w->hungry = false;
	if (read_batch(w, &more, &err) < 0) {
		store_failed(w, "reading", &err);
		return true;
	}
	bool found = w->batch.count > 0;
	w->hungry = more;
	tx_run_batch(w);
	for (size_t i = 0; i < w->read_count; i++)
		ob_progress_done(&w->read_parts[i].after);
	if (found)
		ob_backoff_reset(&w->idle_backoff);
	/* After work there is a retry that may be due soon, too: the idle backoff finds it. */
	w->idle_until_us = now_of(w) + ob_backoff_next_ms(&w->idle_backoff) * 1000;
	return found || w->hungry;
}

static bool check_news(struct ob_tx_worker *w)
{
	struct ob_err err = OB_ERR_INIT;
	bool news = false;

	if (w->hungry || w->lease_count == 0 || now_of(w) < w->retry_us)
		return false;
	if (ob_store_wake_check(w->conf.store, &news, &err) < 0) {
		store_failed(w, "asking for news", &err);
		return true;
	}
	w->hungry = news;
	return news;
}

/* ---- stepping -------------------------------------------------------- */

static void tx_publish(struct ob_tx_worker *w)
{
	if (!w->conf.metrics)
		return;
	struct ob_metrics_data *data = ob_metrics_lock(w->conf.metrics);

#define X(name, help) data->name = w->data.name;
	OB_COUNTER_MAP(X)
#undef X
	ob_metrics_unlock(w->conf.metrics);
}

static bool tx_work(struct ob_tx_worker *w)
{
	if (atomic_load(&w->stop) != (int)OB_STOP_NO) {
		w->state = OB_WORKER_STOPPED;
		return true;
	}
	return take_view(w) || tx_take_over(w) || read_and_run(w) || check_news(w);
}

void ob_tx_worker_step(struct ob_tx_worker *w, struct ob_step *ret_step)
{
	struct ob_step step = { .wake_us = INT64_MAX, .store_fd = -1, .sink_fd = -1 };

	if (w->state == OB_WORKER_RUNNING) {
		step.worked = tx_work(w);
		tx_publish(w);
	}
	step.state = w->state;
	if (step.state == OB_WORKER_RUNNING && !step.worked && w->lease_count > 0) {
		int64_t now = now_of(w);

		step.store_fd = w->retry_us > now ? -1 : ob_store_wake_fd(w->conf.store);
		step.wake_us = w->retry_us > now ? w->retry_us : w->idle_until_us;
		if (step.store_fd < 0 && w->retry_us <= now && step.wake_us > now + CHECK_US)
			step.wake_us = now + CHECK_US;
		if (step.wake_us <= now)
			step.wake_us = now + 1000;
	}
	*ret_step = step;
}

void ob_tx_worker_stop(struct ob_tx_worker *w, enum ob_stop how)
{
	int was = atomic_load(&w->stop);

	while (was < (int)how && !atomic_compare_exchange_weak(&w->stop, &was, (int)how))
		;
}

void ob_tx_worker_nudge(struct ob_tx_worker *w)
{
	atomic_store(&w->nudged, true);
}

bool ob_tx_worker_is_idle(const struct ob_tx_worker *w)
{
	return w->untaken == 0 && !w->hungry && w->retry_us == 0 && w->data.fetches > 0;
}

uint32_t ob_tx_worker_ended(const struct ob_tx_worker *w)
{
	if (w->conf.end_seq == 0 || !ob_tx_worker_is_idle(w))
		return 0;
	for (uint32_t p = 0; p < OB_LANES * w->partition_count; p++) {
		if (w->leases[p % w->partition_count].taken &&
		    w->parts[p].progress.pos < w->conf.end_seq)
			return 0;
	}
	return w->lease_count;
}

const struct ob_err *ob_tx_worker_error(const struct ob_tx_worker *w)
{
	return &w->err;
}
