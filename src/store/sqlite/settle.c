/* SPDX-License-Identifier: MIT */
/* The SQLite store: recording what became of messages, fenced by the journal. */
#include "store/sqlite/exception.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/reader.h"
#include "store/sqlite/stmt.h"

/* Is the partition among the parts, and was it recorded? They are in ascending order. */
static bool is_won(const struct ob_settle *settle, uint32_t partition)
{
	size_t low = 0, high = settle->part_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (settle->parts[middle].partition == partition)
			return settle->parts[middle].settled == OB_SETTLED;
		if (settle->parts[middle].partition < partition)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* Our number is taken: by ourselves before a reply was lost, or by an operator. */
static int find_taker(struct lite_store *s, const struct ob_settle *settle,
		      struct ob_settle_part *part, const struct lite_journal *newest,
		      struct ob_err *err)
{
	struct lite_journal row;
	int r = lite_journal_row(s, settle->reader, part->partition, part->batch, &row, err);

	if (r < 0)
		return r;
	if (r > 0 && row.epoch == part->epoch && ob_uuid_eq(&row.owner, &settle->owner)) {
		part->settled = OB_SETTLED;
	} else {
		part->settled = OB_SETTLE_MOVED;
		part->batch = newest->batch;
	}
	return 0;
}

/*
 * The fence. SQLite has one writer, so nobody adds a row between the query and ours. That the
 * number is free is not enough: old rows are pruned, and a worker that was frozen for an hour
 * would find its own free again. The newest row is never pruned, and has our epoch unless someone
 * took over.
 */
static int record(struct lite_store *s, const struct ob_settle *settle, struct ob_settle_part *part,
		  struct ob_err *err)
{
	const struct lite_journal row = {
		.batch = part->batch,
		.epoch = part->epoch,
		.owner = settle->owner,
		.pos = part->progress.pos,
		.published = part->published,
		.failed = part->failed,
	};
	struct lite_journal newest;
	int r = lite_journal_newest(s, settle->reader, part->partition, &newest, err);

	part->settled = OB_SETTLE_LOST;
	if (r <= 0 || newest.epoch != part->epoch)
		return r < 0 ? r : 0;
	if (newest.batch >= part->batch)
		return find_taker(s, settle, part, &newest, err);
	part->settled = OB_SETTLED;
	return lite_journal_add(s, settle->reader, part->partition, &row, err);
}

static int settle_all(struct lite_store *s, struct ob_settle *settle, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < settle->part_count && r == 0; i++)
		r = record(s, settle, &settle->parts[i], err);
	for (size_t i = 0; i < settle->change_count && r == 0; i++) {
		if (is_won(settle, settle->changes[i].partition))
			r = lite_exception_change(s, settle->reader, &settle->changes[i], false,
						  err);
	}
	for (size_t i = 0; i < settle->promote_count && r == 0; i++) {
		if (is_won(settle, settle->promotes[i].partition))
			r = lite_exception_promote(s, settle->reader, &settle->promotes[i], err);
	}
	return r;
}

/*
 * A settle that a power cut undoes is only sent again, and what producers have committed stays as
 * durable as it was: their commits, before or after, sync all of the log.
 */
int lite_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	bool relax = !s->settle_durable && s->synchronous == LITE_SYNC_FULL && s->db && !s->in_tx;
	struct ob_err ignored = OB_ERR_INIT;

	if (relax)
		(void)lite_run(s, LITE_synchronous_normal, OB_NO_ARGS, &ignored);
	int r = lite_begin(s, "settling", err);
	if (r == 0)
		r = lite_end(s, settle_all(s, settle, err), err);
	if (relax && s->db && lite_set_synchronous(s, &ignored) < 0)
		s->broken = true; /* a new connection begins with what was asked for */
	return r;
}
