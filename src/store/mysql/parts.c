/* SPDX-License-Identifier: MIT */
/*
 * A log that is partitioned by number, on MySQL and MariaDB.
 *
 * No row is lost. A number that is drawn and not committed is a gap of every reader that has passed
 * it, until it is delivered or proven dead. A partition goes only when every reader has passed it
 * and has no gap in it: then no row can appear there any more.
 */
#include "store/mysql/parts.h"
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"
#include "store/parts.h"

#include "sql_mysql.h"

#include <inttypes.h>
#include <mysqld_error.h>

enum { SQL_MAX = 64 * 1024, NAME_SIZE = 72, PARTS_MAX = 8192, ADD_MAX = 1024 };

/* Columns of parts_list. */
enum { PART_NAME, PART_METHOD, PART_EXPRESSION, PART_BOUND, PART_SUB };

/* ---- setup ----------------------------------------------------------- */

static int expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
		  int64_t rows, struct ob_buf *out, struct ob_err *err)
{
	const struct ob_sqltmpl_number numbers[] = {
		{ "partition_count", partition_count },
		{ "part_1", rows },
		{ "part_2", 2 * rows },
		{ "part_3", 3 * rows },
		{ "part_4", OB_PARTS_FIRST * rows },
		{ NULL, 0 },
	};

	return ob_sqltmpl_expand(out, tmpl, layout, '`', numbers, err);
}

int my_parts_setup(struct my_store *s, int64_t partition_count, int64_t rows, struct ob_err *err)
{
	/* The table last: what an interrupted setup left is taken for nothing then. */
	static const char *const steps[] = { sql_mysql_parts_meta, sql_mysql_parts_outbox };
	int r = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++) {
		OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);

		r = expand(s->base.layout, steps[i], partition_count, rows, &sql, err);
		if (r == 0)
			r = my_exec(s, s->db, ob_buf_str(&sql), "changing the schema", err);
	}
	return r;
}

int my_parts_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err)
{
	int r = expand(layout, sql_mysql_parts_meta, wish->partition_count, wish->partition_rows,
		       out, err);

	return r < 0 ? r
		     : expand(layout, sql_mysql_parts_outbox, wish->partition_count,
			      wish->partition_rows, out, err);
}

/* ---- looking --------------------------------------------------------- */

struct my_part {
	char name[NAME_SIZE];
	int64_t low, high;
};

/* The partitions as they are, without the last, from the lowest number on. */
struct parts {
	int64_t rows; /* of a new one; 0: the log is not partitioned */
	int64_t top;  /* where the highest ends */
	struct my_part *parts;
	size_t count;
};

static void parts_done(struct parts *p)
{
	free(p->parts);
}

static bool is_seq(const struct my_store *s, struct ob_str expression)
{
	const char *seq = s->base.layout->column[OB_COL_seq];

	if (expression.n >= 2 && expression.p[0] == '`' && expression.p[expression.n - 1] == '`')
		expression = (struct ob_str){ expression.p + 1, expression.n - 2 };
	return expression.p && expression.n == strlen(seq) &&
	       strncasecmp(expression.p, seq, expression.n) == 0;
}

/* What is wrong with the partition on which the packet stands; NULL: nothing. */
static const char *judge_part(const struct my_store *s, const struct my_packet *q,
			      int64_t *ret_high)
{
	struct ob_str name = my_str(q, PART_NAME);

	if (!ob_str_eq(my_str(q, PART_METHOD), OB_STR("RANGE")) ||
	    !is_seq(s, my_str(q, PART_EXPRESSION)))
		return "is not partitioned by a range of its number";
	if (my_str(q, PART_SUB).p)
		return "has subpartitions";
	if (!ob_part_name_valid(name))
		return "has a partition with an unsafe name";
	if (!ob_part_bound(my_str(q, PART_BOUND), ret_high))
		return "has a partition without a number for its bound";
	if ((*ret_high == INT64_MAX) != ob_str_eq(name, OB_STR("pmax")))
		return "has no partition pmax for all numbers above the others";
	return NULL;
}

static int add_part(struct my_store *s, const struct my_packet *q, struct parts *p,
		    struct ob_err *err)
{
	int64_t high = 0;
	const char *wrong = judge_part(s, q, &high);
	struct ob_str name = my_str(q, PART_NAME);

	if (wrong)
		return ob_parts_foreign(s->base.layout->table[OB_TABLE_outbox], wrong, err);
	if (high == INT64_MAX)
		return 0;
	struct my_part *to = &p->parts[p->count++];
	*to = (struct my_part){ .low = p->top, .high = high };
	(void)snprintf(to->name, sizeof(to->name), "%.*s", (int)name.n, name.p);
	p->top = high;
	return 0;
}

