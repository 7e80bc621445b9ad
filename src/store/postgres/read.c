/* SPDX-License-Identifier: MIT */
/*
 * Reading the log: one pipeline in one snapshot. Rows come in the order of the contract (due
 * exceptions, late, next); this file decides where they are cut, and what progress holds then.
 */
#include "store/postgres/ops.h"
#include "store/postgres/rows.h"
#include "store/postgres/seen.h"
#include "store/postgres/stmt.h"
#include "store/share.h"

enum {
	WALK_MIN =
		100000, /* numbers that a read walks, so that one without messages of ours ends */
	WALK_FAST_US = 200000, /* a walk that was faster may be longer the next time */
	REWRITTEN_TRIES = 5,   /* reads from a table that was written anew */
};

/* The statements that a read may have, in this order. */
enum { R_SNAPSHOT, R_DUE, R_LATE, R_NEXT, R_END, R_COUNT };

/* Columns after those of a message. */
enum {
	COL_LARGE = OB_SQL_MESSAGE_COLUMNS,
	COL_FLAG,
	DUE_STATE = COL_FLAG,
	DUE_ATTEMPTS,
	DUE_QUEUE,
	DUE_NOW
};

/* COL_FLAG */
enum { FLAG_HELD = 1, FLAG_EXCEPTED };

/* A row that is returned. */
struct picked {
	const PGresult *rows;
	int row;
	bool excepted, large;
};

/* One read while it runs. */
struct reading {
	struct pg_store *s;
	struct ob_read *read;
	struct ob_batch *batch;

	struct ob_read_part **by_partition; /* by number; NULL: not read */
	uint32_t top;                       /* highest partition number + 1 */
	int64_t low, high; /* of the positions: where `next` begins, where `late` ends */
	int64_t late_low;  /* where `late` begins */
	int64_t bound;     /* where the walk of `next` ends */
	bool has_next;     /* some partition has no late part that is worked off */
	PGresult *found[R_COUNT], *large;

	struct picked *picked;
	uint32_t count;
	size_t bytes;
	bool full; /* max_bytes is reached: the read has ended */

	uint32_t from_log; /* of `picked`, those that are no exceptions */
	bool late_full;    /* there may be more that is late */
	bool next_full;    /* there may be more after it */
	bool any_late;     /* a late row was considered; the last of them: */
	int64_t late_last;
	int64_t walked; /* `next` is through up to here */
	int64_t log_end, now_us;
};

static void drop_found(struct reading *g)
{
	for (int i = 0; i < R_COUNT; i++) {
		PQclear(g->found[i]);
		g->found[i] = NULL;
	}
	PQclear(g->large);
	g->large = NULL;
}

/* ---- asking ---------------------------------------------------------- */

static int survey_parts(struct reading *g, struct ob_err *err)
{
	const struct ob_read *read = g->read;

	g->low = g->late_low = INT64_MAX;
	for (size_t i = 0; i < read->part_count; i++) {
		if (read->parts[i].partition >= g->top)
			g->top = read->parts[i].partition + 1;
	}
	g->by_partition = ob_arena_alloc(&g->batch->arena, g->top * sizeof(struct ob_read_part *));
	if (!g->by_partition)
		return pg_oom("reading", err);
	for (size_t i = 0; i < read->part_count; i++) {
		const struct ob_progress *from = &read->parts[i].from;
		int64_t late_from = from->late_seen ? from->late_pos : INT64_MIN;

		g->by_partition[read->parts[i].partition] = &read->parts[i];
		if (from->pos > g->high)
			g->high = from->pos;
		if (late_from < g->late_low)
			g->late_low = late_from;
		if (from->late_seen)
			continue;
		g->has_next = true;
		if (from->pos < g->low)
			g->low = from->pos;
	}
	return 0;
}

/*
 * Where the walk ends. A target or a partition with few rows among many would walk them all in one
 * statement, which may take longer than statements may; so it goes in steps. Numbers are no count
 * of rows: where they are sparse, steps grow. Without a bound when little is left, so that rows
 * above the sequence (it may have been set back) are found.
 */
