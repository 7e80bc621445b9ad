/* SPDX-License-Identifier: MIT */
/* The memory store: another number of partitions, another cluster. */
#include "doubles/memory_store_impl.h"

static void free_journals(struct mem_journal *journals, size_t count)
{
	for (size_t p = 0; p < count; p++) {
		for (size_t i = 0; i < journals[p].count; i++)
			ob_progress_done(&journals[p].rows[i].progress);
		free(journals[p].rows);
	}
	free(journals);
}

/* Rows that a reader had behind it and that `start` does not cover must not be delivered again. */
static void mark_done(const struct ob_memdb *db, struct mem_reader *reader,
		      const struct ob_progress *start)
{
	struct ob_cover from;

	(void)ob_cover_open(&from, start);
	for (size_t i = 0; i < db->row_count; i++) {
		const struct mem_row *row = db->rows[i];

		if (row->writer || strcmp(row->m.target.p, reader->target) != 0 ||
		    ob_cover_has(&from, row->m.seq, row->txid) ||
		    mem_exception_find(reader, row->m.seq) || !mem_covered(reader, row))
			continue;
		struct mem_exception *done = mem_exception_add(reader, row->m.seq);
		done->state = OB_STATE_DONE;
		done->since_us = mem_now(db);
	}
	ob_cover_close(&from);
}

/* Where all of the reader's partitions have been, and an epoch above all of theirs. */
static struct ob_progress oldest_progress(const struct ob_memdb *db,
					  const struct mem_reader *reader, uint64_t *ret_epoch)
{
	struct ob_progress oldest;

	mem_progress_copy(&oldest, &mem_newest(reader, 0)->progress);
	*ret_epoch = 0;
	for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
		const struct mem_batch *newest = mem_newest(reader, p);

		mem_progress_older(db, &oldest, &newest->progress);
		if (newest->epoch > *ret_epoch)
			*ret_epoch = newest->epoch;
	}
	for (size_t i = 0; i < reader->lease_count; i++) {
		if (reader->leases[i].epoch > *ret_epoch)
			*ret_epoch = reader->leases[i].epoch;
	}
	++*ret_epoch;
	return oldest;
}

int mem_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	if (partition_count == db->partition_count)
		return 0;
	for (size_t i = 0; i < db->reader_count; i++) {
		for (size_t n = 0; n < db->readers[i]->lease_count; n++) {
			const struct mem_lease *lease = &db->readers[i]->leases[n];

			if (lease->owned && lease->until_us > mem_now(db))
				return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
						  "a lease is valid: stop all relays first");
		}
	}

	OB_AUTOFREE struct ob_progress *starts = calloc(db->reader_count + 1, sizeof(*starts));
	OB_AUTOFREE uint64_t *epochs = calloc(db->reader_count + 1, sizeof(*epochs));
	for (size_t i = 0; i < db->reader_count; i++) {
		starts[i] = oldest_progress(db, db->readers[i], &epochs[i]);
		mark_done(db, db->readers[i], &starts[i]);
	}
	uint32_t old_count = db->partition_count;
	db->partition_count = partition_count;
	for (size_t i = 0; i < db->row_count; i++)
		db->rows[i]->m.partition = mem_partition(db, &db->rows[i]->m);
	for (size_t i = 0; i < db->reader_count; i++) {
		struct mem_reader *reader = db->readers[i];

		free_journals(reader->journals, (size_t)OB_LANES * old_count);
		reader->journals =
			calloc((size_t)OB_LANES * partition_count, sizeof(*reader->journals));
		for (uint32_t p = 0; p < OB_LANES * partition_count; p++)
			mem_journal_add(db, reader, p, epochs[i], &(struct ob_uuid){ { 0 } },
					&starts[i]);
		ob_progress_done(&starts[i]);
		for (size_t n = 0; n < reader->lease_count; n++) {
			reader->leases[n].owned = false;
			reader->leases[n].epoch = epochs[i];
		}
		for (size_t e = 0; e < reader->exception_count; e++) {
			const struct mem_row *row = mem_row_find(db, reader->exceptions[e].seq);
			if (row)
				reader->exceptions[e].partition = row->m.partition;
		}
		mem_promote_all(db, reader);
		mem_tell(db, reader, OB_MEMDB_MOVED, NULL);
	}
	mem_committed(store);
	return 0;
}

/* What progress does not cover, by ids of the old cluster, becomes an exception by its number. */
static uint64_t except_uncovered(const struct ob_memdb *db, struct mem_reader *reader)
{
	uint64_t made = 0;

	for (size_t i = 0; i < db->row_count; i++) {
		const struct mem_row *row = db->rows[i];

		if (row->writer || strcmp(row->m.target.p, reader->target) != 0 ||
		    mem_exception_find(reader, row->m.seq) || mem_covered(reader, row))
			continue;
		struct mem_exception *e = mem_exception_add(reader, row->m.seq);
		e->partition = row->m.partition;
		e->state = OB_STATE_WAITING;
		e->since_us = mem_now(db);
		if (row->m.key.p)
			mem_exception_set_queue(e, row->m.key);
		else
			e->due_us = mem_now(db);
		made++;
	}
	mem_promote_all(db, reader);
	return made;
}

int mem_adopt(struct ob_store *store, uint64_t *ret_rows, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	uint64_t rows = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	if (db->conf.kind != OB_MEMDB_SNAPSHOT)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "memory store: this kind needs no adopting");
	for (size_t i = 0; i < db->reader_count; i++)
		rows += except_uncovered(db, db->readers[i]);
	for (size_t i = 0; i < db->row_count; i++) {
		if (!db->rows[i]->writer)
			db->rows[i]->txid = 3;
	}
	mem_committed(store);
	int64_t end = mem_end(db);
	struct ob_progress now = { .pos = end, .seen = mem_seen_now(db, end) };
	for (size_t i = 0; i < db->reader_count; i++) {
		struct mem_reader *reader = db->readers[i];

		for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++)
			mem_journal_add(db, reader, p, mem_newest(reader, p)->epoch,
					&(struct ob_uuid){ { 0 } }, &now);
		mem_tell(db, reader, OB_MEMDB_MOVED, NULL);
	}
	ob_progress_done(&now);
	db->foreign = false;
	*ret_rows = rows;
	return 0;
}
