/* SPDX-License-Identifier: MIT */
/*
 * The tables of the MySQL store: making and upgrading them. The server commits with every CREATE
 * and ALTER, so these are steps that may be repeated, under a lock of their own, with the version
 * written last.
 */
#include "store/mysql/schema.h"
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "store/mysql/parts.h"
#include "store/mysql/source.h"
#include "store/mysql/sql.h"
#include "store/numbers.h"

#include "sql_mysql.h"

#include <inttypes.h>

enum { SCRIPT_MAX = 64 * 1024, SETUP_WAIT_S = 20 };

/* In the order in which they are made. */
#define COMPANIONS \
	sql_mysql_readers_table, sql_mysql_batches_table, sql_mysql_exceptions_table, \
		sql_mysql_workers_table, sql_mysql_leases_table, sql_mysql_throughput_table, \
		sql_mysql_audit_table

/* upgrades[n] takes version n to n + 1: a template upgrade_<n>_to_<n+1>. */
static const char *const upgrades[OB_SCHEMA_VERSION] = { NULL };

static int expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
		  struct ob_buf *out, struct ob_err *err)
{
	const struct ob_sqltmpl_number numbers[] = {
		{ "schema_version", OB_SCHEMA_VERSION },
		{ "partition_count", partition_count },
		OB_STATE_NUMBERS
#define X(name, text) { "view_" text, OB_VIEW_##name },
			OB_VIEW_MAP(X)
#undef X
				{ NULL, 0 },
	};

	return ob_sqltmpl_expand(out, tmpl, layout, '`', numbers, err);
}

int my_run_schema(struct my_store *s, MYSQL *db, const char *tmpl, int64_t partition_count,
		  struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	int r = expand(s->base.layout, tmpl, partition_count, &sql, err);

	return r < 0 ? r : my_exec(s, db, ob_buf_str(&sql), "changing the schema", err);
}

/* ---- one at a time --------------------------------------------------- */

static int ask_lock(struct my_store *s, const char *tmpl, const char *purpose, int seconds,
		    int64_t *ret_had, struct ob_err *err)
{
	return MY_NUMBER(s, "waiting for a lock", ret_had, err, tmpl,
			 OB_ARG_TEXT("purpose", purpose), OB_ARG_TEXT("schema", my_schema(s)),
			 OB_ARG_TEXT("table", s->base.layout->table[OB_TABLE_outbox]),
			 OB_ARG_INT("seconds", seconds));
}

int my_lock(struct my_store *s, const char *purpose, int seconds, struct ob_err *err)
{
	int64_t had;
	int r = ask_lock(s, sql_mysql_lock, purpose, seconds, &had, err);

	if (r < 0)
		return r;
	return had == 1 ? 0
			: ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				     "another %s of this outbox runs: wait until it ends", purpose);
}

void my_unlock(struct my_store *s, const char *purpose)
{
	struct ob_err ignored;
	int64_t had;

	if (s->db && !s->broken)
		(void)ask_lock(s, sql_mysql_unlock, purpose, 0, &had, &ignored);
}

/* ---- setup ----------------------------------------------------------- */

static int add_indexes(struct my_store *s, int64_t count, bool partitioned, struct ob_err *err)
{
	const struct {
		const char *suffix, *tmpl;
	} indexes[] = {
		{ "uniq_id", partitioned ? sql_mysql_add_key_id : sql_mysql_add_uniq_id },
		{ "uniq_aggregate_sequence", sql_mysql_add_uniq_aggregate_sequence },
	};
	size_t some = sizeof(indexes) / sizeof(indexes[0]);
	char columns[1024];
	int r = 0;

	if (!s->base.layout->column[OB_COL_sequence_number][0] || partitioned)
		some--;
	for (size_t i = 0; i < some && r == 0; i++) {
		r = my_index_columns(s, indexes[i].suffix, columns, err);
		if (r == 0 && !columns[0])
			r = my_run_schema(s, s->db, indexes[i].tmpl, count, err);
	}
	return r;
}

