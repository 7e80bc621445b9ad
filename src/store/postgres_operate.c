/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: statistics, operator verbs, and cleaning up. */
#include "store/postgres.h"

enum { OPERATE_CHUNK = 1000 };

/* ---- statistics ------------------------------------------------------ */

static bool read_stats(struct ob_arena *arena, const PGresult *found, int row,
		       struct ob_stats *stats)
{
	static const enum ob_view columns[] = {
		OB_VIEW_PENDING, OB_VIEW_DELAYED, OB_VIEW_PROCESSING, OB_VIEW_FAILED,
		OB_VIEW_PARKED,  OB_VIEW_DEAD,    OB_VIEW_PUBLISHED,
	};

	for (int i = 0; i < (int)(sizeof(columns) / sizeof(columns[0])); i++)
		stats->count[columns[i]] = (uint64_t)pg_get_int(found, row, i + 1);
	stats->held_keys = (uint64_t)pg_get_int(found, row, 8);
	stats->oldest_due_us = pg_get_time(found, row, 9);
	return ob_arena_copy(arena, pg_get_str(found, row, 0), &stats->target);
}

int pg_stats(struct ob_store *store, const char *target, struct ob_arena *arena,
	     struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	pg_text(&p, target);
	r = pg_add(s, PG_now, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_stats, &p, err);
	r = pg_finish(s, r, err);
	if (r < 0)
		return r;
	const PGresult *found = s->results[1];
	int count = PQntuples(found);
	struct ob_stats *stats = ob_arena_alloc(arena, ((size_t)count + 1) * sizeof(*stats));
	bool ok = stats != NULL;
	for (int i = 0; i < count && ok; i++)
		ok = read_stats(arena, found, i, &stats[i]);
	int64_t now = pg_get_time(s->results[0], 0, 0);
	pg_clear(s);
	if (!ok)
		return pg_oom("counting", err);
	*ret_stats = stats;
	*ret_count = (size_t)count;
	*ret_now_us = now;
	return 0;
}

int pg_throughput(struct ob_store *store, const char *target, uint32_t minutes,
		  struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
		  struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_params p = { 0 };

	pg_text(&p, target);
	pg_int(&p, minutes);
	int r = pg_run_one(s, PG_throughput, &p, err);
	if (r < 0)
		return r;
	const PGresult *found = s->results[0];
	int count = PQntuples(found);
	struct ob_minute *list = ob_arena_alloc(arena, ((size_t)count + 1) * sizeof(*list));
	for (int i = 0; i < count && list; i++)
		list[i] = (struct ob_minute){
			pg_get_time(found, i, 0),
			(uint64_t)pg_get_int(found, i, 1),
			(uint64_t)pg_get_int(found, i, 2),
		};
	pg_clear(s);
	if (!list)
		return pg_oom("reading the throughput", err);
	*ret_minutes = list;
	*ret_count = (size_t)count;
	return 0;
}

/* ---- operator verbs -------------------------------------------------- */

static const enum pg_id verbs[] = {
	[OB_VERB_RETRY] = PG_verb_retry,
	[OB_VERB_SKIP] = PG_verb_skip,
	[OB_VERB_DISCARD] = PG_verb_discard,
	[OB_VERB_PRIORITY] = PG_verb_priority,
};

static bool allows(enum ob_verb verb, enum ob_state state, bool claimed)
{
	bool dead = state == OB_STATE_DEAD || state == OB_STATE_DEAD_HOLD;

	if (claimed)
		return false;
	switch (verb) {
	case OB_VERB_RETRY:
		return dead || state == OB_STATE_FAILED;
	case OB_VERB_SKIP:
	case OB_VERB_DISCARD:
		return state != OB_STATE_PUBLISHED;
	case OB_VERB_PRIORITY:
		return !dead && state != OB_STATE_PUBLISHED;
	}
	return false;
}

/* One operate while it runs. */
struct operating {
	struct pg_store *s;
	const struct ob_operate *operate;
	struct ob_pgarray rows; /* to change, of this chunk */
	struct pg_freed freed;
	int64_t after; /* rows up to this one are done */
	uint64_t changed, refused;
};

