/* SPDX-License-Identifier: MIT */
/* The memory store: what an operator does to rows, and cleaning up behind all of it. */
#include "store/memory_impl.h"

/* ---- operator verbs -------------------------------------------------- */

static bool allows(enum ob_verb verb, enum ob_state state)
{
	bool dead = state == OB_STATE_DEAD || state == OB_STATE_DEAD_HOLD;

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

static void operate_one(struct ob_memdb *db, struct mem_row *row, const struct ob_operate *operate)
{
	const struct mem_cause cause = { .cause = OB_MEMDB_OPERATED };
	bool held = mem_holds(row);

	mem_row_unclaim(row); /* one that was valid would have been refused */
	switch (operate->verb) {
	case OB_VERB_RETRY:
		row->m.attempts = 0;
		row->m.available_at_us = mem_now(db);
		row->m.published_at_us = 0;
		mem_row_set(db, row, OB_STATE_PENDING, &cause);
		break;
	case OB_VERB_SKIP:
		row->m.published_at_us = mem_now(db);
		mem_row_set(db, row, OB_STATE_DEAD, &cause);
		break;
	case OB_VERB_DISCARD:
		if (held)
			mem_release(db, row);
		mem_row_delete(db, row, &cause);
		return;
	case OB_VERB_PRIORITY:
		row->m.priority = operate->priority;
		mem_row_set(db, row, row->m.state, &cause);
		return;
	}
	if (held)
		mem_release(db, row);
}

int mem_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
		uint64_t *ret_refused, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	uint64_t refused = 0;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct mem_row **rows = mem_scratch(store, db->all_count, sizeof(struct mem_row *));
	if (!rows)
		return mem_oom(err);
	/* What matches is decided before the first change: a release would change what matches. */
	int64_t now = mem_now(db);
	for (struct mem_row *row = TAILQ_FIRST(&db->all); row; row = TAILQ_NEXT(row, all_link)) {
		if (!mem_match(&operate->filter, row, now))
			continue;
		if (!allows(operate->verb, row->m.state) || mem_claim_valid(row, now))
			refused++;
		else if (operate->filter.limit == 0 || count < operate->filter.limit)
			rows[count++] = row;
	}
	for (size_t i = 0; i < count; i++)
		operate_one(db, rows[i], operate);
	if (count > 0)
		mem_committed(mem_of(store));
	*ret_changed = count;
	*ret_refused = refused;
	return 0;
}

/* ---- cleanup --------------------------------------------------------- */

static uint64_t clean(struct ob_memdb *db, const struct ob_cleanup *cleanup, enum ob_state state,
		      int64_t age_ms, uint64_t limit)
{
	const struct mem_cause cause = { .cause = OB_MEMDB_CLEANED };
	int64_t now = mem_now(db);
	uint64_t count = 0;

	if (age_ms == OB_NEVER_MS)
		return 0;
	for (struct mem_row *row = TAILQ_FIRST(&db->all), *next; row && count < limit; row = next) {
		next = TAILQ_NEXT(row, all_link);
		if (row->m.state != state || mem_after(row->m.published_at_us, age_ms) > now ||
		    (cleanup->target && !ob_str_eq(row->m.target, ob_str(cleanup->target))))
			continue;
		mem_row_delete(db, row, &cause);
		count++;
	}
	return count;
}

int mem_cleanup(struct ob_store *store, const struct ob_cleanup *cleanup, uint64_t *ret_published,
		uint64_t *ret_dead, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	uint64_t published =
		clean(db, cleanup, OB_STATE_PUBLISHED, cleanup->published_ms, cleanup->limit);
	uint64_t dead =
		clean(db, cleanup, OB_STATE_DEAD, cleanup->dead_ms, cleanup->limit - published);
	if (published + dead > 0)
		mem_committed(mem_of(store));
	*ret_published = published;
	*ret_dead = dead;
	return 0;
}
