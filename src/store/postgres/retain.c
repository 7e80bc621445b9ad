/* SPDX-License-Identifier: MIT */
/* Removing what every reader has behind it, and pruning, in the PostgreSQL store. */
#include "log/retention.h"
#include "store/postgres/driver.h"
#include "store/postgres/ops.h"
#include "store/postgres/parts.h"
#include "store/sql/ops.h"

#include <inttypes.h>

enum {
	PRUNE_ROWS = 2000, /* journal rows of each partition in one statement */
	PRUNE_PASSES = 16,
};

/* One retain while it runs. */
struct retaining {
	struct pg_store *s;
	const struct ob_retain *retain;
	struct ob_retained *done;
	struct ob_retain_bound bound;
	bool partitioned;
};

/* A statement whose only parameters are numbers; rows that it changed. */
static int run_counted(struct pg_store *s, enum pg_id id, struct pg_params *p, uint64_t *ret_count,
		       struct ob_err *err)
{
	int r = pg_add(s, id, p, err);

	if (r == 0)
		r = pg_flush(s, err);
	if (r == 0)
		*ret_count = pg_changed(s->results[0]);
	return r;
}

/* ---- rows of the log ------------------------------------------------- */

static int add_bound(const PGresult *found, int row, struct ob_retain_bound *bound,
		     struct ob_err *err)
{
	struct ob_progress progress = { .pos = INT64_MIN }; /* not there yet: nothing may go */

	if (!PQgetisnull(found, row, 0)) {
		progress.pos = pg_get_int(found, row, 0);
		progress.seen = ob_seen_new(pg_get_str(found, row, 1));
		if (!progress.seen)
			return pg_oom("removing old rows", err);
	}
	(void)ob_retain_add(bound, &progress, true);
	ob_progress_done(&progress);
	return 0;
}

static int remove_rows(struct retaining *g, struct ob_err *err)
{
	const struct ob_retain_bound *bound = &g->bound;
	struct pg_params p = { 0 };
	/* The others go with their partition. */
	bool some = g->partitioned && g->retain->published_ms > 0;
	char txid[24];

	/* P1: no reader has passed anything yet. */
	if (!bound->any || bound->seq <= 0)
		return 0;
	(void)snprintf(txid, sizeof(txid), "%" PRIu64, bound->txid);
	pg_int(&p, bound->seq);
	pg_text(&p, txid);
	if (g->retain->only) {
		struct ob_pgarray *these = pg_array(&p, OB_PG_INT8);

		for (size_t i = 0; i < g->retain->only_count; i++)
			ob_pgarray_int(these, g->retain->only[i]);
	} else {
		pg_int(&p, g->retain->limit);
	}
	int r = pg_ask(g->s,
		       g->retain->only ? PG_retain_these
		       : some          ? PG_retain_default
				       : PG_retain_rows,
		       &p, err);
	if (r < 0)
		return r;
	g->done->rows = (uint64_t)pg_get_int(g->s->results[0], 0, 0);
	g->done->more = (uint64_t)pg_get_int(g->s->results[0], 0, 1) > g->done->rows;
	return 0;
}

/* The bounds are those of progress that was recorded so long ago, not of today's: a row stays for
 * `published` after the last reader has passed it. */
static int remove_old(struct retaining *g, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (g->retain->published_ms == OB_NEVER_MS || g->retain->limit == 0)
		return 0;
	int r = pg_parts_any(g->s, &g->partitioned, err);
	if (r < 0)
		return r;
	pg_int(&p, ob_sql_us(g->retain->published_ms));
	r = pg_ask(g->s, PG_retain_bounds, &p, err);
	if (r < 0)
		return r;
	for (int row = 0; row < PQntuples(g->s->results[0]) && r == 0; row++)
		r = add_bound(g->s->results[0], row, &g->bound, err);
	return r < 0 ? r : remove_rows(g, err);
}

/* ---- the rest -------------------------------------------------------- */

static int remove_exceptions(struct retaining *g, struct ob_err *err)
{
	struct pg_params dead = { 0 }, finished = { 0 };
	uint64_t ignored = 0;
	int r = 0;

	if (g->retain->dead_ms != OB_NEVER_MS) {
		pg_int(&dead, ob_sql_us(g->retain->dead_ms));
		r = run_counted(g->s, PG_retain_dead, &dead, &g->done->dead, err);
	}
	pg_int(&finished,
	       ob_sql_us(g->retain->published_ms == OB_NEVER_MS ? INT64_MAX
								: g->retain->published_ms));
	return r < 0 ? r : run_counted(g->s, PG_retain_finished, &finished, &ignored, err);
}