static void set_bound(struct reading *g)
{
	struct pg_store *s = g->s;
	int64_t end = g->read->end_seq > 0 ? g->read->end_seq : INT64_MAX;

	if (s->walk < WALK_MIN)
		s->walk = WALK_MIN;
	g->bound = end;
	if (g->has_next && s->log_end - s->walk > g->low && g->low + s->walk < end)
		g->bound = g->low + s->walk;
}

static int64_t large_size(const struct ob_read *read)
{
	uint64_t rows = (uint64_t)read->limit + read->exception_limit;

	/* All that are not large fit together. */
	return read->max_bytes < INT64_MAX ? (int64_t)(read->max_bytes / rows) : INT64_MAX;
}

static int add_due(struct reading *g, struct ob_err *err)
{
	const struct ob_read *read = g->read;
	struct pg_params p = { 0 };

	pg_text(&p, read->reader);
	struct ob_pgarray *parts = pg_ints(&p), *exclude = pg_ints(&p);
	for (size_t i = 0; i < read->part_count; i++)
		ob_pgarray_int(parts, read->parts[i].partition);
	for (size_t i = 0; i < read->exclude_count; i++)
		ob_pgarray_int(exclude, read->exclude[i]);
	pg_int(&p, read->exception_limit);
	pg_int(&p, large_size(read));
	return pg_add(g->s, PG_due, &p, err);
}

/* The first parameters of `late` and `next`; positions of partitions that are not to be read:
 * `other`.
 */
static void put_common(const struct reading *g, struct pg_params *p, bool next)
{
	int64_t other = next ? INT64_MAX : INT64_MIN;

	pg_text(p, g->read->reader);
	pg_text(p, g->read->target);
	struct ob_pgarray *positions = pg_ints(p);
	for (uint32_t i = 0; i < g->top; i++) {
		const struct ob_read_part *part = g->by_partition[i];
		bool read = part && !(next && part->from.late_seen);

		ob_pgarray_int(positions, read ? part->from.pos : other);
	}
	pg_int(p, g->read->limit);
	pg_int(p, large_size(g->read));
	pg_int(p, g->read->ordering);
}

static int add_late(struct reading *g, struct ob_err *err)
{
	static const struct ob_progress none;
	struct pg_params p = { 0 };
	struct pg_seen all;

	if (!pg_seen_begin(&all, 2 * g->read->part_count))
		return pg_oom("reading", err);
	put_common(g, &p, false);
	struct ob_pgarray *seen = pg_ints(&p), *late = pg_ints(&p), *through = pg_ints(&p);
	for (uint32_t i = 0; i < g->top; i++) {
		const struct ob_read_part *part = g->by_partition[i];
		const struct ob_progress *from = part ? &part->from : &none;

		ob_pgarray_int(seen, pg_seen_place(&all, from->seen));
		ob_pgarray_int(late, pg_seen_place(&all, from->late_seen));
		ob_pgarray_int(through, from->late_seen ? from->late_pos : INT64_MIN);
	}
	pg_literal(&p, pg_seen_end(&all));
	pg_int(&p, g->high);
	pg_int(&p, g->late_low);
	int r = pg_add(g->s, PG_late, &p, err);
	pg_seen_done(&all);
	return r;
}

static int add_next(struct reading *g, struct ob_err *err)
{
	struct pg_params p = { 0 };

	put_common(g, &p, true);
	pg_int(&p, g->low);
	pg_int(&p, g->bound);
	return pg_add(g->s, PG_next, &p, err);
}

static int add_end(struct pg_store *s, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_int(&p, s->sequence);
	return pg_add(s, PG_log_end, &p, err);
}

/* How long the log is, before the first walk of it on this connection. */
static int learn_end(struct pg_store *s, struct ob_err *err)
{
	int r = pg_ready(s, err);

	if (r < 0 || s->sequence)
		return r;
	r = pg_run_one(s, PG_sequence, NULL, err);
	if (r < 0)
		return r;
	s->sequence = pg_get_int(s->results[0], 0, 0);
	r = pg_begin_batch(s, true, err);
	if (r == 0)
		r = pg_finish(s, add_end(s, err), err);
	if (r == 0)
		s->log_end = pg_get_int(s->results[0], 0, 0);
	return r;
}

