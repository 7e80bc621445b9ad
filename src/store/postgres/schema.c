/* SPDX-License-Identifier: MIT */
/* The tables of the PostgreSQL store: making, upgrading, and changing the partition count. */
#include "store/postgres/schema.h"
#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/parts.h"
#include "store/postgres/stmt.h"

#include "sql_postgres.h"

#include <inttypes.h>

enum { SCRIPT_MAX = 64 * 1024 };

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

/* Version 1 kept a state in every row; nobody has it. */
static int upgrade(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	/* Whoever may not read the version knows nothing of it. */
	if (found->table[OB_TABLE_meta].missing[0])
		return pg_check_rights(s, found, err);
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "no way to upgrade from schema version %" PRId64
			  ": choose another table name in the layout, or restore table '%s' from a "
			  "backup",
			  found->version, s->base.layout->table[OB_TABLE_meta]);
}

/* `rows`: of each partition of a partitioned log; 0: it is none. */
static int make(struct pg_store *s, int64_t count, int64_t rows, struct ob_err *err)
{
	const char *const scripts[] = {
		rows ? NULL : sql_postgres_tables,
		rows ? NULL : sql_postgres_indexes,
		sql_postgres_functions,
		sql_postgres_truncated,
		sql_postgres_view,
		s->notify == 0 ? sql_postgres_notify_on : sql_postgres_notify_off,
	};
	int r = rows ? pg_parts_setup(s, count, rows, err) : 0;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && r == 0; i++)
		r = scripts[i] ? run_script(s, scripts[i], count, err) : 0;
	return r;
}

/* Is every part there? Then nothing must be done, which a user without rights to create may ask. */
static bool is_complete(struct pg_store *s, const struct pg_found *found)
{
	struct ob_err ignored = OB_ERR_INIT;

	return found->version == OB_SCHEMA_VERSION && pg_check_found(s, found, &ignored) == 0 &&
	       found->has_trigger == (s->notify == 0);
}

/* Those that a table of this version has lacked at first. */
static int add_columns(struct pg_store *s, struct pg_found *found, struct ob_err *err)
{
	const char *lacks = found->lacks[OB_TABLE_workers];

	if (!lacks || strcmp(lacks, "state") != 0)
		return 0;
	found->lacks[OB_TABLE_workers] = NULL;
	return run_script(s, sql_postgres_add_state, 0, err);
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
	bool exists = found.table[OB_TABLE_outbox].oid != 0;
	int64_t rows = exists ? found.partition_rows : wish->partitioned ? wish->partition_rows : 0;
	*done = (struct ob_setup_done){ (uint32_t)found.version, OB_SCHEMA_VERSION, rows > 0 };
	if (found.any && !found.table[OB_TABLE_meta].oid)
		return pg_check_found(s, &found, err);
	if (is_complete(s, &found))
		return pg_source_attach(s, err);
	if (found.any && found.version < OB_SCHEMA_VERSION)
		return upgrade(s, &found, err);
	r = add_columns(s, &found, err);
	if (r == 0)
		r = pg_check_columns(s, &found, err);
	if (r == 0)
		r = pg_check_sequence(s, &found, err);
	if (r == 0)
		r = make(s, found.any ? found.partition_count : wish->partition_count, rows, err);
	return r < 0 ? r : pg_source_attach(s, err);
}

/* Versions are guarded by a unique index over the whole log: a partitioned one has none. */
static int setup_events(struct pg_store *s, bool partitioned, struct ob_err *err)
{
	if (partitioned)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a log partitioned by number cannot check versions: it is no "
				  "event store");
	return run_script(s, sql_postgres_events, 0, err);
}

static int setup_all(struct pg_store *s, const struct ob_setup *wish, struct ob_setup_done *done,
		     struct ob_err *err)
{
	int r = setup(s, wish, done, err);

	if (r == 0 && wish->events)
		r = setup_events(s, done->partitioned, err);
	return r < 0 || !wish->inbox ? r : run_script(s, sql_postgres_inbox, 0, err);
}

