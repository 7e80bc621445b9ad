/* SPDX-License-Identifier: MIT */
/*
 * A statement in SQL as a handler: lanes, each a thread with a connection of its own. A key always
 * goes to the same lane, so its messages run in order. A lane runs what waits for it in one
 * transaction: the fence, then for each message its inbox row, the statement, the end of its parked
 * row; at the end the position. So an effect is there exactly once, whatever dies when.
 *
 * When a message of a transaction fails, all of it is rolled back and each runs alone, up to the
 * one that fails. What waits behind it, of any key, comes back untried, and the lane rests until
 * all of its outcomes are fetched: the consumer can then park the key before anything more of it is
 * sent.
 */
#include "consume/handler.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { LANES_MAX = 64, BATCH_MAX = 1000 };

struct sql_handler;

struct sql_lane {
	struct sql_handler *handler;
	pthread_t thread;
	bool started;
	struct ob_store *store; /* the thread's */
	struct ob_sink *sink;   /* instead of the statement; or NULL */
	/* Guarded by the handler's mutex: */
	struct ob_work *queue; /* a ring of `room` */
	uint32_t head, count;
	uint32_t running;   /* taken from the ring, at work */
	uint32_t unfetched; /* outcomes of this lane */
	bool resting;       /* something failed: until all outcomes are fetched */
	/* The thread's: */
	struct ob_work *batch;
	struct ob_outcome *outcomes;
};

struct sql_handler {
	struct ob_handler base;
	pthread_mutex_t mutex; /* guards the rings, the outcomes and `stop` */
	pthread_cond_t work, done;
	struct ob_handler_sql_conf conf;
	struct ob_message_sql *sql;
	struct sql_lane *lanes;
	uint32_t lane_count, room;
	struct ob_outcome *outcomes; /* a ring of lane_count * room */
	uint32_t *outcome_lanes;
	uint32_t out_head, out_count, out_room;
	bool stop;
};

/* ---- a lane's thread ------------------------------------------------- */

static int apply_one(struct sql_lane *lane, const struct ob_work *work, bool *ret_duplicate,
		     struct ob_err *err)
{
	const struct ob_handler_sql_conf *conf = &lane->handler->conf;
	const struct ob_message *m = work->delivery.message;
	char id[OB_UUID_TEXT_SIZE];
	uint64_t changed;
	bool is_new = true;
	int r = 0;

	ob_uuid_format(&m->id, id);
	/* A parked message left the straight way, where positions count: its id tells it apart. */
	if (conf->dedup == OB_DEDUP_IDS || (conf->dedup == OB_DEDUP_POSITION && work->parked_n))
		r = ob_inbox_tx_add(lane->store, conf->lease->consumer, ob_str(id), &is_new, err);
	if (r == 0 && is_new && lane->sink)
		r = lane->sink->ops->in_store(lane->sink, lane->store, m, err);
	else if (r == 0 && is_new)
		r = ob_store_tx_exec(lane->store, lane->handler->sql, m, &changed, err);
	if (r == 0 && work->parked_n)
		r = ob_parked_tx_done(lane->store, conf->lease->consumer, work->parked_n,
				      work->queue, err);
	*ret_duplicate = !is_new;
	return r;
}

/* One transaction with all of them; *ret_failed: which one did not let it pass, -1: all. */
static int apply_all(struct sql_lane *lane, const struct ob_work *work, uint32_t count,
		     struct ob_outcome *out, int *ret_failed, struct ob_err *err)
{
	const struct ob_handler_sql_conf *conf = &lane->handler->conf;
	const struct ob_position *last = NULL;
	struct ob_err ignored = OB_ERR_INIT;
	int r = ob_store_tx_begin(lane->store, err);

