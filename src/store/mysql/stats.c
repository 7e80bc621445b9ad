/* SPDX-License-Identifier: MIT */
/* The MySQL store: counts and throughput. */
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/list.h"

#include "sql_mysql.h"

enum { GAPS_MAX = 64 << 20 };

/* Rows of (view, count) over at most `cap` + 1 rows. */
static void add_counts(struct my_packet *p, size_t statement, uint64_t cap, struct ob_stats *stats)
{
	uint64_t all = 0;
	bool met[OB_VIEW_COUNT] = { false };

	for (my_use(p, statement); my_step(p);) {
		int64_t view = my_int(p, 0);
		uint64_t count = (uint64_t)my_int(p, 1);

		all += count;
		if (view < 0 || view >= OB_VIEW_COUNT || view == OB_VIEW_PUBLISHED)
			continue;
		stats->count[view] += count;
		met[view] = true;
	}
	/* It stopped: of what it met there may be more. */
	for (int view = 0; view < OB_VIEW_COUNT && cap && all > cap; view++)
		stats->capped[view] |= met[view];
}

static int count_reader(struct my_store *s, struct ob_stats *stats, uint64_t cap,
			struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf gaps = OB_BUF_INIT(GAPS_MAX);
	char column[OB_IDENT_SIZE + 8];
	struct my_reach reach;
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = my_reach_read(s, stats->reader, -1, &reach, err);

	if (r < 0)
		return r;
	(void)snprintf(column, sizeof(column), "m.`%s`", s->base.layout->column[OB_COL_seq]);
	my_gaps_or(column, &reach.gaps, &gaps);
	const struct ob_sql_arg args[] = { OB_ARG_STR("reader", stats->reader),
					   OB_ARG_INT("low", reach.low),
					   OB_ARG_RAW("gaps", ob_buf_str(&gaps)),
					   OB_ARG_INT("cap", cap ? (int64_t)cap + 1 : INT64_MAX),
					   { .name = NULL } };
	my_packet_init(&p, s, "counting");
	(void)my_packet_add(&p, sql_mysql_stats_exceptions, args);
	(void)my_packet_add(&p, sql_mysql_stats_log, args);
	(void)my_packet_add(&p, sql_mysql_stats_held, args);
	(void)my_packet_add(&p, sql_mysql_stats_oldest, args);
	r = my_packet_run(&p, err);
	if (r == 0) {
		add_counts(&p, 0, cap, stats);
		add_counts(&p, 1, cap, stats);
		for (int view = 0; view < OB_VIEW_COUNT && cap; view++) {
			stats->capped[view] |= stats->count[view] > cap;
			if (stats->count[view] > cap)
				stats->count[view] = cap;
		}
		my_use(&p, 2);
		if (my_step(&p))
			stats->held_keys = (uint64_t)my_int(&p, 0);
		if (cap && stats->held_keys > cap)
			stats->held_keys = cap;
		my_use(&p, 3);
		if (my_step(&p))
			stats->oldest_due_us = my_time(&p, 0);
	}
	my_reach_done(&reach);
	return r;
}

static int list_readers(struct my_store *s, const char *reader, struct my_rows *rows,
			int64_t *ret_now_us, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "counting");
	(void)MY_ADD0(&p, sql_mysql_time);
	(void)MY_ADD(&p, sql_mysql_stats_readers, OB_ARG_TEXT("reader", reader));
	int r = my_packet_run(&p, err);
	my_use(&p, 0);
	if (r == 0 && my_step(&p))
		*ret_now_us = my_time(&p, 0);
	for (my_use(&p, 1); r == 0 && my_step(&p);) {
		struct ob_stats *stats = my_rows_add(rows);

		if (!stats || !ob_arena_copy(rows->arena, my_str(&p, 0), &stats->reader) ||
		    !ob_arena_copy(rows->arena, my_str(&p, 1), &stats->target))
			r = my_oom("counting", err);
	}
	return r;
}

/* NOLINTNEXTLINE(readability-function-size): the contract's own eight parameters */
int my_stats(struct ob_store *store, const char *reader, uint64_t cap, struct ob_arena *arena,
	     struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	     struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_stats) };
	int64_t now_us = 0;
	int r = list_readers(s, reader, &rows, &now_us, err);
	struct ob_stats *stats = (void *)rows.data;

	for (size_t i = 0; i < rows.count && r == 0; i++)
		r = count_reader(s, &stats[i], cap, err);
	if (r < 0)
		return r;
	*ret_stats = stats;
	*ret_count = rows.count;
	*ret_now_us = now_us;
	return 0;
}
