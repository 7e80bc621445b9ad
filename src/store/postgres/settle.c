/* SPDX-License-Identifier: MIT */
/*
 * Recording progress: journal rows, which are the fence, and the changes that depend on them. All
 * of it is sent at once, so that a client that freezes leaves no open transaction.
 */
#include "store/postgres/change.h"
#include "store/postgres/ops.h"
#include "store/postgres/seen.h"

static int add_journal(struct pg_store *s, const struct ob_settle *settle, struct ob_err *err)
{
	struct pg_params p = { 0 };
	struct pg_seen all;

	if (!pg_seen_begin(&all, 2 * settle->part_count))
		return pg_oom("settling", err);
	pg_text(&p, settle->reader);
	pg_uuid(&p, &settle->owner);
	struct ob_pgarray *partitions = pg_ints(&p), *batches = pg_ints(&p), *epochs = pg_ints(&p),
			  *positions = pg_ints(&p), *published = pg_ints(&p), *failed = pg_ints(&p),
			  *seen = pg_ints(&p), *late_pos = pg_ints(&p), *late = pg_ints(&p);
	for (size_t i = 0; i < settle->part_count; i++) {
		const struct ob_settle_part *part = &settle->parts[i];

		ob_pgarray_int(partitions, part->partition);
		ob_pgarray_int(batches, (int64_t)part->batch);
		ob_pgarray_int(epochs, (int64_t)part->epoch);
		ob_pgarray_int(positions, part->progress.pos);
		ob_pgarray_int(published, part->published);
		ob_pgarray_int(failed, part->failed);
		ob_pgarray_int(seen, pg_seen_place(&all, part->progress.seen));
		ob_pgarray_int(late_pos, part->progress.late_pos);
		ob_pgarray_int(late, pg_seen_place(&all, part->progress.late_seen));
	}
	pg_literal(&p, pg_seen_end(&all));
	int r = pg_add(s, PG_journal, &p, err);
	pg_seen_done(&all);
	return r;
}

static int add_changes(struct pg_store *s, const struct ob_settle *settle, struct ob_err *err)
{
	struct pg_fence *fences;
	int r;

	if (settle->change_count == 0 && settle->promote_count == 0)
		return 0;
	fences = calloc(settle->part_count, sizeof(*fences));
	if (!fences)
		return pg_oom("settling", err);
	for (size_t i = 0; i < settle->part_count; i++)
		fences[i] = (struct pg_fence){ settle->parts[i].partition, settle->parts[i].batch,
					       settle->parts[i].epoch };
	r = pg_add_changes(s,
			   &(struct pg_changes){
				   .reader = settle->reader,
				   .owner = &settle->owner,
				   .fences = fences,
				   .fence_count = settle->part_count,
				   .changes = settle->changes,
				   .change_count = settle->change_count,
				   .promotes = settle->promotes,
				   .promote_count = settle->promote_count,
			   },
			   err);
	free(fences);
	return r;
}

static struct ob_settle_part *part_of(struct ob_settle *settle, int64_t partition)
{
	size_t low = 0, high = settle->part_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (settle->parts[middle].partition == partition)
			return &settle->parts[middle];
		if (settle->parts[middle].partition < partition)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Which rows were inserted; how many were not. */
static size_t mark_inserted(struct ob_settle *settle, const PGresult *inserted)
{
	size_t missing = settle->part_count;

	for (size_t i = 0; i < settle->part_count; i++)
		settle->parts[i].settled = OB_SETTLE_LOST;
	for (int row = 0; row < PQntuples(inserted); row++) {
		struct ob_settle_part *part = part_of(settle, pg_get_int(inserted, row, 0));

		if (part) {
			part->settled = OB_SETTLED;
			missing--;
		}
	}
	return missing;
}

/* Of a row that was not inserted: ours from before, an operator's, or another owner's. */
static void judge_missing(struct ob_settle *settle, const PGresult *found)
{
	for (int row = 0; row < PQntuples(found); row++) {
		struct ob_settle_part *part = part_of(settle, pg_get_int(found, row, 0));

		if (!part || part->settled == OB_SETTLED)
			continue;
		if (pg_get_int(found, row, 1)) {
			part->settled = OB_SETTLED;
		} else if (!PQgetisnull(found, row, 3) &&
			   (uint64_t)pg_get_int(found, row, 3) == part->epoch) {
			part->settled = OB_SETTLE_MOVED;
			part->batch = (uint64_t)pg_get_int(found, row, 2);
		}
	}
}

static int find_missing(struct pg_store *s, struct ob_settle *settle, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, settle->reader);
	pg_uuid(&p, &settle->owner);
	struct ob_pgarray *partitions = pg_ints(&p), *batches = pg_ints(&p), *epochs = pg_ints(&p);
	for (size_t i = 0; i < settle->part_count; i++) {
		ob_pgarray_int(partitions, settle->parts[i].partition);
		ob_pgarray_int(batches, (int64_t)settle->parts[i].batch);
		ob_pgarray_int(epochs, (int64_t)settle->parts[i].epoch);
	}
	int r = pg_run_one(s, PG_journal_state, &p, err);
	if (r == 0)
		judge_missing(settle, s->results[0]);
	return r;
}

/*
 * Without changes it is one statement, which needs no BEGIN where the session has its settings. It
 * runs in a snapshot then: a row that someone inserts at the same moment is an error, not a
 * conflict.
 */
static int try_settle(struct pg_store *s, struct ob_settle *settle, bool alone, struct ob_err *err)
{
	int r = alone ? pg_begin_snapshot(s, err) : pg_begin_batch(s, !s->settle_durable, err);

	if (r < 0)
		return r;
	r = add_journal(s, settle, err);
	if (r == 0)
		r = add_changes(s, settle, err);
	return pg_finish(s, r, err);
}

int pg_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	bool alone = settle->change_count + settle->promote_count == 0 && !s->settle_durable;
	struct ob_err tried = OB_ERR_INIT;
	int r = try_settle(s, settle, alone, &tried);

	if (r < 0 && alone && strcmp(tried.native, "40001") == 0)
		r = try_settle(s, settle, false, err);
	else if (r < 0)
		*err = tried;
	if (r == 0 && mark_inserted(settle, s->results[0]) > 0)
		r = find_missing(s, settle, err);
	pg_clear(s);
	return r;
}
