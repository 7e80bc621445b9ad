/* SPDX-License-Identifier: MIT */
/* The SQLite store: statistics and throughput. */
#include "store/sqlite/list.h"
#include "store/sqlite/reader.h"
#include "store/sqlite/stmt.h"

/* One stats while it runs. */
struct counting {
	struct lite_store *s;
	uint64_t cap; /* 0: none */
};

static void count_view(const struct counting *c, struct ob_stats *stats, enum ob_view view,
		       uint64_t more)
{
	stats->count[view] += more;
	if (c->cap && stats->count[view] > c->cap) {
		stats->count[view] = c->cap;
		stats->capped[view] = true;
	}
}

/* Numbers are the order of insertion: the lowest of a group stands for its lowest created_at. */
static int note_oldest(const struct counting *c, struct ob_stats *stats, int64_t seq,
		       struct ob_err *err)
{
	int64_t created_at;
	int r = lite_value(c->s, LITE_created_at, OB_ARGS(OB_ARG_INT("seq", seq)), &created_at,
			   err);

	if (r > 0 && (stats->oldest_due_us == 0 || created_at < stats->oldest_due_us))
		stats->oldest_due_us = created_at;
	return r < 0 ? r : 0;
}

/* Run stats_log or stats_exceptions: a view, how many, and the lowest that is due. */
static int count_rows(const struct counting *c, int id, struct ob_stats *stats, int64_t low,
		      struct ob_err *err)
{
	uint64_t sum = 0;
	int r = lite_bind(c->s, id,
			  OB_ARGS(OB_ARG_STR("reader", stats->reader), OB_ARG_INT("low", low),
				  OB_ARG_INT("limit", c->cap ? (int64_t)c->cap + 1 : -1)),
			  err);
	sqlite3_stmt *stmt = c->s->stmt[id];

	while (r >= 0 && (r = lite_step(c->s, id, err)) > 0) {
		int view = ob_view_parse((const char *)sqlite3_column_text(stmt, 0));
		uint64_t count = (uint64_t)sqlite3_column_int64(stmt, 1);
		bool due = sqlite3_column_type(stmt, 2) != SQLITE_NULL &&
			   (id != LITE_stats_log || view != OB_VIEW_DELAYED);

		sum += count;
		if (view >= 0 && view != OB_VIEW_PUBLISHED)
			count_view(c, stats, (enum ob_view)view, count);
		r = due ? note_oldest(c, stats, sqlite3_column_int64(stmt, 2), err) : 0;
	}
	lite_reset(c->s, id);
	/* The walk ended early: there may be more of all that it has met. */
	for (int v = 0; id == LITE_stats_log && v < OB_VIEW_COUNT; v++)
		stats->capped[v] |= c->cap && sum > c->cap && stats->count[v] > 0;
	return r;
}

static int count_reader(const struct counting *c, const struct ob_reader *reader,
			struct ob_stats *stats, struct ob_err *err)
{
	int64_t held = 0;

	stats->reader = reader->name;
	stats->target = reader->target;
	int r = count_rows(c, LITE_stats_log, stats, reader->low_pos, err);
	if (r == 0)
		r = count_rows(c, LITE_stats_exceptions, stats, 0, err);
	if (r == 0)
		r = lite_value(c->s, LITE_stats_held, OB_ARGS(OB_ARG_STR("reader", reader->name)),
			       &held, err);
	stats->held_keys = c->cap && (uint64_t)held > c->cap ? c->cap : (uint64_t)held;
	return r < 0 ? r : 0;
}

static int count_readers(const struct counting *c, const char *reader, struct lite_rows *rows,
			 struct ob_err *err)
{
	struct ob_reader *readers;
	size_t count;
	int r = lite_reader_list(c->s, reader, rows->arena, &readers, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct ob_stats *stats = lite_rows_add(rows);

		r = stats ? count_reader(c, &readers[i], stats, err) : lite_oom(c->s, err);
	}
	return r;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int lite_stats(struct ob_store *store, const char *reader, uint64_t cap, struct ob_arena *arena,
	       struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	       struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_stats) };
	const struct counting c = { .s = s, .cap = cap };
	int r = lite_begin_read(s, "counting", err);

	if (r == 0)
		r = lite_end_read(s, count_readers(&c, reader, &rows, err), err);
	if (r < 0)
		return r;
	*ret_stats = (void *)rows.data;
	*ret_count = rows.count;
	*ret_now_us = s->now;
	return 0;
}
