/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: reading the log. One packet, one snapshot: first the numbers that were missing
 * when the reader passed them, all of them in every read, then what comes after its position.
 *
 * Why the gaps come first, and all: if A committed before B's insert ran, A has the lower number.
 * A read that shows B and did not ask for A's number, or asked in an older snapshot, would send B
 * first.
 */
#include "store/mysql/read.h"
#include "base/cleanup.h"
#include "store/mysql/counter.h"
#include "store/mysql/gaps.h"
#include "store/mysql/message.h"
#include "store/mysql/proof.h"

#include "sql_mysql.h"

#include <inttypes.h>
#include <stdlib.h>

/* Numbers that one read walks at most, and SQL of a condition. */
enum { SPAN = 200000, LIST_MAX = 1 << 20, WHERE_MAX = 64 << 20 };

/* Columns after those of a message. */
enum { COL_EXCEPTED = OB_SQL_MESSAGE_COLUMNS, COL_HELD, COL_DELAYED };

enum { NOT_OURS = -1, PARTS = OB_PARTITIONS_MAX * OB_LANES };

/* One read while it runs. */
struct reading {
	struct my_store *s;
	struct ob_read *read;
	struct ob_batch *batch;
	struct my_packet p;
	size_t at_end, at_late, late_pieces, at_due, at_next; /* statements */
	struct ob_buf numbers, mine, flags; /* SQL: our partitions; our rows after their positions;
					       what exceptions say of a row */

	int16_t part_of[PARTS]; /* index in read->parts */
	int64_t min_pos, max_pos;
	struct ob_gaps gaps; /* of all parts; what was found is taken out */
	struct ob_gaps *own; /* of each part, where they differ; else NULL */

	bool asked_due;
	uint32_t first; /* index of the first message of the log in the batch */
	uint32_t limit; /* of the statement */
	int64_t last;   /* the walk ends here */
	bool late_left; /* not all that is late fits */
	bool more;
	bool *returned; /* of each part: something of it was */
};

bool my_read_fits(const struct ob_read *read, const struct ob_batch *batch,
		  const struct ob_message *message)
{
	return batch->count == 0 ||
	       batch->bytes + message->payload.n + message->headers.n + message->snapshot.n <=
		       read->max_bytes;
}

static struct ob_str seen_text(const struct ob_seen *seen)
{
	return seen ? (struct ob_str){ seen->text, seen->size } : OB_STR("");
}

/* ---- where the parts are --------------------------------------------- */

static bool is_uniform(const struct ob_read *read)
{
	for (size_t i = 1; i < read->part_count; i++) {
		if (read->parts[i].from.seen != read->parts[0].from.seen &&
		    !ob_seen_equal(read->parts[i].from.seen, read->parts[0].from.seen))
			return false;
	}
	return true;
}

static int bad_gaps(const struct reading *g, uint32_t partition, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			  "the journal's gap list of reader '%s', partition %u, cannot be read; "
			  "restore table '%s' from a backup, or run `outbox readers seek`",
			  g->read->reader, partition, g->s->base.layout->table[OB_TABLE_batches]);
}

/* Read the gap lists: one for all parts, or each its own and all together. */
static int read_gaps(struct reading *g, struct ob_err *err)
{
	const struct ob_read *read = g->read;

	if (is_uniform(read))
		return ob_gaps_parse(&g->gaps, seen_text(read->parts[0].from.seen))
			       ? 0
			       : bad_gaps(g, read->parts[0].partition, err);
	g->own = calloc(read->part_count, sizeof(*g->own));
	if (!g->own)
		return my_oom("reading", err);
	for (size_t i = 0; i < read->part_count; i++) {
		if (!ob_gaps_parse(&g->own[i], seen_text(read->parts[i].from.seen)))
			return bad_gaps(g, read->parts[i].partition, err);
		if (!ob_gaps_merge(&g->gaps, &g->own[i]))
			return my_gaps_full(g->s, err);
	}
	return 0;
}

static const struct ob_gaps *gaps_of(const struct reading *g, size_t part)
{
	return g->own ? &g->own[part] : &g->gaps;
}

typedef int find_reused_fn(struct my_store *s, const struct ob_read *read, struct ob_gaps *reused,
			   struct ob_err *err);

/* Numbers that the server uses again are gaps of every part. */
static int add_reused(struct reading *g, find_reused_fn *find, struct ob_err *err)
{
	struct ob_gaps reused = { 0 };
	int r = find(g->s, g->read, &reused, err);
	bool fits = r < 0 || reused.count == 0 || ob_gaps_merge(&g->gaps, &reused);

	for (size_t i = 0; g->own && reused.count && fits && i < g->read->part_count; i++)
		fits = ob_gaps_merge(&g->own[i], &reused);
	ob_gaps_done(&reused);
	return r < 0 || fits ? r : my_gaps_full(g->s, err);
}

