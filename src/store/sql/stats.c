/* SPDX-License-Identifier: MIT */
/* Counts and throughput, for people. */
#include "base/cleanup.h"
#include "store/sql/ops.h"

/* ---- counts ---------------------------------------------------------- */

static const struct ob_sql_column reader_columns[] = {
	OB_SQL_COLUMN(struct ob_stats, reader, STR),
	OB_SQL_COLUMN(struct ob_stats, target, STR),
};
static const struct ob_sql_map reader_map = OB_SQL_MAP_OF(struct ob_stats, reader_columns);

/* Rows of stats_exceptions or stats_log: a view, how many, the oldest of them that is due or waits,
 * and after how many rows counting ended. */
static void add_counts(const struct ob_sql *q, size_t statement, struct ob_stats *stats)
{
	enum { VIEW, COUNT, OLDEST, WALK };
	struct ob_sql_rows rows = ob_sql_rows(q, statement);
	bool met[OB_VIEW_COUNT] = { false };
	uint64_t all = 0, walk = UINT64_MAX;

	while (ob_sql_next(&rows)) {
		int64_t view = ob_sql_int(&rows, VIEW), oldest = ob_sql_time(&rows, OLDEST);

		all += (uint64_t)ob_sql_int(&rows, COUNT);
		walk = (uint64_t)ob_sql_int(&rows, WALK);
		if (oldest && (stats->oldest_due_us == 0 || oldest < stats->oldest_due_us))
			stats->oldest_due_us = oldest;
		if (ob_sql_is_null(&rows, VIEW) || view < 0 || view >= OB_VIEW_COUNT ||
		    view == OB_VIEW_PUBLISHED)
			continue;
		stats->count[view] += (uint64_t)ob_sql_int(&rows, COUNT);
		met[view] = true;
	}
	/* It ended early: of what it met there may be more. */
	for (int view = 0; view < OB_VIEW_COUNT && all >= walk; view++)
		stats->capped[view] |= met[view];
}

static int count_reader(struct ob_store *store, struct ob_stats *stats, uint64_t cap,
			struct ob_err *err)
{
	/* A dialect may multiply it. */
	const int64_t most = cap && cap < INT64_MAX / 16 ? (int64_t)cap : INT64_MAX / 16;
	const struct ob_sql_arg args[] = {
		OB_ARG_STR("reader", stats->reader),
		OB_ARG_INT("cap", most),
		OB_ARG_INT("most", most + 1), /* MySQL limits by literals only */
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q = { 0 };
	int r = store->ops->sql->reach ? store->ops->sql->reach(store, stats->reader, err) : 0;

	if (r < 0)
		return r;
	ob_sql_begin(&q, store, OB_SQL_READ, "counting");
	size_t excepted = ob_sql_add(&q, OB_SQL_stats_exceptions, args);
	size_t log = ob_sql_add(&q, OB_SQL_stats_log, args);
	size_t held = ob_sql_add(&q, OB_SQL_stats_held, args);
	r = ob_sql_commit(&q, err);
	if (r < 0)
		return r;
	add_counts(&q, excepted, stats);
	add_counts(&q, log, stats);
	stats->held_keys = (uint64_t)ob_sql_value(&q, held);
	if (cap && stats->held_keys > cap)
		stats->held_keys = cap;
	for (int view = 0; view < OB_VIEW_COUNT && cap; view++) {
		stats->capped[view] |= stats->count[view] > cap;
		if (stats->count[view] > cap)
			stats->count[view] = cap;
	}
	return 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int ob_sql_op_stats(struct ob_store *store, const char *reader, uint64_t cap,
		    struct ob_arena *arena, struct ob_stats **ret_stats, size_t *ret_count,
		    int64_t *ret_now_us, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	size_t count = 0;

	ob_sql_begin(&q, store, OB_SQL_READ, "counting");
	size_t now = OB_SQL_ADD0(&q, time);
	size_t readers = OB_SQL_ADD(&q, stats_readers, OB_ARG_TEXT("reader", reader));
	int r = ob_sql_commit(&q, err);
	if (r < 0)
		return r;
	int64_t now_us = ob_sql_value_time(&q, now);
	struct ob_stats *stats = ob_sql_collect(&q, readers, &reader_map, arena, &count, err);
	if (!stats)
		return err->status;
	for (size_t i = 0; i < count && r == 0; i++)
		r = count_reader(store, &stats[i], cap, err);
	if (r < 0)
		return r;
	*ret_stats = stats;
	*ret_count = count;
	*ret_now_us = now_us;
	return 0;
}

/* ---- throughput ------------------------------------------------------ */

static const struct ob_sql_column minute_columns[] = {
	OB_SQL_COLUMN(struct ob_minute, minute_us, TIME),
	OB_SQL_COLUMN(struct ob_minute, published, INT),
	OB_SQL_COLUMN(struct ob_minute, failed, INT),
};
static const struct ob_sql_map minute_map = OB_SQL_MAP_OF(struct ob_minute, minute_columns);

int ob_sql_op_throughput(struct ob_store *store, const char *reader, uint32_t minutes,
			 struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
			 struct ob_err *err)
{
	struct ob_minute *found =
		ob_sql_list(store, "reading the throughput", OB_SQL_throughput,
			    OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("minutes", minutes)),
			    &minute_map, arena, ret_count, err);

	if (!found)
		return err->status;
	*ret_minutes = found;
	return 0;
}