	*ret_failed = -1;
	if (r == 0 && conf->lease->epoch)
		r = ob_consumer_tx_fence(lane->store, conf->lease, err);
	for (uint32_t i = 0; i < count && r == 0; i++) {
		r = apply_one(lane, &work[i], &out[i].duplicate, err);
		if (r < 0)
			*ret_failed = (int)i;
		if (work[i].position.part.p)
			last = &work[i].position;
	}
	if (r == 0 && last)
		r = ob_position_tx_set(lane->store, conf->lease->consumer, ob_str(conf->source),
				       last, err);
	if (r < 0) {
		(void)ob_store_tx_end(lane->store, false, &ignored);
		return r;
	}
	/* What was done is done from here on, and only now may it be acknowledged. */
	return ob_store_tx_end(lane->store, true, err);
}

static void put_back(struct ob_outcome *out, uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < count; i++)
		out[i].back = true;
}

/* True: something failed, the lane rests. */
static bool run_batch(struct sql_lane *lane, const struct ob_work *work, uint32_t count,
		      struct ob_outcome *out)
{
	struct ob_err err = OB_ERR_INIT;
	int failed, r;

	for (uint32_t i = 0; i < count; i++)
		out[i] = (struct ob_outcome){ .tag = work[i].tag };
	r = lane->store ? 0 : ob_store_connect(lane->handler->conf.store, &lane->store, &err);
	if (r == 0)
		r = apply_all(lane, work, count, out, &failed, &err);
	if (r == 0)
		return false;
	/* What is about the database is about all; which message it was is told by each alone. */
	if (count == 1 || !lane->store || (err.kind != OB_ERR_RETRY && err.kind != OB_ERR_REJECT)) {
		out[0].err = err;
		put_back(out, 1, count);
		return true;
	}
	for (uint32_t i = 0; i < count; i++) {
		err = OB_ERR_INIT;
		if (apply_all(lane, &work[i], 1, &out[i], &failed, &err) == 0)
			continue;
		out[i].err = err;
		out[i].duplicate = false;
		put_back(out, i + 1, count);
		return true;
	}
	return false;
}

static void post(struct sql_lane *lane, const struct ob_outcome *out, uint32_t count)
{
	struct sql_handler *h = lane->handler;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (h->out_head + h->out_count++) % h->out_room;

		h->outcomes[at] = out[i];
		h->outcome_lanes[at] = (uint32_t)(lane - h->lanes);
	}
	lane->unfetched += count;
}

/* Everything that waits comes back, in order. */
static void return_queue(struct sql_lane *lane)
{
	for (; lane->count > 0; lane->count--) {
		struct ob_outcome back = { .tag = lane->queue[lane->head].tag, .back = true };

		post(lane, &back, 1);
		lane->head = (lane->head + 1) % lane->handler->room;
	}
}

static void *run_lane(void *arg)
{
	struct sql_lane *lane = arg;
	struct sql_handler *h = lane->handler;

	(void)pthread_mutex_lock(&h->mutex);
	for (;;) {
		while (!h->stop && (lane->count == 0 || lane->resting))
			(void)pthread_cond_wait(&h->work, &h->mutex);
		if (h->stop)
			break;
		uint32_t count = lane->count < h->conf.batch ? lane->count : h->conf.batch;
		for (uint32_t i = 0; i < count; i++) {
			lane->batch[i] = lane->queue[lane->head];
			lane->head = (lane->head + 1) % h->room;
		}
		lane->count -= count;
		lane->running = count;
		(void)pthread_mutex_unlock(&h->mutex);
		bool failed = run_batch(lane, lane->batch, count, lane->outcomes);
		(void)pthread_mutex_lock(&h->mutex);
		lane->running = 0;
		post(lane, lane->outcomes, count);
		if (failed) {
			lane->resting = true;
			return_queue(lane);
		}
		(void)pthread_cond_broadcast(&h->done);
	}
	(void)pthread_mutex_unlock(&h->mutex);
	ob_store_free(lane->store);
	lane->store = NULL;
	return NULL;
}

/* ---- the handler ----------------------------------------------------- */