static int plan(struct reading *g, struct ob_err *err)
{
	const struct ob_read *read = g->read;

	memset(g->part_of, NOT_OURS, sizeof(g->part_of));
	g->min_pos = INT64_MAX;
	for (size_t i = 0; i < read->part_count; i++) {
		const struct ob_read_part *part = &read->parts[i];

		if (part->partition >= PARTS)
			return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
					  "partition %u is not there", part->partition);
		g->part_of[part->partition] = (int16_t)i;
		my_add_number(&g->numbers, part->partition);
		if (part->from.pos < g->min_pos)
			g->min_pos = part->from.pos;
		if (part->from.pos > g->max_pos)
			g->max_pos = part->from.pos;
	}
	g->returned = calloc(read->part_count + 1, sizeof(*g->returned));
	int r = g->returned ? read_gaps(g, err) : my_oom("reading", err);
	if (r == 0)
		r = my_ready(g->s, g->s->patient, err);
	if (r == 0 && g->s->reconnected && g->s->last_seq > 0)
		r = add_reused(g, my_counter_reconnected, err);
	if (r == 0)
		g->s->reconnected = false;
	return r;
}

/* ---- the statements -------------------------------------------------- */

/* Partitions that stand at the same position, once for each position. */
static int add_parts(struct reading *g, struct ob_buf *out, struct ob_err *err)
{
	const struct ob_read *read = g->read;
	int r = 0;

	for (size_t i = 0; i < read->part_count && r == 0; i++) {
		OB_CLEANUP(ob_buf_done) struct ob_buf list = OB_BUF_INIT(LIST_MAX);
		int64_t pos = read->parts[i].from.pos;
		bool first = true;

		for (size_t k = 0; k < read->part_count; k++) {
			if (read->parts[k].from.pos != pos)
				continue;
			first = first && k >= i;
			my_add_number(&list, read->parts[k].partition);
		}
		if (!first)
			continue;
		ob_buf_adds(out, out->len ? " OR " : "");
		r = my_sql_expand(
			g->s, out, sql_mysql_part_from,
			(const struct ob_sql_arg[]){ OB_ARG_RAW("numbers", my_list(&list)),
						     OB_ARG_INT("pos", pos),
						     { .name = NULL } },
			err);
	}
	return r;
}

static int make_mine(struct reading *g, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf parts = OB_BUF_INIT(WHERE_MAX);
	int r;

	if (g->min_pos < g->max_pos)
		r = add_parts(g, &parts, err);
	else
		r = my_sql_expand(
			g->s, &parts, sql_mysql_part,
			(const struct ob_sql_arg[]){ OB_ARG_RAW("numbers", my_list(&g->numbers)),
						     { .name = NULL } },
			err);
	return r < 0 ? r
		     : my_sql_expand(
			       g->s, &g->mine, sql_mysql_mine,
			       (const struct ob_sql_arg[]){ OB_ARG_TEXT("target", g->read->target),
							    OB_ARG_RAW("parts", ob_buf_str(&parts)),
							    { .name = NULL } },
			       err);
}

static void ask_late(struct reading *g)
{
	const struct ob_read *read = g->read;

	for (size_t first = 0; first < g->gaps.count; first += MY_GAPS_PIECE) {
		OB_CLEANUP(ob_buf_done) struct ob_buf where = OB_BUF_INIT(WHERE_MAX);

		my_gaps_where(g->s, &g->gaps, first, &where);
		size_t at = MY_ADD(&g->p, sql_mysql_late, OB_ARG_RAW("gaps", ob_buf_str(&where)),
				   OB_ARG_RAW("flags", ob_buf_str(&g->flags)),
				   OB_ARG_INT("limit", (int64_t)read->limit + 1));
		if (g->late_pieces++ == 0)
			g->at_late = at;
	}
}

static void ask_log(struct reading *g)
{
	const struct ob_read *read = g->read;

	(void)MY_ADD(&g->p, sql_mysql_end_of_log, OB_ARG_INT("pos", g->min_pos),
		     OB_ARG_INT("end", read->end_seq > 0 ? read->end_seq : INT64_MAX));
	g->at_end = MY_ADD(&g->p, sql_mysql_end_of_walk, OB_ARG_TEXT("reader", read->reader),
			   OB_ARG_INT("span", SPAN));
	ask_late(g);
	g->at_next =
		MY_ADD(&g->p, sql_mysql_next, OB_ARG_INT("pos", g->min_pos),
		       OB_ARG_INT("span", SPAN), OB_ARG_RAW("mine", ob_buf_str(&g->mine)),
		       OB_ARG_RAW("flags", ob_buf_str(&g->flags)), OB_ARG_INT("limit", g->limit));
}

