/* SPDX-License-Identifier: MIT */
/* The start-up checks of the PostgreSQL store, each with its own sentence. */
#include "store/postgres/schema.h"

#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/parts.h"
#include "store/postgres/stmt.h"

#include <inttypes.h>

static const char *const table_tags[] = {
#define X(name) "{" #name "}",
	OB_TABLE_MAP(X)
#undef X
};

/* Columns of the companion tables; of the outbox table the layout knows them. */
static const char *const companion_columns[OB_TABLE_COUNT][13] = {
	[OB_TABLE_readers] = { "name", "target", "filter", "temporary", "created_at" },
	[OB_TABLE_batches] = { "reader", "partition_no", "batch", "epoch", "owner", "at", "pos",
			       "published", "failed", "seen", "late_pos", "late_seen" },
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

/* What a relay must be allowed to do; producers need INSERT on the outbox alone. */
static const char *const needs[OB_TABLE_COUNT][5] = {
	[OB_TABLE_outbox] = { "SELECT", "DELETE" },
	[OB_TABLE_readers] = { "SELECT", "INSERT", "DELETE" },
	[OB_TABLE_batches] = { "SELECT", "INSERT", "DELETE" },
	[OB_TABLE_exceptions] = { "SELECT", "INSERT", "UPDATE", "DELETE" },
	[OB_TABLE_leases] = { "SELECT", "INSERT", "UPDATE", "DELETE" },
	[OB_TABLE_workers] = { "SELECT", "INSERT", "UPDATE", "DELETE" },
	[OB_TABLE_throughput] = { "SELECT", "INSERT", "UPDATE", "DELETE" },
	[OB_TABLE_audit] = { "SELECT", "INSERT", "UPDATE", "DELETE" },
	[OB_TABLE_meta] = { "SELECT" },
};

/* Of the outbox table and of the exceptions. */
static const char *const indexes[] = { "uniq_id", "late", "exceptions_due", "exceptions_queue" };

/* ---- reading --------------------------------------------------------- */

static int ask_table(struct pg_store *s, enum ob_table t, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf name = OB_BUF_INIT(256);
	struct pg_params p = { 0 };
	int r = pg_expand(s->base.layout, table_tags[t], 0, &name, err);

	if (r < 0)
		return r;
	pg_text(&p, ob_buf_str(&name));
	struct ob_pgarray *rights = pg_array(&p, OB_PG_TEXT);
	for (const char *const *right = needs[t]; *right; right++) {
		if (!s->base.looks_only || strcmp(*right, "SELECT") == 0)
			ob_pgarray_str(rights, ob_str(*right));
	}
	return pg_add(s, PG_object, &p, err);
}

static int read_table(struct pg_store *s, enum ob_table t, const PGresult *result,
		      struct pg_found *found, struct ob_err *err)
{
	if (PQntuples(result) == 0)
		return 0;
	struct ob_str kind = pg_get_str(result, 0, 0), missing = pg_get_str(result, 0, 2);
	found->any = true;
	found->table[t].oid = pg_get_int(result, 0, 1);
	(void)snprintf(found->table[t].missing, sizeof(found->table[t].missing), "%.*s",
		       (int)missing.n, missing.p ? missing.p : "");
	if (ob_str_eq(kind, OB_STR("r")))
		return 0;
	found->table[t].partitioned = ob_str_eq(kind, OB_STR("p"));
	if (found->table[t].partitioned && t == OB_TABLE_outbox)
		return 0;
	if (found->table[t].partitioned)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "table '%s' is partitioned, which is not supported: choose "
				  "another table name in the layout",
				  s->base.layout->table[t]);
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "'%s' exists and is no table: choose another table name in the layout",
			  s->base.layout->table[t]);
}

static int look_for_tables(struct pg_store *s, struct pg_found *found, struct ob_err *err)
{
	int r = 0;

	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++)
		r = ask_table(s, (enum ob_table)t, err);
	if (r == 0)
		r = pg_flush(s, err);
	if (r < 0)
		return r;
	/* Whatever was queued before stands before them. */
	int first = s->result_count - OB_TABLE_COUNT;
	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++)
		r = read_table(s, (enum ob_table)t, s->results[first + t], found, err);
	return r;
}

static bool is_named(const PGresult *result, int row, const char *name)
{
	return ob_str_eq(pg_get_str(result, row, 0), ob_str(name));
}

static bool has_row(const PGresult *result, const char *name)
{
	for (int row = 0; row < PQntuples(result); row++) {
		if (is_named(result, row, name))
			return true;
	}
	return false;
}

