/* SPDX-License-Identifier: MIT */
/* The SQLite store: operator verbs. */
#include "base/cleanup.h"
#include "store/sqlite/exception.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/list.h"
#include "store/sqlite/stmt.h"

/* One operate while it runs. */
struct operating {
	struct lite_store *s;
	const struct ob_operate *operate;
	struct ob_arena arena;
	struct lite_rows changes, promotes;
	uint64_t changed, refused;
	bool touched[OB_PARTITIONS_MAX * OB_LANES];
};

static int remember(struct operating *o, const struct ob_change *change, bool promote,
		    struct ob_str queue, struct ob_err *err)
{
	struct ob_change *own = lite_rows_add(&o->changes);
	struct ob_promote *wake = promote ? lite_rows_add(&o->promotes) : NULL;

	if (!own || (promote && !wake))
		return lite_oom(o->s, err);
	*own = *change;
	if (wake)
		*wake = (struct ob_promote){ change->partition, queue };
	o->touched[change->partition] = true;
	o->changed++;
	return 0;
}

/* Decide for every row before any is changed: what matches is as it was before. */
static int decide(struct operating *o, struct ob_err *err)
{
	struct ob_filter filter = o->operate->filter;
	uint32_t limit = filter.limit;
	struct ob_verb_row row;

	filter.after_seq = 0;
	filter.limit = 0; /* what is refused is counted to the end */
	filter.newest_first = false;
	int r = lite_pick(o->s, &filter, err);
	while (r >= 0 && (r = lite_pick_next(o->s, &row, err)) > 0) {
		bool room = !limit || o->changed < limit, promote = false;
		struct ob_change change;

		if (room && !ob_arena_copy(&o->arena, row.queue, &row.queue))
			r = lite_oom(o->s, err);
		else if (!ob_exception_verb(o->operate->verb, &row, &change, &promote))
			o->refused++;
		else if (room)
			r = remember(o, &change, promote, row.queue, err);
	}
	lite_pick_done(o->s);
	return r;
}

/* A journal row of our own in each partition: a settle that was decided before it collides, reads
 * its number anew, and finds what we have changed. */
static int fence(struct operating *o, struct ob_err *err)
{
	const char *reader = o->operate->filter.reader;
	struct lite_journal row;
	int r = 0;

	for (uint32_t p = 0; p < OB_PARTITIONS_MAX * OB_LANES && r == 0; p++) {
		if (!o->touched[p])
			continue;
		r = lite_journal_newest(o->s, reader, p, &row, err);
		if (r <= 0)
			continue;
		row.batch++;
		row.owner = (struct ob_uuid){ { 0 } };
		r = lite_journal_add(o->s, reader, p, &row, err);
	}
	return r;
}

static int operate_all(struct operating *o, struct ob_err *err)
{
	const struct ob_promote *promotes;
	const struct ob_change *changes;
	const char *reader = o->operate->filter.reader;
	int r = decide(o, err);

	changes = (void *)o->changes.data;
	promotes = (void *)o->promotes.data;
	if (r == 0)
		r = fence(o, err);
	for (size_t i = 0; i < o->changes.count && r == 0; i++)
		r = lite_exception_change(o->s, reader, &changes[i], true, err);
	for (size_t i = 0; i < o->promotes.count && r == 0; i++)
		r = lite_exception_promote(o->s, reader, &promotes[i], err);
	return r;
}

int lite_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
		 uint64_t *ret_refused, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct operating o = {
		.s = s,
		.operate = operate,
		.arena = OB_ARENA_INIT(SIZE_MAX / 2),
	};
	int r = lite_begin(s, "changing messages", err);

	if (r < 0)
		return r;
	o.changes = (struct lite_rows){ .arena = &o.arena, .size = sizeof(struct ob_change) };
	o.promotes = (struct lite_rows){ .arena = &o.arena, .size = sizeof(struct ob_promote) };
	r = lite_end(s, operate_all(&o, err), err);
	ob_arena_done(&o.arena);
	if (r < 0)
		return r;
	*ret_changed = o.changed;
	*ret_refused = o.refused;
	return 0;
}