static int add_statements(struct reading *g, bool asked[R_COUNT], struct ob_err *err)
{
	bool log = g->read->limit > 0;
	struct pg_params reader = { 0 };

	pg_text(&reader, g->read->reader);
	asked[R_SNAPSHOT] = asked[R_END] = true;
	asked[R_DUE] = g->read->exception_limit > 0 && g->s->has_due;
	asked[R_LATE] = log && g->high > 0;
	asked[R_NEXT] = log && g->has_next;
	int r = pg_add(g->s, PG_snapshot, &reader, err);
	if (r == 0 && asked[R_DUE])
		r = add_due(g, err);
	if (r == 0 && asked[R_LATE])
		r = add_late(g, err);
	if (r == 0 && asked[R_NEXT])
		r = add_next(g, err);
	return r < 0 ? r : add_end(g->s, err);
}

/*
 * Ask; *ret_again: it must be asked again. A table was written anew behind the snapshot's back; or
 * there are exceptions, mostly there are none, and asking whether there are costs less than asking
 * for them.
 */
static int ask(struct reading *g, bool *ret_again, struct ob_err *err)
{
	bool asked[R_COUNT] = { false };
	int r = pg_begin_snapshot(g->s, err), at = 0;

	drop_found(g);
	if (r == 0)
		r = pg_finish(g->s, add_statements(g, asked, err), err);
	if (r < 0)
		return r;
	/* Kept, since one more statement may follow. */
	for (int i = 0; i < R_COUNT; i++) {
		if (!asked[i])
			continue;
		g->found[i] = g->s->results[at];
		g->s->results[at++] = NULL;
	}
	g->log_end = pg_get_int(g->found[R_END], 0, 0);
	g->now_us = pg_get_time(g->found[R_SNAPSHOT], 0, 1);
	g->s->has_due = pg_get_int(g->found[R_SNAPSHOT], 0, 2) != 0;
	*ret_again = pg_get_int(g->found[R_END], 0, 1) == 0 ||
		     (g->s->has_due && g->read->exception_limit > 0 && !asked[R_DUE]);
	return 0;
}

static int ask_until_whole(struct reading *g, struct ob_err *err)
{
	bool again = true;
	int r = 0;

	for (int tries = 0; again && r == 0; tries++) {
		if (tries == REWRITTEN_TRIES)
			return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
					  "reading: the table is being written anew");
		r = ask(g, &again, err);
	}
	return r;
}

/* ---- choosing -------------------------------------------------------- */

/* One message always fits. False: the read ends before this row. */
static bool pick(struct reading *g, const PGresult *rows, int row, bool excepted)
{
	bool large = !PQgetisnull(rows, row, COL_LARGE);
	size_t size = large ? (size_t)pg_get_int(rows, row, COL_LARGE)
			    : (size_t)PQgetlength(rows, row, OB_SQL_COL_payload) +
				      (size_t)PQgetlength(rows, row, OB_SQL_COL_headers) +
				      (size_t)PQgetlength(rows, row, OB_SQL_COL_snapshot);

	if (g->count > 0 &&
	    (g->bytes > g->read->max_bytes || size > g->read->max_bytes - g->bytes)) {
		g->full = true;
		return false;
	}
	g->picked[g->count++] = (struct picked){ rows, row, excepted, large };
	g->bytes += size;
	return true;
}

static bool same_queue(const PGresult *rows, int a, int b)
{
	struct ob_str queue = pg_get_str(rows, a, DUE_QUEUE);

	return queue.p && ob_str_eq(queue, pg_get_str(rows, b, DUE_QUEUE)) &&
	       pg_get_int(rows, a, OB_SQL_COL_partition) ==
		       pg_get_int(rows, b, OB_SQL_COL_partition);
}

/* May it be sent after the head of its queue? */
static bool may_follow(const struct reading *g, const PGresult *rows, int row)
{
	int64_t state = pg_get_int(rows, row, DUE_STATE);

	return (state == OB_STATE_WAITING ||
		(state == OB_STATE_DELAYED && pg_get_int(rows, row, DUE_NOW) == 1)) &&
	       !ob_read_excludes(g->read, pg_get_int(rows, row, OB_SQL_COL_seq));
}

static void pick_due(struct reading *g)
{
	const PGresult *rows = g->found[R_DUE];
	int count = rows ? PQntuples(rows) : 0;
	bool ended = false; /* the queue that is being read */

	for (int row = 0; row < count && !g->full; row++) {
		bool head = row == 0 || !same_queue(rows, row - 1, row);

		ended = !head && (ended || !may_follow(g, rows, row));
		if (!ended)
			(void)pick(g, rows, row, true);
	}
}

