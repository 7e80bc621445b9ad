/* SPDX-License-Identifier: MIT */
/*
 * The tables of the MySQL store: making and upgrading them, and changing the
 * partition count. The server commits with every CREATE and ALTER, so these are
 * steps that may be repeated, under a lock of their own, with the version written last.
 */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/mysql.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { SCRIPT_MAX = 64 * 1024, SETUP_WAIT_S = 20 };

/* upgrades[n] takes version n to n + 1: a template upgrade_<n>_to_<n+1>. */
static const char *const upgrades[OB_SCHEMA_VERSION] = { NULL };

static int expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
		  struct ob_buf *out, struct ob_err *err)
{
	const struct ob_sqltmpl_number numbers[] = {
		{ "schema_version", OB_SCHEMA_VERSION },
		{ "partition_count", partition_count },
		{ NULL, 0 },
	};

	return ob_sqltmpl_expand(out, tmpl, layout, '`', numbers, err);
}

static int run_on(struct my_store *s, MYSQL *db, const char *tmpl, int64_t partition_count,
		  struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	int r = expand(s->base.layout, tmpl, partition_count, &sql, err);

	return r < 0 ? r : my_exec(s, db, ob_buf_str(&sql), "changing the schema", err);
}

/* ---- one at a time --------------------------------------------------- */

static int lock(struct my_store *s, enum my_id id, struct ob_err *err)
{
	struct my_query *q;
	int r = my_prepare(s, id, 1, &q, err);

	if (r < 0)
		return r;
	my_bind_text(q, "schema", my_schema(s));
	my_bind_text(q, "table", s->base.layout->table[OB_TABLE_outbox]);
	my_bind_int(q, "seconds", SETUP_WAIT_S);
	r = my_first(s, q, err);
	if (r < 0)
		return r;
	if (id == MY_lock_setup && my_int(q, 0) != 1)
		return ob_err_set(
			err, OUTBOX_EBUSY, OB_ERR_DOWN,
			"another setup or resize of this outbox runs: wait until it ends");
	return 0;
}

/* ---- setup ----------------------------------------------------------- */

static int add_indexes(struct my_store *s, int64_t count, struct ob_err *err)
{
	static const struct {
		const char *suffix, *tmpl;
	} indexes[] = {
		{ "uniq_id", sql_mysql_add_uniq_id },
		{ "ready", sql_mysql_add_ready },
		{ "keys", sql_mysql_add_keys },
		{ "finished", sql_mysql_add_finished },
		{ "uniq_aggregate_sequence", sql_mysql_add_uniq_aggregate_sequence },
	};
	size_t some = sizeof(indexes) / sizeof(indexes[0]);
	char columns[1024];
	int r = 0;

	if (!s->base.layout->column[OB_COL_sequence_number][0])
		some--;
	for (size_t i = 0; i < some && r == 0; i++) {
		r = my_index_columns(s, indexes[i].suffix, columns, err);
		if (r == 0 && !columns[0])
			r = run_on(s, s->db, indexes[i].tmpl, count, err);
	}
	return r;
}

static int add_procedure(struct my_store *s, struct ob_err *err)
{
	char name[2 * OB_IDENT_SIZE];
	struct my_query *q;
	int r = my_prepare(s, MY_procedure_info, 1, &q, err);

	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "%s_push", s->base.layout->table[OB_TABLE_outbox]);
	my_bind_text(q, "schema", my_schema(s));
	my_bind_text(q, "name", name);
	r = my_first(s, q, err);
	if (r != 0)
		return r < 0 ? r : 0;
	return run_on(s, s->db, sql_mysql_procedure, 0, err);
}

static int upgrade(struct my_store *s, const struct my_found *found, struct ob_err *err)
{
	char place[256];
	int r = 0;

	for (int64_t v = found->version; v < OB_SCHEMA_VERSION && r == 0; v++) {
		if (v == 0) /* nothing to upgrade: it is being made */
			return 0;
		if (!upgrades[v])
			return ob_err_set(
				err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				"%s: no way to upgrade from schema version %" PRId64
				", which no outbox has made: restore table '%s' from a backup",
				my_place(s, place), v, s->base.layout->table[OB_TABLE_meta]);
		r = run_on(s, s->db, upgrades[v], found->partition_count, err);
	}
	return r;
}

static int make_all(struct my_store *s, struct my_found *found, uint32_t wish, struct ob_err *err)
{
	static const char *const tables[] = { sql_mysql_outbox, sql_mysql_workers_table,
					      sql_mysql_partitions_table,
					      sql_mysql_throughput_table };
	int64_t count = wish;
	int r = run_on(s, s->db, sql_mysql_meta, count, err);

	if (r == 0)
		r = run_on(s, s->db, sql_mysql_meta_rows, count, err);
	/* What a setup that was interrupted chose stays. */
	if (r == 0)
		r = my_meta(s, MY_meta_get, "partition_count", &count, err);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && r == 0; i++)
		r = run_on(s, s->db, tables[i], count, err);
	if (r == 0)
		r = upgrade(s, found, err);
	if (r == 0)
		r = add_indexes(s, count, err);
	if (r == 0)
		r = add_procedure(s, err);
	if (r == 0)
		r = my_source_attach(s, err);
	return r < 0 ? r : run_on(s, s->db, sql_mysql_version, count, err);
}

static int setup(struct my_store *s, const struct ob_setup *wish, struct ob_setup_done *done,
		 struct ob_err *err)
{
	struct my_found found;
	char place[256];
	int r = my_look_schema(s, &found, err);

