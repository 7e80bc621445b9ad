/* SPDX-License-Identifier: MIT */
/* The MySQL store: operator verbs, and cleaning up behind all of it. */
#include "store/mysql.h"

/* ---- operator verbs -------------------------------------------------- */

static const enum my_id verbs[] = {
	[OB_VERB_RETRY] = MY_verb_retry,
	[OB_VERB_SKIP] = MY_verb_skip,
	[OB_VERB_DISCARD] = MY_rows_delete,
	[OB_VERB_PRIORITY] = MY_verb_priority,
};

static bool allows(enum ob_verb verb, const struct my_row *row)
{
	bool dead = row->state == OB_STATE_DEAD || row->state == OB_STATE_DEAD_HOLD;

	if (row->claimed && (row->state == OB_STATE_PENDING || row->state == OB_STATE_FAILED))
		return false;
	switch (verb) {
	case OB_VERB_RETRY:
		return dead || row->state == OB_STATE_FAILED;
	case OB_VERB_SKIP:
	case OB_VERB_DISCARD:
		return row->state != OB_STATE_PUBLISHED;
	case OB_VERB_PRIORITY:
		return !dead && row->state != OB_STATE_PUBLISHED;
	}
	return false;
}

/* One operate while it runs. */
struct operating {
	const struct ob_operate *operate;
	struct ob_arena arena;
	struct my_keys keys;
	uint64_t changed, refused;
	int64_t seqs[MY_LIST_MAX];
};

/* The next rows that match, behind `after`. */
static int pick_chunk(struct my_store *s, struct operating *o, int64_t after, size_t *ret_count,
		      struct ob_err *err)
{
	struct ob_filter filter = o->operate->filter;
	struct my_query *q;
	size_t count = 0;

	filter.after_seq = after;
	filter.newest_first = false;
	filter.limit = MY_LIST_MAX;
	int r = my_filter(s, &filter, true, &q, err);
	if (r < 0)
		return r;
	while (count < MY_LIST_MAX && (r = my_step(s, q, err)) > 0)
		o->seqs[count++] = my_int(q, 0);
	my_query_free(q);
	*ret_count = count;
	return r < 0 ? r : 0;
}

/* Choose among the rows of a chunk, now that they are locked. */
static int choose(struct operating *o, const struct my_rows *rows, size_t *ret_count,
		  struct ob_err *err)
{
	const struct my_row *list = (const void *)rows->data;
	uint32_t limit = o->operate->filter.limit;
	size_t count = 0;
	int r = 0;

	for (size_t i = 0; i < rows->count && r == 0; i++) {
		bool held = list[i].state == OB_STATE_FAILED || list[i].state == OB_STATE_DEAD_HOLD;

		if (!allows(o->operate->verb, &list[i])) {
			o->refused++;
			continue;
		}
		if (limit > 0 && o->changed >= limit)
			continue;
		o->changed++;
		o->seqs[count++] = list[i].seq;
		if (held && o->operate->verb != OB_VERB_PRIORITY)
			r = my_keys_add_freed(&o->keys, &list[i], err);
	}
	*ret_count = count;
	return r;
}

static int operate_chunk(struct my_store *s, struct operating *o, size_t picked, struct ob_err *err)
{
	struct my_rows rows = { .arena = &o->arena, .size = sizeof(struct my_row) };
	size_t count = 0;

	ob_arena_reset(&o->arena, SIZE_MAX);
	int r = my_look(s, o->seqs, picked, &rows, err);
	if (r == 0)
		r = choose(o, &rows, &count, err);
	if (r == 0)
		r = my_run_list(s, verbs[o->operate->verb], o->seqs, count, o->operate->priority,
				err);
	return r;
}

/*
 * In the order of seq, so what was changed already is never looked at again, and
 * keys are released at the end: what matches is as it was before.
 */
static int operate_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct operating *o = arg;
	size_t picked = MY_LIST_MAX;
	int64_t after = 0;
	int r = 0;

	my_keys_done(&o->keys);
	my_keys_init(&o->keys);
	o->changed = o->refused = 0;
	while (picked == MY_LIST_MAX && r == 0) {
		r = pick_chunk(s, o, after, &picked, err);
		if (r < 0 || picked == 0)
			break;
		after = o->seqs[picked - 1];
		r = operate_chunk(s, o, picked, err);
	}
	return r < 0 ? r : my_keys_move(s, &o->keys, err);
}

int my_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
	       uint64_t *ret_refused, struct ob_err *err)
{
	struct operating o = { .operate = operate, .arena = OB_ARENA_INIT(SIZE_MAX / 2) };

	my_keys_init(&o.keys);
	int r = my_transact((struct my_store *)store, operate_work, &o, err);
	my_keys_done(&o.keys);
	ob_arena_done(&o.arena);
	if (r < 0)
		return r;
	*ret_changed = o.changed;
	*ret_refused = o.refused;
	return 0;
}

/* ---- cleanup --------------------------------------------------------- */

/* One cleanup while it runs. */
struct cleaning {
	const struct ob_cleanup *cleanup;
	uint64_t published, dead;
};

static int clean_target(struct my_store *s, const char *target, enum ob_state state, int64_t age_ms,
			uint64_t limit, struct ob_err *err)
{
	struct my_query *q;

	if (age_ms == OB_NEVER_MS || limit == 0)
		return 0;
	int r = my_prepare(s, MY_clean, 1, &q, err);
	if (r < 0)
		return r;
	my_bind_text(q, "target", target);
	my_bind_int(q, "status", state);
	my_bind_int(q, "age", -my_us(age_ms));
	my_bind_int(q, "limit", (int64_t)limit);
	return my_run(s, q, err);
}

/* The rows of one state, of one target or of all. */
static int clean(struct my_store *s, const char *target, enum ob_state state, int64_t age_ms,
		 uint64_t limit, uint64_t *ret_deleted, struct ob_err *err)
{
	char name[MY_TARGET_SIZE] = "";
	uint64_t deleted = 0;
	int r = 0;

	if (target) {
		r = clean_target(s, target, state, age_ms, limit, err);
		*ret_deleted = r > 0 ? (uint64_t)r : 0;
		return r < 0 ? r : 0;
	}
	while (deleted < limit && (r = my_next_target(s, name, err)) > 0) {
		r = clean_target(s, name, state, age_ms, limit - deleted, err);
		if (r < 0)
			break;
		deleted += (uint64_t)r;
	}
	*ret_deleted = deleted;
	return r < 0 ? r : 0;
}

static int cleanup_work(struct my_store *s, void *arg, struct ob_err *err)
{
	struct cleaning *c = arg;
	const struct ob_cleanup *cleanup = c->cleanup;
	struct my_query *q;
	int r = clean(s, cleanup->target, OB_STATE_PUBLISHED, cleanup->published_ms, cleanup->limit,
		      &c->published, err);

	if (r == 0)
		r = clean(s, cleanup->target, OB_STATE_DEAD, cleanup->dead_ms,
			  cleanup->limit - c->published, &c->dead, err);
	if (r == 0)
		r = my_prepare(s, MY_clean_throughput, 1, &q, err);
	if (r == 0)
		r = my_run(s, q, err);
	return r < 0 ? r : 0;
}

int my_cleanup(struct ob_store *store, const struct ob_cleanup *cleanup, uint64_t *ret_published,
	       uint64_t *ret_dead, struct ob_err *err)
{
	struct cleaning c = { .cleanup = cleanup };
	int r = my_transact((struct my_store *)store, cleanup_work, &c, err);

	if (r < 0)
		return r;
	*ret_published = c.published;
	*ret_dead = c.dead;
	return 0;
}