/* Whatever is not as we make it is refused before anything is changed. */
static int read_parts(struct my_store *s, struct parts *ret, struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	OB_CLEANUP(my_packet_done) struct my_packet q = { 0 };
	bool any = false;
	int r = MY_QUERY(&q, s, "reading the partitions of the log", err, sql_mysql_parts_list,
			 OB_ARG_TEXT("schema", my_schema(s)), OB_ARG_TEXT("table", table));

	if (r < 0)
		return r;
	ret->parts = calloc(PARTS_MAX + 1, sizeof(*ret->parts));
	if (!ret->parts)
		return my_oom("reading the partitions of the log", err);
	while (r == 0 && ret->count < PARTS_MAX && my_step(&q)) {
		any = true;
		r = add_part(s, &q, ret, err);
	}
	if (r < 0 || !any)
		return r;
	r = MY_NUMBER(s, "reading the partitions of the log", &ret->rows, err, sql_mysql_meta_get,
		      OB_ARG_TEXT("name", "partition_rows"));
	return r < 0 ? r
	       : ret->rows > 0
		       ? 0
		       : ob_parts_foreign(table, "is partitioned without a partition_rows", err);
}

int my_parts_look(struct my_store *s, int64_t *ret_rows, struct ob_err *err)
{
	OB_CLEANUP(parts_done) struct parts p = { 0 };
	int r = read_parts(s, &p, err);

	if (r == 0)
		*ret_rows = p.rows;
	return r;
}

/* The last number that was handed out. */
static int read_last(struct my_store *s, int64_t *ret_last, struct ob_err *err)
{
	int r = MY_NUMBER(s, "reading the counter of the log", ret_last, err, sql_mysql_counter,
			  OB_ARG_TEXT("schema", my_schema(s)),
			  OB_ARG_TEXT("table", s->base.layout->table[OB_TABLE_outbox]));

	*ret_last = r > 0 && *ret_last > 0 ? *ret_last - 1 : 0;
	return r < 0 ? r : 0;
}

int my_parts_reach(struct my_store *s, int64_t *ret_last, int64_t *ret_top, struct ob_err *err)
{
	OB_CLEANUP(parts_done) struct parts p = { 0 };
	int64_t last = 0;
	int r = read_parts(s, &p, err);

	if (r == 0 && p.rows > 0)
		r = read_last(s, &last, err);
	if (r < 0)
		return r;
	*ret_last = last;
	*ret_top = p.rows > 0 ? p.top : 0;
	return 0;
}

/* With the last, which takes all other numbers. */
static int list_parts(const struct parts *p, struct ob_arena *arena, struct ob_table_parts *ret,
		      struct ob_err *err)
{
	ret->list = ob_arena_alloc(arena, (p->count + 1) * sizeof(*ret->list));
	for (size_t i = 0; ret->list && i < p->count; i++) {
		const struct my_part *part = &p->parts[i];
		struct ob_table_part *to = &ret->list[i];

		*to = (struct ob_table_part){ .low = part->low, .high = part->high };
		if (!ob_arena_copy(arena, ob_str(part->name), &to->name))
			ret->list = NULL;
	}
	if (!ret->list)
		return my_oom("reading the partitions of the log", err);
	ret->list[p->count] = (struct ob_table_part){ .name = OB_STR("pmax"), .rest = true };
	ret->count = p->count + 1;
	return 0;
}

int my_parts(struct ob_store *store, struct ob_arena *arena, struct ob_table_parts *ret_parts,
	     struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	OB_CLEANUP(parts_done) struct parts p = { 0 };
	struct ob_table_parts parts = { 0 };
	int r = read_parts(s, &p, err);

	if (r == 0 && p.rows > 0)
		r = read_last(s, &parts.last, err);
	if (r == 0 && p.rows > 0)
		r = list_parts(&p, arena, &parts, err);
	if (r == 0)
		*ret_parts = parts;
	return r;
}

/* ---- changing -------------------------------------------------------- */

static int lock_and_alter(struct my_store *s, MYSQL *db, const char *sql, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf lock = OB_BUF_INIT(SQL_MAX);
	const char *doing = "changing the partitions of the log";
	int r = my_sql_expand(s, &lock, sql_mysql_part_lock,
			      (const struct ob_sql_arg[]){ { .name = NULL } }, err);

	if (r == 0)
		r = my_exec(s, db, sql_mysql_part_wait, doing, err);
	if (r == 0)
		r = my_exec(s, db, ob_buf_str(&lock), doing, err);
	return r < 0 ? r : my_exec(s, db, sql, doing, err);
}

/*
 * On a connection of its own, which waits no longer than a second for the table and then as long as
 * it takes. 0: done; 1: the lock was not to be had.
 */
static int alter(struct my_store *s, const char *tmpl, const struct ob_sql_arg *args,
		 struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(1 << 20);
	MYSQL *db;
	int r = my_sql_expand(s, &sql, tmpl, args, err);

	if (r == 0)
		r = my_connect(s, true, &db, err);
	if (r < 0)
		return r;
	r = lock_and_alter(s, db, ob_buf_str(&sql), err);
	bool busy = r < 0 && (s->code == ER_LOCK_WAIT_TIMEOUT || s->code == ER_LOCK_DEADLOCK);
	if (r < 0 &&
	    (s->code == ER_TABLEACCESS_DENIED_ERROR || s->code == ER_DBACCESS_DENIED_ERROR))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
			       "this user may not change the partitions of the log: grant it what "
			       "`outbox setup --grants --partitioned` prints");
	mysql_close(db); /* which unlocks */
	return busy ? 1 : r;
}

