/* SPDX-License-Identifier: MIT */
/* The memory store: retention. */
#include "base/opt.h"
#include "doubles/memory_store_impl.h"
#include "log/retention.h"

static const int64_t minute_us = INT64_C(60000000), hour_us = INT64_C(3600000000);

/* Is it as old as that? */
static bool is_old(const struct ob_memdb *db, int64_t at_us, int64_t age_ms)
{
	return age_ms != OB_NEVER_MS && mem_after(at_us, age_ms) <= mem_now(db);
}

/* The newest journal row that is old enough; NULL: none is. */
static const struct mem_batch *batch_at(const struct ob_memdb *db,
					const struct mem_journal *journal, int64_t age_ms)
{
	for (size_t i = journal->count; i-- > 0;) {
		if (is_old(db, journal->rows[i].at_us, age_ms))
			return &journal->rows[i];
	}
	return NULL;
}

/* False: nothing may go. */
static bool find_bound(const struct ob_memdb *db, int64_t age_ms, struct ob_retain_bound *bound)
{
	for (size_t i = 0; i < db->reader_count; i++) {
		for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
			const struct mem_batch *batch =
				batch_at(db, &db->readers[i]->journals[p], age_ms);

			if (!batch || !ob_retain_add(bound, &batch->progress,
						     db->conf.kind == OB_MEMDB_SNAPSHOT))
				return false;
		}
	}
	return true;
}

static bool is_excepted(const struct ob_memdb *db, int64_t seq)
{
	for (size_t i = 0; i < db->reader_count; i++) {
		if (mem_exception_find(db->readers[i], seq))
			return true;
	}
	return false;
}

static bool is_asked(const struct ob_retain *retain, int64_t seq)
{
	for (size_t i = 0; i < retain->only_count; i++) {
		if (retain->only[i] == seq)
			return true;
	}
	return !retain->only;
}

static void remove_rows(struct ob_memdb *db, const struct ob_retain *retain,
			struct ob_retained *done)
{
	struct ob_retain_bound bound;
	size_t kept = 0;

	ob_retain_init(&bound);
	bool any = find_bound(db, retain->published_ms, &bound);
	for (size_t i = 0; i < db->row_count; i++) {
		struct mem_row *row = db->rows[i];
		bool may_go = any && !row->writer &&
			      ob_retain_may_go(&bound, row->m.seq, row->txid) &&
			      !is_excepted(db, row->m.seq) && is_asked(retain, row->m.seq);

		if (may_go && done->rows < retain->limit) {
			mem_tell_row(db, row, OB_MEMDB_RETAINED);
			mem_row_free(row);
			done->rows++;
		} else {
			done->more = done->more || (may_go && retain->limit > 0);
			db->rows[kept++] = row;
		}
	}
	db->row_count = kept;
	ob_retain_done(&bound);
}

/* The newest stays, what bounds retention stays, and of the young the last of each minute. */
static void prune_journal(const struct ob_memdb *db, struct mem_journal *journal, int64_t age_ms)
{
	const struct mem_batch *bound = batch_at(db, journal, age_ms);
	uint64_t bound_batch = bound ? bound->batch : 0;
	size_t kept = 0;

	for (size_t i = 0; i < journal->count; i++) {
		struct mem_batch *row = &journal->rows[i];
		bool newest = i + 1 == journal->count;
		bool last = newest || row[0].at_us / minute_us != row[1].at_us / minute_us;
		bool young = !is_old(db, row->at_us, age_ms);

		if (newest || (bound && row->batch == bound_batch) || (young && last))
			journal->rows[kept++] = *row;
		else
			ob_progress_done(&row->progress);
	}
	journal->count = kept;
}

static void forget_exceptions(const struct ob_memdb *db, struct mem_reader *reader,
			      const struct ob_retain *retain, struct ob_retained *done)
{
	for (size_t i = reader->exception_count; i-- > 0;) {
		const struct mem_exception *e = &reader->exceptions[i];
		const struct mem_row *row = mem_row_find(db, e->seq);
		bool dead = e->state == OB_STATE_DEAD && is_old(db, e->since_us, retain->dead_ms);
		bool discarded = e->state == OB_STATE_DISCARDED &&
				 is_old(db, e->since_us, retain->published_ms);

		/* Of a row that is still ahead it says that it is not to be delivered. */
		if ((row && !mem_covered(reader, row)) ||
		    !(dead || discarded || e->state == OB_STATE_DONE))
			continue;
		done->dead += dead;
		mem_exception_remove(reader, e->seq);
	}
}

/* The reader that has most of the old rows before it. */
static void find_holder(const struct ob_memdb *db, int64_t age_ms, struct ob_arena *arena,
			struct ob_retained *done)
{
	size_t most = 0;

	for (size_t i = 0; i < db->reader_count; i++) {
		const struct mem_reader *reader = db->readers[i];
		size_t held = 0;
		int64_t moved = 0;

		for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
			if (mem_newest(reader, p)->at_us > moved)
				moved = mem_newest(reader, p)->at_us;
		}
		for (size_t row = 0; row < db->row_count; row++)
			held += !db->rows[row]->writer &&
				is_old(db, db->rows[row]->m.created_at_us, age_ms) &&
				!mem_covered(reader, db->rows[row]);
		if (held <= most)
			continue;
		most = held;
		done->held_by = mem_copy(arena, reader->name);
		done->held_us = moved;
	}
}

static bool has_ended(const struct ob_memdb *db, const struct mem_reader *reader)
{
	int64_t last = reader->created_us;

	for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++) {
		if (mem_newest(reader, p)->at_us > last)
			last = mem_newest(reader, p)->at_us;
	}
	for (size_t i = 0; i < db->worker_count; i++) {
		if (strcmp(db->workers[i].reader, reader->name) == 0 &&
		    db->workers[i].until_us > last)
			last = db->workers[i].until_us;
	}
	return reader->temporary && last + hour_us < mem_now(db);
}

static void prune_minutes(struct ob_memdb *db)
{
	size_t kept = 0;

	for (size_t i = 0; i < db->minute_count; i++) {
		if (db->minutes[i].minute.minute_us + 25 * hour_us < mem_now(db))
			free(db->minutes[i].reader);
		else
			db->minutes[kept++] = db->minutes[i];
	}
	db->minute_count = kept;
}

int mem_retain(struct ob_store *store, const struct ob_retain *retain, struct ob_arena *arena,
	       struct ob_retained *ret_done, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct ob_retained done = { .held_by = OB_STR("") };

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	for (size_t i = db->reader_count; i-- > 0;) {
		if (has_ended(db, db->readers[i]))
			mem_reader_drop(db, db->readers[i]->name);
	}
	for (size_t i = 0; i < db->reader_count; i++) {
		forget_exceptions(db, db->readers[i], retain, &done);
		mem_tell(db, db->readers[i], OB_MEMDB_RETAINED, NULL);
	}
	remove_rows(db, retain, &done);
	for (size_t i = 0; i < db->reader_count; i++) {
		for (uint32_t p = 0; p < OB_LANES * db->partition_count; p++)
			prune_journal(db, &db->readers[i]->journals[p], retain->published_ms);
	}
	prune_minutes(db);
	mem_audit_prune(db, false);
	if (retain->published_ms != OB_NEVER_MS)
		find_holder(db, retain->published_ms, arena, &done);
	mem_committed(store);
	*ret_done = done;
	return 0;
}
