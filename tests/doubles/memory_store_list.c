/* SPDX-License-Identifier: MIT */
/* The memory store: lists, statistics and throughput. */
#include "doubles/memory_store_impl.h"

bool mem_covered(const struct mem_reader *reader, const struct mem_row *row)
{
	return mem_progress_covers(&mem_newest(reader, row->m.partition)->progress, row);
}

/* Without an exception of its own: it waits where its key has one. */
static enum ob_view view_in_log(const struct ob_memdb *db, const struct mem_reader *reader,
				const struct mem_row *row, bool covered)
{
	if (covered)
		return OB_VIEW_PUBLISHED;
	if (row->m.available_at_us > mem_now(db))
		return OB_VIEW_DELAYED;
	if (!reader)
		return OB_VIEW_PENDING;
	if ((row->m.key.p && mem_queue_head(reader, row->m.partition, row->m.key)) ||
	    mem_queue_head(reader, row->m.partition, OB_STR("")))
		return OB_VIEW_PARKED;
	return OB_VIEW_PENDING;
}

enum ob_view mem_view(const struct ob_memdb *db, const struct mem_reader *reader,
		      const struct mem_row *row, bool covered)
{
	const struct mem_exception *e = reader ? mem_exception_find(reader, row->m.seq) : NULL;

	if (!e)
		return view_in_log(db, reader, row, covered);
	switch (e->state) {
	case OB_STATE_FAILED:
		return OB_VIEW_FAILED;
	case OB_STATE_DELAYED:
		return OB_VIEW_DELAYED;
	case OB_STATE_DEAD:
	case OB_STATE_DEAD_HOLD:
		return OB_VIEW_DEAD;
	case OB_STATE_DISCARDED:
		return OB_VIEW_DISCARDED;
	case OB_STATE_DONE:
		return OB_VIEW_PUBLISHED;
	case OB_STATE_WAITING:
	default:
		return e->queue && mem_queue_head(reader, e->partition, ob_str(e->queue)) != e
			       ? OB_VIEW_PARKED
			       : OB_VIEW_PENDING;
	}
}

static bool is_text(const char *wanted, struct ob_str text)
{
	return !wanted || ob_str_eq(ob_str(wanted), text);
}

bool mem_matches(const struct ob_filter *filter, const struct mem_reader *reader,
		 const struct mem_row *row, enum ob_view view)
{
	const struct mem_exception *e = reader ? mem_exception_find(reader, row->m.seq) : NULL;
	const struct ob_message *m = &row->m;

	if (filter->stream &&
	    (!is_text(filter->stream, m->target) || m->sequence_number <= 0 ||
	     (filter->before_version > 0 && m->sequence_number >= filter->before_version)))
		return false;
	if (m->seq < filter->from_seq || (filter->excepted && !e) ||
	    (filter->error && (!e || !e->error || !strstr(e->error, filter->error))))
		return false;
	return is_text(reader ? reader->target : NULL, m->target) && is_text(filter->key, m->key) &&
	       is_text(filter->aggregate_type, m->aggregate_type) &&
	       is_text(filter->aggregate_id, m->aggregate_id) &&
	       is_text(filter->event_type, m->event_type) &&
	       is_text(filter->correlation_id, m->correlation_id) &&
	       (!filter->id || ob_uuid_eq(filter->id, &m->id)) &&
	       (!filter->views || filter->views & 1U << view);
}

/* The time of the first journal row that covers it. */
static int64_t published_at(const struct mem_reader *reader, const struct mem_row *row)
{
	const struct mem_journal *journal = &reader->journals[row->m.partition];

	for (size_t i = 0; i < journal->count; i++) {
		if (mem_progress_covers(&journal->rows[i].progress, row))
			return journal->rows[i].at_us;
	}
	return 0;
}

static void list_row(const struct mem_reader *reader, const struct mem_row *row, enum ob_view view,
		     bool brief, struct ob_batch *batch)
{
	const struct mem_exception *e = reader ? mem_exception_find(reader, row->m.seq) : NULL;
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		abort();
	*to = row->m;
	to->view = view;
	to->payload_bytes = row->m.payload.p ? (int64_t)row->m.payload.n : -1;
	if (brief)
		to->payload = to->headers = to->snapshot = OB_STR_NULL;
	if (view == OB_VIEW_PUBLISHED)
		to->published_at_us = published_at(reader, row);
	if (e) {
		to->excepted = true;
		to->state = (uint8_t)e->state;
		to->attempts = e->attempts;
		to->due_us = e->due_us;
		to->since_us = e->since_us;
		to->last_error = ob_str(e->error);
	}
	if (!ob_batch_own(batch, to))
		abort();
}