static int add_parts(struct my_store *s, const struct parts *p, struct ob_retained *done,
		     struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf list = OB_BUF_INIT(1 << 20);
	int64_t last;
	uint64_t made = 0;
	int r = read_last(s, &last, err);

	if (r < 0)
		return r;
	struct ob_part ahead = ob_parts_ahead(p->rows, last, p->top, false);
	for (int64_t low = ahead.low; low < ahead.high && made < ADD_MAX; low += p->rows, made++)
		ob_buf_addf(&list, "PARTITION `p%" PRId64 "` VALUES LESS THAN (%" PRId64 "), ", low,
			    low + p->rows);
	if (made == 0)
		return 0;
	ob_buf_adds(&list, "PARTITION `pmax` VALUES LESS THAN MAXVALUE");
	const struct ob_sql_arg args[] = { OB_ARG_RAW("partitions", ob_buf_str(&list)),
					   { .name = NULL } };
	r = alter(s, sql_mysql_part_add, args, err);
	if (r == 0)
		done->parts_made += made;
	return r < 0 ? r : 0;
}

/* ---- what may go ----------------------------------------------------- */

static bool has_gap(const struct ob_gaps *gaps, const struct my_part *part)
{
	for (size_t i = 0; i < gaps->count; i++) {
		if (gaps->ranges[i].low < part->high && gaps->ranges[i].high >= part->low)
			return true;
	}
	return false;
}

/* Does a reader still need a row of it? 1: yes. */
static int is_excepted(struct my_store *s, const struct my_parts_retain *how,
		       const struct my_part *part, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf numbers = OB_BUF_INIT(SQL_MAX);
	int64_t one;
	int r = 0;

	for (int64_t i = 0; i < how->partition_count * OB_LANES; i++)
		my_add_number(&numbers, i);
	for (size_t i = 0; i < how->reader_count && r == 0; i++)
		r = MY_NUMBER(s, "looking for partitions to drop", &one, err,
			      sql_mysql_part_excepted, OB_ARG_STR("reader", how->readers[i]),
			      OB_ARG_RAW("numbers", ob_buf_str(&numbers)),
			      OB_ARG_INT("low", part->low), OB_ARG_INT("high", part->high));
	return r;
}

/* 1: all of it, *ret_rows rows. What is cheap is asked first. */
static int may_drop(struct my_store *s, const struct my_parts_retain *how,
		    const struct my_part *part, uint64_t *ret_rows, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet q = { 0 };
	char name[NAME_SIZE + 2];
	int64_t one;

	if (part->high - 1 > how->bound->seq || has_gap(&how->bound->gaps, part))
		return 0;
	int r = MY_NUMBER(s, "looking for partitions to drop", &one, err, sql_mysql_part_above,
			  OB_ARG_INT("high", part->high));
	if (r <= 0)
		return r;
	r = is_excepted(s, how, part, err);
	if (r != 0)
		return r < 0 ? r : 0;
	(void)snprintf(name, sizeof(name), "`%s`", part->name);
	r = MY_QUERY(&q, s, "looking for partitions to drop", err, sql_mysql_part_count,
		     OB_ARG_RAW("partition", name));
	if (r < 0 || !my_step(&q))
		return r;
	*ret_rows = (uint64_t)my_int(&q, 0);
	return my_int(&q, 1) == 0;
}

static int drop_parts(struct my_store *s, const struct my_parts_retain *how, const struct parts *p,
		      struct ob_retained *done, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->count && r == 0; i++) {
		char name[NAME_SIZE + 2];
		uint64_t rows = 0;

		r = may_drop(s, how, &p->parts[i], &rows, err);
		if (r <= 0)
			continue;
		if (done->rows >= how->retain->limit) {
			done->more = true;
			return 0;
		}
		(void)snprintf(name, sizeof(name), "`%s`", p->parts[i].name);
		const struct ob_sql_arg args[] = { OB_ARG_RAW("partition", name),
						   { .name = NULL } };
		r = alter(s, sql_mysql_part_drop, args, err);
		if (r == 0) {
			done->rows += rows;
			done->parts_dropped++;
		}
	}
	return r < 0 ? r : 0;
}

int my_parts_retain(struct my_store *s, const struct my_parts_retain *how, struct ob_retained *done,
		    struct ob_err *err)
{
	OB_CLEANUP(parts_done) struct parts p = { 0 };
	bool removes = how->retain->published_ms != OB_NEVER_MS && how->retain->limit > 0 &&
		       how->bound->any && !how->retain->only;
	int r = read_parts(s, &p, err);

	if (r < 0 || p.rows == 0)
		return r;
	if (removes)
		r = drop_parts(s, how, &p, done, err);
	return r < 0 ? r : add_parts(s, &p, done, err);
}
