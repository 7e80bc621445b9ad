/* SPDX-License-Identifier: MIT */
/*
 * The SQLite store: reading. One writer at a time means that numbers are the order of commits, so
 * everything up to a position was there when the reader passed it: nothing is ever late.
 */
#include "store/share.h"
#include "store/sql/message.h"
#include "store/sqlite/driver.h"
#include "store/sqlite/row.h"
#include "store/sqlite/stmt.h"

#include <inttypes.h>

enum {
	NUMBERS = OB_PARTITIONS_MAX * OB_LANES,
	/* One read walks so many numbers at most, of whatever target: it stays short. */
	WALK_MAX = 1 << 18,
};

/* What is known of a partition's exceptions; asked for when its first row is met. */
struct part {
	bool known, queues;
	int64_t next; /* no exception below this number */
};

/* One read while it runs. */
struct reading {
	struct lite_store *s;
	const struct ob_read *read;
	struct ob_batch *batch;
	bool exceptions; /* the reader has any */
	bool full;       /* the next message did not fit */
	struct part *parts;
	uint16_t index[NUMBERS]; /* of a partition in read->parts, plus 1; 0: not wanted */
};

static bool fits(const struct reading *g, sqlite3_stmt *stmt)
{
	size_t left =
		g->batch->bytes < g->read->max_bytes ? g->read->max_bytes - g->batch->bytes : 0;

	return g->batch->count == 0 || lite_row_size(stmt) <= left;
}

/* Bind what most of these statements ask by. */
static int ask(struct reading *g, int id, uint32_t partition, int64_t seq, struct ob_str queue,
	       struct ob_err *err)
{
	return lite_bind(g->s, id,
			 OB_ARGS(OB_ARG_TEXT("reader", g->read->reader),
				 OB_ARG_INT("partition", partition), OB_ARG_INT("seq", seq),
				 OB_ARG_STR("queue", queue)),
			 err);
}

/* ---- exceptions that are due ----------------------------------------- */

/* Load the message of an exception; it may be gone, by someone's hand. */
static int add_excepted(struct reading *g, int64_t seq, enum ob_state state, uint32_t attempts,
			struct ob_str queue, struct ob_err *err)
{
	struct ob_message *m;
	int r = lite_bind(g->s, LITE_load, OB_ARGS(OB_ARG_INT("seq", seq)), err);

	if (r == 0)
		r = lite_step(g->s, LITE_load, err);
	if (r <= 0)
		return r;
	g->full = !fits(g, g->s->stmt[LITE_load]);
	r = g->full ? 0 : lite_row_add(g->s, g->s->stmt[LITE_load], g->batch, &m, err);
	lite_reset(g->s, LITE_load);
	if (r < 0 || g->full)
		return r;
	m->excepted = true;
	m->state = (uint8_t)state;
	m->attempts = attempts;
	return ob_arena_copy(&g->batch->arena, queue, &m->queue) ? 0 : lite_oom(g->s, err);
}

static bool has_room(const struct reading *g)
{
	return !g->full && g->batch->count < g->read->exception_limit;
}

/* The head and what follows it, up to the first that must wait or is in memory: what comes after
 * that one must not pass it. */
static int add_queue(struct reading *g, uint32_t partition, struct ob_str queue, int64_t head,
		     struct ob_err *err)
{
	int r = ask(g, LITE_queue_rows, partition, head, queue, err);
	sqlite3_stmt *stmt = g->s->stmt[LITE_queue_rows];

	while (r >= 0 && has_room(g) && (r = lite_step(g->s, LITE_queue_rows, err)) > 0) {
		int64_t seq = sqlite3_column_int64(stmt, 0);
		bool ready = seq == head || sqlite3_column_int(stmt, 3);

		if (!ready || ob_read_excludes(g->read, seq))
			break;
		r = add_excepted(g, seq, (enum ob_state)sqlite3_column_int(stmt, 1),
				 (uint32_t)sqlite3_column_int64(stmt, 2), queue, err);
	}
	lite_reset(g->s, LITE_queue_rows);
	return r < 0 ? r : 0;
}