static void read_outbox_columns(const struct pg_store *s, const PGresult *result,
				struct pg_found *found)
{
	for (int c = 0; c < OB_COL_COUNT; c++) {
		const char *name = s->base.layout->column[c];

		for (int row = 0; *name && row < PQntuples(result); row++) {
			if (!is_named(result, row, name))
				continue;
			struct ob_str type = pg_get_str(result, row, 1);
			struct ob_str generated = pg_get_str(result, row, 2);
			struct pg_column *column = &found->column[c];

			column->exists = true;
			(void)snprintf(column->type, sizeof(column->type), "%.*s", (int)type.n,
				       type.p);
			column->generated = generated.n == 1 && generated.p[0] == 1;
			column->cache = pg_get_int(result, row, 3);
		}
	}
}

static void read_indexes(const struct pg_store *s, const PGresult *result, struct pg_found *found)
{
	for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]) && !found->no_index[0]; i++) {
		char name[96];

		(void)snprintf(name, sizeof(name), "%s_%s", s->base.layout->table[OB_TABLE_outbox],
			       indexes[i]);
		if (!has_row(result, name))
			(void)snprintf(found->no_index, sizeof(found->no_index), "%s", name);
	}
}

static int look_at_columns(struct pg_store *s, struct pg_found *found, struct ob_err *err)
{
	int at[OB_TABLE_COUNT], count = 0, r = 0;

	for (int t = 0; t < OB_TABLE_COUNT; t++)
		at[t] = -1;
	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++) {
		struct pg_params p = { 0 };

		if (!found->table[t].oid)
			continue;
		pg_int(&p, found->table[t].oid);
		at[t] = count++;
		r = pg_add(s, PG_columns, &p, err);
	}
	struct pg_params outbox_table = { 0 };
	pg_int(&outbox_table, found->table[OB_TABLE_outbox].oid);
	pg_int(&outbox_table, found->table[OB_TABLE_exceptions].oid);
	if (r == 0)
		r = pg_ask(s, PG_table_indexes, &outbox_table, err);
	if (r < 0)
		return r;
	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		const char *const *names = companion_columns[t];

		for (; at[t] >= 0 && *names; names++) {
			if (!found->lacks[t] && !has_row(s->results[at[t]], *names))
				found->lacks[t] = *names;
		}
	}
	if (at[OB_TABLE_outbox] >= 0)
		read_outbox_columns(s, s->results[at[OB_TABLE_outbox]], found);
	read_indexes(s, s->results[count], found);
	found->has_trigger = has_row(s->results[count], "(trigger)");
	return 0;
}

static int look_at_meta(struct pg_store *s, struct pg_found *found, struct ob_err *err)
{
	static const char *const names[] = { "schema_version", "partition_count" };
	int64_t *const values[] = { &found->version, &found->partition_count };

	/* Without its columns, or the right to read it, that is what is told. */
	if (!found->table[OB_TABLE_meta].oid || found->lacks[OB_TABLE_meta] ||
	    found->table[OB_TABLE_meta].missing[0])
		return 0;
	int r = pg_ask(s, PG_meta_get, NULL, err);
	for (size_t i = 0; i < 2 && r == 0; i++) {
		const PGresult *result = s->results[0];
		int row = 0;

		while (row < PQntuples(result) && !is_named(result, row, names[i]))
			row++;
		if (row == PQntuples(result))
			return ob_err_set(
				err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				"table '%s' has no '%s': it was not made by `outbox setup`",
				s->base.layout->table[OB_TABLE_meta], names[i]);
		*values[i] = pg_get_int(result, row, 1);
	}
	return r;
}

int pg_look(struct pg_store *s, struct pg_found *ret, struct ob_err *err)
{
	*ret = (struct pg_found){ 0 };

	int r = look_for_tables(s, ret, err);
	if (r == 0 && ret->any)
		r = look_at_columns(s, ret, err);
	if (r == 0)
		r = look_at_meta(s, ret, err);
	/* Without the meta table, that is what is told. */
	if (r == 0 && ret->table[OB_TABLE_outbox].partitioned && ret->version > 0)
		r = pg_parts_check(s, ret->table[OB_TABLE_outbox].oid, &ret->partition_rows, err);
	if (r < 0)
		return r;
	if (ret->version > OB_SCHEMA_VERSION)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "the tables have schema version %" PRId64
				  ", made by a newer outbox; upgrade this program (it knows %d)",
				  ret->version, OB_SCHEMA_VERSION);
	return 0;
}

/* ---- judging --------------------------------------------------------- */

/* Where the type decides how a value is read or what is promised. */
static const char *wanted_type(const struct ob_layout *layout, int column)
{
	switch (column) {
	case OB_COL_txid:
		return "xid8";
	case OB_COL_seq:
		return "bigint";
	case OB_COL_id:
		return layout->string_id ? "text" : "uuid";
	case OB_COL_payload:
		return layout->binary_payload ? "bytea" : "json";
	case OB_COL_headers:
	case OB_COL_snapshot:
		return "json";
	case OB_COL_occurred_at:
	case OB_COL_created_at:
	case OB_COL_available_at:
		return "timestamp with time zone";
	default:
		return NULL;
	}
}