int pg_setup(struct ob_store *store, const struct ob_setup *wish, struct ob_setup_done *ret_done,
	     struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct ob_setup_done done;

	s->unlimited = true; /* building an index takes as long as it takes */
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_finish(s, setup_all(s, wish, &done, err), err);
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
	static const char *const log[] = { sql_postgres_tables, sql_postgres_indexes };
	static const char *const parts[] = { sql_postgres_functions, sql_postgres_truncated,
					     sql_postgres_view, sql_postgres_notify_on };
	int r = pg_expand(layout, sql_postgres_print_begin, 0, out, err);

	if (r == 0 && wish->partitioned)
		r = pg_parts_sql(layout, wish, out, err);
	for (size_t i = 0; i < 2 && r == 0 && !wish->partitioned; i++)
		r = pg_expand(layout, log[i], wish->partition_count, out, err);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = pg_expand(layout, parts[i], wish->partition_count, out, err);
	if (r == 0)
		r = pg_source_sql(layout, out, err);
	if (r == 0 && wish->events)
		r = pg_expand(layout, sql_postgres_events, 0, out, err);
	if (r == 0 && wish->inbox)
		r = pg_expand(layout, sql_postgres_inbox, 0, out, err);
	return r < 0 ? r : pg_expand(layout, sql_postgres_print_end, 0, out, err);
}

int pg_grants_sql(const struct ob_layout *layout, const struct ob_setup *setup, struct ob_buf *out,
		  struct ob_err *err)
{
	(void)setup; /* it finds out by itself */
	return pg_expand(layout, sql_postgres_grants, 0, out, err);
}

/* ---- resize and adopt ------------------------------------------------ */

/* What is asked first, with the tables locked: nobody writes, reads or takes a lease then. */
struct locked {
	int64_t partition_count;
	bool leased;
	bool foreign; /* the journal is of another cluster */
	int64_t identifier;
};

static int lock_and_look(struct pg_store *s, struct locked *ret, struct ob_err *err)
{
	static const int ids[] = { PG_setup_lock, PG_lock_tables,  OB_SQL_partition_count,
				   PG_any_lease,  PG_same_cluster, PG_any_ahead };
	int r = 0;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]) && r == 0; i++)
		r = pg_add(s, ids[i], NULL, err);
	if (r == 0)
		r = pg_flush(s, err);
	if (r < 0)
		return r;
	const PGresult *cluster = s->results[4], *journal = s->results[5];
	*ret = (struct locked){
		.partition_count = PQntuples(s->results[2]) ? pg_get_int(s->results[2], 0, 0) : 0,
		.leased = pg_get_int(s->results[3], 0, 0) != 0,
		.identifier = pg_get_int(cluster, 0, 1),
		.foreign = pg_get_int(cluster, 0, 0) != pg_get_int(cluster, 0, 1) ||
			   pg_get_int(journal, 0, 0) > 0,
	};
	return 0;
}

/* Put all readers to the place up to which nothing is missing, after `change` has been made to the
 * log. */
static int move_readers(struct pg_store *s, const char *change, int64_t partition_count,
			struct ob_err *err)
{
	const char *const scripts[] = { sql_postgres_resize_begin, change, sql_postgres_view };
	int r = 0;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && r == 0; i++)
		r = run_script(s, scripts[i], partition_count, err);
	if (r == 0)
		r = set_meta(s, "partition_count", partition_count, err);
	if (r == 0)
		r = run_script(s, sql_postgres_resize_end, partition_count, err);
	return r < 0 ? r : pg_add(s, PG_promote_all, NULL, err);
}

static int resize(struct pg_store *s, uint32_t count, struct ob_err *err)
{
	struct locked found;
	int r = lock_and_look(s, &found, err);

	if (r < 0 || found.partition_count == count)
		return r;
	if (found.leased)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "partitions are leased: stop the relays of this store first");
	return move_readers(s, sql_postgres_repartition, count, err);
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

static int adopt(struct pg_store *s, uint64_t *ret_rows, struct ob_err *err)
{
	struct locked found;
	int r = lock_and_look(s, &found, err);

	*ret_rows = 0;
	if (r < 0 || !found.foreign)
		return r;
	r = move_readers(s, sql_postgres_restamp, found.partition_count, err);
	if (r == 0)
		r = set_meta(s, "system_identifier", found.identifier, err);
	if (r == 0)
		r = pg_ask(s, PG_adopted, NULL, err);
	if (r == 0)
		*ret_rows = (uint64_t)pg_get_int(s->results[0], 0, 0);
	return r;
}

int pg_adopt(struct ob_store *store, uint64_t *ret_rows, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	uint64_t rows = 0;

	s->unlimited = true;
	int r = pg_begin(s, err);
	if (r == 0)
		r = pg_finish(s, adopt(s, &rows, err), err);
	s->unlimited = false;
	pg_clear(s);
	if (r == 0)
		*ret_rows = rows;
	return r;
}