/* A row of the log, unless it has an exception of its own. False: the read ends before it. */
static bool pick_row(struct reading *g, const PGresult *rows, int row)
{
	if (pg_get_int(rows, row, COL_FLAG) == FLAG_EXCEPTED)
		return true;
	if (g->from_log == g->read->limit || !pick(g, rows, row, false))
		return false;
	g->from_log++;
	return true;
}

static void pick_late(struct reading *g)
{
	const PGresult *rows = g->found[R_LATE];
	int count = rows ? PQntuples(rows) : 0, row = 0;

	for (; row < count && !g->full && pick_row(g, rows, row); row++) {
		g->any_late = true;
		g->late_last = pg_get_int(rows, row, OB_SQL_COL_seq);
	}
	g->late_full = g->full || row < count || count == (int)g->read->limit;
}

/*
 * A walk that was not cut has seen all that the snapshot shows up to its bound. Then the position
 * may lie above the last row: numbers that are drawn and not committed come as late, found by their
 * transaction. So rows of an open transaction are not walked again and again.
 */
static void pick_next(struct reading *g)
{
	const PGresult *rows = g->found[R_NEXT];
	int count = rows ? PQntuples(rows) : 0, row = 0;

	g->walked = INT64_MIN;
	if (!rows || g->late_full)
		return;
	for (; row < count && pick_row(g, rows, row); row++)
		g->walked = pg_get_int(rows, row, OB_SQL_COL_seq);
	g->next_full = row < count || count == (int)g->read->limit;
	if (g->next_full)
		return;
	int64_t end = g->log_end < g->bound ? g->log_end : g->bound;
	if (end > g->walked)
		g->walked = end;
	/* Is the log longer than what was walked? */
	g->next_full =
		g->bound < g->log_end && !(g->read->end_seq > 0 && g->bound >= g->read->end_seq);
}

/* Steps through sparse numbers grow while they take no time. */
static void adapt_walk(struct reading *g, int64_t took_us)
{
	struct pg_store *s = g->s;
	bool sparse = g->from_log < g->read->limit && g->next_full && !g->full;

	s->log_end = g->log_end;
	if (sparse && took_us < WALK_FAST_US && s->walk < INT64_MAX / 4)
		s->walk *= 2;
	else
		s->walk = WALK_MIN;
}

/* ---- copying --------------------------------------------------------- */

static int load_large(struct reading *g, struct ob_err *err)
{
	struct pg_params p = { 0 };
	bool any = false;

	for (uint32_t i = 0; i < g->count; i++)
		any = any || g->picked[i].large;
	int r = any ? pg_begin_batch(g->s, true, err) : 0;
	if (!any || r < 0)
		return r;
	struct ob_pgarray *seqs = pg_ints(&p);
	for (uint32_t i = 0; i < g->count; i++) {
		const struct picked *at = &g->picked[i];

		if (at->large)
			ob_pgarray_int(seqs, pg_get_int(at->rows, at->row, OB_SQL_COL_seq));
	}
	r = pg_finish(g->s, pg_add(g->s, PG_read_large, &p, err), err);
	if (r == 0) {
		g->large = g->s->results[0];
		g->s->results[0] = NULL;
	}
	return r;
}

