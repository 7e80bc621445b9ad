/* SPDX-License-Identifier: MIT */
/* The tables of the SQLite store: making and checking them. */
#include "store/sqlite/schema.h"

#include "base/cleanup.h"
#include "store/sqlite/source.h"
#include "store/sqlite/stmt.h"

#include "sql_sqlite.h"

#include <inttypes.h>

enum { SCRIPT_MAX = 64 * 1024 };

/* Columns of the companion tables; of the outbox table the layout knows them. */
static const char *const companion_columns[OB_TABLE_COUNT][11] = {
	[OB_TABLE_readers] = { "name", "target", "filter", "temporary", "created_at" },
	[OB_TABLE_batches] = { "reader", "partition_no", "batch", "epoch", "owner", "at", "pos",
			       "published", "failed" },
	[OB_TABLE_exceptions] = { "reader", "partition_no", "seq", "state", "attempts", "due",
				  "queue", "last_error", "since" },
	[OB_TABLE_leases] = { "reader", "partition_no", "lease_owner", "lease_until", "lease_epoch",
			      "updated_at" },
	[OB_TABLE_workers] = { "id", "reader", "hostname", "pid", "started_at", "heartbeat_until",
			       "published", "failed", "session", "state" },
	[OB_TABLE_throughput] = { "minute", "reader", "worker", "published", "failed" },
	[OB_TABLE_audit] = { "number", "at", "who", "origin", "verb", "reader", "filter",
			     "messages", "plan", "reason" },
	[OB_TABLE_meta] = { "name", "value" },
};

/* What is there under our names. */
struct found {
	bool table[OB_TABLE_COUNT];
	bool any;
	bool autoincrement;
	int64_t version;         /* 0: no meta table */
	int64_t partition_count; /* of the meta table */
};

/* ---- reading --------------------------------------------------------- */

int lite_meta(struct lite_store *s, const char *name, int64_t *ret_value, struct ob_err *err)
{
	int r = lite_value(s, LITE_meta_get, OB_ARGS(OB_ARG_TEXT("name", name)), ret_value, err);

	if (r != 0)
		return r < 0 ? r : 0;
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "table '%s' has no '%s': it was not made by `outbox setup`",
			  s->base.layout->table[OB_TABLE_meta], name);
}

/* Is there a table of this name? Something else under the name is an error. */
static int find_table(struct lite_store *s, enum ob_table t, struct found *found,
		      struct ob_err *err)
{
	const char *name = s->base.layout->table[t];
	int r = lite_bind(s, LITE_object, OB_ARGS(OB_ARG_TEXT("name", name)), err);

	if (r == 0)
		r = lite_step(s, LITE_object, err);
	if (r <= 0)
		return r;
	sqlite3_stmt *stmt = s->stmt[LITE_object];
	bool table = ob_str_eq(lite_str(stmt, 0), OB_STR("table"));
	const char *sql = (const char *)sqlite3_column_text(stmt, 1);
	if (t == OB_TABLE_outbox)
		found->autoincrement = sql && strcasestr(sql, "AUTOINCREMENT");
	found->table[t] = found->any = true;
	r = table ? 0
		  : ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "'%s' exists and is no table: choose another table name in the "
			       "layout",
			       name);
	lite_reset(s, LITE_object);
	return r;
}

static int look(struct lite_store *s, struct found *found, struct ob_err *err)
{
	int r = 0;

	*found = (struct found){ 0 };
	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++)
		r = find_table(s, (enum ob_table)t, found, err);
	if (r == 0 && found->table[OB_TABLE_meta])
		r = lite_meta(s, "schema_version", &found->version, err);
	if (r == 0 && found->table[OB_TABLE_meta])
		r = lite_meta(s, "partition_count", &found->partition_count, err);
	if (r < 0)
		return r;
	if (found->version > OB_SCHEMA_VERSION)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "%s: the tables have schema version %" PRId64
				  ", made by a newer outbox; upgrade this program (it knows %d)",
				  lite_path(s->base.url), found->version, OB_SCHEMA_VERSION);
	return 0;
}

int lite_column(struct lite_store *s, const char *table, const char *name, struct lite_column *ret,
		struct ob_err *err)
{
	int r = lite_bind(s, LITE_columns, OB_ARGS(OB_ARG_TEXT("table", table)), err);
	sqlite3_stmt *stmt = s->stmt[LITE_columns];

	*ret = (struct lite_column){ 0 };
	while (r >= 0 && (r = lite_step(s, LITE_columns, err)) > 0) {
		if (strcasecmp((const char *)sqlite3_column_text(stmt, 0), name) != 0)
			continue;
		ret->exists = true;
		(void)snprintf(ret->type, sizeof(ret->type), "%s",
			       (const char *)sqlite3_column_text(stmt, 1));
		ret->generated = sqlite3_column_int(stmt, 2) >= 2;
		lite_reset(s, LITE_columns);
		return 0;
	}
	return r;
}

