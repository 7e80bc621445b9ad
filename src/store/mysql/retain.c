/* SPDX-License-Identifier: MIT */
/*
 * The MySQL store: retention. What may go was behind every reader long enough ago. Rows are chosen
 * by a plain read and removed by number, so no writer's lock is waited for.
 */
#include "store/mysql/retain.h"
#include "base/cleanup.h"
#include "log/retention.h"
#include "store/mysql/gaps.h"
#include "store/mysql/parts.h"
#include "store/mysql/reach.h"
#include "store/mysql/schema.h"
#include "store/sql/ops.h"

#include "sql_mysql.h"

enum { LIST_MAX = 4 << 20, DELETE_PIECE = 500, PRUNE_PIECE = 1000 };

/* One call while it runs. */
struct retaining {
	struct my_store *s;
	const struct ob_retain *retain;
	struct ob_arena *arena;
	struct my_rows readers; /* struct ob_str */
	int64_t partition_count;
	int64_t partition_rows; /* of a partitioned log, else 0 */
	struct ob_retain_bound bound;
	struct ob_retained done;
	int64_t held_pos; /* of the reader that is farthest back */
};

static int64_t age_us(int64_t ms)
{
	return ob_sql_us(ms == OB_NEVER_MS ? INT64_MAX : ms);
}

static int read_names(struct retaining *g, const char *tmpl, struct my_rows *rows,
		      struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	*rows = (struct my_rows){ .arena = g->arena, .size = sizeof(struct ob_str) };
	my_packet_init(&p, g->s, "cleaning up");
	(void)MY_ADD0(&p, tmpl);
	int r = my_packet_run(&p, err);
	for (my_use(&p, 0); r == 0 && my_step(&p);) {
		struct ob_str *name = my_rows_add(rows);

		if (!name || !ob_arena_copy(g->arena, my_str(&p, 0), name))
			r = my_oom("cleaning up", err);
	}
	return r;
}

static int forget_reader(struct my_store *s, struct ob_str reader, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, &s->base, OB_SQL_WRITE, "removing the reader");
	for (size_t i = 0; i < ob_sql_removal_count; i++)
		(void)ob_sql_add(&q, ob_sql_removal[i], OB_ARGS(OB_ARG_STR("reader", reader)));
	return ob_sql_commit(&q, err);
}

static int remove_ended(struct retaining *g, struct ob_err *err)
{
	struct my_rows ended;
	int r = read_names(g, sql_mysql_ended_readers, &ended, err);

	for (size_t i = 0; i < ended.count && r == 0; i++)
		r = forget_reader(g->s, ((const struct ob_str *)(const void *)ended.data)[i], err);
	return r;
}

/* ---- exceptions ------------------------------------------------------ */

static size_t add_forget(struct my_packet *p, struct ob_str reader, int64_t age_ms,
			 enum ob_state state)
{
	char states[16];

	(void)snprintf(states, sizeof(states), "%d", (int)state);
	return MY_ADD(p, sql_mysql_forget_exceptions, OB_ARG_STR("reader", reader),
		      OB_ARG_INT("age", age_us(age_ms)), OB_ARG_RAW("states", states));
}

static int forget_exceptions(struct retaining *g, struct ob_str reader, struct ob_err *err)
{
	const struct ob_retain *retain = g->retain;
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	size_t dead = SIZE_MAX;

	my_packet_init(&p, g->s, "cleaning up");
	p.writes = true;
	(void)add_forget(&p, reader, 0, OB_STATE_DONE);
	if (retain->published_ms != OB_NEVER_MS)
		(void)add_forget(&p, reader, retain->published_ms, OB_STATE_DISCARDED);
	if (retain->dead_ms != OB_NEVER_MS)
		dead = add_forget(&p, reader, retain->dead_ms, OB_STATE_DEAD);
	int r = my_packet_run(&p, err);
	if (r == 0)
		g->done.dead += my_changed(&p, dead);
	return r;
}

/* ---- rows of the log ------------------------------------------------- */

