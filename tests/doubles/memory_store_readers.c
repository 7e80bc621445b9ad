/* SPDX-License-Identifier: MIT */
/* The memory store: readers. */
#include "doubles/memory_store_impl.h"

struct mem_reader *mem_reader_find(const struct ob_memdb *db, const char *name)
{
	for (size_t i = 0; i < db->reader_count; i++) {
		if (strcmp(db->readers[i]->name, name) == 0)
			return db->readers[i];
	}
	return NULL;
}

int mem_reader_need(const struct ob_memdb *db, const char *name, struct mem_reader **ret,
		    struct ob_err *err)
{
	*ret = mem_reader_find(db, name);
	return *ret ? 0
		    : ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "there is no reader '%s'", name);
}

void mem_reader_free(struct mem_reader *reader, uint32_t partition_count)
{
	for (uint32_t p = 0; p < OB_LANES * partition_count; p++) {
		for (size_t i = 0; i < reader->journals[p].count; i++)
			ob_progress_done(&reader->journals[p].rows[i].progress);
		free(reader->journals[p].rows);
	}
	while (reader->exception_count > 0)
		mem_exception_remove(reader, reader->exceptions[reader->exception_count - 1].seq);
	free(reader->exceptions);
	free(reader->journals);
	free(reader->leases);
	free(reader->name);
	free(reader->target);
	free(reader->filter);
	free(reader);
}

void mem_reader_drop(struct ob_memdb *db, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < db->worker_count; i++) {
		if (strcmp(db->workers[i].reader, name) == 0) {
			free(db->workers[i].reader);
			free(db->workers[i].hostname);
			free(db->workers[i].state);
		} else {
			db->workers[kept++] = db->workers[i];
		}
	}
	db->worker_count = kept;
	kept = 0;
	for (size_t i = 0; i < db->reader_count; i++) {
		if (strcmp(db->readers[i]->name, name) == 0)
			mem_reader_free(db->readers[i], db->partition_count);
		else
			db->readers[kept++] = db->readers[i];
	}
	db->reader_count = kept;
}

uint32_t mem_reader_workers(const struct ob_memdb *db, const char *name)
{
	uint32_t count = 0;

	for (size_t i = 0; i < db->worker_count; i++)
		count += strcmp(db->workers[i].reader, name) == 0 &&
			 db->workers[i].until_us > mem_now(db);
	return count;
}

/* ---- places ---------------------------------------------------------- */

static int64_t place_pos(const struct ob_memdb *db, const struct ob_place *place)
{
	switch (place->start) {
	case OB_START_BEGINNING:
		return 0;
	case OB_START_SEQ:
		return place->at - 1;
	case OB_START_TIME:
		for (size_t i = 0; i < db->row_count; i++) {
			if (!db->rows[i]->writer && db->rows[i]->m.created_at_us >= place->at)
				return db->rows[i]->m.seq - 1;
		}
		return mem_end(db);
	case OB_START_END:
	default:
		return mem_end(db);
	}
}

/* What is open now counts as not seen, wherever the place is. */
static struct ob_progress place_progress(const struct ob_memdb *db, const struct ob_place *place)
{
	int64_t pos = place_pos(db, place);

	return (struct ob_progress){ .pos = pos, .seen = mem_seen_now(db, pos) };
}

/* ---- operations ------------------------------------------------------ */

static struct mem_reader *add_reader(struct ob_memdb *db, const struct ob_reader *from)
{
	struct mem_reader *reader = calloc(1, sizeof(*reader));
	size_t at = 0;

	if (!reader)
		abort();
	reader->name = mem_dup(from->name);
	reader->target = mem_dup(from->target);
	reader->filter = mem_dup(from->filter.p ? from->filter : OB_STR(""));
	reader->temporary = from->temporary;
	reader->created_us = mem_now(db);
	reader->journals =
		calloc((size_t)OB_LANES * db->partition_count, sizeof(*reader->journals));
	if (!reader->journals)
		abort();
	db->readers = mem_grow((void *)db->readers, db->reader_count, &db->reader_capacity,
			       sizeof(struct mem_reader *));
	while (at < db->reader_count && strcmp(db->readers[at]->name, reader->name) < 0)
		at++;
	memmove((void *)&db->readers[at + 1], (void *)&db->readers[at],
		(db->reader_count - at) * sizeof(struct mem_reader *));
	db->readers[at] = reader;
	db->reader_count++;
	return reader;
}

