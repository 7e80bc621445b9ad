/* SPDX-License-Identifier: MIT */
/* The SQLite store: operator verbs, and cleaning up behind all of it. */
#include "store/sqlite.h"

enum { OPERATE_CHUNK = 512 };

/* ---- operator verbs -------------------------------------------------- */

static const enum lite_id verbs[] = {
	[OB_VERB_RETRY] = LITE_verb_retry,
	[OB_VERB_SKIP] = LITE_verb_skip,
	[OB_VERB_DISCARD] = LITE_verb_discard,
	[OB_VERB_PRIORITY] = LITE_verb_priority,
};

static bool allows(enum ob_verb verb, const struct lite_pick *pick)
{
	bool dead = pick->state == OB_STATE_DEAD || pick->state == OB_STATE_DEAD_HOLD;

	if (pick->claimed)
		return false;
	switch (verb) {
	case OB_VERB_RETRY:
		return dead || pick->state == OB_STATE_FAILED;
	case OB_VERB_SKIP:
	case OB_VERB_DISCARD:
		return pick->state != OB_STATE_PUBLISHED;
	case OB_VERB_PRIORITY:
		return !dead && pick->state != OB_STATE_PUBLISHED;
	}
	return false;
}

/* One operate while it runs. */
struct operating {
	struct lite_store *s;
	const struct ob_operate *operate;
	int64_t now;
	struct lite_freed freed;
	uint64_t changed, refused;
	struct lite_pick picks[OPERATE_CHUNK];
};

static int remember_key(struct operating *o, const struct lite_pick *pick, struct ob_err *err)
{
	struct lite_row row;

	if (o->operate->verb == OB_VERB_PRIORITY ||
	    (pick->state != OB_STATE_FAILED && pick->state != OB_STATE_DEAD_HOLD))
		return 0;
	int r = lite_look(o->s, pick->seq, &row, err);
	if (r == 0)
		r = lite_freed_add(&o->freed, &row, err);
	lite_reset(o->s, LITE_row_state);
	return r;
}

static int operate_one(struct operating *o, const struct lite_pick *pick, struct ob_err *err)
{
	enum lite_id id = verbs[o->operate->verb];
	sqlite3_stmt *stmt;
	int r = remember_key(o, pick, err);

	if (r < 0)
		return r;
	r = lite_prepare(o->s, id, &stmt, err);
	if (r < 0)
		return r;
	lite_bind_int(stmt, ":seq", pick->seq);
	lite_bind_int(stmt, ":now", o->now);
	lite_bind_int(stmt, ":priority", o->operate->priority);
	r = lite_run(o->s, id, err);
	return r < 0 ? r : 0;
}

/* The next rows that match, behind `after`. */
static int pick_chunk(struct operating *o, int64_t after, uint32_t *ret_count, struct ob_err *err)
{
	struct ob_filter filter = o->operate->filter;
	uint32_t count = 0;

	filter.after_seq = after;
	filter.newest_first = false;
	filter.limit = OPERATE_CHUNK;
	int r = lite_pick(o->s, &filter, o->now, err);
	while (r >= 0 && count < OPERATE_CHUNK &&
	       (r = lite_pick_next(o->s, o->now, &o->picks[count], err)) > 0)
		count++;
	lite_pick_done(o->s);
	*ret_count = count;
	return r < 0 ? r : 0;
}

/*
 * Row by row in the order of seq, so what was changed already is never looked
 * at again, and keys are released at the end: what matches is as it was before.
 */
static int operate_all(struct operating *o, struct ob_err *err)
{
	uint32_t limit = o->operate->filter.limit;
	uint32_t count = OPERATE_CHUNK;
	int64_t after = 0;
	int r = 0;

	while (count == OPERATE_CHUNK && r == 0) {
		r = pick_chunk(o, after, &count, err);
		for (uint32_t i = 0; i < count && r == 0; i++) {
			after = o->picks[i].seq;
			if (!allows(o->operate->verb, &o->picks[i])) {
				o->refused++;
			} else if (limit == 0 || o->changed < limit) {
				r = operate_one(o, &o->picks[i], err);
				o->changed++;
			}
		}
	}
	return r < 0 ? r : lite_freed_release(o->s, &o->freed, err);
}

int lite_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
		 uint64_t *ret_refused, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct operating o = { .s = s, .operate = operate, .now = lite_now(s) };
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	lite_freed_init(&o.freed);
	r = lite_end(s, operate_all(&o, err), err);
	lite_freed_done(&o.freed);
	if (r < 0)
		return r;
	*ret_changed = o.changed;
	*ret_refused = o.refused;
	return 0;
}

/* ---- cleanup --------------------------------------------------------- */

enum { TARGET_MAX = 4 * OUTBOX_TEXT_MAX + 1 };

/* The first target of finished rows behind `name`, into `name`; 0: there is none. */
static int next_target(struct lite_store *s, char name[TARGET_MAX], struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, LITE_next_target, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_text(stmt, ":target", name);
	r = lite_step(s, LITE_next_target, err);
	if (r <= 0)
		return r;
	const char *next = (const char *)sqlite3_column_text(stmt, 0);
	if (next)
		(void)snprintf(name, TARGET_MAX, "%s", next);
	r = next != NULL;
	lite_reset(s, LITE_next_target);
	return r;
}

/* One cleanup of rows of one state. */
struct cleaning {
	struct lite_store *s;
	enum ob_state state;
	int64_t age_ms;
	uint64_t limit, deleted;
};

static int clean_target(struct cleaning *c, const char *target, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(c->s, LITE_clean, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_text(stmt, ":target", target);
	lite_bind_int(stmt, ":status", c->state);
	lite_bind_int(stmt, ":now", lite_now(c->s));
	lite_bind_int(stmt, ":age", lite_us(c->age_ms));
	lite_bind_int(stmt, ":limit", (int64_t)(c->limit - c->deleted));
	r = lite_run(c->s, LITE_clean, err);
	if (r < 0)
		return r;
	c->deleted += (uint64_t)r;
	return 0;
}

static int clean(struct cleaning *c, const char *target, struct ob_err *err)
{
	char name[TARGET_MAX] = "";
	int r;

	if (c->age_ms == OB_NEVER_MS || c->limit == 0)
		return 0;
	if (target)
		return clean_target(c, target, err);
	while (c->deleted < c->limit && (r = next_target(c->s, name, err)) != 0) {
		if (r > 0)
			r = clean_target(c, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int forget_minutes(struct lite_store *s, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, LITE_clean_throughput, &stmt, err);

	if (r < 0)
		return r;
	lite_bind_int(stmt, ":now", lite_now(s));
	r = lite_run(s, LITE_clean_throughput, err);
	return r < 0 ? r : 0;
}

int lite_cleanup(struct ob_store *store, const struct ob_cleanup *cleanup, uint64_t *ret_published,
		 uint64_t *ret_dead, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct cleaning published = { s, OB_STATE_PUBLISHED, cleanup->published_ms, cleanup->limit,
				      0 };
	struct cleaning dead = { s, OB_STATE_DEAD, cleanup->dead_ms, 0, 0 };
	int r = lite_begin(s, err);

	if (r < 0)
		return r;
	r = clean(&published, cleanup->target, err);
	dead.limit = cleanup->limit - published.deleted;
	if (r == 0)
		r = clean(&dead, cleanup->target, err);
	if (r == 0)
		r = forget_minutes(s, err);
	r = lite_end(s, r, err);
	if (r < 0)
		return r;
	*ret_published = published.deleted;
	*ret_dead = dead.deleted;
	return 0;
}
