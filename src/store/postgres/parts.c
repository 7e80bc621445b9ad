/* SPDX-License-Identifier: MIT */
/*
 * A log that is partitioned by number, on PostgreSQL. What changes tables is done by functions that
 * setup has made (sql/postgres/parts.sql): the relay's role owns nothing.
 *
 * No row is lost. One that is not delivered to everyone is of a transaction at or above the oldest
 * xmin; under the lock of its table none can be added, and if there is one the table stays. Whoever
 * has drawn a number of it and inserts afterwards is found as late, by the transaction.
 */
#include "store/postgres/parts.h"
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/parts.h"
#include "store/postgres/ops.h"
#include "store/postgres/stmt.h"

#include "sql_postgres.h"

#include <inttypes.h>

enum { SCRIPT_MAX = 64 * 1024 };

/* Columns of parts_list. */
enum { LEAF_NAME, LEAF_LOW, LEAF_HIGH, LEAF_NESTED, LEAF_REST, LEAF_USED };

/* ---- setup ----------------------------------------------------------- */

static const char *const scripts[] = { sql_postgres_parts_tables, sql_postgres_parts_indexes,
				       sql_postgres_parts_functions, sql_postgres_parts_first };

static int expand_script(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
			 int64_t rows, struct ob_buf *out, struct ob_err *err)
{
	const struct ob_sqltmpl_number numbers[] = {
		{ "schema_version", OB_SCHEMA_VERSION },
		{ "partition_count", partition_count },
		{ "lanes", OB_LANES },
		{ "partition_rows", rows },
		{ "parts_first", OB_PARTS_FIRST },
		{ NULL, 0 },
	};

	return ob_sqltmpl_expand(out, tmpl, layout, '"', numbers, err);
}

int pg_parts_setup(struct pg_store *s, int64_t partition_count, int64_t rows, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && r == 0; i++) {
		OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);

		r = expand_script(s->base.layout, scripts[i], partition_count, rows, &sql, err);
		if (r == 0)
			r = pg_script(s, ob_buf_str(&sql), "changing the schema", err);
	}
	return r;
}

int pg_parts_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && r == 0; i++)
		r = expand_script(layout, scripts[i], wish->partition_count, wish->partition_rows,
				  out, err);
	return r;
}

/* ---- looking --------------------------------------------------------- */

/* The partitions as they are; to be read while this is held. */
struct leaves {
	int64_t rows; /* of a new one; 0: the log is not partitioned */
	int64_t last; /* the highest number */
	int64_t top;  /* where the highest partition ends; 0: there is none */
	PGresult *list;
};

static void leaves_done(struct leaves *l)
{
	PQclear(l->list);
}

static int judge_leaf(struct pg_store *s, const PGresult *list, int row, struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	char rest[OB_IDENT_SIZE + sizeof("_default")];

	(void)snprintf(rest, sizeof(rest), "%s_default", table);
	if (!ob_part_name_valid(pg_get_str(list, row, LEAF_NAME)))
		return ob_parts_foreign(table, "has a partition with an unsafe name", err);
	if (pg_get_int(list, row, LEAF_NESTED))
		return ob_parts_foreign(table, "has a partition that is partitioned itself", err);
	if (pg_get_int(list, row, LEAF_REST))
		return ob_str_eq(pg_get_str(list, row, LEAF_NAME), ob_str(rest))
			       ? 0
			       : ob_parts_foreign(table, "has a default partition of another name",
						  err);
	return PQgetisnull(list, row, LEAF_LOW)
		       ? ob_parts_foreign(table, "has a partition without two bounds", err)
		       : 0;
}

/* Whatever is not as we make it is refused before anything is changed. */
static int read_leaves(struct pg_store *s, struct leaves *ret, struct ob_err *err)
{
	int r = pg_ask(s, PG_parts_state, NULL, err);

	if (r < 0)
		return r;
	ret->rows = pg_get_int(s->results[0], 0, 0);
	ret->last = pg_get_int(s->results[0], 0, 1);
	if (ret->rows == 0)
		return 0;
	r = pg_ask(s, PG_parts_list, NULL, err);
	if (r < 0)
		return r;
	ret->list = s->results[0];
	s->results[0] = NULL;
	for (int row = 0; row < PQntuples(ret->list) && r == 0; row++) {
		r = judge_leaf(s, ret->list, row, err);
		if (pg_get_int(ret->list, row, LEAF_HIGH) > ret->top)
			ret->top = pg_get_int(ret->list, row, LEAF_HIGH);
	}
	return r;
}