int mem_reader_make(struct ob_store *store, const struct ob_reader *reader,
		    const struct ob_place *place, bool *ret_made, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	OB_AUTOFREE char *name = mem_dup(reader->name), *target = mem_dup(reader->target);

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct mem_reader *made = mem_reader_find(db, name);
	*ret_made = !made;
	if (made && strcmp(made->target, target) != 0)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "reader '%s' reads target '%s', not '%s'", name, made->target,
				  target);
	if (made)
		return 0;
	made = add_reader(db, reader);
	struct ob_progress progress = place_progress(db, place);
	for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++)
		mem_journal_add(db, made, p, 0, &(struct ob_uuid){ { 0 } }, &progress);
	ob_progress_done(&progress);
	mem_committed(store);
	return 0;
}

static void describe_reader(const struct ob_memdb *db, const struct mem_reader *from,
			    struct ob_arena *arena, struct ob_reader *to)
{
	*to = (struct ob_reader){
		.name = mem_copy(arena, from->name),
		.target = mem_copy(arena, from->target),
		.filter = mem_copy(arena, from->filter),
		.temporary = from->temporary,
		.created_at_us = from->created_us,
		.low_pos = INT64_MAX,
		.high_pos = INT64_MIN,
		.workers = mem_reader_workers(db, from->name),
	};
	for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
		const struct mem_batch *newest = mem_newest(from, p);

		if (newest->progress.pos < to->low_pos)
			to->low_pos = newest->progress.pos;
		if (newest->progress.pos > to->high_pos)
			to->high_pos = newest->progress.pos;
		if (newest->at_us > to->moved_at_us)
			to->moved_at_us = newest->at_us;
	}
	to->held_seq = to->low_pos + 1;
	for (size_t i = 0; i < from->exception_count && to->exceptions < 10001; i++)
		to->exceptions += from->exceptions[i].state != OB_STATE_DONE &&
				  from->exceptions[i].state != OB_STATE_DISCARDED;
}

int mem_readers(struct ob_store *store, struct ob_arena *arena, struct ob_reader **ret_readers,
		size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	*ret_count = db->reader_count;
	*ret_readers = mem_alloc(arena, db->reader_count, sizeof(**ret_readers));
	for (size_t i = 0; i < db->reader_count; i++)
		describe_reader(db, db->readers[i], arena, &(*ret_readers)[i]);
	return 0;
}

/* The lease of a partition number, or NULL. */
static struct mem_lease *lease_of(const struct ob_memdb *db, struct mem_reader *reader,
				  uint32_t partition)
{
	uint32_t number = partition % db->partition_count;

	return number < reader->lease_count ? &reader->leases[number] : NULL;
}

int mem_reader_seek(struct ob_store *store, const char *name, const struct ob_place *place,
		    struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = mem_enter(store, &db, err);
	if (r >= 0)
		r = mem_reader_need(db, name, &reader, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < reader->lease_count; i++) {
		reader->leases[i].owned = false;
		reader->leases[i].epoch++;
	}
	struct ob_progress progress = place_progress(db, place);
	for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
		const struct mem_lease *lease = lease_of(db, reader, p);

		mem_journal_add(db, reader, p, lease ? lease->epoch : mem_newest(reader, p)->epoch,
				&(struct ob_uuid){ { 0 } }, &progress);
	}
	for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
		struct mem_journal *journal = &reader->journals[p];

		for (size_t i = 0; i + 1 < journal->count; i++)
			ob_progress_done(&journal->rows[i].progress);
		journal->rows[0] = journal->rows[journal->count - 1];
		journal->count = 1;
	}
	for (size_t i = reader->exception_count; i-- > 0;) {
		int64_t seq = reader->exceptions[i].seq;
		const struct mem_row *row = mem_row_find(db, seq);

		if (row && !mem_progress_covers(&progress, row))
			mem_exception_remove(reader, seq);
	}
	mem_promote_all(db, reader);
	mem_tell(db, reader, OB_MEMDB_SOUGHT, NULL);
	ob_progress_done(&progress);
	mem_committed(store);
	return 0;
}

int mem_reader_remove(struct ob_store *store, const char *name, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = mem_enter(store, &db, err);
	if (r >= 0)
		r = mem_reader_need(db, name, &reader, err);
	if (r < 0)
		return r;
	if (mem_reader_workers(db, name) > 0)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "reader '%s' has a worker that runs: stop it first", name);
	mem_reader_drop(db, name);
	mem_committed(store);
	return 0;
}
