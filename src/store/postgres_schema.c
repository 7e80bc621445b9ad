/* SPDX-License-Identifier: MIT */
/* The tables of the PostgreSQL store: making, upgrading, and changing the partition count. */
#include "store/postgres_schema.h"
#include "base/cleanup.h"

#include "sql_postgres.h"

#include <inttypes.h>

enum { SCRIPT_MAX = 64 * 1024 };

/* upgrades[n] takes version n to n + 1: a template upgrade_<n>_to_<n+1>. */
static const char *const upgrades[OB_SCHEMA_VERSION] = { NULL };

static int run_script(struct pg_store *s, const char *tmpl, int64_t partition_count,
		      struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	int r = pg_expand(s->base.layout, tmpl, partition_count, &sql, err);

	return r < 0 ? r : pg_script(s, ob_buf_str(&sql), "changing the schema", err);
}

static int set_meta(struct pg_store *s, const char *name, int64_t value, struct ob_err *err)
{
	struct pg_params p = { 0 };

	pg_text(&p, name);
	pg_int(&p, value);
	int r = pg_add(s, PG_meta_set, &p, err);
	return r < 0 ? r : pg_flush(s, err);
}

/* ---- setup ----------------------------------------------------------- */

static int upgrade(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	for (int64_t v = found->version; v < OB_SCHEMA_VERSION; v++) {
		if (v < 1 || !upgrades[v])
			return ob_err_set(
				err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				"no way to upgrade from schema version %" PRId64
				", which no outbox has made: restore table '%s' from a backup",
				v, s->base.layout->table[OB_TABLE_meta]);
		int r = run_script(s, upgrades[v], found->partition_count, err);
		if (r < 0)
			return r;
	}
	return set_meta(s, "schema_version", OB_SCHEMA_VERSION, err);
}

static int make(struct pg_store *s, int64_t count, struct ob_err *err)
{
	const char *const scripts[] = {
		sql_postgres_tables,
		sql_postgres_indexes,
		sql_postgres_functions,
		s->notify == 0 ? sql_postgres_notify_on : sql_postgres_notify_off,
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && r == 0; i++)
		r = run_script(s, scripts[i], count, err);
	return r;
}

/* Is every part there? Then nothing must be done, which a user without rights to create may ask. */
static bool is_complete(struct pg_store *s, const struct pg_found *found)
{
	struct ob_err ignored = OB_ERR_INIT;

	return found->version == OB_SCHEMA_VERSION && pg_check_found(s, found, &ignored) == 0 &&
	       found->has_trigger == (s->notify == 0);
}

/* Under the lock, so that of two processes the second finds the work done. */
static int setup(struct pg_store *s, const struct ob_setup *wish, struct ob_setup_done *done,
		 struct ob_err *err)
{
	struct pg_found found = { 0 };
	int r = pg_add(s, PG_setup_lock, NULL, err);

	if (r == 0)
		r = pg_look(s, &found, err);
	if (r < 0)
		return r;
	*done = (struct ob_setup_done){ (uint32_t)found.version, OB_SCHEMA_VERSION };
	if (found.any && !found.table[OB_TABLE_meta].oid)
		return pg_check_found(s, &found, err);
	if (is_complete(s, &found))
		return pg_source_attach(s, err);
	if (found.any && found.version < OB_SCHEMA_VERSION)
		r = upgrade(s, &found, err);
	if (r == 0)
		r = pg_check_columns(s, &found, err);
	if (r == 0)
		r = pg_check_sequence(s, &found, err);
	if (r == 0)
		r = make(s, found.any ? found.partition_count : wish->partition_count, err);
	return r < 0 ? r : pg_source_attach(s, err);
}

int pg_setup(struct ob_store *store, const struct ob_setup *wish, struct ob_setup_done *ret_done,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct ob_setup_done done;

	s->unlimited = true; /* building an index takes as long as it takes */
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_finish(s, setup(s, wish, &done, err), err);
	s->unlimited = false;
	pg_clear(s);
	if (r < 0)
		return r;
	*ret_done = done;
	return 0;
}

int pg_setup_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err)
{
	static const char *const parts[] = { sql_postgres_print_begin, sql_postgres_tables,
					     sql_postgres_indexes, sql_postgres_functions,
					     sql_postgres_notify_on };
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = pg_expand(layout, parts[i], wish->partition_count, out, err);
	if (r == 0)
		r = pg_source_sql(layout, out, err);
	return r < 0 ? r : pg_expand(layout, sql_postgres_print_end, 0, out, err);
}

int pg_grants_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err)
{
	return pg_expand(layout, sql_postgres_grants, 0, out, err);
}

/* ---- resize ---------------------------------------------------------- */

/* Nobody writes, reads or takes a lease while the table is locked. */
static int look_locked(struct pg_store *s, int64_t *ret_count, bool *ret_leased, struct ob_err *err)
{
	int r = pg_add(s, PG_setup_lock, NULL, err);

	if (r == 0)
		r = pg_add(s, PG_lock_table, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_partition_count, NULL, err);
	if (r == 0)
		r = pg_add(s, PG_any_lease, NULL, err);
	if (r == 0)
		r = pg_flush(s, err);
	if (r < 0)
		return r;
	*ret_count = PQntuples(s->results[2]) ? pg_get_int(s->results[2], 0, 0) : 0;
	*ret_leased = pg_get_int(s->results[3], 0, 0) != 0;
	return 0;
}

static int resize(struct pg_store *s, uint32_t count, struct ob_err *err)
{
	int64_t now_count = 0;
	bool leased = false;
	int r = look_locked(s, &now_count, &leased, err);

	if (r < 0 || now_count == count)
		return r;
	if (leased)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "partitions are leased: stop the relays of this store first");
	r = run_script(s, sql_postgres_repartition, count, err);
	if (r == 0)
		r = run_script(s, sql_postgres_indexes, count, err);
	if (r == 0)
		r = set_meta(s, "partition_count", count, err);
	if (r == 0)
		r = pg_add(s, PG_free_leases, NULL, err);
	return r < 0 ? r : pg_add(s, PG_release_moved, NULL, err);
}

int pg_resize(struct ob_store *store, uint32_t partition_count, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;

	s->unlimited = true; /* every row is written anew */
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_finish(s, resize(s, partition_count, err), err);
	s->unlimited = false;
	pg_clear(s);
	return r;
}