/* How many rows to ask for, by what they weighed lately. */
static int set_limit(struct reading *g, struct ob_err *err)
{
	struct my_store *s = g->s;

	if (s->row_bytes == 0 && g->read->limit > 1) {
		int64_t average;
		int r = MY_NUMBER(s, "reading", &average, err, sql_mysql_average_size,
				  OB_ARG_INT("pos", g->min_pos));

		if (r < 0)
			return r;
		s->row_bytes = (size_t)average + 1;
	}
	/* Some to spare: rows differ, and a read that ends too early costs another one. */
	size_t fit = s->row_bytes ? g->read->max_bytes / s->row_bytes * 2 + 16 : 16;
	g->limit = fit < g->read->limit ? (uint32_t)fit : g->read->limit;
	return 0;
}

static int make_flags(struct reading *g, struct ob_err *err)
{
	ob_buf_clear(&g->flags);
	return my_sql_expand(g->s, &g->flags,
			     g->s->had_exceptions ? sql_mysql_row_flags : sql_mysql_no_flags,
			     (const struct ob_sql_arg[]){
				     OB_ARG_TEXT("reader", g->read->reader),
				     OB_ARG_INT("ordered", g->read->ordering != OB_ORDER_NONE),
				     OB_ARG_INT("whole", g->read->ordering == OB_ORDER_PARTITION),
				     { .name = NULL } },
			     err);
}

/*
 * With gaps, late rows and what follows must come from one snapshot. Without, one statement brings
 * all rows, and it is its own snapshot: what is read before it may only be older.
 */
static int ask_once(struct reading *g, const struct my_due *due, struct ob_err *err)
{
	bool snapshot = g->gaps.count > 0, exceptions = g->s->had_exceptions;
	int r = make_flags(g, err);

	if (r < 0)
		return r;
	my_packet_clear(&g->p);
	g->late_pieces = 0;
	if (snapshot) {
		(void)MY_ADD0(&g->p, sql_mysql_snapshot_isolation);
		(void)MY_ADD0(&g->p, sql_mysql_begin_snapshot);
	}
	g->asked_due = g->read->exception_limit > 0 && (exceptions || g->read->limit == 0);
	if (g->asked_due)
		g->at_due = my_due_ask(&g->p, due);
	if (g->read->limit > 0)
		ask_log(g);
	if (snapshot)
		(void)MY_ADD0(&g->p, sql_mysql_commit);
	r = my_packet_run(&g->p, err);
	if (r < 0 || g->read->limit == 0)
		return r;
	my_use(&g->p, g->at_end);
	g->s->had_exceptions = my_step(&g->p) && my_int(&g->p, 2);
	/* There are exceptions, and they were not asked for: once more. */
	return g->s->had_exceptions && !exceptions;
}

static int ask(struct reading *g, const struct my_due *due, struct ob_err *err)
{
	int r = 0;

	if (g->read->limit > 0)
		r = set_limit(g, err);
	if (r == 0 && g->read->limit > 0)
		r = make_mine(g, err);
	if (r == 0)
		r = ask_once(g, due, err);
	return r <= 0 ? r : ask_once(g, due, err);
}

/* ---- rows ------------------------------------------------------------ */

static uint32_t log_count(const struct reading *g)
{
	return g->batch->count - g->first;
}

/* Add the row to the batch, unless it is an exception: those come by themselves. 1: no room. */
static int add_row(struct reading *g, struct ob_message *m, size_t part, struct ob_err *err)
{
	if (my_int(&g->p, COL_EXCEPTED))
		return 0;
	if (log_count(g) == g->read->limit || !my_read_fits(g->read, g->batch, m))
		return 1;
	if (m->seq > g->s->last_seq) {
		g->s->last_seq = m->seq;
		g->s->last_id = m->id;
	}
	m->held = my_int(&g->p, COL_HELD);
	m->delayed = my_int(&g->p, COL_DELAYED);
	g->returned[part] = true;
	return my_add_message(g->batch, m, err);
}

static int part_of(const struct reading *g, const struct ob_message *m)
{
	if (m->partition >= PARTS || !ob_str_eq(m->target, ob_str(g->read->target)))
		return NOT_OURS;
	return g->part_of[m->partition];
}

