/* SPDX-License-Identifier: MIT */
/* The MySQL store: statistics and throughput. */
#include "base/cleanup.h"
#include "store/mysql.h"

/* One stats while it runs. */
struct counting {
	const char *target; /* NULL: all */
	int64_t now_us;
	struct my_rows rows; /* struct ob_stats */
};

static int prepare(struct my_store *s, enum my_id id, const char *target,
		   struct my_query **ret_query, struct ob_err *err)
{
	int r = my_prepare(s, id, 1, ret_query, err);

	if (r == 0)
		my_bind_text(*ret_query, "target", target);
	return r;
}

/* The one number of a statement. */
static int read_number(struct my_store *s, enum my_id id, const char *target, uint64_t *ret_number,
		       struct ob_err *err)
{
	struct my_query *q;
	int r = prepare(s, id, target, &q, err);

	if (r == 0)
		r = my_first(s, q, err);
	if (r < 0)
		return r;
	*ret_number = r > 0 ? (uint64_t)my_int(q, 0) : 0;
	return 0;
}

static void count_state(struct ob_stats *stats, const struct my_query *q)
{
	uint64_t all = (uint64_t)my_int(q, 1), claimed = (uint64_t)my_int(q, 2);
	uint64_t delayed = (uint64_t)my_int(q, 3);

	switch ((enum ob_state)my_int(q, 0)) {
	case OB_STATE_PENDING:
		stats->count[OB_VIEW_PENDING] += all - claimed - delayed;
		stats->count[OB_VIEW_DELAYED] += delayed;
		stats->count[OB_VIEW_PROCESSING] += claimed;
		break;
	case OB_STATE_FAILED:
		stats->count[OB_VIEW_FAILED] += all - claimed;
		stats->count[OB_VIEW_PROCESSING] += claimed;
		break;
	case OB_STATE_PARKED:
		stats->count[OB_VIEW_PARKED] += all;
		break;
	case OB_STATE_DEAD:
	case OB_STATE_DEAD_HOLD:
		stats->count[OB_VIEW_DEAD] += all;
		break;
	case OB_STATE_PUBLISHED:
		break;
	}
}

/* The lowest seq of a state stands for its lowest created_at: rows get both as they are inserted.
 */
static int find_oldest(struct my_store *s, const int64_t *seqs, size_t count,
		       struct ob_stats *stats, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++) {
		struct my_query *q;

		r = my_prepare(s, MY_created_at, 1, &q, err);
		if (r < 0)
			break;
		my_bind_int(q, "seq", seqs[i]);
		r = my_first(s, q, err);
		if (r > 0 && (stats->oldest_due_us == 0 || my_int(q, 0) < stats->oldest_due_us))
			stats->oldest_due_us = my_int(q, 0);
	}
	return r < 0 ? r : 0;
}

static int count_target(struct my_store *s, const char *target, struct ob_stats *stats,
			struct ob_err *err)
{
	int64_t first[8];
	size_t count = 0;
	struct my_query *q;
	int r = prepare(s, MY_stats_open, target, &q, err);

	if (r == 0)
		r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0) {
		count_state(stats, q);
		if (my_int(q, 4) && count < sizeof(first) / sizeof(first[0]))
			first[count++] = my_int(q, 4);
	}
	if (r == 0)
		r = find_oldest(s, first, count, stats, err);
	if (r == 0)
		r = read_number(s, MY_stats_published, target, &stats->count[OB_VIEW_PUBLISHED],
				err);
	if (r == 0)
		r = read_number(s, MY_stats_held, target, &stats->held_keys, err);
	return r;
}

/* A target without rows has no entry. */
static int add_target(struct my_store *s, struct counting *c, const char *target,
		      struct ob_err *err)
{
	struct ob_stats stats = { 0 };
	uint64_t rows = 0;
	int r = count_target(s, target, &stats, err);

	for (int view = 0; view < OB_VIEW_COUNT; view++)
		rows += stats.count[view];
	if (r < 0 || rows == 0)
		return r;
	if (!ob_arena_copy(c->rows.arena, ob_str(target), &stats.target))
		return my_oom("counting", err);
	struct ob_stats *entry = my_rows_add(&c->rows);
	if (!entry)
		return my_oom("counting", err);
	*entry = stats;
	return 0;
}

static int stats_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct counting *c = arg;
	char name[MY_TARGET_SIZE] = "";
	struct my_query *q;
	int r = my_prepare(s, MY_now, 1, &q, err);

	if (r == 0)
		r = my_first(s, q, err);
	if (r < 0)
		return r;
	c->now_us = my_int(q, 0);
	if (c->target)
		return add_target(s, c, c->target, err);
	while ((r = my_next_target(s, name, err)) > 0) {
		r = add_target(s, c, name, err);
		if (r < 0)
			break;
	}
	return r;
}

int my_stats(struct ob_store *store, const char *target, struct ob_arena *arena,
	     struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	     struct ob_err *err)
{
	struct counting c = {
		.target = target,
		.rows = { .arena = arena, .size = sizeof(struct ob_stats) },
	};
	int r = my_read((struct my_store *)store, stats_work, &c, err);

	if (r < 0)
		return r;
	*ret_stats = (void *)c.rows.data;
	*ret_count = c.rows.count;
	*ret_now_us = c.now_us;
	return 0;
}

int my_throughput(struct ob_store *store, const char *target, uint32_t minutes,
		  struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
		  struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct my_rows rows = { .arena = arena, .size = sizeof(struct ob_minute) };
	struct my_query *q;
	int r = my_ready(s, false, err);

	if (r == 0)
		r = prepare(s, MY_throughput, target, &q, err);
	if (r < 0)
		return r;
	my_bind_int(q, "minutes", minutes);
	r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0) {
		struct ob_minute *minute = my_rows_add(&rows);

		if (!minute)
			return my_oom("reading the throughput", err);
		*minute = (struct ob_minute){ my_int(q, 0), (uint64_t)my_int(q, 1),
					      (uint64_t)my_int(q, 2) };
	}
	if (r < 0)
		return r;
	*ret_minutes = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}