/* Look at one row of the chunk, which is locked. */
static void judge(struct operating *o, const PGresult *found, int row)
{
	enum ob_state state = (enum ob_state)pg_get_int(found, row, 1);
	uint32_t limit = o->operate->filter.limit;

	o->after = pg_get_int(found, row, 0);
	if (!allows(o->operate->verb, state, pg_get_int(found, row, 5) != 0)) {
		o->refused++;
		return;
	}
	if (limit > 0 && o->changed >= limit)
		return;
	o->changed++;
	ob_pgarray_int(&o->rows, o->after);
	if (o->operate->verb != OB_VERB_PRIORITY &&
	    (state == OB_STATE_FAILED || state == OB_STATE_DEAD_HOLD))
		pg_freed_add(&o->freed, pg_get_str(found, row, 4), pg_get_int(found, row, 2),
			     pg_get_str(found, row, 3));
}

/* The next rows that match, and the statement that changes them; 0 when these were the last. */
static int operate_chunk(struct operating *o, struct ob_err *err)
{
	struct ob_filter filter = o->operate->filter;
	struct pg_params p = { 0 };

	filter.after_seq = o->after;
	filter.newest_first = false;
	filter.limit = OPERATE_CHUNK;
	int r = pg_add_filter(o->s, &filter, true, err);
	if (r == 0)
		r = pg_flush(o->s, err);
	if (r < 0)
		return r;
	const PGresult *found = o->s->results[0];
	int count = PQntuples(found);
	ob_pgarray_begin(&o->rows, OB_PG_INT8);
	for (int row = 0; row < count; row++)
		judge(o, found, row);
	if (o->rows.count > 0) {
		pg_array(&p, &o->rows);
		if (o->operate->verb == OB_VERB_PRIORITY)
			pg_int(&p, o->operate->priority);
		r = pg_add(o->s, verbs[o->operate->verb], &p, err);
	}
	/* Its result would stand before the next chunk's. */
	if (r == 0 && o->rows.count > 0 && count == OPERATE_CHUNK)
		r = pg_flush(o->s, err);
	return r < 0 ? r : count == OPERATE_CHUNK;
}

int pg_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
	       uint64_t *ret_refused, struct ob_err *err)
{
	struct operating o = { .s = (struct pg_store *)store, .operate = operate };
	int r = pg_begin(o.s, err);

	if (r < 0)
		return r;
	pg_freed_begin(&o.freed);
	/* Begun here, so that the first chunk's rows are results[0]. */
	do {
		r = operate_chunk(&o, err);
	} while (r > 0);
	/* Keys are released at the end: what matches is as it was before. */
	if (r == 0)
		r = pg_freed_release(o.s, &o.freed, err);
	r = pg_finish(o.s, r, err);
	pg_clear(o.s);
	pg_freed_done(&o.freed);
	ob_pgarray_done(&o.rows);
	if (r < 0)
		return r;
	*ret_changed = o.changed;
	*ret_refused = o.refused;
	return 0;
}

/* ---- cleanup --------------------------------------------------------- */

/* Delete rows of one state; how many, or a failure. */
static int64_t clean(struct pg_store *s, const char *target, enum ob_state state, int64_t age_ms,
		     int64_t limit, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (age_ms == OB_NEVER_MS || limit <= 0)
		return 0;
	pg_text(&p, target);
	pg_int(&p, state);
	pg_int(&p, pg_us(age_ms));
	pg_int(&p, limit);
	int r = pg_add(s, PG_clean, &p, err);
	if (r == 0)
		r = pg_flush(s, err);
	if (r < 0)
		return r;
	return strtoll(PQcmdTuples(s->results[0]), NULL, 10);
}

int pg_cleanup(struct ob_store *store, const struct ob_cleanup *cleanup, uint64_t *ret_published,
	       uint64_t *ret_dead, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	int64_t dead = 0;
	int64_t published = clean(s, cleanup->target, OB_STATE_PUBLISHED, cleanup->published_ms,
				  cleanup->limit, err);
	if (published >= 0)
		dead = clean(s, cleanup->target, OB_STATE_DEAD, cleanup->dead_ms,
			     (int64_t)cleanup->limit - published, err);
	r = published < 0 ? (int)published : dead < 0 ? (int)dead : 0;
	if (r == 0)
		r = pg_add(s, PG_clean_throughput, NULL, err);
	r = pg_finish(s, r, err);
	pg_clear(s);
	if (r < 0)
		return r;
	*ret_published = (uint64_t)published;
	*ret_dead = (uint64_t)dead;
	return 0;
}
