/* SPDX-License-Identifier: MIT */
/* Reading rows of the PostgreSQL store: fetch, claim and list, each one statement. */
#include "base/cleanup.h"
#include "store/postgres.h"
#include "store/share.h"

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

	COL_LANE = COL_PARTITION + 1,

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

/* One fetch while it runs. */
struct fetching {
	struct pg_store *s;
	const struct ob_fetch *fetch;
	int64_t *lows;   /* where each lane begins */
	uint32_t *parts; /* how many are asked of each lane */
	struct ob_share *shares;
	struct ob_candidate *list;
	size_t count;
};

/* Everyone's share, or what it was good for last time when others had less. */
static void plan_parts(struct fetching *f)
{
	uint32_t lanes = (uint32_t)f->fetch->partition_count;
	uint32_t share = (f->fetch->limit - 1) / lanes + 1;

	for (size_t i = 0; i < lanes; i++) {
		uint32_t p = f->fetch->partitions[i];
		uint32_t last = p < OB_PARTITIONS_MAX ? f->s->parts[p] : 0;

		f->parts[i] = last > share ? last : share;
		if (f->parts[i] > f->fetch->limit)
			f->parts[i] = f->fetch->limit;
	}
}

static int send_fetch(struct fetching *f, bool look, struct ob_err *err)
{
	const struct ob_fetch *fetch = f->fetch;
	struct ob_pgarray lanes = { 0 }, lows = { 0 }, parts = { 0 }, exclude = { 0 };
	bool seen[OB_PARTITIONS_MAX] = { false };
	struct pg_params p = { 0 };

	ob_pgarray_begin(&lanes, OB_PG_INT8);
	ob_pgarray_begin(&lows, OB_PG_INT8);
	ob_pgarray_begin(&parts, OB_PG_INT8);
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t partition = fetch->partitions[i];
		bool serve = partition < OB_PARTITIONS_MAX && !seen[partition];

		/* Out of range holds nothing, and what is named twice is served once. */
		if (serve)
			seen[partition] = true;
		ob_pgarray_int(&lanes, serve ? (int64_t)partition : -1);
		ob_pgarray_int(&lows, f->lows[i]);
		ob_pgarray_int(&parts, f->parts[i]);
	}
	ob_pgarray_begin(&exclude, OB_PG_INT8);
	for (size_t i = 0; i < fetch->exclude_count; i++)
		ob_pgarray_int(&exclude, fetch->exclude[i]);
	pg_text(&p, fetch->target);
	pg_array(&p, &lanes);
	pg_array(&p, &lows);
	pg_array(&p, &parts);
	pg_array(&p, &exclude);
	pg_int(&p, fetch->ordering);
	pg_int(&p, fetch->max_bytes < INT64_MAX ? (int64_t)fetch->max_bytes : INT64_MAX);
	int r = pg_begin_batch(f->s, true, err);
	if (r == 0) {
		r = pg_add(f->s, PG_fetch, &p, err);
		if (r == 0 && look)
			r = pg_add_look(f->s, fetch, f->lows, err);
		r = pg_finish(f->s, r, err);
	}
	ob_pgarray_done(&lanes);
	ob_pgarray_done(&lows);
	ob_pgarray_done(&parts);
	ob_pgarray_done(&exclude);
	return r;
}

/* The rows that were found, in the order of sending. The first row is no message. */
static int list_rows(struct fetching *f, struct ob_arena *arena, struct ob_err *err)
{
	const PGresult *r = f->s->results[0];
	int rows = PQntuples(r);

	f->list = ob_arena_alloc(arena, (size_t)rows * sizeof(*f->list));
	if (!f->list)
		return pg_oom("fetching", err);
	f->count = 0;
	for (int row = 1; row < rows; row++) {
		f->list[f->count++] = (struct ob_candidate){
			.lane = (uint32_t)pg_get_int(r, row, COL_LANE) - 1,
			.priority = (int32_t)pg_get_int(r, row, COL_PRIORITY),
			.seq = pg_get_int(r, row, COL_SEQ),
			.size = (size_t)PQgetlength(r, row, COL_PAYLOAD) +
				(size_t)PQgetlength(r, row, COL_HEADERS),
			.at = row,
		};
	}
	ob_candidates_sort(f->list, f->count);
	memset(f->shares, 0, f->fetch->partition_count * sizeof(*f->shares));
	ob_candidates_share(f->fetch, f->list, f->count, f->shares);
	return 0;
}

