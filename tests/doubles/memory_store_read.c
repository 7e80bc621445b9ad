/* SPDX-License-Identifier: MIT */
/* The memory store: one read. All of it happens at one moment, which is its snapshot. */
#include "doubles/memory_store_impl.h"

/* A partition of the read. */
struct mem_part {
	struct ob_cover from;
	bool late_left; /* some of its late rows did not fit */
	bool no_next;   /* it works off a late transaction that was too large */
};

struct mem_reading {
	const struct ob_memdb *db;
	const struct mem_reader *reader;
	struct ob_read *read;
	struct ob_batch *batch;
	struct mem_part *parts;
	uint32_t messages_left;
	bool full;    /* a message did not fit: the walk ends before it */
	int64_t last; /* the last number that the walk passed */
};

/* One message always fits. */
static bool fits(const struct mem_reading *r, const struct mem_row *row)
{
	size_t size = row->m.payload.n + row->m.headers.n;

	return r->batch->count == 0 || r->batch->bytes + size <= r->read->max_bytes;
}

static struct ob_message *emit(struct mem_reading *r, const struct mem_row *row)
{
	struct ob_message *to = ob_batch_add(r->batch);

	if (!to)
		abort();
	*to = row->m;
	to->partition_key = to->snapshot = OB_STR_NULL;
	to->txid = r->db->conf.kind == OB_MEMDB_SNAPSHOT ? row->txid : 0;
	if (!ob_batch_own(r->batch, to))
		abort();
	return to;
}

/* ---- exceptions ------------------------------------------------------ */

static bool may_be_sent(const struct mem_exception *e, int64_t now)
{
	bool sendable = e->state == OB_STATE_WAITING || e->state == OB_STATE_FAILED ||
			e->state == OB_STATE_DELAYED;

	return sendable && e->due_us > 0 && e->due_us <= now;
}

/* What is read together with the head before it. */
static bool may_follow(const struct mem_exception *e, int64_t now)
{
	return e->state == OB_STATE_WAITING ||
	       (e->state == OB_STATE_DELAYED && e->due_us > 0 && e->due_us <= now);
}

/* False: there is no room for it. */
static bool emit_exception(struct mem_reading *r, const struct mem_exception *e)
{
	const struct mem_row *row = mem_row_find(r->db, e->seq);

	if (r->batch->count == r->read->exception_limit || (row && !fits(r, row)))
		return false;
	if (!row)
		return true;
	struct ob_message *to = emit(r, row);
	to->excepted = true;
	to->state = (uint8_t)e->state;
	to->attempts = e->attempts;
	if (!ob_arena_copy(&r->batch->arena, ob_str(e->queue), &to->queue))
		abort();
	return true;
}

static bool same_queue(const struct mem_exception *a, const struct mem_exception *b)
{
	return a->queue && b->queue && a->partition == b->partition &&
	       strcmp(a->queue, b->queue) == 0;
}

/* A head and what directly follows it. False: there is more than fits. */
static bool read_queue(struct mem_reading *r, size_t head, int64_t now)
{
	const struct mem_exception *all = r->reader->exceptions;

	if (!emit_exception(r, &all[head]))
		return false;
	for (size_t i = head + 1; i < r->reader->exception_count; i++) {
		if (!same_queue(&all[head], &all[i]))
			continue;
		if (!may_follow(&all[i], now) || ob_read_excludes(r->read, all[i].seq))
			return true;
		if (!emit_exception(r, &all[i]))
			return false;
	}
	return true;
}

/* True: there are more. */
static bool read_exceptions(struct mem_reading *r)
{
	int64_t now = mem_now(r->db);

	for (size_t i = 0; i < r->reader->exception_count; i++) {
		const struct mem_exception *e = &r->reader->exceptions[i];

		if (ob_read_find(r->read, e->partition) < 0 || !may_be_sent(e, now) ||
		    ob_read_excludes(r->read, e->seq))
			continue;
		if (e->queue && mem_queue_head(r->reader, e->partition, ob_str(e->queue)) != e)
			continue;
		if (!read_queue(r, i, now))
			return true;
	}
	return false;
}

/* ---- the log --------------------------------------------------------- */

/* Is it there, and has the reader not had it, although it has passed its number? */
static bool is_late(const struct mem_part *part, const struct mem_row *row)
{
	const struct ob_cover *from = &part->from;

	if (row->m.seq > from->pos || ob_cover_seen(&part->from, row->m.seq, row->txid))
		return false;
	return !part->no_next ||
	       (row->m.seq > from->late_pos && ob_cover_late_seen(&part->from, row->txid));
}

static bool is_held(const struct mem_reading *r, const struct ob_message *m)
{
	const struct ob_decide by = { .ordering = r->read->ordering };
	struct ob_str queue = ob_exception_queue(&by, m);

	return queue.p && mem_queue_head(r->reader, m->partition, queue);
}

/* The partition of a row that this read may return, or NULL. */
static struct mem_part *part_of(const struct mem_reading *r, const struct mem_row *row)
{
	int at = ob_read_find(r->read, row->m.partition);

	if (row->writer || at < 0 || strcmp(row->m.target.p, r->read->target) != 0)
		return NULL;
	if (r->read->end_seq > 0 && row->m.seq > r->read->end_seq)
		return NULL;
	return &r->parts[at];
}

/* False: it does not fit, and the walk ends. */
static bool take_row(struct mem_reading *r, const struct mem_row *row)
{
	if (mem_exception_find(r->reader, row->m.seq))
		return true; /* it is dealt with there */
	if (r->messages_left == 0 || !fits(r, row)) {
		r->full = true;
		return false;
	}
	r->messages_left--;
	struct ob_message *to = emit(r, row);
	to->held = is_held(r, to);
	to->delayed = to->available_at_us > mem_now(r->db);
	return true;
}