/*
 * A row that was a gap. It is late for its partition if that partition passed it; else it comes
 * with what is after the position, or was delivered. In every case its number is there now, for
 * all partitions.
 */
static int take_late(struct reading *g, struct ob_message *m, struct ob_err *err)
{
	int part = part_of(g, m);

	if (part >= 0 && m->seq <= g->read->parts[part].from.pos &&
	    ob_gaps_has(gaps_of(g, (size_t)part), m->seq)) {
		int r = add_row(g, m, (size_t)part, err);

		if (r != 0)
			return r;
		if (g->own && !ob_gaps_remove(&g->own[part], m->seq, m->seq))
			return my_oom("reading", err);
	}
	return ob_gaps_remove(&g->gaps, m->seq, m->seq) ? 0 : my_gaps_full(g->s, err);
}

static int read_late(struct reading *g, struct ob_err *err)
{
	struct ob_message m;
	int r = 0;

	for (size_t piece = 0; piece < g->late_pieces && r == 0; piece++) {
		uint32_t count = 0;

		for (my_use(&g->p, g->at_late + piece); r == 0 && my_step(&g->p); count++) {
			r = my_read_message(&g->p, &m, err);
			if (r == 0)
				r = take_late(g, &m, err);
		}
		/* The statement itself has a limit. */
		if (r == 0 && count > g->read->limit)
			r = 1;
	}
	g->late_left = r > 0;
	return r < 0 ? r : 0;
}

/* Rows after the positions. *ret_count: of them, those up to where the walk ends. */
static int read_next(struct reading *g, uint32_t *ret_count, struct ob_err *err)
{
	struct ob_message m;
	size_t bytes = 0;
	uint32_t count = 0;
	int r = 0;

	my_use(&g->p, g->at_end);
	int64_t end = 0, walk = 0;
	if (my_step(&g->p)) {
		end = my_int(&g->p, 0);
		walk = my_int(&g->p, 1);
	}
	g->last = g->min_pos;
	for (my_use(&g->p, g->at_next); r == 0 && my_step(&g->p);) {
		r = my_read_message(&g->p, &m, err);
		int part = part_of(g, &m);
		if (r == 0 && part >= 0)
			r = add_row(g, &m, (size_t)part, err);
		if (r != 0)
			break;
		g->last = m.seq;
		bytes += m.payload.n + m.headers.n + m.snapshot.n;
		count++;
	}
	if (r < 0)
		return r;
	if (count)
		g->s->row_bytes = bytes / count + 1;
	bool all = r == 0 && count < g->limit;
	if (all && walk > g->last)
		g->last = walk;
	g->more = !all || walk < end;
	*ret_count = count;
	return 0;
}

/* ---- numbers --------------------------------------------------------- */

/* Walk over our own rows, which the snapshot showed, and those of others. */
static bool walk_numbers(struct reading *g, struct my_packet *others, uint32_t count,
			 struct ob_gaps *fresh)
{
	struct my_walk walk = { fresh, g->min_pos };
	uint32_t left = count;

	my_use(&g->p, g->at_next);
	my_use(others, 0);
	bool own = left > 0 && my_step(&g->p), other = my_step(others), fits = true;
	while (fits && (own || other)) {
		int64_t a = own ? my_int(&g->p, 0) : INT64_MAX;
		int64_t b = other ? my_int(others, 0) : INT64_MAX;

		fits = my_walk_step(&walk, a < b ? a : b);
		if (a < b)
			own = --left > 0 && my_step(&g->p);
		else
			other = my_step(others);
	}
	return fits && my_walk_end(&walk, g->last);
}

static int ask_others(struct reading *g, struct my_packet *p, const char *tmpl, struct ob_err *err)
{
	my_packet_clear(p);
	(void)MY_ADD(p, tmpl, OB_ARG_INT("pos", g->min_pos), OB_ARG_INT("last", g->last),
		     OB_ARG_RAW("mine", ob_buf_str(&g->mine)));
	return my_packet_run(p, err);
}

/*
 * Which numbers up to where the walk ends are missing? Our own rows are those of the snapshot: one
 * that commits later is missing. Others' rows may be read later: all that matters is that the
 * number is not ours. Mostly none is missing, and a count says so.
 */
