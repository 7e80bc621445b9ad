/* SPDX-License-Identifier: MIT */
/* What people see: messages by a filter, statistics and throughput of the PostgreSQL store. */
#include "store/postgres/filter.h"
#include "store/postgres/ops.h"
#include "store/postgres/readers.h"
#include "store/postgres/rows.h"

#include "base/cleanup.h"

#include "sql_postgres.h"

enum {
	SQL_MAX = 64 * 1024,
	WALK_FACTOR = 8, /* rows that are read for one that is counted, at most */
};

/* ---- filters --------------------------------------------------------- */

/* @ in a statement is the direction of its order. */
static void put_direction(const char *sql, bool newest_first, struct ob_buf *out)
{
	for (; *sql; sql++) {
		if (*sql != '@')
			ob_buf_addc(out, *sql);
		else if (newest_first)
			ob_buf_adds(out, "DESC");
	}
}

/* What is published is most of the log: without it, the rest is found directly. */
static const char *found_by(const struct ob_filter *filter)
{
	bool all = !filter->reader || filter->views == 0 || filter->views & 1U << OB_VIEW_PUBLISHED;

	return filter->id ? sql_postgres_found_one
	       : all      ? sql_postgres_found_all
			  : sql_postgres_found_open;
}

int pg_add_filter(struct pg_store *s, const struct ob_filter *filter, const char *rows,
		  struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf expanded = OB_BUF_INIT(SQL_MAX);
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	bool after = filter->after_seq > 0;
	struct pg_params p = { 0 };
	int r = pg_expand(s->base.layout, found_by(filter), 0, &expanded, err);

	if (r == 0)
		r = pg_expand(s->base.layout, rows, 0, &expanded, err);
	if (r < 0)
		return r;
	put_direction(ob_buf_str(&expanded), filter->newest_first, &sql);
	if (sql.failed)
		return pg_oom("looking for rows", err);
	pg_text(&p, filter->reader);
	pg_uuid(&p, filter->id);
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

/* ---- list ------------------------------------------------------------ */

static int add_rows(const struct pg_store *s, const PGresult *found, struct ob_batch *batch,
		    struct ob_err *err)
{
	struct ob_message m;
	int rows = PQntuples(found), r = 0;

	for (int row = 0; row < rows && r == 0; row++) {
		r = pg_read_message(s, found, row, true, &m, err);
		if (r == 0)
			r = pg_add_message(batch, &m, err);
	}
	return r;
}

int pg_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	    int64_t *ret_now_us, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params reader = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&reader, filter->reader);
	r = pg_add(s, PG_reader_target, &reader, err);
	if (r == 0)
		r = pg_add(s, OB_SQL_time, NULL, err);
	if (r == 0)
		r = pg_add_filter(s, filter, sql_postgres_list_rows, err);
	r = pg_finish(s, r, err);
	if (r == 0 && filter->reader && PQntuples(s->results[0]) == 0)
		r = pg_no_reader(filter->reader, err);
	if (r == 0)
		r = add_rows(s, s->results[2], batch, err);
	if (r == 0)
		*ret_now_us = pg_get_time(s->results[1], 0, 0);
	else
		ob_batch_reset(batch);
	pg_clear(s);
	return r;
}

/* ---- statistics ------------------------------------------------------ */

/* Columns of stats: of the exceptions (X), of the log (L). */
enum {
	S_NAME,
	S_TARGET,
	S_WALK,
	S_CAP,
	X_PENDING,
	X_DELAYED,
	X_FAILED,
	X_PARKED,
	X_DEAD,
	X_DISCARDED,
	X_HELD,
	X_OLDEST,
	X_WALKED,
	L_PENDING,
	L_DELAYED,
	L_PARKED,
	L_OLDEST,
	L_WALKED,
};

/* A view's column among the exceptions and in the log; 0: none. */
static const struct {
	int x, l;
} counts[OB_VIEW_COUNT] = {
	[OB_VIEW_PENDING] = { X_PENDING, L_PENDING },
	[OB_VIEW_DELAYED] = { X_DELAYED, L_DELAYED },
	[OB_VIEW_FAILED] = { X_FAILED, 0 },
	[OB_VIEW_PARKED] = { X_PARKED, L_PARKED },
	[OB_VIEW_DEAD] = { X_DEAD, 0 },
	[OB_VIEW_DISCARDED] = { X_DISCARDED, 0 },
};

static uint64_t capped_count(uint64_t count, uint64_t cap, bool *ret_capped)
{
	*ret_capped = cap > 0 && count > cap;
	return *ret_capped ? cap : count;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static bool read_stats(const PGresult *found, int row, struct ob_arena *arena, void *stats)
{
	int64_t walk = pg_get_int(found, row, S_WALK), most = pg_get_int(found, row, S_CAP);
	bool more_x = pg_get_int(found, row, X_WALKED) >= walk;
	bool more_l = pg_get_int(found, row, L_WALKED) >= walk;
	uint64_t cap = (uint64_t)most;
	struct ob_stats *to = stats;
	bool ignored;

	for (int view = 0; view < OB_VIEW_COUNT; view++) {
		uint64_t x = counts[view].x ? (uint64_t)pg_get_int(found, row, counts[view].x) : 0;
		uint64_t l = counts[view].l ? (uint64_t)pg_get_int(found, row, counts[view].l) : 0;

		to->count[view] = capped_count(x + l, cap, &to->capped[view]);
		to->capped[view] = to->capped[view] || (counts[view].x && more_x) ||
				   (counts[view].l && more_l);
	}
	to->held_keys = capped_count((uint64_t)pg_get_int(found, row, X_HELD), cap, &ignored);
	to->oldest_due_us =
		earlier(pg_get_time(found, row, X_OLDEST), pg_get_time(found, row, L_OLDEST));
	return ob_arena_copy(arena, pg_get_str(found, row, S_NAME), &to->reader) &&
	       ob_arena_copy(arena, pg_get_str(found, row, S_TARGET), &to->target);
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int pg_stats(struct ob_store *store, const char *reader, uint64_t cap, struct ob_arena *arena,
	     struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	bool bounded = cap > 0 && cap < INT64_MAX / WALK_FACTOR;
	int64_t walk = bounded ? (int64_t)cap * WALK_FACTOR : INT64_MAX;
	struct pg_params p = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, reader);
	pg_int(&p, walk);
	pg_int(&p, bounded ? (int64_t)cap : 0);
	r = pg_add(s, OB_SQL_time, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_stats, &p, err);
	r = pg_finish(s, r, err);
	if (r < 0)
		return r;
	*ret_now_us = pg_get_time(s->results[0], 0, 0);
	*ret_stats = pg_collect(s, 1, read_stats, sizeof(**ret_stats), arena, ret_count);
	return *ret_stats ? 0 : pg_oom("counting", err);
}
