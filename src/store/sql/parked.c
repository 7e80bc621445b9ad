/* SPDX-License-Identifier: MIT */
/* Messages of a consumer that left the straight way: queues by key, of which only the head is due.
 */
#include "base/cleanup.h"
#include "store/inbox.h"
#include "store/sql/ops.h"

enum { PER_FLUSH = OB_SQL_STATEMENTS / 2 - 2 };

static const struct ob_sql_column parked_columns[] = {
	OB_SQL_COLUMN(struct ob_parked, n, INT),
	OB_SQL_COLUMN(struct ob_parked, queue, STR),
	OB_SQL_COLUMN(struct ob_parked, id, STR),
	OB_SQL_COLUMN(struct ob_parked, event_type, STR),
	OB_SQL_COLUMN(struct ob_parked, state, INT),
	OB_SQL_COLUMN(struct ob_parked, attempts, INT),
	OB_SQL_COLUMN(struct ob_parked, due_us, TIME),
	OB_SQL_COLUMN(struct ob_parked, since_us, TIME),
	OB_SQL_COLUMN(struct ob_parked, place, STR),
	OB_SQL_COLUMN(struct ob_parked, reason, STR),
	OB_SQL_COLUMN(struct ob_parked, message, STR),
	OB_SQL_COLUMN(struct ob_parked, consumer, STR),
	OB_SQL_COLUMN(struct ob_parked, behind, INT),
};

static const struct ob_sql_map parked_map = OB_SQL_MAP_OF(struct ob_parked, parked_columns);

/* A delay; a message that is not due by itself has NULL. */
static struct ob_sql_arg delay_arg(int64_t delay_ms)
{
	return delay_ms < 0 ? OB_ARG_TEXT("delay", NULL) : OB_ARG_MS("delay", delay_ms);
}

/* A transaction of its own that no other owner gets into. */
static int begin_fenced(struct ob_sql *q, struct ob_store *store,
			const struct ob_consumer_lease *lease, const char *doing,
			struct ob_err *err)
{
	ob_sql_begin(q, store, OB_SQL_WRITE, doing);
	if (lease->epoch == 0)
		return 0;
	size_t found = OB_SQL_ADD(q, consumer_fence, OB_ARG_TEXT("consumer", lease->consumer),
				  OB_ARG_INT("epoch", lease->epoch));
	int r = ob_sql_flush(q, err);
	if (r < 0)
		return r;
	return ob_sql_value(q, found)
		       ? 0
		       : ob_err_set(err, OUTBOX_ELEASE, OB_ERR_LOST,
				    "another process has taken consumer '%.100s' over",
				    lease->consumer);
}

/* ---- parking --------------------------------------------------------- */

static size_t add_park(struct ob_sql *q, const char *consumer, const struct ob_park *park)
{
	const struct ob_parked *p = &park->parked;

	return OB_SQL_ADD(q, park, OB_ARG_TEXT("consumer", consumer),
			  OB_ARG_STR("mark", p->id.p ? p->id : p->place),
			  OB_ARG_STR("queue", p->queue), OB_ARG_STR("id", p->id),
			  OB_ARG_STR("event_type", p->event_type), OB_ARG_INT("state", p->state),
			  OB_ARG_INT("attempts", p->attempts), delay_arg(park->delay_ms),
			  OB_ARG_STR("place", p->place), OB_ARG_STR("reason", p->reason),
			  OB_ARG_STR("message", p->message));
}

/* The queue may have been emptied meanwhile: then this is its head, and must not wait for another.
 */
static void add_heads(struct ob_sql *q, const char *consumer, const struct ob_park *parks,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ob_str queue = parks[i].parked.queue;
		bool last = true;

		if (!queue.p || parks[i].parked.state != OB_PARKED_WAITING)
			continue;
		for (size_t j = i + 1; j < count && last; j++)
			last = !ob_str_eq(parks[j].parked.queue, queue);
		if (last)
			(void)OB_SQL_ADD(q, parked_promote, OB_ARG_TEXT("consumer", consumer),
					 OB_ARG_STR("queue", queue));
	}
}

static int park_all(struct ob_sql *q, const char *consumer, const struct ob_park *parks,
		    size_t count, size_t *ret_added, struct ob_err *err)
{
	size_t added = 0;
	int r = 0;

	for (size_t from = 0; from < count && r == 0; from += PER_FLUSH) {
		size_t some = count - from < PER_FLUSH ? count - from : PER_FLUSH;

		for (size_t i = 0; i < some; i++)
			(void)add_park(q, consumer, &parks[from + i]);
		add_heads(q, consumer, parks + from, some);
		r = ob_sql_flush(q, err);
		/* They are numbered from 0 on since the flush before. */
		for (size_t i = 0; i < some && r == 0; i++)
			added += ob_sql_changed(q, i) > 0;
	}
	*ret_added = added;
	return r;
}

