/* SPDX-License-Identifier: MIT */
/* Messages by a filter. */
#include "base/cleanup.h"
#include "store/sql/filter.h"
#include "store/sql/message.h"
#include "store/sql/ops.h"

/* ---- filters --------------------------------------------------------- */

int ob_sql_filter_reach(struct ob_store *store, const struct ob_filter *filter, struct ob_err *err)
{
	if (!filter->reader || !store->ops->sql->reach)
		return 0;
	return store->ops->sql->reach(store, ob_str(filter->reader), err);
}

/* What is published is most of the log: without it, the rest is found directly. */
static enum ob_sql_id found_by(const struct ob_filter *filter, bool verb)
{
	bool all = filter->views == 0 || filter->views & 1U << OB_VIEW_PUBLISHED;

	if (filter->stream)
		return OB_SQL_list_stream;
	if (!filter->reader)
		return filter->id ? OB_SQL_list_any_one : OB_SQL_list_any;
	if (filter->id)
		return verb ? OB_SQL_verb_one : OB_SQL_list_one;
	if (all && !filter->excepted)
		return verb ? OB_SQL_verb_all : OB_SQL_list_all;
	return verb ? OB_SQL_verb_open : OB_SQL_list_open;
}

/* Are rows that are no exception wanted? Only an exception gives these three views. */
static bool wants_backlog(const struct ob_filter *filter)
{
	const unsigned of_exceptions =
		1U << OB_VIEW_FAILED | 1U << OB_VIEW_DEAD | 1U << OB_VIEW_DISCARDED;

	return !filter->excepted && (filter->views & ~of_exceptions);
}

/* Rows above it; no number is below 1. */
static int64_t lower_bound(const struct ob_filter *filter)
{
	int64_t after = filter->newest_first ? 0 : filter->after_seq;

	return filter->from_seq - 1 > after ? filter->from_seq - 1 : after > 0 ? after : -1;
}

size_t ob_sql_add_filter(struct ob_sql *q, const struct ob_filter *filter, bool verb)
{
	bool after = filter->after_seq > 0;
	char id[OB_UUID_TEXT_SIZE] = "";

	if (filter->id)
		ob_uuid_format(filter->id, id);
	return ob_sql_add(
		q, found_by(filter, verb),
		OB_ARGS(OB_ARG_TEXT("reader", filter->reader), OB_ARG_UUID("id", filter->id),
			OB_ARG_TEXT("id_text", filter->id ? id : NULL),
			OB_ARG_TEXT("key", filter->key),
			OB_ARG_TEXT("aggregate_type", filter->aggregate_type),
			OB_ARG_TEXT("aggregate_id", filter->aggregate_id),
			OB_ARG_TEXT("event_type", filter->event_type),
			OB_ARG_TEXT("correlation_id", filter->correlation_id),
			OB_ARG_TEXT("error", filter->error), OB_ARG_INT("brief", filter->brief),
			OB_ARG_INT("views", filter->views),
			OB_ARG_INT("backlog", wants_backlog(filter)),
			OB_ARG_INT("after", lower_bound(filter)),
			OB_ARG_INT("before",
				   after && filter->newest_first ? filter->after_seq : INT64_MAX),
			OB_ARG_TEXT("stream", filter->stream),
			OB_ARG_INT("before_version",
				   filter->before_version > 0 ? filter->before_version : INT64_MAX),
			OB_ARG_INT("limit", filter->limit ? (int64_t)filter->limit : INT64_MAX),
			OB_ARG_RAW("direction", filter->newest_first ? "DESC" : "")));
}

struct ob_verb_row ob_sql_verb_row(const struct ob_sql_rows *rows)
{
	enum { SEQ, PARTITION, STATE, ATTEMPTS, QUEUE, COVERED, KEY };

	return (struct ob_verb_row){
		.seq = ob_sql_int(rows, SEQ),
		.partition = (uint32_t)ob_sql_int(rows, PARTITION),
		.excepted = !ob_sql_is_null(rows, STATE),
		.state = (enum ob_state)ob_sql_int(rows, STATE),
		.attempts = (uint32_t)ob_sql_int(rows, ATTEMPTS),
		.queue = ob_sql_str(rows, QUEUE),
		.covered = ob_sql_int(rows, COVERED) != 0,
		.key = ob_sql_str(rows, KEY),
	};
}

/* ---- list ------------------------------------------------------------ */

static const struct ob_sql_column listed_columns[] = {
#define X(member, how) OB_SQL_COLUMN(struct ob_message, member, how),
	OB_SQL_MESSAGE_MAP(X) OB_SQL_LISTED_MAP(X)
#undef X
};
static const struct ob_sql_map listed_map = OB_SQL_MAP_OF(struct ob_message, listed_columns);

static int add_message(const struct ob_sql *q, const struct ob_sql_rows *rows,
		       struct ob_batch *batch, struct ob_err *err)
{
	struct ob_message *m = ob_batch_add(batch);

	if (!m)
		return ob_sql_oom(q, err);
	/* Its texts are the result's: only an id can be wrong. */
	if (!ob_sql_read(rows, &listed_map, NULL, m))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"the id of the row with %s %lld is no UUID; correct or delete the "
			"row",
			q->store->layout->column[OB_COL_seq], (long long)m->seq);
	m->excepted = !ob_sql_is_null(rows, OB_SQL_COL_state);
	if (m->available_at_us < 0)
		m->available_at_us = 0;
	return ob_batch_own(batch, m) ? 0 : ob_sql_oom(q, err);
}

int ob_sql_op_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
		   int64_t *ret_now_us, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };
	int r = ob_sql_filter_reach(store, filter, err);

	if (r < 0)
		return r;
	ob_sql_begin(&q, store, OB_SQL_READ, "listing messages");
	size_t now = OB_SQL_ADD0(&q, time);
	size_t known = OB_SQL_ADD(&q, reader_target, OB_ARG_TEXT("reader", filter->reader));
	size_t found = ob_sql_add_filter(&q, filter, false);
	r = ob_sql_commit(&q, err);
	if (r == 0 && filter->reader && ob_sql_count(&q, known) == 0)
		r = ob_sql_no_reader(filter->reader, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, found);
	while (r == 0 && ob_sql_next(&rows))
		r = add_message(&q, &rows, batch, err);
	if (r == 0)
		*ret_now_us = ob_sql_value_time(&q, now);
	else
		ob_batch_reset(batch);
	return r;
}