/* The row with that seq in the large ones; -1: it was removed since. */
static int find_large(const PGresult *rows, int64_t seq)
{
	int low = 0, high = PQntuples(rows);

	while (low < high) {
		int middle = low + (high - low) / 2;
		int64_t at = pg_get_int(rows, middle, 0);

		if (at == seq)
			return middle;
		if (at < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

static int copy_row(struct reading *g, const struct picked *from, struct ob_err *err)
{
	struct ob_message m;
	int r = pg_read_message(g->s, from->rows, from->row, &m, err);

	if (r < 0)
		return r;
	if (from->large) {
		int row = find_large(g->large, m.seq);

		if (row < 0)
			return 0;
		m.payload = pg_get_str(g->large, row, 1);
		m.headers = pg_get_str(g->large, row, 2);
		m.snapshot = pg_get_str(g->large, row, 3);
	}
	m.delayed = m.available_at_us > g->now_us;
	if (from->excepted) {
		m.excepted = true;
		m.state = (uint8_t)pg_get_int(from->rows, from->row, DUE_STATE);
		m.attempts = (uint32_t)pg_get_int(from->rows, from->row, DUE_ATTEMPTS);
		m.queue = pg_get_str(from->rows, from->row, DUE_QUEUE);
	} else {
		m.held = pg_get_int(from->rows, from->row, COL_FLAG) == FLAG_HELD;
	}
	return pg_add_message(g->batch, &m, err);
}

static int copy_rows(struct reading *g, struct ob_err *err)
{
	int r = load_large(g, err);

	for (uint32_t i = 0; i < g->count && r == 0; i++)
		r = copy_row(g, &g->picked[i], err);
	return r;
}

/* ---- progress -------------------------------------------------------- */

/* What holds for the partition when all that was returned has an outcome. `now`: the snapshot. */
static void advance(const struct reading *g, const struct ob_progress *from, struct ob_seen *now,
		    struct ob_progress *to)
{
	*to = *from;
	if (g->read->limit == 0)
		return;
	if (g->late_full) {
		if (!g->any_late)
			return;
		if (!from->late_seen || g->late_last > from->late_pos)
			to->late_pos = g->late_last;
		to->late_seen = from->late_seen ? from->late_seen : now;
		return;
	}
	to->seen = from->late_seen ? from->late_seen : now;
	to->late_seen = NULL;
	to->late_pos = 0;
	if (!from->late_seen && g->walked > from->pos)
		to->pos = g->walked;
}

static int set_progress(struct reading *g, struct ob_err *err)
{
	struct ob_seen *now = ob_seen_new(pg_get_str(g->found[R_SNAPSHOT], 0, 0));

	if (!now)
		return pg_oom("reading", err);
	for (size_t i = 0; i < g->read->part_count; i++) {
		struct ob_read_part *part = &g->read->parts[i];
		struct ob_progress after;

		advance(g, &part->from, now, &after);
		part->after = (struct ob_progress){ 0 };
		ob_progress_set(&part->after, &after);
		part->reached = !ob_progress_equal(&part->from, &part->after);
	}
	ob_seen_unref(now);
	return 0;
}

static void tell_more(const struct reading *g, struct ob_read_done *ret)
{
	const struct ob_read *read = g->read;
	const PGresult *due = g->found[R_DUE];

	ret->more = read->limit > 0 && (g->full || g->late_full || g->next_full);
	/* Without late parts all partitions were read on; with one, only that. */
	for (size_t i = 0; i < read->part_count && !ret->more && read->limit > 0; i++)
		ret->more = read->parts[i].from.late_seen != NULL;
	ret->more_exceptions = due && (PQntuples(due) == (int)read->exception_limit || g->full);
}

static int read_all(struct reading *g, struct ob_read_done *ret_done, struct ob_err *err)
{
	uint64_t rows = (uint64_t)g->read->limit + g->read->exception_limit;

	g->picked = ob_arena_alloc(&g->batch->arena, rows * sizeof(*g->picked));
	if (!g->picked)
		return pg_oom("reading", err);
	int r = survey_parts(g, err);
	if (r == 0)
		r = learn_end(g->s, err);
	if (r < 0)
		return r;
	set_bound(g);
	int64_t began_us = ob_clock_boot_us(&ob_clock_system);
	r = ask_until_whole(g, err);
	if (r < 0)
		return r;
	pick_due(g);
	if (g->read->limit > 0 && !g->full) {
		pick_late(g);
		pick_next(g);
		adapt_walk(g, ob_clock_boot_us(&ob_clock_system) - began_us);
	} else {
		/* Ended by the exceptions: nothing of the log was returned. */
		g->late_full = true;
	}
	r = copy_rows(g, err);
	if (r == 0)
		r = set_progress(g, err);
	if (r == 0)
		tell_more(g, ret_done);
	return r;
}

int pg_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
	    struct ob_read_done *ret_done, struct ob_err *err)
{
	struct reading g = { .s = (struct pg_store *)store, .read = read, .batch = batch };

	int r = read_all(&g, ret_done, err);
	drop_found(&g);
	pg_clear(g.s);
	if (r < 0)
		ob_batch_reset(batch);
	return r;
}
