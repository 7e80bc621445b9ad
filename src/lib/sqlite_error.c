/* SPDX-License-Identifier: MIT */
/*
 * Errors of SQLite, told apart by code and never by text: which message is a
 * duplicate and of what, what is missing in the table, what the caller can do.
 */
#include "lib/sqlite_push.h"

#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/duplicate.h"
#include "lib/fail.h"
#include "lib/table.h"
#include "sql_sqlite.h"

#include <strings.h>

enum { LOOKUP_SQL_MAX = 4096 };

static void finalizep(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt);
}

#define AUTOFINALIZE OB_CLEANUP(finalizep)

/* What the connection reports, kept before another statement overwrites it. */
struct failure {
	int code; /* extended */
	char text[256];
	bool rolled_back; /* SQLite has ended the caller's transaction */
	const char *doing;
};

/* ---- duplicates ------------------------------------------------------ */

struct lookup {
	struct ob_sqlite_driver *driver;
	sqlite3_stmt *by_id, *by_sequence; /* the second is NULL when the column is off */
};

static sqlite3_stmt *prepare_lookup(const struct ob_sqlite_driver *driver, const char *tmpl)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(LOOKUP_SQL_MAX);
	struct ob_err unused;
	sqlite3_stmt *stmt = NULL;

	if (ob_sqltmpl_expand(&sql, tmpl, &driver->layout, '"', NULL, &unused) < 0)
		return NULL;
	(void)sqlite3_prepare_v2(driver->db, ob_buf_str(&sql), -1, &stmt, NULL);
	return stmt;
}

static bool found(sqlite3_stmt *stmt)
{
	bool row = sqlite3_step(stmt) == SQLITE_ROW;

	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt);
	return row;
}

static bool id_stored(void *arg, const struct ob_push_row *row)
{
	const struct lookup *l = arg;

	(void)ob_sqlite_bind_id(l->driver, l->by_id, 1, &row->id);
	(void)sqlite3_bind_text(l->by_id, 2, ob_push_target(row), -1, SQLITE_STATIC);
	return found(l->by_id);
}