static void walk_late(struct mem_reading *r)
{
	r->last = 0;
	for (size_t i = 0; i < r->db->row_count; i++) {
		const struct mem_row *row = r->db->rows[i];
		struct mem_part *part = part_of(r, row);

		if (!part || !is_late(part, row))
			continue;
		if (r->full || !take_row(r, row))
			part->late_left = true;
		else
			r->last = row->m.seq;
	}
}

static void walk_next(struct mem_reading *r)
{
	int64_t end = r->read->end_seq > 0 ? r->read->end_seq : INT64_MAX;

	r->last = 0;
	for (size_t i = 0; i < r->db->row_count && r->db->rows[i]->m.seq <= end; i++) {
		const struct mem_row *row = r->db->rows[i];
		const struct mem_part *part = part_of(r, row);

		if (row->writer)
			continue;
		if (part && !part->no_next && !part->late_left && row->m.seq > part->from.pos &&
		    !take_row(r, row))
			return;
		r->last = row->m.seq;
	}
	if (r->read->end_seq > 0 && r->read->end_seq <= mem_end(r->db))
		r->last = r->read->end_seq;
}

/* ---- progress -------------------------------------------------------- */

/*
 * The gaps at `pos`: numbers of transactions that are open, and late rows of ours that did not fit.
 * What was a gap, is there now and belongs to others is none any more.
 */
static struct ob_seen *gaps_after(const struct mem_reading *r, const struct mem_part *part,
				  uint32_t partition, int64_t pos, int64_t late_done)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(1 << 20);
	struct ob_gaps gaps = { 0 };

	for (size_t i = 0; i < r->db->row_count && r->db->rows[i]->m.seq <= pos; i++) {
		const struct mem_row *row = r->db->rows[i];
		bool was_gap = row->m.seq > part->from.pos ||
			       !ob_cover_seen(&part->from, row->m.seq, row->txid);
		bool left =
			part->late_left && row->m.partition == partition && row->m.seq > late_done;

		if (was_gap && (row->writer || left) && !ob_gaps_add(&gaps, row->m.seq, row->m.seq))
			abort();
	}
	ob_gaps_format(&gaps, &text);
	ob_gaps_done(&gaps);
	return text.len > 0 ? ob_seen_new(ob_buf_view(&text)) : NULL;
}

/* What holds when everything that was returned of the partition has an outcome. */
static void set_after(const struct mem_reading *r, size_t at, int64_t late_done, int64_t end,
		      struct ob_seen *now)
{
	const struct mem_part *part = &r->parts[at];
	struct ob_read_part *to = &r->read->parts[at];
	struct ob_progress after = { .pos = to->from.pos };

	if (!part->late_left && !part->no_next && end > after.pos)
		after.pos = end;
	if (r->db->conf.kind == OB_MEMDB_GAPS) {
		after.seen = gaps_after(r, part, to->partition, after.pos, late_done);
	} else if (part->late_left) {
		/* Two steps of a staircase: the rest is what the newer one shows above late_pos. */
		after.seen = ob_seen_ref(to->from.seen);
		after.late_seen = ob_seen_ref(to->from.late_seen ? to->from.late_seen : now);
		after.late_pos = to->from.late_pos;
		if (!to->from.late_seen || late_done > after.late_pos)
			after.late_pos = late_done;
	} else {
		after.seen = ob_seen_ref(part->no_next ? to->from.late_seen : now);
	}
	to->after = after;
	to->reached = !ob_progress_equal(&to->after, &to->from);
}

static void read_log(struct mem_reading *r, struct ob_read_done *done)
{
	for (size_t i = 0; i < r->read->part_count; i++) {
		(void)ob_cover_open(&r->parts[i].from, &r->read->parts[i].from);
		r->parts[i].no_next = r->read->parts[i].from.late_seen != NULL;
		done->more = done->more || r->parts[i].no_next;
	}
	r->messages_left = r->read->limit;
	walk_late(r);

	int64_t late_done = r->last, end = 0;
	if (!r->full) {
		walk_next(r);
		end = r->last;
	}
	done->more = done->more || r->full;
	struct ob_seen *now = r->db->conf.kind == OB_MEMDB_SNAPSHOT ? mem_seen_now(r->db, 0) : NULL;
	for (size_t i = 0; i < r->read->part_count; i++) {
		set_after(r, i, late_done, end, now);
		ob_cover_close(&r->parts[i].from);
	}
	ob_seen_unref(now);
}

int mem_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
	     struct ob_read_done *ret_done, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	OB_AUTOFREE struct mem_part *parts = calloc(read->part_count, sizeof(*parts));
	struct mem_reader *reader;

	int r = mem_enter(store, &db, err);
	if (r >= 0)
		r = mem_reader_need(db, read->reader, &reader, err);
	if (r < 0)
		return r;
	struct mem_reading reading = {
		.db = db, .reader = reader, .read = read, .batch = batch, .parts = parts
	};
	ret_done->more_exceptions = read->exception_limit > 0 && read_exceptions(&reading);
	if (read->limit > 0) {
		read_log(&reading, ret_done);
		return 0;
	}
	for (size_t i = 0; i < read->part_count; i++) {
		read->parts[i].after = (struct ob_progress){ 0 };
		ob_progress_set(&read->parts[i].after, &read->parts[i].from);
		read->parts[i].reached = false;
	}
	return 0;
}