static int find_gaps(struct reading *g, uint32_t count, struct ob_err *err)
{
	int64_t missing = g->last - g->min_pos - count;
	struct ob_gaps fresh = { 0 };
	struct my_packet p;
	int r = 0;

	my_packet_init(&p, g->s, "reading the numbers of the log");
	if (missing > 0 && !g->s->had_gaps) {
		r = ask_others(g, &p, sql_mysql_count_others, err);
		my_use(&p, 0);
		if (r == 0 && my_step(&p))
			missing -= my_int(&p, 0);
	}
	g->s->had_gaps = missing > 0;
	if (r == 0 && missing > 0)
		r = ask_others(g, &p, sql_mysql_list_others, err);
	if (r == 0 && missing > 0 &&
	    (!walk_numbers(g, &p, count, &fresh) || !ob_gaps_merge(&g->gaps, &fresh)))
		r = my_gaps_full(g->s, err);
	if (fresh.count == 0)
		g->s->had_gaps = false;
	my_packet_done(&p);
	ob_gaps_done(&fresh);
	return r;
}

/* ---- where the parts are then ---------------------------------------- */

static int make_seen(const struct ob_gaps *gaps, struct ob_seen **ret_seen, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(WHERE_MAX);

	*ret_seen = NULL;
	if (gaps->count == 0)
		return 0;
	ob_gaps_format(gaps, &text);
	if (text.failed)
		return my_oom("reading", err);
	*ret_seen = ob_seen_new(ob_buf_view(&text));
	return *ret_seen ? 0 : my_oom("reading", err);
}

/* One list for all: what one partition has in it and another had not was there, or dead, when that
 * one passed. While not everything late was looked at, that is not known: each keeps its own. */
static int set_after(struct reading *g, struct ob_err *err)
{
	struct ob_seen *seen = NULL;
	bool each = g->late_left && g->own;
	int r = each ? 0 : make_seen(&g->gaps, &seen, err);

	for (size_t i = 0; i < g->read->part_count && r == 0; i++) {
		struct ob_read_part *part = &g->read->parts[i];
		struct ob_progress after = { .pos = part->from.pos };

		if (!g->late_left && g->last > after.pos)
			after.pos = g->last;
		if (each)
			r = make_seen(&g->own[i], &after.seen, err);
		else
			after.seen = ob_seen_ref(seen);
		if (r < 0)
			break;
		part->reached = g->returned[i] || !ob_progress_equal(&after, &part->from);
		ob_progress_set(&part->after, &after);
		ob_progress_done(&after);
	}
	ob_seen_unref(seen);
	return r;
}

static void stay(struct ob_read *read)
{
	for (size_t i = 0; i < read->part_count; i++) {
		ob_progress_set(&read->parts[i].after, &read->parts[i].from);
		read->parts[i].reached = false;
	}
}

static int read_log(struct reading *g, struct ob_err *err)
{
	uint32_t count = 0;

	g->first = g->batch->count;
	g->last = g->min_pos;
	int r = read_late(g, err);
	if (r == 0 && !g->late_left) {
		r = read_next(g, &count, err);
		if (r == 0)
			r = find_gaps(g, count, err);
	}
	if (r == 0 && !g->late_left && g->last == g->min_pos)
		r = add_reused(g, my_counter_check, err);
	if (r == 0 && !g->late_left)
		r = my_proof_run(g->s, &g->gaps, g->last > g->max_pos ? g->last : g->max_pos, err);
	return r < 0 ? r : set_after(g, err);
}

int my_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
	    struct ob_read_done *ret_done, struct ob_err *err)
{
	struct reading g = {
		.s = (struct my_store *)store,
		.read = read,
		.batch = batch,
		.numbers = OB_BUF_INIT(LIST_MAX),
		.mine = OB_BUF_INIT(WHERE_MAX),
		.flags = OB_BUF_INIT(WHERE_MAX),
	};
	struct my_due due = { .read = read, .batch = batch };

	my_packet_init(&g.p, g.s, "reading");
	int r = plan(&g, err);
	due.partitions = my_list(&g.numbers);
	if (r == 0)
		r = ask(&g, &due, err);
	if (r == 0 && g.asked_due)
		r = my_due_read(&g.p, g.at_due, &due, err);
	if (r == 0 && read->limit > 0)
		r = read_log(&g, err);
	else if (r == 0)
		stay(read);
	if (r == 0)
		*ret_done = (struct ob_read_done){ .more = g.late_left || g.more,
						   .more_exceptions = due.more };
	my_packet_done(&g.p);
	ob_buf_done(&g.numbers);
	ob_buf_done(&g.mine);
	ob_buf_done(&g.flags);
	ob_gaps_done(&g.gaps);
	for (size_t i = 0; g.own && i < read->part_count; i++)
		ob_gaps_done(&g.own[i]);
	free(g.own);
	free(g.returned);
	return r;
}