static int sql_handler_open(struct ob_handler *base, struct ob_err *err)
{
	struct sql_handler *h = (struct sql_handler *)base;

	for (uint32_t i = 0; i < h->lane_count; i++) {
		if (h->lanes[i].started)
			continue;
		sigset_t all, before;

		/* Signals are the business of the thread that runs the consumer. */
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		int code = pthread_create(&h->lanes[i].thread, NULL, run_lane, &h->lanes[i]);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (code != 0)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
					  "no thread for a lane of the handler");
		h->lanes[i].started = true;
	}
	return 0;
}

static struct sql_lane *lane_for(struct sql_handler *h, const struct ob_work *work)
{
	struct ob_str key = work->delivery.message->key;
	uint64_t hash = 1469598103934665603u;

	/* One that has no key may go anywhere. */
	if (!key.p)
		return &h->lanes[work->tag % h->lane_count];
	for (size_t i = 0; i < key.n; i++)
		hash = (hash ^ (unsigned char)key.p[i]) * 1099511628211u;
	return &h->lanes[hash % h->lane_count];
}

static int sql_handler_send(struct ob_handler *base, const struct ob_work *work, struct ob_err *err)
{
	struct sql_handler *h = (struct sql_handler *)base;
	int r = 0;

	(void)err;
	(void)pthread_mutex_lock(&h->mutex);
	struct sql_lane *lane = lane_for(h, work);
	if (lane->resting || lane->count + lane->running + lane->unfetched >= h->room) {
		r = OB_SINK_FULL;
	} else {
		lane->queue[(lane->head + lane->count++) % h->room] = *work;
		/* A lane that were woken by each would begin with a transaction of one: what is
		 * sent in one go is told of by the poll after it. */
		if (lane->count >= h->conf.batch)
			(void)pthread_cond_broadcast(&h->work);
	}
	(void)pthread_mutex_unlock(&h->mutex);
	return r;
}

static void wait_done(struct sql_handler *h, int timeout_ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (h->out_count == 0) {
		if (pthread_cond_timedwait(&h->done, &h->mutex, &until) != 0)
			return;
	}
}

static int sql_handler_poll(struct ob_handler *base, int timeout_ms, struct ob_outcome *out,
			    size_t max, struct ob_err *err)
{
	struct sql_handler *h = (struct sql_handler *)base;
	size_t n = 0;

	(void)err;
	(void)pthread_mutex_lock(&h->mutex);
	(void)pthread_cond_broadcast(&h->work);
	if (timeout_ms > 0)
		wait_done(h, timeout_ms);
	for (; n < max && h->out_count > 0; n++) {
		struct sql_lane *lane = &h->lanes[h->outcome_lanes[h->out_head]];

		out[n] = h->outcomes[h->out_head];
		h->out_head = (h->out_head + 1) % h->out_room;
		h->out_count--;
		if (--lane->unfetched == 0)
			lane->resting = false;
	}
	(void)pthread_mutex_unlock(&h->mutex);
	return (int)n;
}

static void sql_handler_reset(struct ob_handler *base)
{
	struct sql_handler *h = (struct sql_handler *)base;

	(void)pthread_mutex_lock(&h->mutex);
	for (uint32_t i = 0; i < h->lane_count; i++) {
		h->lanes[i].count = 0;
		/* What it borrows must not go away under it. */
		while (h->lanes[i].running > 0)
			(void)pthread_cond_wait(&h->done, &h->mutex);
		h->lanes[i].unfetched = 0;
		h->lanes[i].resting = false;
	}
	h->out_count = 0;
	(void)pthread_mutex_unlock(&h->mutex);
}

