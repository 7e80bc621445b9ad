/* SPDX-License-Identifier: MIT */
/* Prepared statements of the SQLite store, made from their templates on first use, and transactions. */
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/sqltmpl.h"
#include "store/sqlite.h"

#include "sql_sqlite.h"

enum { SQL_MAX = 64 * 1024 };

static const struct {
	const char *tmpl, *doing;
} statements[] = {
#define X(name, what) { sql_sqlite_##name, what },
	OB_SQLITE_MAP(X)
#undef X
};

const char *ob_sqlite_doing(enum ob_sqlite_id id)
{
	return statements[id].doing;
}

int ob_sqlite_prepare(struct ob_sqlite *s, enum ob_sqlite_id id, sqlite3_stmt **ret_stmt,
		      struct ob_err *err)
{
	if (s->stmt[id]) {
		(void)sqlite3_reset(s->stmt[id]);
		(void)sqlite3_clear_bindings(s->stmt[id]);
		*ret_stmt = s->stmt[id];
		return 0;
	}
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	int r = ob_sqltmpl_expand(&sql, statements[id].tmpl, s->base.layout, '"', NULL, err);
	if (r < 0)
		return r;
	int code = sqlite3_prepare_v3(s->db, ob_buf_str(&sql), -1, SQLITE_PREPARE_PERSISTENT,
				      &s->stmt[id], NULL);
	if (code != SQLITE_OK)
		return ob_sqlite_err(s, code, statements[id].doing, err);
	*ret_stmt = s->stmt[id];
	return 0;
}

void ob_sqlite_reset(struct ob_sqlite *s, enum ob_sqlite_id id)
{
	(void)sqlite3_reset(s->stmt[id]);
}

int ob_sqlite_step(struct ob_sqlite *s, enum ob_sqlite_id id, struct ob_err *err)
{
	int code = sqlite3_step(s->stmt[id]);

	if (code == SQLITE_ROW)
		return 1;
	int r = code == SQLITE_DONE ? 0 : ob_sqlite_err(s, code, statements[id].doing, err);
	ob_sqlite_reset(s, id);
	return r;
}

int ob_sqlite_run(struct ob_sqlite *s, enum ob_sqlite_id id, struct ob_err *err)
{
	int r = ob_sqlite_step(s, id, err);

	if (r > 0) /* a PRAGMA that answers */
		ob_sqlite_reset(s, id);
	return r < 0 ? r : sqlite3_changes(s->db);
}

int ob_sqlite_simple(struct ob_sqlite *s, enum ob_sqlite_id id, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = ob_sqlite_prepare(s, id, &stmt, err);

	return r < 0 ? r : ob_sqlite_run(s, id, err);
}

void ob_sqlite_finalize(struct ob_sqlite *s)
{
	for (int id = 0; id < OB_SQLITE_COUNT; id++) {
		(void)sqlite3_finalize(s->stmt[id]);
		s->stmt[id] = NULL;
	}
}

/*
 * Binding cannot fail here: the memory is borrowed, so nothing is allocated,
 * and no value is longer than what SQLite handed out or the message bounds.
 */
void ob_sqlite_bind_int(sqlite3_stmt *stmt, const char *name, int64_t value)
{
	int i = sqlite3_bind_parameter_index(stmt, name);

	if (i)
		(void)sqlite3_bind_int64(stmt, i, value);
}

void ob_sqlite_bind_str(sqlite3_stmt *stmt, const char *name, struct ob_str value)
{
	int i = sqlite3_bind_parameter_index(stmt, name);

	if (i && value.p)
		(void)sqlite3_bind_text64(stmt, i, value.p, value.n, SQLITE_STATIC, SQLITE_UTF8);
}

void ob_sqlite_bind_text(sqlite3_stmt *stmt, const char *name, const char *value)
{
	ob_sqlite_bind_str(stmt, name, ob_str(value));
}

void ob_sqlite_bind_uuid(sqlite3_stmt *stmt, const char *name, const struct ob_uuid *value)
{
	int i = sqlite3_bind_parameter_index(stmt, name);

	if (i)
		(void)sqlite3_bind_blob(stmt, i, value->b, sizeof(value->b), SQLITE_STATIC);
}

void ob_sqlite_bind_targets(sqlite3_stmt *stmt, const char *target)
{
	ob_sqlite_bind_text(stmt, ":target_min", target ? target : "");
	if (target)
		ob_sqlite_bind_text(stmt, ":target_max", target);
	else
		(void)sqlite3_bind_zeroblob(
			stmt, sqlite3_bind_parameter_index(stmt, ":target_max"), 0);
}

struct ob_str ob_sqlite_str(sqlite3_stmt *stmt, int column)
{
	int type = sqlite3_column_type(stmt, column);

	if (type == SQLITE_NULL)
		return OB_STR_NULL;
	/* Not column_blob for text: the database may be UTF-16. */
	const void *p = type == SQLITE_BLOB ? sqlite3_column_blob(stmt, column) :
					      (const void *)sqlite3_column_text(stmt, column);
	size_t n = (size_t)sqlite3_column_bytes(stmt, column);
	return (struct ob_str){ p ? p : "", p ? n : 0 };
}

int ob_sqlite_begin(struct ob_sqlite *s, struct ob_err *err)
{
	if (s->in_tx)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a transaction is open on this store: end it first");
	int r = ob_sqlite_ready(s, false, err);
	return r < 0 ? r : ob_sqlite_simple(s, OB_SQLITE_begin_write, err);
}

int ob_sqlite_end(struct ob_sqlite *s, int r, struct ob_err *err)
{
	if (r >= 0 && OB_FAULT("store.before_commit"))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit");
	if (r < 0) {
		ob_sqlite_rollback(s);
		return r;
	}
	int committed = ob_sqlite_simple(s, OB_SQLITE_commit, err);
	if (committed < 0) {
		ob_sqlite_rollback(s);
		return committed;
	}
	if (OB_FAULT("store.after_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

int ob_sqlite_begin_read(struct ob_sqlite *s, struct ob_err *err)
{
	if (s->in_tx)
		return 0;
	int r = ob_sqlite_ready(s, false, err);
	return r < 0 ? r : ob_sqlite_simple(s, OB_SQLITE_begin_read, err);
}

int ob_sqlite_end_read(struct ob_sqlite *s, int r, struct ob_err *err)
{
	if (s->in_tx)
		return r;
	if (r < 0) {
		ob_sqlite_rollback(s);
		return r;
	}
	int ended = ob_sqlite_simple(s, OB_SQLITE_commit, err);
	return ended < 0 ? ended : r;
}

void ob_sqlite_rollback(struct ob_sqlite *s)
{
	struct ob_err ignored;

	/* SQLite may have rolled back by itself: after a full disk, for one. */
	if (s->db && !sqlite3_get_autocommit(s->db) &&
	    ob_sqlite_simple(s, OB_SQLITE_rollback, &ignored) < 0)
		s->broken = true;
}