static int add_procedure(struct my_store *s, struct ob_err *err)
{
	char name[2 * OB_IDENT_SIZE];
	int64_t there;

	(void)snprintf(name, sizeof(name), "%s_push", s->base.layout->table[OB_TABLE_outbox]);
	int r = MY_NUMBER(s, "reading the schema", &there, err, sql_mysql_procedure_info,
			  OB_ARG_TEXT("schema", my_schema(s)), OB_ARG_TEXT("name", name));
	return r != 0 ? (r < 0 ? r : 0) : my_run_schema(s, s->db, sql_mysql_procedure, 0, err);
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
		r = my_run_schema(s, s->db, upgrades[v], found->partition_count, err);
	}
	return r;
}

static int make_all(struct my_store *s, struct my_found *found, uint32_t wish, struct ob_err *err)
{
	static const char *const tables[] = { COMPANIONS };
	int64_t count = wish;
	int r = my_run_schema(s, s->db, sql_mysql_meta, count, err);

	if (r == 0)
		r = my_run_schema(s, s->db, sql_mysql_meta_rows, count, err);
	/* What a setup that was interrupted chose stays. */
	if (r == 0)
		r = my_meta(s, "partition_count", &count, err);
	if (r == 0)
		r = found->partition_rows ? my_parts_setup(s, count, found->partition_rows, err)
					  : my_run_schema(s, s->db, sql_mysql_outbox, count, err);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && r == 0; i++)
		r = my_run_schema(s, s->db, tables[i], count, err);
	if (r == 0)
		r = upgrade(s, found, err);
	if (r == 0)
		r = add_indexes(s, count, found->partition_rows > 0, err);
	if (r == 0)
		r = my_run_schema(s, s->db, sql_mysql_messages_view, count, err);
	if (r == 0)
		r = add_procedure(s, err);
	if (r == 0)
		r = my_source_attach(s, err);
	return r < 0 ? r : my_run_schema(s, s->db, sql_mysql_version, count, err);
}

#define EVENTS \
	sql_mysql_events_table, sql_mysql_events_snapshots, sql_mysql_events_keys, \
		sql_mysql_events_drop, sql_mysql_events_append, sql_mysql_events_drop_read, \
		sql_mysql_events_read_stream, sql_mysql_events_drop_version, \
		sql_mysql_events_stream_version, sql_mysql_events_drop_category, \
		sql_mysql_events_read_category

/* Versions are guarded by a unique index over the whole log: a partitioned one has none. */
static int setup_events(struct my_store *s, bool partitioned, struct ob_err *err)
{
	static const char *const parts[] = { EVENTS };
	int r = 0;

	if (partitioned)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a log partitioned by number cannot check versions: it is no "
				  "event store");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = my_run_schema(s, s->db, parts[i], 0, err);
	return r;
}

static const char *const inbox_parts[] = {
	sql_mysql_inbox_table,     sql_mysql_consumers_table, sql_mysql_members_table,
	sql_mysql_positions_table, sql_mysql_parked_table,    sql_mysql_inbox_drop,
	sql_mysql_inbox_function,
};

enum { INBOX_PARTS = sizeof(inbox_parts) / sizeof(inbox_parts[0]) };

static int setup_inbox(struct my_store *s, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < INBOX_PARTS && r == 0; i++)
		r = my_run_schema(s, s->db, inbox_parts[i], 0, err);
	return r;
}

/* The same for the shell, where a body with semicolons needs another delimiter. */
static int shell_sql(const struct ob_layout *layout, const char *const *parts, size_t count,
		     struct ob_buf *out, struct ob_err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		ob_buf_adds(out, "DELIMITER //\n");
		r = expand(layout, parts[i], 0, out, err);
		ob_buf_adds(out, "//\nDELIMITER ;\n");
	}
	return r;
}

static int events_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err)
{
	static const char *const parts[] = { EVENTS };

	return shell_sql(layout, parts, sizeof(parts) / sizeof(parts[0]), out, err);
}