static void sql_handler_free(struct ob_handler *base)
{
	struct sql_handler *h = (struct sql_handler *)base;

	(void)pthread_mutex_lock(&h->mutex);
	h->stop = true;
	(void)pthread_cond_broadcast(&h->work);
	(void)pthread_mutex_unlock(&h->mutex);
	for (uint32_t i = 0; h->lanes && i < h->lane_count; i++) {
		if (h->lanes[i].started)
			(void)pthread_join(h->lanes[i].thread, NULL);
		ob_sink_free(h->lanes[i].sink);
		free(h->lanes[i].queue);
		free(h->lanes[i].batch);
		free(h->lanes[i].outcomes);
	}
	(void)pthread_cond_destroy(&h->work);
	(void)pthread_cond_destroy(&h->done);
	(void)pthread_mutex_destroy(&h->mutex);
	ob_message_sql_free(h->sql);
	free(h->lanes);
	free(h->outcomes);
	free(h->outcome_lanes);
	free(h);
}

static void sql_handler_describe(struct ob_handler *base, struct ob_buf *out)
{
	const struct sql_handler *h = (struct sql_handler *)base;

	ob_buf_addf(out, "%s in %u lane%s", h->conf.in_store ? "function" : "sql", h->lane_count,
		    h->lane_count == 1 ? "" : "s");
}

static const struct ob_handler_ops sql_handler_ops = {
	.caps = OB_HANDLER_ORDERED | OB_HANDLER_SETTLES,
	.open = sql_handler_open,
	.send = sql_handler_send,
	.poll = sql_handler_poll,
	.reset = sql_handler_reset,
	.free = sql_handler_free,
	.describe = sql_handler_describe,
};

static bool make_lanes(struct sql_handler *h)
{
	h->lanes = calloc(h->lane_count, sizeof(*h->lanes));
	h->out_room = h->lane_count * h->room;
	h->outcomes = calloc(h->out_room, sizeof(*h->outcomes));
	h->outcome_lanes = calloc(h->out_room, sizeof(*h->outcome_lanes));
	bool ok = h->lanes && h->outcomes && h->outcome_lanes;
	for (uint32_t i = 0; ok && i < h->lane_count; i++) {
		struct sql_lane *lane = &h->lanes[i];

		lane->handler = h;
		lane->queue = calloc(h->room, sizeof(*lane->queue));
		lane->batch = calloc(h->conf.batch, sizeof(*lane->batch));
		lane->outcomes = calloc(h->conf.batch, sizeof(*lane->outcomes));
		ok = lane->queue && lane->batch && lane->outcomes;
	}
	return ok;
}

int ob_handler_sql_new(const struct ob_handler_sql_conf *conf, struct ob_handler **ret_handler,
		       struct ob_err *err)
{
	const struct ob_store_backend *backend;
	pthread_condattr_t monotonic;
	int r = ob_store_find(conf->store->url, &backend, err);
	struct sql_handler *h = r < 0 ? NULL : calloc(1, sizeof(*h));

	if (r < 0)
		return r;
	if (!h)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a handler");
	h->base.ops = &sql_handler_ops;
	h->conf = *conf;
	h->lane_count = conf->dedup == OB_DEDUP_POSITION || conf->lanes == 0 ? 1 : conf->lanes;
	if (!(backend->ops->caps & OB_STORE_CONCURRENT_WRITERS))
		h->lane_count = 1;
	if (h->lane_count > LANES_MAX)
		h->lane_count = LANES_MAX;
	if (h->conf.batch == 0 || h->conf.batch > BATCH_MAX)
		h->conf.batch = BATCH_MAX;
	h->room = 2 * h->conf.batch;
	(void)pthread_mutex_init(&h->mutex, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&h->work, NULL);
	(void)pthread_cond_init(&h->done, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	if (!conf->in_store)
		r = ob_message_sql_parse(backend->ops, conf->statement, &h->sql, err);
	if (r == 0 && !make_lanes(h))
		r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a handler");
	for (uint32_t i = 0; r == 0 && conf->in_store && i < h->lane_count; i++)
		r = ob_sink_new(conf->in_store, NULL, 0, &ob_clock_system, &h->lanes[i].sink, err);
	if (r < 0) {
		sql_handler_free(&h->base);
		return r;
	}
	*ret_handler = &h->base;
	return 0;
}