static int require_column(struct lite_store *s, const char *table, const char *name,
			  struct lite_column *ret, struct ob_err *err)
{
	int r = lite_column(s, table, name, ret, err);

	if (r < 0 || ret->exists)
		return r;
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "table '%s' has no column '%s': it is not ours, or the layout is not the "
			  "one it was made with; correct the layout or choose another table name",
			  table, name);
}

/* The layout says text or bytes; a table made with the other would store nonsense. */
static int check_type(const char *what, const struct lite_column *column, bool other,
		      const char *option, struct ob_err *err)
{
	const char *want =
		strcmp(what, "id") == 0 ? (other ? "TEXT" : "BLOB") : (other ? "BLOB" : "TEXT");

	if (strcasecmp(column->type, want) == 0)
		return 0;
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "column '%s' is %s, but the layout says %s; correct %s in the layout",
			  what, column->type, want, option);
}

static int check_outbox_columns(struct lite_store *s, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	struct lite_column column;
	int r = 0;

	for (int c = 0; c < OB_COL_COUNT && r == 0; c++) {
		if (!layout->column[c][0] || c == OB_COL_txid)
			continue;
		r = require_column(s, layout->table[OB_TABLE_outbox], layout->column[c], &column,
				   err);
		if (r == 0 && c == OB_COL_id)
			r = check_type("id", &column, layout->string_id, "id_type", err);
		if (r == 0 && c == OB_COL_payload)
			r = check_type("payload", &column, layout->binary_payload, "payload_type",
				       err);
		if (r == 0 && c == OB_COL_partition_no && !column.generated)
			r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				       "column '%s' of table '%s' is not generated: rows would get "
				       "no partition; move the rows to a table made by `outbox "
				       "setup`",
				       layout->column[c], layout->table[OB_TABLE_outbox]);
	}
	return r;
}

static int check_columns(struct lite_store *s, const struct found *found, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	struct lite_column ignored;
	int r = found->table[OB_TABLE_outbox] ? check_outbox_columns(s, err) : 0;

	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++) {
		const char *const *names = companion_columns[t];

		for (; found->table[t] && *names && r == 0; names++)
			r = require_column(s, layout->table[t], *names, &ignored, err);
	}
	return r;
}

/* ---- check ----------------------------------------------------------- */

static int check_object(struct lite_store *s, const char *suffix, struct ob_err *err)
{
	char name[OB_IDENT_SIZE + 32];

	(void)snprintf(name, sizeof(name), "%s_%s", s->base.layout->table[OB_TABLE_outbox], suffix);
	int r = lite_bind(s, LITE_object, OB_ARGS(OB_ARG_TEXT("name", name)), err);
	if (r == 0)
		r = lite_step(s, LITE_object, err);
	lite_reset(s, LITE_object);
	if (r != 0)
		return r < 0 ? r : 0;
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL, "'%s' is missing: run `outbox setup`",
			  name);
}

static int check_found(struct lite_store *s, const struct found *found, struct ob_err *err)
{
	static const char *const objects[] = { "uniq_id", "due", "queue", "messages" };
	const char *path = lite_path(s->base.url);

	if (found->any && !found->table[OB_TABLE_meta]) {
		/* Say which column is missing, when one is: that tells most. */
		int r = check_columns(s, found, err);
		return r < 0 ? r
			     : ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
					  "%s: table '%s' is missing beside its companions: they "
					  "were not made by `outbox setup`; choose another table "
					  "name in the layout",
					  path, s->base.layout->table[OB_TABLE_meta]);
	}
	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		if (!found->table[t])
			return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
					  "%s: table '%s' is missing; run `outbox setup`", path,
					  s->base.layout->table[t]);
	}
	if (found->version < OB_SCHEMA_VERSION)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "%s: the tables have schema version %" PRId64
				  ", this program needs %d; run `outbox setup`",
				  path, found->version, OB_SCHEMA_VERSION);
	int r = check_columns(s, found, err);
	if (r == 0 && !found->autoincrement)
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "%s: table '%s' was made without AUTOINCREMENT: SQLite would hand "
			       "out numbers twice; move the rows to a table made by `outbox setup`",
			       path, s->base.layout->table[OB_TABLE_outbox]);
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]) && r == 0; i++)
		r = check_object(s, objects[i], err);
	return r;
}

int lite_check(struct ob_store *store, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct found found;
	int r = lite_begin_read(s, "checking the tables", err);

	if (r < 0)
		return r;
	r = look(s, &found, err);
	if (r == 0)
		r = check_found(s, &found, err);
	if (r == 0)
		r = lite_source_check(s, err);
	return lite_end_read(s, r, err);
}

/* ---- setup ----------------------------------------------------------- */

int lite_run_script(struct lite_store *s, const char *tmpl, int64_t partition_count,
		    struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SCRIPT_MAX);
	int r = lite_expand(s->base.layout, tmpl, partition_count, &sql, err);

	if (r < 0)
		return r;
	int code = sqlite3_exec(s->db, ob_buf_str(&sql), NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : lite_err(s, code, err);
}