static bool sequence_stored(void *arg, const struct ob_push_row *row)
{
	const struct lookup *l = arg;
	const struct outbox_message *m = row->message;

	(void)sqlite3_bind_text(l->by_sequence, 1, ob_push_target(row), -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(l->by_sequence, 2, m->aggregate_type, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(l->by_sequence, 3, m->aggregate_id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(l->by_sequence, 4, m->sequence_number);
	return found(l->by_sequence);
}

/* The failed statement is undone, and we hold the write lock: what is found now is what it met. */
static int find_duplicate(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
			  struct outbox_error *err)
{
	bool sequences = driver->layout.column[OB_COL_sequence_number][0];
	AUTOFINALIZE sqlite3_stmt *by_id = prepare_lookup(driver, sql_sqlite_push_find_id);
	AUTOFINALIZE sqlite3_stmt *by_sequence =
		sequences ? prepare_lookup(driver, sql_sqlite_push_find_sequence) : NULL;
	struct lookup l = { driver, by_id, by_sequence };
	const struct ob_duplicate_lookup lookup = { &l, id_stored,
						    sequences ? sequence_stored : NULL };

	if (!by_id || (sequences && !by_sequence))
		return 0;
	return ob_duplicate_find(&lookup, chunk->rows, chunk->count, chunk->first, err);
}

/* ---- codes ----------------------------------------------------------- */

static int fail_plain(const struct failure *f, int status, size_t index, const char *hint,
		      struct outbox_error *err)
{
	return ob_fail(err, status, index, "%s: %s%s%s", f->doing, f->text,
		       f->rolled_back ? "; SQLite rolled the whole transaction back" : "", hint);
}

static int fail_constraint(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
			   const struct failure *f, size_t index, struct outbox_error *err)
{
	int r = 0;

	if (chunk && !f->rolled_back &&
	    (f->code == SQLITE_CONSTRAINT_UNIQUE || f->code == SQLITE_CONSTRAINT_PRIMARYKEY))
		r = find_duplicate(driver, chunk, err);
	if (r == 0)
		r = fail_plain(f, OUTBOX_ESTORE, index, "", err);
	return r;
}

static int fail_busy(const struct failure *f, struct outbox_error *err)
{
	if (f->code == SQLITE_BUSY_SNAPSHOT)
		return ob_fail(
			err, OUTBOX_EBUSY, OUTBOX_NO_INDEX,
			"another connection wrote after this transaction began to read: roll "
			"back, and begin the transaction with BEGIN IMMEDIATE");
	return fail_plain(f, OUTBOX_EBUSY, OUTBOX_NO_INDEX, "; another connection is writing", err);
}

/* SQLITE_ERROR says little: a table or column that is gone is the likely cause. */
static int fail_sql(struct ob_sqlite_driver *driver, const struct failure *f,
		    struct outbox_error *err)
{
	int r = ob_sqlite_check_table(driver, err);

	return r < 0 ? r : fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "", err);
}

static int fail_by_code(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
			const struct failure *f, struct outbox_error *err)
{
	size_t index = chunk && chunk->count == 1 ? chunk->first : OUTBOX_NO_INDEX;

	switch (f->code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return fail_busy(f, err);
	case SQLITE_CONSTRAINT:
		return fail_constraint(driver, chunk, f, index, err);
	case SQLITE_ERROR:
		return fail_sql(driver, f, err);
	case SQLITE_NOMEM:
		return fail_plain(f, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "", err);
	case SQLITE_TOOBIG:
		return fail_plain(f, chunk ? OUTBOX_ETOOLONG : OUTBOX_ESTORE, index,
				  "; see the limits of the connection", err);
	case SQLITE_READONLY:
		return fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX,
				  "; open it for writing, and check the rights of the file and of "
				  "its directory",
				  err);
	default:
		return fail_plain(f, OUTBOX_ESTORE, OUTBOX_NO_INDEX, "", err);
	}
}

int ob_sqlite_fail(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
		   const char *doing, struct outbox_error *err)
{
	struct failure f = {
		.code = sqlite3_extended_errcode(driver->db),
		.rolled_back = chunk && sqlite3_get_autocommit(driver->db),
		.doing = doing,
	};

	(void)snprintf(f.text, sizeof(f.text), "%s", sqlite3_errmsg(driver->db));
	int r = fail_by_code(driver, chunk, &f, err);
	(void)snprintf(err->native, sizeof(err->native), "SQLITE_%d", f.code);
	return f.code == SQLITE_CONSTRAINT_CHECK ? OB_DRIVER_CHECK : r;
}

/* ---- the table ------------------------------------------------------- */

static const struct ob_table_types types = { "TEXT", "BLOB", "TEXT", "BLOB" };

static int read_columns(struct ob_sqlite_driver *driver, sqlite3_stmt *stmt,
			struct ob_table_seen *seen, struct outbox_error *err)
{
	int r = 0;

	while (r == 0 && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 0);
		const char *type = (const char *)sqlite3_column_text(stmt, 1);

		if (name)
			r = ob_table_column(&driver->layout, &types, name, type ? type : "", seen,
					    err);
	}
	return r;
}

int ob_sqlite_check_table(struct ob_sqlite_driver *driver, struct outbox_error *err)
{
	const struct ob_layout *layout = &driver->layout;
	const char *schema = layout->schema[0] ? layout->schema : NULL;
	const char *table = layout->table[OB_TABLE_outbox];
	AUTOFINALIZE sqlite3_stmt *stmt = NULL;
	struct ob_table_seen seen = { 0 };

	int rc = sqlite3_prepare_v2(driver->db, sql_sqlite_push_columns, -1, &stmt, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(stmt, 2, schema, -1, SQLITE_STATIC);
		int r = read_columns(driver, stmt, &seen, err);
		if (r < 0)
			return r;
		rc = sqlite3_reset(stmt);
	}
	/* SQLITE_ERROR: there is no such database; not for ob_sqlite_fail(), which would ask here.
	 */
	if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_ERROR)
		return ob_sqlite_fail(driver, NULL, "reading the schema", err);
	return ob_table_complete(layout, &seen, err);
}