/* Rows of a minute, as long as there are many; then those that are too old. */
static int prune_journal(struct retaining *g, struct ob_err *err)
{
	bool never = g->retain->published_ms == OB_NEVER_MS;
	struct pg_params minutes = { 0 }, old = { 0 };
	uint64_t rows = 1;
	int r = 0;

	pg_int(&minutes, PRUNE_ROWS);
	pg_int(&minutes, ob_sql_us(never ? INT64_MAX : g->retain->published_ms));
	for (int pass = 0; pass < PRUNE_PASSES && rows > 0 && r == 0; pass++)
		r = run_counted(g->s, PG_prune_minutes, &minutes, &rows, err);
	if (r < 0 || never)
		return r;
	pg_int(&old, PRUNE_ROWS);
	pg_int(&old, ob_sql_us(g->retain->published_ms));
	return run_counted(g->s, PG_prune_old, &old, &rows, err);
}

static int remove_reader(struct pg_store *s, struct ob_str reader, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < ob_sql_removal_count && r == 0; i++)
		r = pg_driver.add(&s->base, ob_sql_removal[i],
				  OB_ARGS(OB_ARG_STR("reader", reader)), err);
	return r < 0 ? r : pg_flush(s, err);
}

static int remove_replays(struct retaining *g, struct ob_err *err)
{
	int r = pg_ask(g->s, PG_ended_readers, NULL, err);
	if (r < 0 || PQntuples(g->s->results[0]) == 0)
		return r;
	PGresult *found = g->s->results[0];
	g->s->results[0] = NULL;
	for (int row = 0; row < PQntuples(found) && r == 0; row++)
		r = remove_reader(g->s, pg_get_str(found, row, 0), err);
	PQclear(found);
	return r;
}

static int tell_held(struct retaining *g, struct ob_arena *arena, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (g->retain->published_ms == OB_NEVER_MS)
		return 0;
	pg_int(&p, ob_sql_us(g->retain->published_ms));
	int r = pg_ask(g->s, PG_held_by, &p, err);
	if (r < 0 || PQntuples(g->s->results[0]) == 0)
		return r;
	g->done->held_us = pg_get_time(g->s->results[0], 0, 1);
	if (!ob_arena_copy(arena, pg_get_str(g->s->results[0], 0, 0), &g->done->held_by))
		return pg_oom("removing old rows", err);
	return 0;
}

static int retain_all(struct retaining *g, struct ob_arena *arena, struct ob_err *err)
{
	struct pg_params none = { 0 };
	uint64_t ignored;
	int r = pg_ask(g->s, PG_retain_lock, NULL, err);
	if (r < 0)
		return r;
	g->done->busy = pg_get_int(g->s->results[0], 0, 0) == 0;
	if (g->done->busy)
		return 0;
	r = remove_exceptions(g, err);
	if (r == 0)
		r = remove_old(g, err);
	if (r == 0)
		r = prune_journal(g, err);
	if (r == 0)
		r = run_counted(g->s, PG_retain_throughput, &none, &ignored, err);
	if (r == 0)
		r = run_counted(g->s, PG_retain_audit, &none, &ignored, err);
	if (r == 0)
		r = remove_replays(g, err);
	return r < 0 ? r : tell_held(g, arena, err);
}

int pg_retain(struct ob_store *store, const struct ob_retain *retain, struct ob_arena *arena,
	      struct ob_retained *ret_done, struct ob_err *err)
{
	struct ob_retained done = *ret_done;
	struct retaining g = { .s = (struct pg_store *)store, .retain = retain, .done = &done };
	g.s->doing = "removing old rows";
	int r = pg_begin(g.s, err);

	ob_retain_init(&g.bound);
	if (r == 0)
		r = pg_finish(g.s, retain_all(&g, arena, err), err);
	if (r == 0 && !done.busy)
		r = pg_parts_retain(g.s, retain, &g.bound, &done, err);
	pg_clear(g.s);
	ob_retain_done(&g.bound);
	if (r == 0)
		*ret_done = done;
	return r;
}