int mem_list(struct ob_store *store, const struct ob_filter *filter, struct ob_batch *batch,
	     int64_t *ret_now_us, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader = NULL;
	uint32_t limit = filter->limit ? filter->limit : UINT32_MAX;

	int r = mem_enter(store, &db, err);
	if (r >= 0 && filter->reader)
		r = mem_reader_need(db, filter->reader, &reader, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < db->row_count && batch->count < limit; i++) {
		const struct mem_row *row =
			db->rows[filter->newest_first ? db->row_count - 1 - i : i];
		int64_t seq = row->m.seq;

		if (row->writer ||
		    (filter->after_seq > 0 &&
		     (filter->newest_first ? seq >= filter->after_seq : seq <= filter->after_seq)))
			continue;
		bool covered = reader && mem_covered(reader, row);
		enum ob_view view = mem_view(db, reader, row, covered);
		if (mem_matches(filter, reader, row, view))
			list_row(reader, row, view, filter->brief, batch);
	}
	*ret_now_us = mem_now(db);
	return 0;
}

/* ---- statistics ------------------------------------------------------ */

static void count_row(const struct ob_memdb *db, const struct mem_reader *reader,
		      const struct mem_row *row, uint64_t cap, struct ob_stats *stats)
{
	enum ob_view view = mem_view(db, reader, row, mem_covered(reader, row));
	const struct mem_exception *e = mem_exception_find(reader, row->m.seq);
	bool waits = view == OB_VIEW_PENDING || view == OB_VIEW_PARKED ||
		     (view == OB_VIEW_FAILED && e->due_us <= mem_now(db));

	if (view == OB_VIEW_PUBLISHED)
		return;
	if (cap > 0 && stats->count[view] == cap)
		stats->capped[view] = true;
	else
		stats->count[view]++;
	if (waits && (stats->oldest_due_us == 0 || row->m.created_at_us < stats->oldest_due_us))
		stats->oldest_due_us = row->m.created_at_us;
}

static uint64_t count_held(const struct mem_reader *reader, uint64_t cap)
{
	uint64_t held = 0;

	for (size_t i = 0; i < reader->exception_count; i++) {
		const struct mem_exception *e = &reader->exceptions[i];
		bool holds = e->state == OB_STATE_FAILED || e->state == OB_STATE_DELAYED ||
			     e->state == OB_STATE_DEAD_HOLD;

		if (holds && e->queue &&
		    mem_queue_head(reader, e->partition, ob_str(e->queue)) == e)
			held++;
	}
	return cap > 0 && held > cap ? cap : held;
}

int mem_stats(struct ob_store *store, const char *name, uint64_t cap, struct ob_arena *arena,
	      struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
	      struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	struct ob_stats *stats = mem_alloc(arena, db->reader_count, sizeof(*stats));
	for (size_t i = 0; i < db->reader_count; i++) {
		const struct mem_reader *reader = db->readers[i];
		struct ob_stats *s = &stats[count];

		if (name && strcmp(reader->name, name) != 0)
			continue;
		s->reader = mem_copy(arena, reader->name);
		s->target = mem_copy(arena, reader->target);
		s->held_keys = count_held(reader, cap);
		for (size_t row = 0; row < db->row_count; row++) {
			if (!db->rows[row]->writer &&
			    is_text(reader->target, db->rows[row]->m.target))
				count_row(db, reader, db->rows[row], cap, s);
		}
		count++;
	}
	*ret_stats = stats;
	*ret_count = count;
	*ret_now_us = mem_now(db);
	return 0;
}

int mem_throughput(struct ob_store *store, const char *name, uint32_t minutes,
		   struct ob_arena *arena, struct ob_minute **ret_minutes, size_t *ret_count,
		   struct ob_err *err)
{
	const int64_t minute_us = INT64_C(60000000);
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	int64_t first = mem_now(db) / minute_us * minute_us - ((int64_t)minutes - 1) * minute_us;
	struct ob_minute *list = mem_alloc(arena, db->minute_count, sizeof(*list));
	for (size_t i = 0; i < db->minute_count; i++) {
		const struct mem_minute *from = &db->minutes[i];

		if ((name && strcmp(from->reader, name) != 0) || from->minute.minute_us < first)
			continue;
		if (count == 0 || list[count - 1].minute_us != from->minute.minute_us)
			list[count++] = (struct ob_minute){ .minute_us = from->minute.minute_us };
		list[count - 1].published += from->minute.published;
		list[count - 1].failed += from->minute.failed;
	}
	*ret_minutes = list;
	*ret_count = count;
	return 0;
}