static int add_due_of(struct reading *g, uint32_t partition, struct ob_err *err)
{
	int r = ask(g, LITE_due, partition, 0, OB_STR_NULL, err);
	sqlite3_stmt *stmt = g->s->stmt[LITE_due];

	while (r >= 0 && has_room(g) && (r = lite_step(g->s, LITE_due, err)) > 0) {
		int64_t seq = sqlite3_column_int64(stmt, 0);
		struct ob_str queue = lite_str(stmt, 3);

		if (queue.p)
			r = add_queue(g, partition, queue, seq, err);
		else if (!ob_read_excludes(g->read, seq))
			r = add_excepted(g, seq, (enum ob_state)sqlite3_column_int(stmt, 1),
					 (uint32_t)sqlite3_column_int64(stmt, 2), OB_STR_NULL, err);
	}
	lite_reset(g->s, LITE_due);
	return r < 0 ? r : 0;
}

/* Every read begins with another partition, so that one with many does not starve the others. */
static int add_due(struct reading *g, struct ob_err *err)
{
	size_t count = g->read->part_count, first = g->s->turn++;
	int r = 0;

	for (size_t i = 0; i < count && has_room(g) && r == 0; i++)
		r = add_due_of(g, g->read->parts[(first + i) % count].partition, err);
	return r;
}

/* ---- the log --------------------------------------------------------- */

/* One number; 0 when there is none. */
static int ask_value(struct reading *g, int id, uint32_t partition, int64_t seq,
		     struct ob_str queue, int64_t *ret_value, struct ob_err *err)
{
	return lite_value(g->s, id,
			  OB_ARGS(OB_ARG_TEXT("reader", g->read->reader),
				  OB_ARG_INT("partition", partition), OB_ARG_INT("seq", seq),
				  OB_ARG_STR("queue", queue)),
			  ret_value, err);
}

static int next_exception(struct reading *g, uint32_t partition, int64_t seq, int64_t *ret_next,
			  struct ob_err *err)
{
	int r = ask_value(g, LITE_next_exception, partition, seq, OB_STR_NULL, ret_next, err);

	if (r == 0)
		*ret_next = INT64_MAX;
	return r < 0 ? r : 0;
}

static int know_part(struct reading *g, struct part *part, uint32_t partition, int64_t seq,
		     struct ob_err *err)
{
	int64_t any = 0;
	int r = next_exception(g, partition, seq, &part->next, err);

	if (r == 0)
		r = ask_value(g, LITE_any_queue, partition, 0, OB_STR_NULL, &any, err);
	part->known = true;
	part->queues = any != 0;
	return r < 0 ? r : 0;
}

/* Is there an exception in the queue that the message belongs to? */
static int find_held(struct reading *g, struct ob_message *m, struct ob_err *err)
{
	const struct ob_decide decide = { .ordering = g->read->ordering };
	struct ob_str queue = ob_exception_queue(&decide, m);
	int64_t held = 0;
	int r = queue.p ? ask_value(g, LITE_in_queue, m->partition, 0, queue, &held, err) : 0;

	m->held = held != 0;
	return r < 0 ? r : 0;
}

/* 1: the row has an exception of its own, which says what becomes of it. */
static int is_excepted(struct reading *g, struct part *part, uint32_t partition, int64_t seq,
		       struct ob_err *err)
{
	int r = 0;

	if (!part->known)
		r = know_part(g, part, partition, seq, err);
	else if (part->next < seq)
		r = next_exception(g, partition, seq, &part->next, err);
	return r < 0 ? r : part->next == seq;
}

/* The walk's row, if it is one of ours. */
static int add_row(struct reading *g, sqlite3_stmt *stmt, int64_t seq, struct ob_err *err)
{
	int64_t partition = sqlite3_column_int64(stmt, OB_SQL_COL_partition);
	uint16_t at = partition < NUMBERS ? g->index[partition] : 0;
	struct part *part = at ? &g->parts[at - 1] : NULL;
	struct ob_message *m;
	int r = 0;

	if (!at || seq <= g->read->parts[at - 1].from.pos)
		return 0;
	if (g->exceptions)
		r = is_excepted(g, part, (uint32_t)partition, seq, err);
	if (r != 0)
		return r < 0 ? r : 0;
	g->full = !fits(g, stmt);
	if (g->full)
		return 0;
	r = lite_row_add(g->s, stmt, g->batch, &m, err);
	if (r < 0)
		return r;
	m->delayed = m->available_at_us > g->s->now;
	return part->queues ? find_held(g, m, err) : 0;
}

