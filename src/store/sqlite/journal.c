/* SPDX-License-Identifier: MIT */
/*
 * The journal of the SQLite store. Its newest row is a partition's progress. Whoever adds a row is
 * the only writer of the database at that moment: so "my number is above the newest, and the newest
 * has my epoch" is the whole fence.
 */
#include "store/sqlite/journal.h"

#include "store/sqlite/stmt.h"

static int read_journal(struct lite_store *s, int id, struct lite_journal *ret_row,
			struct ob_err *err)
{
	sqlite3_stmt *stmt = s->stmt[id];
	int r = lite_step(s, id, err);

	if (r <= 0)
		return r;
	*ret_row = (struct lite_journal){
		.batch = (uint64_t)sqlite3_column_int64(stmt, 0),
		.epoch = (uint64_t)sqlite3_column_int64(stmt, 1),
		.pos = sqlite3_column_int64(stmt, 3),
	};
	(void)ob_uuid_scan(lite_str(stmt, 2), &ret_row->owner);
	lite_reset(s, id);
	return 1;
}

int lite_journal_newest(struct lite_store *s, const char *reader, uint32_t partition,
			struct lite_journal *ret_row, struct ob_err *err)
{
	int r = lite_bind(
		s, LITE_journal_newest,
		OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("partition", partition)), err);

	return r < 0 ? r : read_journal(s, LITE_journal_newest, ret_row, err);
}

int lite_journal_row(struct lite_store *s, const char *reader, uint32_t partition, uint64_t batch,
		     struct lite_journal *ret_row, struct ob_err *err)
{
	int r = lite_bind(s, LITE_journal_row,
			  OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("partition", partition),
				  OB_ARG_INT("batch", batch)),
			  err);

	return r < 0 ? r : read_journal(s, LITE_journal_row, ret_row, err);
}

int lite_journal_add(struct lite_store *s, const char *reader, uint32_t partition,
		     const struct lite_journal *row, struct ob_err *err)
{
	int r = lite_run(s, LITE_journal_add,
			 OB_ARGS(OB_ARG_TEXT("reader", reader), OB_ARG_INT("partition", partition),
				 OB_ARG_INT("batch", row->batch), OB_ARG_INT("epoch", row->epoch),
				 OB_ARG_UUID("owner", &row->owner), OB_ARG_INT("pos", row->pos),
				 OB_ARG_INT("published", row->published),
				 OB_ARG_INT("failed", row->failed)),
			 err);

	return r < 0 ? r : 0;
}

int lite_log_end(struct lite_store *s, int64_t *ret_seq, struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	int r = lite_value(s, LITE_end_of_log, OB_ARGS(OB_ARG_TEXT("table", table)), ret_seq, err);

	return r < 0 ? r : 0;
}

/* ---- taking over ----------------------------------------------------- */

static int take_over_one(struct lite_store *s, const char *reader, const struct ob_uuid *owner,
			 struct ob_owned *owned, struct ob_err *err)
{
	struct lite_journal row;
	int r = lite_journal_newest(s, reader, owned->partition, &row, err);

	if (r < 0)
		return r;
	/* Without a row it was changed by a resize: it is not ours. */
	owned->lost = r == 0 || row.epoch > owned->epoch;
	if (owned->lost)
		return 0;
	bool repeat = row.epoch == owned->epoch && ob_uuid_eq(&row.owner, owner);
	if (!repeat) {
		row.batch++;
		row.epoch = owned->epoch;
		row.owner = *owner;
		r = lite_journal_add(s, reader, owned->partition, &row, err);
		if (r < 0)
			return r;
	}
	owned->batch = row.batch;
	owned->progress = (struct ob_progress){ .pos = row.pos };
	return 0;
}

int lite_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
		   struct ob_owned *owned, size_t count, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "taking over", err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count && r == 0; i++)
		r = take_over_one(s, reader, owner, &owned[i], err);
	return lite_end(s, r, err);
}
