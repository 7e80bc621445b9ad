/* SPDX-License-Identifier: MIT */
/* Reading rows of the PostgreSQL store: fetch, claim and list, each one statement. */
#include "base/cleanup.h"
#include "store/postgres.h"

#include "sql_postgres.h"

/* The result columns of fetch, claim and list; fetch and list each have their own behind them. */
enum {
	COL_SEQ,
	COL_ID,
	COL_AGGREGATE_TYPE,
	COL_AGGREGATE_ID,
	COL_EVENT_TYPE,
	COL_PAYLOAD,
	COL_HEADERS,
	COL_CORRELATION_ID,
	COL_CAUSATION_ID,
	COL_KEY,
	COL_TARGET,
	COL_SEQUENCE_NUMBER,
	COL_OCCURRED_AT,
	COL_CREATED_AT,
	COL_REVISION,
	COL_PRIORITY,
	COL_ATTEMPTS,
	COL_STATUS,
	COL_PARTITION,

	COL_ROUND = COL_PARTITION + 1,
	COL_LANE,

	COL_PARTITION_KEY = COL_PARTITION + 1,
	COL_SNAPSHOT,
	COL_LAST_ERROR,
	COL_LOCKED_BY,
	COL_AVAILABLE_AT,
	COL_PUBLISHED_AT,
	COL_LOCKED_UNTIL,
};

enum { FILTER_SQL_MAX = 16 * 1024 };

/* ---- one row --------------------------------------------------------- */

/* Everything in *m points into the result. */
static int read_message(const struct pg_store *s, const PGresult *r, int row, struct ob_message *m,
			struct ob_err *err)
{
	*m = (struct ob_message){
		.seq = pg_get_int(r, row, COL_SEQ),
		.aggregate_type = pg_get_str(r, row, COL_AGGREGATE_TYPE),
		.aggregate_id = pg_get_str(r, row, COL_AGGREGATE_ID),
		.event_type = pg_get_str(r, row, COL_EVENT_TYPE),
		.payload = pg_get_str(r, row, COL_PAYLOAD),
		.headers = pg_get_str(r, row, COL_HEADERS),
		.correlation_id = pg_get_str(r, row, COL_CORRELATION_ID),
		.causation_id = pg_get_str(r, row, COL_CAUSATION_ID),
		.key = pg_get_str(r, row, COL_KEY),
		.target = pg_get_str(r, row, COL_TARGET),
		.sequence_number = pg_get_int(r, row, COL_SEQUENCE_NUMBER),
		.occurred_at_us = pg_get_time(r, row, COL_OCCURRED_AT),
		.created_at_us = pg_get_time(r, row, COL_CREATED_AT),
		.revision = (int32_t)pg_get_int(r, row, COL_REVISION),
		.priority = (int32_t)pg_get_int(r, row, COL_PRIORITY),
		.attempts = (uint32_t)pg_get_int(r, row, COL_ATTEMPTS),
		.state = (enum ob_state)pg_get_int(r, row, COL_STATUS),
		.partition = (uint32_t)pg_get_int(r, row, COL_PARTITION),
	};
	if (pg_get_uuid(r, row, COL_ID, &m->id))
		return 0;
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "the id of the row with %s %lld is no UUID; correct or delete the row",
			  s->base.layout->column[OB_COL_seq], (long long)m->seq);
}

static void read_rest(const PGresult *r, int row, struct ob_message *m)
{
	m->partition_key = pg_get_str(r, row, COL_PARTITION_KEY);
	m->snapshot = pg_get_str(r, row, COL_SNAPSHOT);
	m->last_error = pg_get_str(r, row, COL_LAST_ERROR);
	m->locked_by = pg_get_str(r, row, COL_LOCKED_BY);
	m->available_at_us = pg_get_time(r, row, COL_AVAILABLE_AT);
	m->published_at_us = pg_get_time(r, row, COL_PUBLISHED_AT);
	m->locked_until_us = pg_get_time(r, row, COL_LOCKED_UNTIL);
}

/* The one copy of a row: from libpq's memory into the batch. */
static int add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
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
		status = read_message(s, r, row, &m, err);
		if (all)
			read_rest(r, row, &m);
		if (status == 0)
			status = add_message(batch, &m, err);
	}
	return status;
}

/* ---- fetch ----------------------------------------------------------- */

/* One fetch while its result is read. */
struct serving {
	const struct ob_fetch *fetch;
	struct ob_batch *batch;
	bool ended[OB_PARTITIONS_MAX + 1]; /* lanes, from 1, in which something did not fit */
};