int pg_parts_check(struct pg_store *s, int64_t oid, int64_t *ret_rows, struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	OB_CLEANUP(leaves_done) struct leaves l = { 0 };
	struct pg_params p = { 0 };

	pg_int(&p, oid);
	int r = pg_ask(s, PG_parts_kind, &p, err);
	if (r == 0 && (PQntuples(s->results[0]) == 0 || !pg_get_int(s->results[0], 0, 0)))
		return ob_parts_foreign(table, "is not partitioned by a range of its number", err);
	if (r == 0)
		r = read_leaves(s, &l, err);
	if (r == 0 && l.rows <= 0)
		return ob_parts_foreign(table, "is partitioned without a partition_rows", err);
	*ret_rows = l.rows;
	return r;
}

int pg_parts_any(struct pg_store *s, bool *ret_any, struct ob_err *err)
{
	int r = pg_ask(s, PG_parts_state, NULL, err);

	*ret_any = r == 0 && pg_get_int(s->results[0], 0, 0) > 0;
	return r;
}

int pg_parts_reach(struct pg_store *s, int64_t *ret_last, int64_t *ret_top, struct ob_err *err)
{
	OB_CLEANUP(leaves_done) struct leaves l = { 0 };
	int r = read_leaves(s, &l, err);

	if (r < 0)
		return r;
	*ret_last = l.last;
	*ret_top = l.rows > 0 ? l.top : 0;
	return 0;
}

static int list_leaves(const struct leaves *l, struct ob_arena *arena, struct ob_table_parts *ret,
		       struct ob_err *err)
{
	size_t count = (size_t)PQntuples(l->list);

	ret->last = l->last;
	ret->list = ob_arena_alloc(arena, (count + 1) * sizeof(*ret->list));
	for (size_t i = 0; ret->list && i < count; i++) {
		struct ob_table_part *to = &ret->list[i];
		int row = (int)i;

		*to = (struct ob_table_part){ .low = pg_get_int(l->list, row, LEAF_LOW),
					      .high = pg_get_int(l->list, row, LEAF_HIGH),
					      .rest = pg_get_int(l->list, row, LEAF_REST) != 0 };
		if (!ob_arena_copy(arena, pg_get_str(l->list, row, LEAF_NAME), &to->name))
			ret->list = NULL;
	}
	if (!ret->list)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	ret->count = count;
	return 0;
}

int pg_parts(struct ob_store *store, struct ob_arena *arena, struct ob_table_parts *ret_parts,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	OB_CLEANUP(leaves_done) struct leaves l = { 0 };
	struct ob_table_parts parts = { 0 };
	int r = pg_begin(s, err);

	if (r == 0)
		r = read_leaves(s, &l, err);
	r = pg_finish(s, r, err);
	pg_clear(s);
	if (r == 0 && l.rows > 0)
		r = list_leaves(&l, arena, &parts, err);
	if (r == 0)
		*ret_parts = parts;
	return r;
}

/* ---- retention ------------------------------------------------------- */

/* One call while it runs. */
struct keeping {
	struct pg_store *s;
	const struct ob_retain *retain;
	const struct ob_retain_bound *bound;
	struct ob_retained *done;
	struct leaves leaves;
	bool any_empty; /* a partition that may go has no rows */
};

/* Each step is a transaction, under the lock of retention. 1: another has it. */
static int begin_step(struct keeping *k, struct ob_err *err)
{
	int r = pg_begin(k->s, err);

	if (r == 0)
		r = pg_ask(k->s, PG_retain_lock, NULL, err);
	return r < 0 ? r : pg_get_int(k->s->results[0], 0, 0) == 0;
}

static void put_range(const struct keeping *k, int row, struct pg_params *p)
{
	pg_int(p, pg_get_int(k->leaves.list, row, LEAF_LOW));
	pg_int(p, pg_get_int(k->leaves.list, row, LEAF_HIGH));
}

