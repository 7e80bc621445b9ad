/* SPDX-License-Identifier: MIT */
/* Taking partitions over: a journal row that whoever had them before collides with. */
#include "base/cleanup.h"
#include "store/sql/ops.h"

enum { TRIES = 20 };

/* Columns of `progress`. */
enum { PARTITION, BATCH, EPOCH, OWNER, AT, POS, SEEN, LATE_POS, LATE_SEEN };

/* One takeover while it runs. */
struct taking {
	struct ob_store *store;
	const char *reader;
	const struct ob_uuid *owner;
	struct ob_owned *owned;
	struct ob_progress *progress; /* of each; handed over at the end */
	size_t count;
	struct ob_sql_table parts; /* p, epoch */
};

static bool read_progress(const struct ob_sql_rows *rows, struct ob_progress *to)
{
	struct ob_str seen = ob_sql_str(rows, SEEN), late = ob_sql_str(rows, LATE_SEEN);
	struct ob_progress progress = {
		.pos = ob_sql_int(rows, POS),
		.late_pos = ob_sql_int(rows, LATE_POS),
		.seen = seen.n ? ob_seen_new(seen) : NULL,
		.late_seen = late.n ? ob_seen_new(late) : NULL,
	};
	bool ok = (!seen.n || progress.seen) && (!late.n || progress.late_seen);

	ob_progress_set(to, &progress);
	ob_progress_done(&progress);
	return ok;
}

static size_t find_owned(const struct taking *g, int64_t partition)
{
	size_t at = 0;

	while (at < g->count && g->owned[at].partition != partition)
		at++;
	return at;
}

/* 1: someone inserted that row first: try again. */
static int take_row(struct taking *g, const struct ob_sql_rows *rows, struct ob_err *err)
{
	size_t at = find_owned(g, ob_sql_int(rows, PARTITION));
	uint64_t epoch = (uint64_t)ob_sql_int(rows, EPOCH);
	struct ob_uuid owner = { { 0 } };

	/* P7: a higher epoch was granted after ours, so the partition is that owner's: it stays
	 * lost. */
	if (at == g->count || epoch > g->owned[at].epoch)
		return 0;
	(void)ob_sql_uuid(rows, OWNER, &owner);
	/* The owner before us settled between our read and our insert; his progress counts (P4). */
	if (epoch < g->owned[at].epoch || !ob_uuid_eq(&owner, g->owner))
		return 1;
	g->owned[at].lost = false;
	g->owned[at].batch = (uint64_t)ob_sql_int(rows, BATCH);
	return read_progress(rows, &g->progress[at])
		       ? 0
		       : ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				    "taking over partitions: out of memory");
}

static int try_take_over(struct taking *g, struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("reader", g->reader),
		OB_ARG_UUID("owner", g->owner),
		OB_ARG_TABLE("parts", &g->parts),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;
	int again = 0;

	ob_sql_begin(&q, g->store, OB_SQL_WRITE, "taking over partitions");
	size_t foreign = ob_sql_add(&q, OB_SQL_foreign_progress, args);
	(void)ob_sql_add(&q, OB_SQL_take_over, args);
	size_t newest = ob_sql_add(&q, OB_SQL_progress, args);
	int r = ob_sql_commit(&q, err);
	/* Then take_over has written nothing. */
	if (r == 0 && ob_sql_value(&q, foreign))
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"the progress in table '%s' is of another database cluster, whose "
			"transaction ids mean nothing here; run `outbox adopt`",
			g->store->layout->table[OB_TABLE_batches]);
	/* Without a row the partition is gone, or the reader. */
	for (size_t i = 0; i < g->count; i++)
		g->owned[i].lost = true;
	struct ob_sql_rows rows = ob_sql_rows(&q, newest);
	while (r >= 0 && ob_sql_next(&rows)) {
		r = take_row(g, &rows, err);
		again |= r > 0;
	}
	return r < 0 ? r : again;
}

int ob_sql_op_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
			struct ob_owned *owned, size_t count, struct ob_err *err)
{
	struct taking g = { .store = store,
			    .reader = reader,
			    .owner = owner,
			    .owned = owned,
			    .count = count,
			    .parts = OB_SQL_TABLE("ii") };
	int r = 1;

	g.progress = calloc(count, sizeof(*g.progress));
	if (!g.progress)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				  "taking over partitions: out of memory");
	for (size_t i = 0; i < count; i++) {
		ob_sql_table_int(&g.parts, owned[i].partition);
		ob_sql_table_int(&g.parts, (int64_t)owned[i].epoch);
	}
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
	ob_sql_table_done(&g.parts);
	free(g.progress);
	return r;
}