/* Walk the log from the lowest position on; *ret_last: all numbers up to it were walked. */
static int walk(struct reading *g, int64_t low, int64_t end, int64_t *ret_last, struct ob_err *err)
{
	uint32_t before = g->batch->count;
	int r = lite_bind(g->s, LITE_walk,
			  OB_ARGS(OB_ARG_INT("pos", low), OB_ARG_INT("end", end),
				  OB_ARG_TEXT("target", g->read->target)),
			  err);
	sqlite3_stmt *stmt = g->s->stmt[LITE_walk];

	*ret_last = end;
	while (r >= 0 && (r = lite_step(g->s, LITE_walk, err)) > 0) {
		int64_t seq = sqlite3_column_int64(stmt, OB_SQL_COL_seq);

		r = add_row(g, stmt, seq, err);
		if (g->full || g->batch->count - before == g->read->limit) {
			*ret_last = g->full ? seq - 1 : seq;
			break;
		}
	}
	lite_reset(g->s, LITE_walk);
	return r < 0 ? r : 0;
}

/*
 * How far the log goes, as this snapshot shows it. A position after that is one of another log:
 * numbers up to it would be passed over.
 */
static int find_end(struct reading *g, int64_t high, int64_t *ret_end, struct ob_err *err)
{
	const char *table = g->s->base.layout->table[OB_TABLE_outbox];
	int r = lite_value(g->s, LITE_end_of_log, OB_ARGS(OB_ARG_TEXT("table", table)), ret_end,
			   err);

	if (r >= 0 && high > *ret_end)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "the numbers of table '%s' begin anew: %" PRId64
				  " was read, and its last is %" PRId64
				  " now; move the reader with `outbox readers seek %s beginning`",
				  table, high, *ret_end, g->read->reader);
	if (g->read->end_seq > 0 && *ret_end > g->read->end_seq)
		*ret_end = g->read->end_seq;
	return r < 0 ? r : 0;
}

static int read_log(struct reading *g, bool *ret_more, struct ob_err *err)
{
	const struct ob_read *read = g->read;
	int64_t low = INT64_MAX, high = 0, end = 0, last = 0;

	for (size_t i = 0; i < read->part_count; i++) {
		int64_t pos = read->parts[i].from.pos;

		low = pos < low ? pos : low;
		high = pos > high ? pos : high;
	}
	int r = find_end(g, high, &end, err);
	if (r == 0 && low < end)
		r = walk(g, low, end - low <= WALK_MAX ? end : low + WALK_MAX, &last, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < read->part_count; i++) {
		struct ob_read_part *part = &read->parts[i];

		if (part->after.pos < last)
			part->after.pos = last;
		part->reached = part->after.pos != part->from.pos;
	}
	*ret_more = low < end && last < end;
	return 0;
}

static int read_all(struct reading *g, struct ob_read_done *ret_done, struct ob_err *err)
{
	const struct ob_read *read = g->read;
	int64_t any = 0;
	/* Nothing is asked about exceptions where there are none. */
	int r = ask_value(g, LITE_any_exception, 0, 0, OB_STR_NULL, &any, err);

	g->exceptions = any != 0;
	if (r >= 0 && g->exceptions && read->exception_limit)
		r = add_due(g, err);
	if (r < 0)
		return r;
	ret_done->more_exceptions = g->exceptions && read->exception_limit && !has_room(g);
	ret_done->more = g->full;
	return g->full || !read->limit ? 0 : read_log(g, &ret_done->more, err);
}

int lite_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
	      struct ob_read_done *ret_done, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct reading g = { .s = s, .read = read, .batch = batch };
	struct ob_read_done done = { false, false };

	s->doing = "reading the log";
	g.parts = ob_arena_alloc(&batch->arena, read->part_count * sizeof(*g.parts));
	if (!g.parts)
		return lite_oom(s, err);
	for (size_t i = 0; i < read->part_count; i++) {
		read->parts[i].after = (struct ob_progress){ .pos = read->parts[i].from.pos };
		read->parts[i].reached = false;
		if (read->parts[i].partition < NUMBERS)
			g.index[read->parts[i].partition] = (uint16_t)(i + 1);
	}
	int r = lite_begin_read(s, "reading the log", err);
	if (r == 0)
		r = lite_end_read(s, read_all(&g, &done, err), err);
	if (r < 0)
		return r;
	*ret_done = done;
	return 0;
}
