/* SPDX-License-Identifier: MIT */
/* The memory store: telling a test what becomes of each row for one reader. */
#include "doubles/memory_store_impl.h"

static bool is_watched(const struct ob_memdb *db, const struct mem_reader *reader)
{
	return db->conf.history && strcmp(reader->name, db->conf.watch) == 0;
}

static void tell(const struct ob_memdb *db, const struct ob_memdb_change *change)
{
	db->conf.history(db->conf.history_arg, change);
}

static bool is_same(const struct ob_memdb_state *a, const struct ob_memdb_state *b)
{
	return a->delivered == b->delivered && a->excepted == b->excepted && a->state == b->state &&
	       a->attempts == b->attempts;
}

static struct ob_memdb_state state_of(const struct mem_reader *reader, const struct mem_row *row,
				      bool covered)
{
	const struct mem_exception *e = mem_exception_find(reader, row->m.seq);

	if (!e || e->state == OB_STATE_DONE)
		return (struct ob_memdb_state){ .delivered = e || covered };
	return (struct ob_memdb_state){ .excepted = true,
					.state = e->state,
					.attempts = e->attempts };
}

void mem_tell(struct ob_memdb *db, const struct mem_reader *reader, enum ob_memdb_cause cause,
	      const struct ob_uuid *owner)
{
	uint32_t numbers = OB_LANES * db->partition_count;

	if (!is_watched(db, reader))
		return;
	OB_AUTOFREE struct ob_cover *covers = calloc(numbers, sizeof(*covers));
	OB_AUTOFREE bool *open = calloc(numbers, 1);
	if (!covers || !open)
		abort();
	for (size_t i = 0; i < db->row_count; i++) {
		struct mem_row *row = db->rows[i];
		uint32_t p = row->m.partition;

		/* Only a reader that is moved has what it had before it again. */
		if (row->writer || strcmp(row->m.target.p, reader->target) != 0 ||
		    (row->told.delivered && cause == OB_MEMDB_SETTLED))
			continue;
		if (!open[p])
			(void)ob_cover_open(&covers[p], &mem_newest(reader, p)->progress);
		open[p] = true;

		struct ob_memdb_state now =
			state_of(reader, row, ob_cover_has(&covers[p], row->m.seq, row->txid));

		if (is_same(&now, &row->told))
			continue;
		tell(db, &(struct ob_memdb_change){ .cause = cause,
						    .row = &row->m,
						    .before = row->told,
						    .after = now,
						    .exists = true,
						    .owner = owner });
		row->told = now;
	}
	for (uint32_t p = 0; p < numbers; p++) {
		if (open[p])
			ob_cover_close(&covers[p]);
	}
}

void mem_tell_taken(struct ob_memdb *db, const struct mem_reader *reader, uint32_t partition,
		    const struct ob_uuid *owner)
{
	if (is_watched(db, reader))
		tell(db, &(struct ob_memdb_change){
				 .cause = OB_MEMDB_TAKEN, .partition = partition, .owner = owner });
}

void mem_tell_row(struct ob_memdb *db, const struct mem_row *row, enum ob_memdb_cause cause)
{
	if (db->conf.history)
		tell(db, &(struct ob_memdb_change){ .cause = cause,
						    .row = &row->m,
						    .before = row->told,
						    .after = row->told,
						    .exists = cause == OB_MEMDB_PUSHED });
}
