/* SPDX-License-Identifier: MIT */
/*
 * The SQLite store: removing what every reader has had behind it for long enough, and pruning. The
 * write lock makes it one worker at a time, so nobody is ever told that another one does it.
 */
#include "base/cleanup.h"
#include "store/sql/ops.h"
#include "store/sqlite/driver.h"

enum { NAME_MAX_BYTES = 1 << 16 };

#define MINUTE_US INT64_C(60000000)
#define HOUR_US   (60 * MINUTE_US)

/* What is as old as that; INT64_MIN: nothing is. */
static int64_t before(const struct lite_store *s, int64_t ms)
{
	return ms == OB_NEVER_MS ? INT64_MIN : s->now - ob_sql_us(ms);
}

static int forget_reader(struct lite_store *s, struct ob_str reader, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < ob_sql_removal_count && r >= 0; i++)
		r = lite_run(s, (int)ob_sql_removal[i], OB_ARGS(OB_ARG_STR("reader", reader)), err);
	return r;
}

static int remove_ended(struct lite_store *s, struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(NAME_MAX_BYTES);
	struct ob_str name = OB_STR_NULL;
	int r = lite_bind(s, LITE_idle_reader, OB_NO_ARGS, err);

	if (r == 0)
		r = lite_step(s, LITE_idle_reader, err);
	if (r <= 0)
		return r;
	bool copied = ob_arena_copy(&arena, lite_str(s->stmt[LITE_idle_reader], 0), &name);
	lite_reset(s, LITE_idle_reader);
	r = copied ? forget_reader(s, name, err) : lite_oom(s, err);
	return r < 0 ? r : 1;
}

/* Exceptions, throughput, readers: once a pass. */
static int tidy(struct lite_store *s, const struct ob_retain *retain, int64_t since,
		uint64_t *ret_dead, struct ob_err *err)
{
	int r = 1;

	while (r > 0)
		r = remove_ended(s, err);
	if (r == 0)
		r = lite_run(s, LITE_retain_dead,
			     OB_ARGS(OB_ARG_INT("since", before(s, retain->dead_ms))), err);
	*ret_dead = r > 0 ? (uint64_t)r : 0;
	if (r >= 0)
		r = lite_run(s, LITE_retain_finished, OB_ARGS(OB_ARG_INT("since", since)), err);
	if (r >= 0)
		r = lite_run(s, LITE_retain_throughput, OB_NO_ARGS, err);
	if (r >= 0)
		r = lite_run(s, LITE_retain_audit, OB_NO_ARGS, err);
	return r < 0 ? r : 0;
}

/*
 * The next `limit` rows of this pass: those that stay (an exception names them) are walked over
 * once a pass, not once a call.
 */
static int remove_messages(struct lite_store *s, uint32_t limit, int64_t since,
			   struct ob_retained *done, struct ob_err *err)
{
	int64_t from = s->retained.from, to = 0, bound = -1;
	int r = lite_value(s, LITE_retain_bound, OB_ARGS(OB_ARG_INT("since", since)), &bound, err);

	if (r > 0)
		r = lite_value(s, LITE_retain_to,
			       OB_ARGS(OB_ARG_INT("from", from), OB_ARG_INT("bound", bound),
				       OB_ARG_INT("limit", limit)),
			       &to, err);
	s->retained.from = 0;
	if (r <= 0)
		return r;
	r = lite_run(s, LITE_retain_rows, OB_ARGS(OB_ARG_INT("from", from), OB_ARG_INT("to", to)),
		     err);
	if (r < 0)
		return r;
	done->rows = (uint64_t)r;
	done->more = to < bound;
	s->retained.from = done->more ? to : 0;
	return 0;
}

static int remove_these(struct lite_store *s, const struct ob_retain *retain, int64_t since,
			struct ob_retained *done, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_table_done) struct ob_sql_table only = OB_SQL_TABLE("i");
	int64_t bound = -1;
	int r = lite_value(s, LITE_retain_bound, OB_ARGS(OB_ARG_INT("since", since)), &bound, err);

	if (r <= 0)
		return r;
	for (size_t i = 0; i < retain->only_count; i++)
		ob_sql_table_int(&only, retain->only[i]);
	r = lite_run(s, LITE_retain_these,
		     OB_ARGS(OB_ARG_LIST("only", &only), OB_ARG_INT("bound", bound)), err);
	if (r < 0)
		return r;
	done->rows = (uint64_t)r;
	return 0;
}

/* A new connection does not know what was thinned before it, and does not read all of it again. */
static int prune_journal(struct lite_store *s, int64_t since, struct ob_err *err)
{
	int64_t thinned = s->retained.thinned_us ? s->retained.thinned_us : s->now - HOUR_US;
	const struct ob_sql_arg args[] = { OB_ARG_INT("since", since),
					   OB_ARG_INT("thinned", thinned),
					   { .name = NULL } };
	int r = lite_run(s, LITE_prune_old, args, err);

	if (r >= 0)
		r = lite_run(s, LITE_prune_crowd, args, err);
	return r < 0 ? r : 0;
}

static int find_holder(struct lite_store *s, int64_t since, struct ob_arena *arena,
		       struct ob_retained *done, struct ob_err *err)
{
	int r = lite_bind(s, LITE_holder, OB_ARGS(OB_ARG_INT("since", since)), err);

	if (r == 0)
		r = lite_step(s, LITE_holder, err);
	if (r <= 0)
		return r;
	done->held_us = sqlite3_column_int64(s->stmt[LITE_holder], 1);
	r = ob_arena_copy(arena, lite_str(s->stmt[LITE_holder], 0), &done->held_by)
		    ? 0
		    : lite_oom(s, err);
	lite_reset(s, LITE_holder);
	return r;
}

static int retain_all(struct lite_store *s, const struct ob_retain *retain, struct ob_arena *arena,
		      struct ob_retained *done, struct ob_err *err)
{
	int64_t since = before(s, retain->published_ms);
	int r = s->retained.from ? 0 : tidy(s, retain, since, &done->dead, err);

	if (r == 0 && since != INT64_MIN && retain->only)
		r = remove_these(s, retain, since, done, err);
	else if (r == 0 && since != INT64_MIN && retain->limit)
		r = remove_messages(s, retain->limit, since, done, err);
	if (r == 0 && since != INT64_MIN)
		r = find_holder(s, since, arena, done, err);
	return r < 0 ? r : prune_journal(s, since, err);
}

int lite_retain(struct ob_store *store, const struct ob_retain *retain, struct ob_arena *arena,
		struct ob_retained *ret_done, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct ob_retained done = { .held_by = OB_STR("") };
	int64_t from = s->retained.from;
	int r = lite_begin(s, "removing old messages", err);

	if (r == 0)
		r = lite_end(s, retain_all(s, retain, arena, &done, err), err);
	if (r < 0) {
		s->retained.from = from;
		return r;
	}
	s->retained.thinned_us = s->now / MINUTE_US * MINUTE_US;
	*ret_done = done;
	return 0;
}