/* Those that a table of this version has lacked at first; one that is not ours is left as it is. */
static int add_columns(struct my_store *s, const struct my_found *found, struct ob_err *err)
{
	const char *workers = s->base.layout->table[OB_TABLE_workers];
	bool state = false, session = false;
	int r = found->table[OB_TABLE_workers] ? my_has_column(s, workers, "state", &state, err)
					       : 0;

	if (r < 0 || !found->table[OB_TABLE_workers] || state || found->version == 0)
		return r;
	r = my_has_column(s, workers, "session", &session, err);
	return r < 0 || !session ? r : my_run_schema(s, s->db, sql_mysql_add_state, 0, err);
}

static int setup(struct my_store *s, const struct ob_setup *wish, struct ob_setup_done *done,
		 struct ob_err *err)
{
	struct my_found found;
	char place[256];
	int r = my_look_schema(s, &found, err);

	if (r == 0)
		r = add_columns(s, &found, err);
	if (r == 0)
		r = my_check_columns(s, &found, err);
	if (r == 0)
		r = my_source_look(s, err);
	if (r < 0)
		return r;
	if (found.any && !found.table[OB_TABLE_meta])
		return ob_err_set(
			err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			"%s: table '%s' is not to be seen beside its companions: grant this user "
			"SELECT on it; if it is not there, they were not made by `outbox setup`",
			my_place(s, place), s->base.layout->table[OB_TABLE_meta]);
	if (!found.table[OB_TABLE_outbox] && wish->partitioned)
		found.partition_rows = wish->partition_rows;
	*done = (struct ob_setup_done){ (uint32_t)found.version, OB_SCHEMA_VERSION,
					found.partition_rows > 0 };
	r = make_all(s, &found, wish->partition_count, err);
	if (r == 0 && wish->events)
		r = setup_events(s, done->partitioned, err);
	return r < 0 || !wish->inbox ? r : setup_inbox(s, err);
}

int my_setup(struct ob_store *store, const struct ob_setup *wish, struct ob_setup_done *ret_done,
	     struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct ob_setup_done done;

	int r = my_ready(s, true, err);
	if (r == 0)
		r = my_lock(s, "setup", SETUP_WAIT_S, err);
	if (r == 0) {
		r = setup(s, wish, &done, err);
		my_unlock(s, "setup");
	}
	/* The next call has its time limit again. */
	my_disconnect(s);
	s->patient = false;
	if (r < 0)
		return r;
	*ret_done = done;
	return 0;
}

int my_setup_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err)
{
	static const char *const meta[] = { sql_mysql_meta, sql_mysql_meta_rows };
	static const char *const parts[] = { COMPANIONS, sql_mysql_messages_view,
					     sql_mysql_procedure };
	int r = 0;

	for (size_t i = 0; i < 2 && r == 0; i++)
		r = expand(layout, meta[i], wish->partition_count, out, err);
	if (r == 0)
		r = wish->partitioned
			    ? my_parts_sql(layout, wish, out, err)
			    : expand(layout, sql_mysql_outbox, wish->partition_count, out, err);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = expand(layout, parts[i], wish->partition_count, out, err);
	if (r == 0)
		r = my_source_sql(layout, out, err);
	if (r == 0 && layout->source.table[0])
		ob_buf_adds(out, ";\n");
	if (r == 0 && wish->events)
		r = events_sql(layout, out, err);
	if (r == 0 && wish->inbox)
		r = shell_sql(layout, inbox_parts, INBOX_PARTS, out, err);
	return r < 0 ? r : expand(layout, sql_mysql_version, 0, out, err);
}

int my_grants_sql(const struct ob_layout *layout, const struct ob_setup *setup, struct ob_buf *out,
		  struct ob_err *err)
{
	int r = expand(layout, sql_mysql_grants, 0, out, err);

	if (r < 0 || !setup->partitioned)
		return r;
	/* A right on a whole database; without a name, on the one that is in use. */
	if (layout->schema[0])
		ob_buf_addf(out, "GRANT LOCK TABLES ON `%s`.*", layout->schema);
	else
		ob_buf_adds(out, "GRANT LOCK TABLES ON *");
	return expand(layout, sql_mysql_grants_parts, 0, out, err);
}