static bool is_full(const struct fetching *f, size_t lane)
{
	return f->shares[lane].count >= f->parts[lane];
}

/*
 * What to ask of each lane next time: those that gave all that was asked of them get what the
 * others leave. True when there is room left in this fetch that they may have more for: then they
 * are asked at once, at the `last` try for all of it.
 */
static bool learn(struct fetching *f, bool last)
{
	const struct ob_fetch *fetch = f->fetch;
	uint32_t taken = 0, full = 0, of_full = 0, missing, left;
	size_t bytes = 0;

	for (size_t i = 0; i < f->count; i++)
		bytes += f->list[i].size;
	/* Then bytes are the limit, and what a lane gave says nothing. */
	if (bytes * 2 >= fetch->max_bytes)
		return false;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		taken += (uint32_t)f->shares[i].taken;
		full += is_full(f, i);
		of_full += is_full(f, i) ? (uint32_t)f->shares[i].taken : 0;
	}
	missing = fetch->limit - taken;
	left = missing + of_full;
	for (size_t i = 0; i < fetch->partition_count; i++) {
		uint32_t p = fetch->partitions[i];

		if (p < OB_PARTITIONS_MAX)
			f->s->parts[p] = is_full(f, i) ? (left - 1) / full + 1 : 0;
		if (is_full(f, i))
			f->parts[i] += last ? missing : 2 * (missing / full + 1);
	}
	return full > 0 && missing > 0;
}

static int copy_rows(struct fetching *f, struct ob_batch *batch, struct ob_err *err)
{
	const PGresult *result = f->s->results[0];
	struct ob_message m;
	int r = 0;

	for (size_t i = 0; i < f->fetch->partition_count; i++) {
		const struct ob_candidate *at = f->list + f->shares[i].first;

		for (size_t k = 0; k < f->shares[i].taken && r == 0; k++, at++) {
			r = read_message(f->s, result, at->at, &m, err);
			if (r == 0)
				r = add_message(batch, &m, err);
		}
	}
	return r;
}

/* Read once. *ret_again: it must be read again, with other marks or more of some lanes. */
static int read_lanes(struct fetching *f, struct ob_batch *batch, int tries, bool *ret_again,
		      struct ob_err *err)
{
	int64_t now = ob_clock_boot_us(&ob_clock_system);
	struct ob_marks *marks = &f->s->marks;
	struct ob_snapshot snapshot;

	/* With the connection goes what it knew. */
	int r = pg_ready(f->s, err);
	if (r < 0)
		return r;
	ob_marks_begin(marks, f->fetch, now, f->lows);
	bool look = tries < 2 && ob_marks_look_due(marks, f->fetch, now);
	r = send_fetch(f, look, err);
	if (r < 0)
		return r;
	pg_read_snapshot(pg_get_str(f->s->results[0], 0, COL_AGGREGATE_TYPE), &snapshot);
	bool complete = ob_marks_complete(marks, &snapshot);
	if (look)
		pg_read_look(f->s, f->fetch, 1);
	if (complete)
		r = list_rows(f, &batch->arena, err);
	*ret_again = !complete || (r == 0 && learn(f, tries > 0));
	return r;
}

static int fetch_work(struct fetching *f, struct ob_batch *batch, struct ob_err *err)
{
	bool again = true;
	int r = 0;

	plan_parts(f);
	for (int tries = 0; again && r == 0; tries++)
		r = read_lanes(f, batch, tries, &again, err);
	if (r == 0)
		r = copy_rows(f, batch, err);
	if (r == 0)
		ob_marks_end(&f->s->marks, ob_clock_boot_us(&ob_clock_system));
	return r;
}

int pg_fetch(struct ob_store *store, const struct ob_fetch *fetch, struct ob_batch *batch,
	     struct ob_err *err)
{
	size_t lanes = fetch->partition_count;
	struct fetching f = { .s = (struct pg_store *)store, .fetch = fetch };

	f.lows = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.lows));
	f.parts = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.parts));
	f.shares = ob_arena_alloc(&batch->arena, lanes * sizeof(*f.shares));
	if (!f.lows || !f.parts || !f.shares) {
		ob_batch_reset(batch);
		return pg_oom("fetching", err);
	}
	int r = fetch_work(&f, batch, err);
	pg_clear(f.s);
	if (r < 0)
		ob_batch_reset(batch);
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
