/* SPDX-License-Identifier: MIT */
/* Reading rows of the PostgreSQL store; claims and lists, each one statement. */
#include "base/cleanup.h"
#include "store/postgres.h"

#include "sql_postgres.h"

enum { FILTER_SQL_MAX = 16 * 1024 };

/* ---- one row --------------------------------------------------------- */

int pg_read_message(const struct pg_store *s, const PGresult *r, int row, struct ob_message *m,
		    struct ob_err *err)
{
	*m = (struct ob_message){
		.seq = pg_get_int(r, row, PG_COL_SEQ),
		.aggregate_type = pg_get_str(r, row, PG_COL_AGGREGATE_TYPE),
		.aggregate_id = pg_get_str(r, row, PG_COL_AGGREGATE_ID),
		.event_type = pg_get_str(r, row, PG_COL_EVENT_TYPE),
		.payload = pg_get_str(r, row, PG_COL_PAYLOAD),
		.headers = pg_get_str(r, row, PG_COL_HEADERS),
		.correlation_id = pg_get_str(r, row, PG_COL_CORRELATION_ID),
		.causation_id = pg_get_str(r, row, PG_COL_CAUSATION_ID),
		.key = pg_get_str(r, row, PG_COL_KEY),
		.target = pg_get_str(r, row, PG_COL_TARGET),
		.sequence_number = pg_get_int(r, row, PG_COL_SEQUENCE_NUMBER),
		.occurred_at_us = pg_get_time(r, row, PG_COL_OCCURRED_AT),
		.created_at_us = pg_get_time(r, row, PG_COL_CREATED_AT),
		.revision = (int32_t)pg_get_int(r, row, PG_COL_REVISION),
		.priority = (int32_t)pg_get_int(r, row, PG_COL_PRIORITY),
		.attempts = (uint32_t)pg_get_int(r, row, PG_COL_ATTEMPTS),
		.state = (enum ob_state)pg_get_int(r, row, PG_COL_STATUS),
		.partition = (uint32_t)pg_get_int(r, row, PG_COL_PARTITION),
	};
	if (pg_get_uuid(r, row, PG_COL_ID, &m->id))
		return 0;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "the id of the row with %s %lld is no UUID; correct or delete the row",
			  s->base.layout->column[OB_COL_seq], (long long)m->seq);
}

int pg_find_row(const PGresult *rows, int64_t seq)
{
	int low = 0, high = PQntuples(rows);

	while (low < high) {
		int middle = low + (high - low) / 2;
		int64_t at = pg_get_int(rows, middle, 0);

		if (at == seq)
			return middle;
		if (at < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

static void read_rest(const PGresult *r, int row, struct ob_message *m)
{
	m->partition_key = pg_get_str(r, row, PG_COL_PARTITION_KEY);
	m->snapshot = pg_get_str(r, row, PG_COL_SNAPSHOT);
	m->last_error = pg_get_str(r, row, PG_COL_LAST_ERROR);
	m->locked_by = pg_get_str(r, row, PG_COL_LOCKED_BY);
	m->available_at_us = pg_get_time(r, row, PG_COL_AVAILABLE_AT);
	m->published_at_us = pg_get_time(r, row, PG_COL_PUBLISHED_AT);
	m->locked_until_us = pg_get_time(r, row, PG_COL_LOCKED_UNTIL);
}

int pg_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return pg_oom("reading rows", err);
	*to = *from;
	return ob_batch_own(batch, to) ? 0 : pg_oom("reading rows", err);
}

/* Rows of a result into the batch, `all` with every field. */
static int add_rows(const struct pg_store *s, const PGresult *r, bool all, struct ob_batch *batch,
		    struct ob_err *err)
{
	struct ob_message m;
	int rows = PQntuples(r), status = 0;

	for (int row = 0; row < rows && status == 0; row++) {
		status = pg_read_message(s, r, row, &m, err);
		if (all)
			read_rest(r, row, &m);
		if (status == 0)
			status = pg_add_message(batch, &m, err);
	}
	return status;
}

/* ---- claim ----------------------------------------------------------- */

static int by_priority(const void *a, const void *b)
{
	const struct ob_message *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int pg_claim(struct ob_store *store, const struct ob_claim *claim, struct ob_batch *batch,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };

	pg_text(&p, claim->target);
	pg_uuid(&p, &claim->token);
	pg_text(&p, claim->worker);
	pg_int(&p, claim->limit);
	pg_int(&p, claim->max_bytes < INT64_MAX ? (int64_t)claim->max_bytes : INT64_MAX);
	pg_int(&p, pg_us(claim->ttl_ms));
	int r = pg_run_one(s, PG_claim, &p, err);
	if (r == 0)
		r = add_rows(s, s->results[0], false, batch, err);
	pg_clear(s);
	if (r < 0)
		ob_batch_reset(batch);
	else if (batch->count)
		qsort(batch->messages, batch->count, sizeof(*batch->messages), by_priority);
	return r;
}

/* ---- filters and list ------------------------------------------------ */

int pg_add_filter(struct pg_store *s, const struct ob_filter *filter, bool lock, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(FILTER_SQL_MAX);
	const char *const parts[] = {
		lock ? sql_postgres_pick_head : sql_postgres_list_head,
		sql_postgres_matches,
		filter->newest_first ? sql_postgres_newest_first : sql_postgres_oldest_first,
		lock ? sql_postgres_for_update : "",
	};
	bool after = filter->after_seq > 0;
	struct pg_params p = { 0 };
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = pg_expand(s->base.layout, parts[i], 0, &sql, err);
	if (r < 0)
		return r;
	pg_uuid(&p, filter->id);
	pg_text(&p, filter->target);
	pg_text(&p, filter->key);
	pg_text(&p, filter->aggregate_type);
	pg_text(&p, filter->aggregate_id);
	pg_text(&p, filter->event_type);
	pg_int(&p, filter->views);
	pg_int(&p, after && !filter->newest_first ? filter->after_seq : INT64_MIN);
	pg_int(&p, after && filter->newest_first ? filter->after_seq : INT64_MAX);
	pg_int(&p, filter->limit ? (int64_t)filter->limit : INT64_MAX);
	return pg_add_sql(s, ob_buf_str(&sql), "looking for rows", &p, err);
}

int pg_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	    int64_t *ret_now_us, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	r = pg_add(s, PG_now, NULL, err);
	if (r == 0)
		r = pg_add_filter(s, filter, false, err);
	r = pg_finish(s, r, err);
	if (r == 0)
		r = add_rows(s, s->results[1], true, batch, err);
	int64_t now = r == 0 ? pg_get_time(s->results[0], 0, 0) : 0;
	pg_clear(s);
	if (r < 0) {
		ob_batch_reset(batch);
		return r;
	}
	*ret_now_us = now;
	return 0;
}