int ob_park(struct ob_store *store, const struct ob_consumer_lease *lease,
	    const struct ob_park *parks, size_t count, const struct ob_park_position *position,
	    size_t *ret_added, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	size_t added = 0;
	int r = begin_fenced(&q, store, lease, "parking messages", err);

	if (r == 0)
		r = park_all(&q, lease->consumer, parks, count, &added, err);
	if (r == 0 && position)
		(void)OB_SQL_ADD(&q, position_set, OB_ARG_TEXT("consumer", lease->consumer),
				 OB_ARG_STR("source", position->source),
				 OB_ARG_STR("part", position->at.part),
				 OB_ARG_STR("position", position->at.position));
	r = ob_sql_end(&q, r, err);
	if (r == 0)
		*ret_added = added;
	return r;
}

/* ---- reading --------------------------------------------------------- */

int ob_parked_keys(struct ob_store *store, const char *consumer, struct ob_arena *arena,
		   struct ob_parked_key **ret_keys, size_t *ret_count, struct ob_err *err)
{
	static const struct ob_sql_column columns[] = {
		OB_SQL_COLUMN(struct ob_parked_key, queue, STR),
		OB_SQL_COLUMN(struct ob_parked_key, count, INT),
	};
	static const struct ob_sql_map map = OB_SQL_MAP_OF(struct ob_parked_key, columns);
	struct ob_parked_key *keys = ob_sql_list(store, "reading parked keys", OB_SQL_parked_keys,
						 OB_ARGS(OB_ARG_TEXT("consumer", consumer)), &map,
						 arena, ret_count, err);

	if (!keys)
		return err->status;
	*ret_keys = keys;
	return 0;
}

int ob_parked_count(struct ob_store *store, const char *consumer, uint64_t *ret_all,
		    uint64_t *ret_dead, int64_t *ret_since_us, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_READ, "counting parked messages");
	size_t found = OB_SQL_ADD(&q, parked_count, OB_ARG_TEXT("consumer", consumer));
	int r = ob_sql_commit(&q, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, found);
	if (r < 0 || !ob_sql_next(&rows))
		return r;
	*ret_all = (uint64_t)ob_sql_int(&rows, 0);
	*ret_dead = (uint64_t)ob_sql_int(&rows, 1);
	*ret_since_us = ob_sql_is_null(&rows, 2) ? 0 : ob_sql_time(&rows, 2);
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): everything that makes a list */
int ob_parked_due(struct ob_store *store, const char *consumer, uint32_t limit,
		  struct ob_arena *arena, struct ob_parked **ret_rows, size_t *ret_count,
		  int64_t *ret_wait_ms, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_READ, "reading parked messages");
	size_t found = OB_SQL_ADD(&q, parked_due, OB_ARG_TEXT("consumer", consumer),
				  OB_ARG_INT("limit", limit));
	size_t wait = OB_SQL_ADD(&q, parked_wait, OB_ARG_TEXT("consumer", consumer));
	int r = ob_sql_commit(&q, err);
	if (r < 0)
		return r;
	struct ob_sql_rows next = ob_sql_rows(&q, wait);
	int64_t wait_ms =
		ob_sql_next(&next) && !ob_sql_is_null(&next, 0) ? ob_sql_int(&next, 0) : -1;
	struct ob_parked *rows = ob_sql_collect(&q, found, &parked_map, arena, ret_count, err);
	if (!rows)
		return err->status;
	*ret_rows = rows;
	*ret_wait_ms = wait_ms;
	return 0;
}

int ob_parked_list(struct ob_store *store, const struct ob_parked_filter *filter,
		   struct ob_arena *arena, struct ob_parked **ret_rows, size_t *ret_count,
		   struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("consumer", filter->consumer), OB_ARG_TEXT("id", filter->id),
		OB_ARG_TEXT("queue", filter->queue),       OB_ARG_TEXT("error", filter->error),
		OB_ARG_INT("state", filter->state),        OB_ARG_INT("after", filter->after_n),
		OB_ARG_INT("limit", filter->limit),        { .name = NULL },
	};
	struct ob_parked *rows = ob_sql_list(store, "listing parked messages", OB_SQL_parked_list,
					     args, &parked_map, arena, ret_count, err);

	if (!rows)
		return ob_inbox_explain(err->status, err);
	*ret_rows = rows;
	return 0;
}

/* ---- outcomes -------------------------------------------------------- */

static void add_done(struct ob_sql *q, const char *consumer, int64_t n, struct ob_str queue)
{
	(void)OB_SQL_ADD(q, parked_remove, OB_ARG_TEXT("consumer", consumer), OB_ARG_INT("n", n));
	if (queue.p)
		(void)OB_SQL_ADD(q, parked_promote, OB_ARG_TEXT("consumer", consumer),
				 OB_ARG_STR("queue", queue));
}