/*
 * The rows come in the order of serving: everyone's share, then the rest. What does not
 * fit ends its lane: nothing behind it may overtake it.
 */
static int serve(struct serving *v, const struct pg_store *s, const PGresult *r, int row,
		 struct ob_err *err)
{
	size_t size =
		(size_t)PQgetlength(r, row, COL_PAYLOAD) + (size_t)PQgetlength(r, row, COL_HEADERS);
	size_t lane = (size_t)pg_get_int(r, row, COL_LANE);
	size_t used = v->batch->bytes;
	size_t left = used < v->fetch->max_bytes ? v->fetch->max_bytes - used : 0;
	struct ob_message m;

	if (lane > OB_PARTITIONS_MAX || v->ended[lane])
		return 0;
	if (v->batch->count > 0 && size > left) {
		v->ended[lane] = true;
		return 0;
	}
	int status = read_message(s, r, row, &m, err);
	return status < 0 ? status : add_message(v->batch, &m, err);
}

static int by_lane(const void *a, const void *b, void *arg)
{
	const struct ob_message *x = a, *y = b;
	const uint16_t *rank = arg;

	if (x->partition != y->partition)
		return rank[x->partition] < rank[y->partition] ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Put what the second round brought behind its partition's first part. */
static void sort_batch(const struct ob_fetch *fetch, struct ob_batch *batch)
{
	uint16_t rank[OB_PARTITIONS_MAX] = { 0 };

	for (size_t i = 0; i < fetch->partition_count; i++) {
		if (fetch->partitions[i] < OB_PARTITIONS_MAX)
			rank[fetch->partitions[i]] = (uint16_t)i;
	}
	qsort_r(batch->messages, batch->count, sizeof(*batch->messages), by_lane, rank);
}

static int send_fetch(struct pg_store *s, const struct ob_fetch *fetch, struct ob_err *err)
{
	struct ob_pgarray lanes = { 0 }, exclude = { 0 };
	struct pg_params p = { 0 };
	int64_t share = (int64_t)(fetch->limit / fetch->partition_count);
	int64_t rest = (int64_t)(fetch->limit % fetch->partition_count);

	ob_pgarray_begin(&lanes, OB_PG_INT8);
	for (size_t i = 0; i < fetch->partition_count; i++) {
		/* Out of range holds nothing. */
		if (fetch->partitions[i] < OB_PARTITIONS_MAX)
			ob_pgarray_int(&lanes, fetch->partitions[i]);
	}
	ob_pgarray_begin(&exclude, OB_PG_INT8);
	for (size_t i = 0; i < fetch->exclude_count; i++)
		ob_pgarray_int(&exclude, fetch->exclude[i]);
	pg_text(&p, fetch->target);
	pg_array(&p, &lanes);
	pg_array(&p, &exclude);
	pg_int(&p, fetch->limit);
	pg_int(&p, share > 0 ? share : 1);
	pg_int(&p, fetch->ordering);
	pg_int(&p, fetch->max_bytes < INT64_MAX ? (int64_t)fetch->max_bytes : INT64_MAX);
	pg_int(&p, share > 0 ? rest : 0);
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_finish(s, pg_add(s, PG_fetch, &p, err), err);
	ob_pgarray_done(&lanes);
	ob_pgarray_done(&exclude);
	return r;
}

int pg_fetch(struct ob_store *store, const struct ob_fetch *fetch, struct ob_batch *batch,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct serving v = { .fetch = fetch, .batch = batch };
	int r = send_fetch(s, fetch, err);

	if (r < 0)
		return r;
	const PGresult *found = s->results[0];
	int rows = PQntuples(found);
	bool mixed = rows > 0 && pg_get_int(found, rows - 1, COL_ROUND) > 1;
	for (int row = 0; row < rows && batch->count < fetch->limit && r == 0; row++)
		r = serve(&v, s, found, row, err);
	pg_clear(s);
	if (r < 0)
		ob_batch_reset(batch);
	else if (mixed)
		sort_batch(fetch, batch);
	return r;
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
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, claim->target);
	pg_uuid(&p, &claim->token);
	pg_text(&p, claim->worker);
	pg_int(&p, claim->limit);
	pg_int(&p, claim->max_bytes < INT64_MAX ? (int64_t)claim->max_bytes : INT64_MAX);
	pg_int(&p, pg_us(claim->ttl_ms));
	r = pg_finish(s, pg_add(s, PG_claim, &p, err), err);
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