/* Ask what is cheap first; the lock last, and for as short as can be. */
static int clear_leaf(struct keeping *k, int row, struct ob_err *err)
{
	struct pg_params held = { 0 }, range = { 0 }, clear = { 0 };
	char txid[24];

	(void)snprintf(txid, sizeof(txid), "%" PRIu64, k->bound->txid);
	put_range(k, row, &held);
	pg_text(&held, txid);
	int r = pg_ask(k->s, PG_part_held, &held, err);
	if (r < 0 || pg_get_int(k->s->results[0], 0, 0))
		return r;
	put_range(k, row, &range);
	r = pg_ask(k->s, PG_part_count, &range, err);
	if (r < 0 || pg_get_int(k->s->results[0], 0, 1))
		return r;
	uint64_t rows = (uint64_t)pg_get_int(k->s->results[0], 0, 0);
	put_range(k, row, &clear);
	pg_text(&clear, txid);
	r = pg_ask(k->s, PG_part_clear, &clear, err);
	if (r == 0 && pg_get_int(k->s->results[0], 0, 0)) {
		k->done->rows += rows;
		k->any_empty = true;
	}
	return r;
}

static int clear_leaves(struct keeping *k, struct ob_err *err)
{
	const PGresult *list = k->leaves.list;
	int r = 0;

	for (int row = 0; row < PQntuples(list) && r == 0; row++) {
		if (pg_get_int(list, row, LEAF_REST) ||
		    pg_get_int(list, row, LEAF_HIGH) - 1 > k->bound->seq)
			continue;
		if (!pg_get_int(list, row, LEAF_USED)) {
			k->any_empty = true;
			continue;
		}
		if (k->done->rows >= k->retain->limit) {
			k->done->more = true;
			return 0;
		}
		r = begin_step(k, err);
		r = pg_finish(k->s, r == 0 ? clear_leaf(k, row, err) : r, err);
	}
	return r < 0 ? r : 0;
}

/* Once in a round: whoever writes waits while the lock of the whole log is waited for. */
static int drop_leaves(struct keeping *k, struct ob_err *err)
{
	struct pg_params p = { 0 };

	if (!k->any_empty || k->done->more)
		return 0;
	int r = begin_step(k, err);
	if (r == 0) {
		pg_int(&p, k->bound->seq + 1);
		r = pg_ask(k->s, PG_part_remove, &p, err);
		if (r == 0)
			k->done->parts_dropped = (uint64_t)pg_get_int(k->s->results[0], 0, 0);
	}
	r = pg_finish(k->s, r, err);
	return r < 0 ? r : 0;
}

static int add_leaves(struct keeping *k, struct ob_err *err)
{
	const struct leaves *l = &k->leaves;
	struct ob_part ahead = ob_parts_ahead(l->rows, l->last, l->top, true);
	uint64_t made = 0;
	bool had = true;
	int r = ahead.low < ahead.high ? begin_step(k, err) : 1;

	if (r > 0)
		return ahead.low < ahead.high ? pg_finish(k->s, 0, err) : 0;
	for (int64_t low = ahead.low; low < ahead.high && had && r == 0; low += l->rows) {
		struct pg_params p = { 0 };

		pg_int(&p, low);
		pg_int(&p, low + l->rows);
		r = pg_ask(k->s, PG_part_make, &p, err);
		had = r == 0 && pg_get_int(k->s->results[0], 0, 0);
		made += had;
	}
	r = pg_finish(k->s, r, err);
	if (r == 0)
		k->done->parts_made = made;
	return r;
}

int pg_parts_retain(struct pg_store *s, const struct ob_retain *retain,
		    const struct ob_retain_bound *bound, struct ob_retained *done,
		    struct ob_err *err)
{
	struct keeping k = { .s = s, .retain = retain, .bound = bound, .done = done };
	bool removes = retain->published_ms != OB_NEVER_MS && retain->limit > 0 && bound->any &&
		       !retain->only;

	s->unlimited = true; /* a partition's rows are counted before it goes */
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_finish(s, read_leaves(s, &k.leaves, err), err);
	if (r == 0 && k.leaves.rows > 0 && removes)
		r = clear_leaves(&k, err);
	if (r == 0 && k.leaves.rows > 0 && removes)
		r = drop_leaves(&k, err);
	if (r == 0 && k.leaves.rows > 0)
		r = add_leaves(&k, err);
	s->unlimited = false;
	leaves_done(&k.leaves);
	pg_clear(s);
	return r;
}
