/* SPDX-License-Identifier: MIT */
/* Taking partitions over: a journal row that whoever had them before collides with. */
#include "store/postgres/ops.h"
#include "store/postgres/stmt.h"

enum { TRIES = 20 };

/* Columns of take_over. */
enum {
	T_PARTITION,
	T_EPOCH,
	T_OURS,
	T_NEWEST,
	T_MADE,
	T_POS,
	T_SEEN,
	T_LATE_POS,
	T_LATE_SEEN,
	T_AHEAD,
};

static int foreign(struct pg_store *s, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "the progress in table '%s' is of another database cluster, whose "
			  "transaction ids mean nothing here; run `outbox adopt`",
			  s->base.layout->table[OB_TABLE_batches]);
}

/* One takeover while it runs. */
struct taking {
	struct pg_store *s;
	const char *reader;
	const struct ob_uuid *owner;
	struct ob_owned *owned;
	struct ob_progress *progress; /* of each; handed over at the end */
	size_t count;
};

static bool read_progress(const PGresult *found, int row, struct ob_progress *to)
{
	struct ob_progress progress = {
		.pos = pg_get_int(found, row, T_POS),
		.late_pos = pg_get_int(found, row, T_LATE_POS),
		.seen = ob_seen_new(pg_get_str(found, row, T_SEEN)),
	};
	bool late = !PQgetisnull(found, row, T_LATE_SEEN);

	if (late)
		progress.late_seen = ob_seen_new(pg_get_str(found, row, T_LATE_SEEN));
	ob_progress_set(to, &progress);
	bool ok = progress.seen && (!late || progress.late_seen);
	ob_progress_done(&progress);
	return ok;
}

/* 1: someone inserted that row first: try again. */
static int take_row(const PGresult *found, int row, struct ob_owned *to,
		    struct ob_progress *progress, struct ob_err *err)
{
	uint64_t epoch = (uint64_t)pg_get_int(found, row, T_EPOCH);
	bool ours = pg_get_int(found, row, T_OURS) != 0;

	/* Without a row the partition is gone, or the reader. */
	to->lost = PQgetisnull(found, row, T_EPOCH) || epoch > to->epoch;
	if (to->lost)
		return 0;
	if (!ours && PQgetisnull(found, row, T_MADE))
		return 1;
	to->batch = (uint64_t)pg_get_int(found, row, ours ? T_NEWEST : T_MADE);
	return read_progress(found, row, progress) ? 0 : pg_oom("taking over partitions", err);
}

static int take_rows(struct taking *g, struct ob_err *err)
{
	const PGresult *same = g->s->results[0], *found = g->s->results[1];
	int again = 0;

	if (!PQgetisnull(same, 0, 0) && pg_get_int(same, 0, 0) != pg_get_int(same, 0, 1))
		return foreign(g->s, err);
	for (int row = 0; row < PQntuples(found); row++) {
		size_t at = 0;

		while (at < g->count &&
		       g->owned[at].partition != pg_get_int(found, row, T_PARTITION))
			at++;
		if (pg_get_int(found, row, T_AHEAD))
			return foreign(g->s, err);
		int r = at < g->count ? take_row(found, row, &g->owned[at], &g->progress[at], err)
				      : 0;
		if (r < 0)
			return r;
		again |= r;
	}
	return again;
}

static int try_take_over(struct taking *g, struct ob_err *err)
{
	struct pg_store *s = g->s;
	struct pg_params p = { 0 };
	int r = pg_begin(s, err);

	if (r == 0)
		r = pg_add(s, PG_same_cluster, NULL, err);
	if (r < 0)
		return pg_finish(s, r, err);
	pg_text(&p, g->reader);
	pg_uuid(&p, g->owner);
	struct ob_pgarray *partitions = pg_ints(&p), *epochs = pg_ints(&p);
	for (size_t i = 0; i < g->count; i++) {
		ob_pgarray_int(partitions, g->owned[i].partition);
		ob_pgarray_int(epochs, (int64_t)g->owned[i].epoch);
	}
	r = pg_add(s, PG_take_over, &p, err);
	/* Before the commit: in a foreign cluster nothing is written. */
	if (r == 0)
		r = pg_flush(s, err);
	if (r == 0)
		r = take_rows(g, err);
	r = pg_finish(s, r, err);
	pg_clear(s);
	return r;
}

int pg_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		 struct ob_owned *owned, size_t count, struct ob_err *err)
{
	struct taking g = { .s = (struct pg_store *)store,
			    .reader = reader,
			    .owner = owner,
			    .owned = owned,
			    .count = count };
	int r = 1;

	g.progress = calloc(count, sizeof(*g.progress));
	if (!g.progress)
		return pg_oom("taking over partitions", err);
	/* A row that was in our way belongs to the last settle of the one before. */
	for (int tries = 0; r > 0 && tries < TRIES; tries++)
		r = try_take_over(&g, err);
	if (r > 0)
		r = ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
			       "taking over partitions: others keep writing the journal");
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && !owned[i].lost)
			owned[i].progress = g.progress[i];
		else
			ob_progress_done(&g.progress[i]);
	}
	free(g.progress);
	return r;
}