int ob_parked_tx_done(struct ob_store *store, const char *consumer, int64_t n, struct ob_str queue,
		      struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_JOIN, "removing a parked message");
	add_done(&q, consumer, n, queue);
	return ob_sql_commit(&q, err);
}

int ob_parked_done(struct ob_store *store, const struct ob_consumer_lease *lease, int64_t n,
		   struct ob_str queue, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	int r = begin_fenced(&q, store, lease, "removing a parked message", err);

	if (r == 0)
		add_done(&q, lease->consumer, n, queue);
	return ob_sql_end(&q, r, err);
}

static void add_set(struct ob_sql *q, const char *consumer, const struct ob_parked *p,
		    int64_t delay_ms)
{
	(void)OB_SQL_ADD(q, parked_set, OB_ARG_TEXT("consumer", consumer), OB_ARG_INT("n", p->n),
			 OB_ARG_INT("state", p->state), OB_ARG_INT("attempts", p->attempts),
			 OB_ARG_STR("reason", p->reason), delay_arg(delay_ms));
}

int ob_parked_failed(struct ob_store *store, const struct ob_consumer_lease *lease,
		     const struct ob_parked *parked, int64_t delay_ms, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	int r = begin_fenced(&q, store, lease, "writing down a failure", err);

	if (r == 0) {
		add_set(&q, lease->consumer, parked, delay_ms);
		if (parked->state == OB_PARKED_LETTER && parked->queue.p)
			(void)OB_SQL_ADD(&q, parked_promote,
					 OB_ARG_TEXT("consumer", lease->consumer),
					 OB_ARG_STR("queue", parked->queue));
	}
	return ob_sql_end(&q, r, err);
}

/* ---- verbs ----------------------------------------------------------- */

static void add_retry(struct ob_sql *q, const char *consumer, const struct ob_parked *row)
{
	struct ob_parked fresh = *row;

	/* Its queue went on without it: it comes back without order. */
	if (row->state == OB_PARKED_LETTER)
		(void)OB_SQL_ADD(q, parked_unqueue, OB_ARG_TEXT("consumer", consumer),
				 OB_ARG_INT("n", row->n));
	fresh.state = OB_PARKED_FAILED;
	fresh.attempts = 0;
	fresh.reason = OB_STR_NULL;
	add_set(q, consumer, &fresh, 0);
}

/* 1: it was changed; 0: it is gone, or may not be. */
static int operate_row(struct ob_sql *q, const char *consumer, enum ob_parked_verb verb,
		       const struct ob_parked *row, struct ob_err *err)
{
	size_t state = OB_SQL_ADD(q, parked_state, OB_ARG_TEXT("consumer", consumer),
				  OB_ARG_INT("n", row->n));
	int r = ob_sql_flush(q, err);
	struct ob_parked now = *row;

	if (r < 0)
		return r;
	struct ob_sql_rows rows = ob_sql_rows(q, state);
	if (!ob_sql_next(&rows))
		return 0;
	now.state = (enum ob_parked_state)ob_sql_int(&rows, 0);
	if (verb == OB_PARKED_RETRY && (now.state == OB_PARKED_WAITING || ob_sql_int(&rows, 2)))
		return 0;
	if (verb == OB_PARKED_RETRY) {
		add_retry(q, consumer, &now);
	} else {
		if (verb == OB_PARKED_SKIP && row->id.p)
			(void)OB_SQL_ADD(q, inbox_add, OB_ARG_TEXT("consumer", consumer),
					 OB_ARG_STR("id", row->id));
		add_done(q, consumer, row->n, row->queue);
	}
	r = ob_sql_flush(q, err);
	return r < 0 ? r : 1;
}

/* NOLINTNEXTLINE(readability-function-size): what to do, to what, and what came of it */
int ob_parked_operate(struct ob_store *store, const char *consumer, enum ob_parked_verb verb,
		      const struct ob_parked *rows, size_t count, uint64_t *ret_changed,
		      uint64_t *ret_refused, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	uint64_t changed = 0;
	int r = 0;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "changing parked messages");
	(void)OB_SQL_ADD(&q, parked_lock, OB_ARG_TEXT("consumer", consumer));
	for (size_t i = 0; i < count && r >= 0; i++) {
		r = operate_row(&q, consumer, verb, &rows[i], err);
		if (r > 0)
			changed++;
	}
	r = ob_sql_end(&q, r < 0 ? r : 0, err);
	if (r < 0)
		return r;
	*ret_changed = changed;
	*ret_refused = count - changed;
	return 0;
}