/* What the reader had behind it that long ago, and where it is now. */
static int add_reader(struct retaining *g, struct ob_str reader, struct ob_err *err)
{
	struct my_reach then = { 0 }, now = { 0 };
	int r = my_reach_read(g->s, reader, age_us(g->retain->published_ms), &then, err);

	if (r == 0)
		r = my_reach_read(g->s, reader, -1, &now, err);
	bool whole = then.rows == (size_t)g->partition_count * OB_LANES;
	/* A partition without a row that old: the reader is younger, nothing may go. One that was
	 * moved back since still needs what it had passed then. */
	int64_t pos = !whole ? INT64_MIN : then.low < now.low ? then.low : now.low;
	g->bound.any = true;
	if (r == 0 && pos < g->bound.seq)
		g->bound.seq = pos;
	if (r == 0 && (!ob_gaps_merge(&g->bound.gaps, &then.gaps) ||
		       !ob_gaps_merge(&g->bound.gaps, &now.gaps)))
		r = my_gaps_full(g->s, err);
	if (r == 0 && now.rows && (!g->done.held_by.p || now.low < g->held_pos)) {
		g->held_pos = now.low;
		g->done.held_by = reader;
		g->done.held_us = now.moved_us;
	}
	my_reach_done(&then);
	my_reach_done(&now);
	return r;
}

static int delete_rows(struct retaining *g, struct ob_buf *numbers, struct ob_err *err)
{
	const struct ob_sql_arg args[] = { OB_ARG_RAW("numbers", ob_buf_str(numbers)),
					   { .name = NULL } };

	if (numbers->len == 0)
		return 0;
	int r = my_change(g->s, "removing old rows", sql_mysql_retain_delete, args, err);
	g->done.rows += r > 0 ? (uint64_t)r : 0;
	ob_buf_clear(numbers);
	return r < 0 ? r : 0;
}

static int remove_rows(struct retaining *g, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf numbers = OB_BUF_INIT(LIST_MAX);
	OB_CLEANUP(ob_buf_done) struct ob_buf only = OB_BUF_INIT(LIST_MAX);
	OB_CLEANUP(my_packet_done) struct my_packet found = { 0 };
	uint64_t read = 0, count = 0;

	if (!g->bound.any || g->bound.seq <= 0 || (g->retain->only && !g->retain->only_count))
		return 0;
	for (size_t i = 0; i < g->retain->only_count; i++)
		my_add_number(&only, g->retain->only[i]);
	/* The others go with their partition. */
	bool some = g->partition_rows > 0 && g->retain->published_ms > 0;
	int r = MY_QUERY(&found, g->s, "looking for old rows", err,
			 g->retain->only ? sql_mysql_retain_these
			 : some          ? sql_mysql_retain_rest
					 : sql_mysql_retain_candidates,
			 OB_ARG_INT("pos", g->bound.seq), OB_ARG_INT("limit", g->retain->limit),
			 OB_ARG_RAW("numbers", ob_buf_str(&only)));
	for (; r == 0 && my_step(&found); read++) {
		if (!ob_retain_may_go(&g->bound, my_int(&found, 0), 0))
			continue;
		my_add_number(&numbers, my_int(&found, 0));
		if (++count % DELETE_PIECE == 0)
			r = delete_rows(g, &numbers, err);
	}
	if (r == 0)
		r = delete_rows(g, &numbers, err);
	g->done.more =
		g->done.more || (read == g->retain->limit && g->done.rows > 0 && !g->retain->only);
	return r;
}

/* Is the reader that is farthest back in the way of anything? */
static int check_held(struct retaining *g, struct ob_err *err)
{
	int64_t old;
	int r = 0;

	if (g->done.held_by.p && g->retain->published_ms != OB_NEVER_MS)
		r = MY_NUMBER(g->s, "looking for old rows", &old, err, sql_mysql_old_row_after,
			      OB_ARG_INT("pos", g->held_pos),
			      OB_ARG_INT("age", age_us(g->retain->published_ms)));
	if (r == 0) {
		g->done.held_by = OB_STR("");
		g->done.held_us = 0;
	}
	return r < 0 ? r : 0;
}