	if (r == 0)
		r = my_check_columns(s, &found, err);
	if (r == 0)
		r = my_source_look(s, err);
	if (r < 0)
		return r;
	if (found.any && !found.table[OB_TABLE_meta])
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "%s: table '%s' is missing beside its companions: they were not "
				  "made by `outbox setup`; choose another table name in the layout",
				  my_place(s, place), s->base.layout->table[OB_TABLE_meta]);
	*done = (struct ob_setup_done){ (uint32_t)found.version, OB_SCHEMA_VERSION };
	return make_all(s, &found, wish->partition_count, err);
}

int my_setup(struct ob_store *store, const struct ob_setup *wish, struct ob_setup_done *ret_done,
	     struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct ob_setup_done done;
	struct ob_err ignored;
	int r = my_ready(s, true, err);

	if (r == 0)
		r = lock(s, MY_lock_setup, err);
	if (r < 0)
		return r;
	r = setup(s, wish, &done, err);
	(void)lock(s, MY_unlock_setup, &ignored);
	if (r < 0)
		return r;
	*ret_done = done;
	return 0;
}

int my_setup_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err)
{
	static const char *const parts[] = {
		sql_mysql_meta,          sql_mysql_meta_rows,        sql_mysql_outbox,
		sql_mysql_workers_table, sql_mysql_partitions_table, sql_mysql_throughput_table,
		sql_mysql_procedure
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = expand(layout, parts[i], wish->partition_count, out, err);
	if (r == 0)
		r = my_source_sql(layout, out, err);
	if (r == 0 && layout->source.table[0])
		ob_buf_adds(out, ";\n");
	return r < 0 ? r : expand(layout, sql_mysql_version, 0, out, err);
}

int my_grants_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err)
{
	return expand(layout, sql_mysql_grants, 0, out, err);
}

/* ---- resize ---------------------------------------------------------- */

/* One resize while it runs. */
struct resizing {
	uint32_t count;
	int64_t modulus; /* of the column now */
};

static int run_simple(struct my_store *s, enum my_id id, struct ob_err *err)
{
	struct my_query *q;
	int r = my_prepare(s, id, 1, &q, err);

	if (r == 0)
		r = my_run(s, q, err);
	return r < 0 ? r : 0;
}

/* Keep every relay from taking a lease until the transaction ends. */
static int lock_leases(struct my_store *s, struct ob_err *err)
{
	struct my_query *q;
	int r = my_prepare(s, MY_lock_leases, 1, &q, err);

	if (r == 0)
		r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0)
		;
	if (r == 0)
		r = my_prepare(s, MY_any_lease, 1, &q, err);
	if (r == 0)
		r = my_first(s, q, err);
	if (r < 0)
		return r;
	return !my_int(q, 0) ? 0
			     : ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
					  "partitions are leased: stop the relays of this store "
					  "first");
}

static int set_count(struct my_store *s, int64_t count, struct ob_err *err)
{
	struct my_query *q;
	int r = my_prepare(s, MY_meta_set, 1, &q, err);

	if (r < 0)
		return r;
	my_bind_text(q, "name", "partition_count");
	my_bind_int(q, "value", count);
	r = my_run(s, q, err);
	return r < 0 ? r : 0;
}

/*
 * An ALTER ends the transaction of its connection, so it runs on another one,
 * while this one holds the lease rows. Should the process die between the
 * ALTER and the commit, check says that the resize must be run again.
 */
static int repartition(struct my_store *s, uint32_t count, struct ob_err *err)
{
	MYSQL *other;
	int r = my_connect(s, true, &other, err);

	if (r < 0)
		return r;
	r = run_on(s, other, sql_mysql_repartition, count, err);
	mysql_close(other);
	return r;
}

/* Parked rows that nothing holds any more go on. */
static int release_moved(struct my_store *s, struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(SIZE_MAX / 2);
	struct my_query *q;
	int r = my_prepare(s, MY_moved, 1, &q, err);

	if (r == 0)
		r = my_run_found(s, q, MY_rows_unpark, &arena, err);
	ob_arena_done(&arena);
	return r;
}

static int resize_work(struct my_store *s, void *arg, struct ob_err *err)
{
	const struct resizing *z = arg;
	int64_t now_count;
	int r = my_meta(s, MY_meta_lock, "partition_count", &now_count, err);

	if (r < 0 || (now_count == z->count && z->modulus == z->count))
		return r;
	r = lock_leases(s, err);
	if (r == 0)
		r = run_simple(s, MY_free_leases, err);
	if (r == 0)
		r = set_count(s, z->count, err);
	if (r == 0)
		r = repartition(s, z->count, err);
	return r < 0 ? r : release_moved(s, err);
}

static int resize(struct my_store *s, uint32_t count, struct ob_err *err)
{
	struct resizing z = { .count = count };
	struct my_found found;
	int r = my_look_schema(s, &found, err);

	if (r == 0 && !found.table[OB_TABLE_outbox])
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "table '%s' is missing; run `outbox setup`",
			       s->base.layout->table[OB_TABLE_outbox]);
	if (r == 0)
		r = my_check_columns(s, &found, err);
	if (r < 0)
		return r;
	z.modulus = found.modulus;
	return my_transact(s, resize_work, &z, err);
}

int my_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct ob_err ignored;
	int r = my_ready(s, false, err);

	if (r == 0)
		r = lock(s, MY_lock_setup, err);
	if (r < 0)
		return r;
	r = resize(s, partition_count, err);
	if (s->db && !s->broken)
		(void)lock(s, MY_unlock_setup, &ignored);
	return r;
}