static int check_type(const struct ob_layout *layout, int c, const struct pg_column *column,
		      struct ob_err *err)
{
	const char *want = wanted_type(layout, c);
	const char *option = c == OB_COL_id        ? "; correct id_type in the layout"
			     : c == OB_COL_payload ? "; correct payload_type in the layout"
						   : "";

	if (!want || strcmp(column->type, want) == 0)
		return 0;
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "column '%s' of table '%s' is %s, it must be %s%s", layout->column[c],
			  layout->table[OB_TABLE_outbox], column->type, want, option);
}

static int no_column(const char *table, const char *column, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "table '%s' has no column '%s': it is not ours, or the layout is not the "
			  "one it was made with; correct the layout or choose another table name",
			  table, column);
}

static int check_outbox(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	const char *table = layout->table[OB_TABLE_outbox];
	int r = 0;

	for (int c = 0; c < OB_COL_COUNT && r == 0; c++) {
		if (!layout->column[c][0])
			continue;
		r = found->column[c].exists ? check_type(layout, c, &found->column[c], err)
					    : no_column(table, layout->column[c], err);
	}
	if (r == 0 && !found->column[OB_COL_partition_no].generated)
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "column '%s' of table '%s' is not generated: rows would get no "
			       "partition; move the rows to a table made by `outbox setup`",
			       layout->column[OB_COL_partition_no], table);
	return r;
}

int pg_check_columns(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	int r = found->table[OB_TABLE_outbox].oid ? check_outbox(s, found, err) : 0;

	for (int t = 0; t < OB_TABLE_COUNT && r == 0; t++) {
		if (found->lacks[t])
			r = no_column(s->base.layout->table[t], found->lacks[t], err);
	}
	return r;
}

int pg_check_cache(const struct pg_store *s, int64_t cache, struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	const char *column = s->base.layout->column[OB_COL_seq];

	if (cache <= 1)
		return 0;
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "the sequence of column '%s' of table '%s' has CACHE %" PRId64
			  ": numbers would be out of order; run ALTER TABLE %s ALTER COLUMN "
			  "%s SET CACHE 1",
			  column, table, cache, table, column);
}

int pg_check_sequence(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	const char *table = s->base.layout->table[OB_TABLE_outbox];
	const char *column = s->base.layout->column[OB_COL_seq];
	int64_t cache = found->column[OB_COL_seq].cache;

	if (!found->table[OB_TABLE_outbox].oid)
		return 0;
	if (cache == 0)
		return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				  "column '%s' of table '%s' is no identity: its numbers would not "
				  "tell the order of messages; move the rows to a table made by "
				  "`outbox setup`",
				  column, table);
	return pg_check_cache(s, cache, err);
}

int pg_check_rights(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		if (found->table[t].missing[0])
			return ob_err_set(
				err, OUTBOX_ESTORE, OB_ERR_FATAL,
				"user '%s' may not %s on table '%s'; run GRANT %s ON %s TO "
				"%s",
				PQuser(s->conn), found->table[t].missing, s->base.layout->table[t],
				found->table[t].missing, s->base.layout->table[t], PQuser(s->conn));
	}
	return 0;
}

int pg_check_found(struct pg_store *s, const struct pg_found *found, struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	int r = 0;

	if (found->any && !found->table[OB_TABLE_meta].oid) {
		/* Say which column is missing, when one is: that tells most. */
		r = pg_check_columns(s, found, err);
		return r < 0 ? r
			     : ob_err_set(
				       err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				       "table '%s' is missing beside its companions: they were "
				       "not made by `outbox setup`; choose another table name in "
				       "the layout",
				       layout->table[OB_TABLE_meta]);
	}
	for (int t = 0; t < OB_TABLE_COUNT; t++) {
		if (!found->table[t].oid)
			return ob_err_set(
				err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
				"database '%s': table '%s' is missing; run `outbox setup`",
				s->database, layout->table[t]);
	}
	r = pg_check_rights(s, found, err);
	if (r == 0 && found->version < OB_SCHEMA_VERSION)
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "the tables have schema version %" PRId64
			       ", this program needs %d; run `outbox setup`",
			       found->version, OB_SCHEMA_VERSION);
	if (r == 0)
		r = pg_check_columns(s, found, err);
	if (r == 0)
		r = pg_check_sequence(s, found, err);
	if (r == 0 && found->no_index[0])
		r = ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			       "index '%s' is missing: run `outbox setup`", found->no_index);
	return r;
}

int pg_check(struct ob_store *store, struct ob_err *err)
{
	struct pg_store *s = (struct pg_store *)store;
	struct pg_found found;
	int r = pg_begin(s, err);

	if (r < 0)
		return r;
	r = pg_look(s, &found, err);
	if (r == 0)
		r = pg_check_found(s, &found, err);
	if (r == 0)
		r = pg_source_check(s, err);
	r = pg_finish(s, r, err);
	pg_clear(s);
	return r;
}