/* ---- the journal ----------------------------------------------------- */

static int prune_partition(struct my_packet *found, size_t statement, struct ob_str reader,
			   struct my_store *s, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf numbers = OB_BUF_INIT(LIST_MAX);
	int64_t partition = 0;

	for (my_use(found, statement); my_step(found);) {
		partition = my_int(found, 0);
		my_add_number(&numbers, my_int(found, 1));
	}
	if (numbers.len == 0)
		return 0;
	const struct ob_sql_arg args[] = { OB_ARG_STR("reader", reader),
					   OB_ARG_INT("partition", partition),
					   OB_ARG_RAW("numbers", ob_buf_str(&numbers)),
					   { .name = NULL } };
	int r = my_change(s, "pruning the journal", sql_mysql_prune_journal, args, err);
	return r < 0 ? r : 0;
}

static int prune_journal(struct retaining *g, struct ob_str reader, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet found = { 0 };

	my_packet_init(&found, g->s, "pruning the journal");
	for (int64_t i = 0; i < g->partition_count * OB_LANES; i++)
		(void)MY_ADD(&found, sql_mysql_old_batches, OB_ARG_STR("reader", reader),
			     OB_ARG_INT("partition", i),
			     OB_ARG_INT("age", age_us(g->retain->published_ms)),
			     OB_ARG_INT("limit", PRUNE_PIECE));
	int r = my_packet_run(&found, err);
	for (size_t i = 0; i < found.statements && r == 0; i++)
		r = prune_partition(&found, i, reader, g->s, err);
	return r;
}

/* ---- all of it ------------------------------------------------------- */

static int retain_all(struct retaining *g, struct ob_err *err)
{
	int r = remove_ended(g, err);

	if (r == 0)
		r = read_names(g, sql_mysql_all_readers, &g->readers, err);
	if (r < 0)
		return r;
	const struct ob_str *readers = (const void *)g->readers.data;
	for (size_t i = 0; readers && i < g->readers.count && r == 0; i++) {
		r = forget_exceptions(g, readers[i], err);
		if (r == 0)
			r = add_reader(g, readers[i], err);
	}
	if (r == 0 && g->retain->published_ms != OB_NEVER_MS)
		r = remove_rows(g, err);
	if (r == 0 && g->partition_rows > 0)
		r = my_parts_retain(g->s,
				    &(struct my_parts_retain){ g->retain, &g->bound, readers,
							       g->readers.count,
							       g->partition_count },
				    &g->done, err);
	if (r == 0)
		r = check_held(g, err);
	for (size_t i = 0; readers && i < g->readers.count && r == 0; i++)
		r = prune_journal(g, readers[i], err);
	if (r == 0)
		r = my_change(g->s, "cleaning up", sql_mysql_forget_throughput, OB_NO_ARGS, err);
	if (r >= 0)
		r = my_change(g->s, "cleaning up", sql_mysql_forget_audit, OB_NO_ARGS, err);
	return r < 0 ? r : 0;
}

int my_retain(struct ob_store *store, const struct ob_retain *retain, struct ob_arena *arena,
	      struct ob_retained *ret_done, struct ob_err *err)
{
	struct retaining g = { .s = (struct my_store *)store, .retain = retain, .arena = arena };
	int r = my_meta(g.s, "partition_count", &g.partition_count, err);

	if (r == 0)
		r = my_parts_look(g.s, &g.partition_rows, err);
	if (r == 0)
		r = my_lock(g.s, "retain", 0, err);
	if (r == OUTBOX_EBUSY) {
		*ret_done = (struct ob_retained){ .busy = true, .held_by = OB_STR("") };
		return 0;
	}
	if (r < 0)
		return r;
	ob_retain_init(&g.bound);
	r = retain_all(&g, err);
	my_unlock(g.s, "retain");
	ob_retain_done(&g.bound);
	if (r == 0)
		*ret_done = g.done;
	return r;
}
