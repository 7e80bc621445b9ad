/* SPDX-License-Identifier: MIT */
/* The memory store: statistics, throughput, and lists of rows. */
#include "store/memory_impl.h"

static const int64_t minute_us = INT64_C(60) * 1000 * 1000;

/* ---- throughput ------------------------------------------------------ */

struct ob_minute *mem_minute(struct ob_memdb *db, const char *target)
{
	int64_t start = mem_now(db) / minute_us * minute_us;
	size_t at = db->minute_count;

	for (; at > 0 && db->minutes[at - 1].minute.minute_us >= start; at--) {
		struct mem_minute *there = &db->minutes[at - 1];

		if (there->minute.minute_us == start && strcmp(there->target, target) == 0)
			return &there->minute;
	}
	char *name = strdup(target);
	if (!name || !mem_reserve((void **)&db->minutes, &db->minute_capacity, db->minute_count,
				  sizeof(*db->minutes))) {
		free(name);
		return NULL;
	}
	memmove(&db->minutes[at + 1], &db->minutes[at],
		(db->minute_count++ - at) * sizeof(*db->minutes));
	db->minutes[at] = (struct mem_minute){ name, { .minute_us = start } };
	return &db->minutes[at].minute;
}

int mem_throughput(struct ob_store *store, const char *target, uint32_t minutes,
		   struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
		   struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_minute *list = ob_arena_alloc(arena, (db->minute_count + 1) * sizeof(*list));
	if (!list)
		return mem_oom(err);
	int64_t last = mem_now(db) / minute_us * minute_us;
	for (size_t i = 0; i < db->minute_count; i++) {
		const struct mem_minute *from = &db->minutes[i];

		if (from->minute.minute_us <= last - (int64_t)minutes * minute_us ||
		    (target && strcmp(from->target, target) != 0) ||
		    (from->minute.published == 0 && from->minute.failed == 0))
			continue;
		if (count == 0 || list[count - 1].minute_us != from->minute.minute_us)
			list[count++] = (struct ob_minute){ .minute_us = from->minute.minute_us };
		list[count - 1].published += from->minute.published;
		list[count - 1].failed += from->minute.failed;
	}
	*ret_minutes = list;
	*ret_count = count;
	return 0;
}

/* ---- statistics ------------------------------------------------------ */

/* Find or enter the target's entry; they are ordered by name. */
static struct ob_stats *stats_of(struct ob_stats *list, size_t *count, struct ob_str target)
{
	size_t at = 0;

	while (at < *count && strcmp(list[at].target.p, target.p) < 0)
		at++;
	if (at < *count && ob_str_eq(list[at].target, target))
		return &list[at];
	memmove(&list[at + 1], &list[at], ((*count)++ - at) * sizeof(*list));
	list[at] = (struct ob_stats){ .target = target };
	return &list[at];
}

static size_t count_targets(const struct ob_memdb *db)
{
	size_t changes = 1;

	/* An upper bound: how often the target changes from row to row. */
	for (struct mem_row *row = TAILQ_FIRST(&db->all); row; row = TAILQ_NEXT(row, all_link)) {
		const struct mem_row *next = TAILQ_NEXT(row, all_link);

		if (next && !ob_str_eq(row->m.target, next->m.target))
			changes++;
	}
	return changes;
}

static void stats_add(struct ob_stats *stats, const struct mem_row *row, int64_t now)
{
	bool due = row->live && row->m.state != OB_STATE_DEAD_HOLD && row->m.available_at_us <= now;

	stats->count[ob_message_view(&row->m, now)]++;
	if (due && (stats->oldest_due_us == 0 || row->m.created_at_us < stats->oldest_due_us))
		stats->oldest_due_us = row->m.created_at_us;
}

/* Is `row` the first that holds its key? */
static bool first_of_key(const struct ob_memdb *db, const struct mem_row *row)
{
	const struct mem_row *at = TAILQ_FIRST(&db->live);

	while (at != row && !(mem_holds(at) && ob_str_eq(at->m.key, row->m.key) &&
			      ob_str_eq(at->m.target, row->m.target)))
		at = TAILQ_NEXT(at, live_link);
	return at == row;
}

int mem_stats(struct ob_store *store, const char *target, struct ob_arena *arena,
	      struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	      struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	int64_t now = mem_now(db);
	struct ob_stats *list = ob_arena_alloc(arena, (count_targets(db) + 1) * sizeof(*list));
	if (!list)
		return mem_oom(err);
	for (struct mem_row *row = TAILQ_FIRST(&db->all); row; row = TAILQ_NEXT(row, all_link)) {
		if (target && !ob_str_eq(row->m.target, ob_str(target)))
			continue;
		struct ob_stats *stats = stats_of(list, &count, row->m.target);
		stats_add(stats, row, now);
		if (mem_holds(row) && row->m.key.p && first_of_key(db, row))
			stats->held_keys++;
	}
	for (size_t i = 0; i < count; i++) {
		if (!ob_arena_copy(arena, list[i].target, &list[i].target))
			return mem_oom(err);
	}
	*ret_stats = list;
	*ret_count = count;
	*ret_now_us = now;
	return 0;
}

/* ---- lists ----------------------------------------------------------- */

static bool text_matches(const char *wanted, struct ob_str text)
{
	return !wanted || ob_str_eq(ob_str(wanted), text);
}

bool mem_match(const struct ob_filter *filter, const struct mem_row *row, int64_t now_us)
{
	return (!filter->id || ob_uuid_eq(filter->id, &row->m.id)) &&
	       text_matches(filter->target, row->m.target) &&
	       (!filter->views || filter->views & 1U << ob_message_view(&row->m, now_us)) &&
	       text_matches(filter->key, row->m.key) &&
	       text_matches(filter->aggregate_type, row->m.aggregate_type) &&
	       text_matches(filter->aggregate_id, row->m.aggregate_id) &&
	       text_matches(filter->event_type, row->m.event_type);
}

static bool is_behind(const struct ob_filter *filter, int64_t seq)
{
	if (filter->after_seq <= 0)
		return true;
	return filter->newest_first ? seq < filter->after_seq : seq > filter->after_seq;
}

int mem_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	     int64_t *ret_now_us, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	int64_t now = mem_now(db);
	struct mem_row *row =
		filter->newest_first ? TAILQ_LAST(&db->all, mem_rows) : TAILQ_FIRST(&db->all);
	while (row && (filter->limit == 0 || batch->count < filter->limit)) {
		if (is_behind(filter, row->m.seq) && mem_match(filter, row, now) &&
		    !mem_copy_out(batch, row, true)) {
			ob_batch_reset(batch);
			return mem_oom(err);
		}
		row = filter->newest_first ? TAILQ_PREV(row, mem_rows, all_link)
					   : TAILQ_NEXT(row, all_link);
	}
	*ret_now_us = now;
	return 0;
}
