/* SPDX-License-Identifier: MIT */
/* The SQLite store: statistics and throughput, from indexes alone. */
#include "store/sqlite.h"

/* One stats while it runs. */
struct counting {
	struct lite_store *s;
	const char *target; /* NULL: all */
	int64_t now;
	struct lite_rows rows; /* struct ob_stats */
};

static struct ob_stats *list_of(const struct counting *c)
{
	return (void *)c->rows.data;
}

/* Find or add the target of the statement's row; NULL when out of memory. */
static struct ob_stats *stats_of(struct counting *c, sqlite3_stmt *stmt)
{
	struct ob_str target = lite_str(stmt, 0);
	struct ob_stats *list = list_of(c);

	for (size_t i = 0; i < c->rows.count; i++) {
		if (ob_str_eq(list[i].target, target))
			return &list[i];
	}
	struct ob_stats *stats = lite_rows_add(&c->rows);
	if (!stats || !ob_arena_copy(c->rows.arena, target, &stats->target))
		return NULL;
	return stats;
}

/* ---- the oldest row that is due -------------------------------------- */

/* The lowest seq of a group stands for its lowest created_at: rows get both as they are inserted.
 */
static int add_oldest(struct counting *c, struct ob_stats *stats, sqlite3_stmt *from, int column,
		      struct ob_err *err)
{
	sqlite3_stmt *stmt;

	if (sqlite3_column_type(from, column) == SQLITE_NULL)
		return 0;
	int r = lite_prepare(c->s, LITE_created_at, &stmt, err);
	if (r < 0)
		return r;
	lite_bind_int(stmt, ":seq", sqlite3_column_int64(from, column));
	r = lite_step(c->s, LITE_created_at, err);
	if (r <= 0)
		return r;
	int64_t created_at = sqlite3_column_int64(stmt, 0);
	if (stats->oldest_due_us == 0 || created_at < stats->oldest_due_us)
		stats->oldest_due_us = created_at;
	lite_reset(c->s, LITE_created_at);
	return 0;
}

/* ---- a row of each statement ----------------------------------------- */

static enum ob_view view_of(int status)
{
	return status == OB_STATE_FAILED   ? OB_VIEW_FAILED
	       : status == OB_STATE_PARKED ? OB_VIEW_PARKED
					   : OB_VIEW_DEAD;
}

static int add_row(struct counting *c, enum lite_id id, struct ob_stats *stats, struct ob_err *err)
{
	sqlite3_stmt *stmt = c->s->stmt[id];
	uint64_t second = (uint64_t)sqlite3_column_int64(stmt, 1);
	uint64_t third = (uint64_t)sqlite3_column_int64(stmt, 2);

	switch ((int)id) {
	case LITE_stats_waiting:
		stats->count[OB_VIEW_PENDING] += second - third;
		stats->count[OB_VIEW_DELAYED] += third;
		return add_oldest(c, stats, stmt, 3, err);
	case LITE_stats_published:
		stats->count[OB_VIEW_PUBLISHED] += second;
		return 0;
	case LITE_stats_exceptions:
		stats->count[view_of(sqlite3_column_int(stmt, 1))] += third;
		return add_oldest(c, stats, stmt, 3, err);
	case LITE_stats_claims: {
		/* They were counted by their state before. */
		uint64_t claimed = (uint64_t)sqlite3_column_int64(stmt, 3);
		enum ob_view view = second == OB_STATE_FAILED ? OB_VIEW_FAILED
				    : third                   ? OB_VIEW_DELAYED
							      : OB_VIEW_PENDING;
		stats->count[OB_VIEW_PROCESSING] += claimed;
		stats->count[view] -= claimed;
		return 0;
	}
	default:
		stats->held_keys += second;
		return 0;
	}
}

static int count_by(struct counting *c, enum lite_id id, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(c->s, id, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_targets(stmt, c->target);
	lite_bind_int(stmt, ":now", c->now);
	while ((r = lite_step(c->s, id, err)) > 0) {
		struct ob_stats *stats = stats_of(c, stmt);

		r = stats ? add_row(c, id, stats, err) : lite_oom("counting", err);
		if (r < 0)
			break;
	}
	lite_reset(c->s, id);
	return r;
}

static int by_target(const void *a, const void *b)
{
	const struct ob_stats *x = a, *y = b;

	return strcmp(x->target.p, y->target.p);
}

int lite_stats(struct ob_store *store, const char *target, struct ob_arena *arena,
	       struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	       struct ob_err *err)
{
	static const enum lite_id parts[] = { LITE_stats_waiting, LITE_stats_published,
					      LITE_stats_exceptions, LITE_stats_claims,
					      LITE_stats_held };
	struct lite_store *s = (struct lite_store *)store;
	struct counting c = {
		.s = s,
		.target = target,
		.now = lite_now(s),
		.rows = { .arena = arena, .size = sizeof(struct ob_stats) },
	};
	int r = lite_begin_read(s, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = count_by(&c, parts[i], err);
	r = lite_end_read(s, r, err);
	if (r < 0)
		return r;
	if (c.rows.count)
		qsort(c.rows.data, c.rows.count, c.rows.size, by_target);
	*ret_stats = list_of(&c);
	*ret_count = c.rows.count;
	*ret_now_us = c.now;
	return 0;
}

int lite_throughput(struct ob_store *store, const char *target, uint32_t minutes,
		    struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
		    struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct lite_rows rows = { .arena = arena, .size = sizeof(struct ob_minute) };
	sqlite3_stmt *stmt;
	int r = lite_ready(s, false, err);

	if (r < 0)
		return r;
	r = lite_prepare(s, LITE_throughput, &stmt, err);
	if (r < 0)
		return r;
	lite_bind_targets(stmt, target);
	lite_bind_int(stmt, ":now", lite_now(s));
	lite_bind_int(stmt, ":minutes", minutes);
	while ((r = lite_step(s, LITE_throughput, err)) > 0) {
		struct ob_minute *minute = lite_rows_add(&rows);

		if (!minute) {
			lite_reset(s, LITE_throughput);
			return lite_oom("reading the throughput", err);
		}
		*minute = (struct ob_minute){
			sqlite3_column_int64(stmt, 0),
			(uint64_t)sqlite3_column_int64(stmt, 1),
			(uint64_t)sqlite3_column_int64(stmt, 2),
		};
	}
	if (r < 0)
		return r;
	*ret_minutes = (void *)rows.data;
	*ret_count = rows.count;
	return 0;
}