int lite_set_meta(struct lite_store *s, const char *name, int64_t value, struct ob_err *err)
{
	int r = lite_run(s, LITE_meta_set,
			 OB_ARGS(OB_ARG_TEXT("name", name), OB_ARG_INT("value", value)), err);

	return r < 0 ? r : 0;
}

/* Rows with a state of their own cannot become a log with readers. */
static int refuse_old(const struct lite_store *s, const struct found *found, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "%s: table '%s' has schema version %" PRId64
			  ", which cannot be upgraded to %d: let its relay finish and drop its "
			  "tables, or choose another table name in the layout",
			  lite_path(s->base.url), s->base.layout->table[OB_TABLE_outbox],
			  found->version, OB_SCHEMA_VERSION);
}

/* Those that a table of this version has lacked at first. */
static int add_columns(struct lite_store *s, const struct found *found, struct ob_err *err)
{
	const char *workers = s->base.layout->table[OB_TABLE_workers];
	struct lite_column state, session;
	int r = found->table[OB_TABLE_workers] ? lite_column(s, workers, "state", &state, err) : 0;

	if (r < 0 || !found->table[OB_TABLE_workers] || state.exists)
		return r;
	/* A table that is not ours is left as it is. */
	r = lite_column(s, workers, "session", &session, err);
	return r < 0 || !session.exists ? r : lite_run_script(s, sql_sqlite_add_state, 0, err);
}

/* Inside the write transaction, so that of two processes the second finds the work done. */
static int setup(struct lite_store *s, const struct ob_setup *setup, struct ob_setup_done *done,
		 struct ob_err *err)
{
	struct found found;
	int r = look(s, &found, err);

	if (r < 0)
		return r;
	if (found.any && !found.table[OB_TABLE_meta])
		return check_found(s, &found, err);
	if (found.any && found.version < OB_SCHEMA_VERSION)
		return refuse_old(s, &found, err);
	r = add_columns(s, &found, err);
	if (r == 0)
		r = check_columns(s, &found, err);
	if (r < 0)
		return r;

	int64_t count = found.any ? found.partition_count : setup->partition_count;
	r = lite_run_script(s, sql_sqlite_tables, count, err);
	if (r == 0 && !found.table[OB_TABLE_outbox])
		r = lite_run_script(s, sql_sqlite_partition, count, err);
	if (r == 0 && !found.table[OB_TABLE_outbox])
		r = lite_run(s, LITE_go_on,
			     OB_ARGS(OB_ARG_TEXT("table", s->base.layout->table[OB_TABLE_outbox])),
			     err);
	if (r >= 0)
		r = lite_run_script(s, sql_sqlite_indexes, count, err);
	if (r == 0)
		r = lite_run_script(s, sql_sqlite_view, count, err);
	if (r == 0)
		r = lite_source_attach(s, err);
	if (r == 0 && setup->events)
		r = lite_run_script(s, sql_sqlite_events, count, err);
	if (r == 0 && setup->inbox)
		r = lite_run_script(s, sql_sqlite_inbox, count, err);
	*done = (struct ob_setup_done){ .from_version = (uint32_t)found.version,
					.to_version = OB_SCHEMA_VERSION };
	return r;
}

static int refuse_partitioned(const struct ob_setup *wish, struct ob_err *err)
{
	return !wish->partitioned
		       ? 0
		       : ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				    "SQLite has no partitioned tables: set it up without");
}

int lite_setup(struct ob_store *store, const struct ob_setup *wish, struct ob_setup_done *ret_done,
	       struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct ob_setup_done done;
	int r = refuse_partitioned(wish, err);

	if (r == 0)
		r = lite_ready(s, "making the tables", true, err);
	if (r == 0)
		r = lite_begin(s, "making the tables", err);
	if (r < 0)
		return r;
	r = lite_end(s, setup(s, wish, &done, err), err);
	if (r < 0)
		return r;
	*ret_done = done;
	return 0;
}

int lite_setup_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		   struct ob_err *err)
{
	static const char *const parts[] = { sql_sqlite_print_begin, sql_sqlite_tables,
					     sql_sqlite_partition, sql_sqlite_indexes,
					     sql_sqlite_view };
	int r = refuse_partitioned(wish, err);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = lite_expand(layout, parts[i], wish->partition_count, out, err);
	if (r == 0)
		r = lite_source_sql(layout, out, err);
	if (r == 0 && wish->events)
		r = lite_expand(layout, sql_sqlite_events, 0, out, err);
	if (r == 0 && wish->inbox)
		r = lite_expand(layout, sql_sqlite_inbox, 0, out, err);
	return r < 0 ? r : lite_expand(layout, sql_sqlite_print_end, 0, out, err);
}

int lite_grants_sql(const struct ob_layout *layout, const struct ob_setup *setup,
		    struct ob_buf *out, struct ob_err *err)
{
	(void)layout;
	(void)setup;
	(void)err;
	ob_buf_adds(out,
		    "-- SQLite has no users: whoever may write the file and its directory may push "
		    "and relay.\n");
	return 0;
}
