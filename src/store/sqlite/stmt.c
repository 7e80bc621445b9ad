/* SPDX-License-Identifier: MIT */
/* Statements of the SQLite store, made from their templates on first use, and transactions. */
#include "store/sqlite/stmt.h"

#include "base/cleanup.h"
#include "base/fault.h"

#include "sql_sqlite.h"

enum { SQL_MAX = 64 * 1024, JSON_MAX = 256 << 20 };

static const char *const templates[] = {
#define X(name, planned) sql_sqlite_##name,
	OB_SQL_MAP(X)
#undef X
#define X(name) sql_sqlite_##name,
		LITE_MAP(X)
#undef X
};

const char *lite_template(int id)
{
	return templates[id];
}

int lite_expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
		struct ob_buf *out, struct ob_err *err)
{
	return ob_sql_expand(layout, tmpl, '"', partition_count, out, err);
}

static int prepare(struct lite_store *s, int id, struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	int r = lite_expand(s->base.layout, templates[id], 0, &sql, err);

	if (r < 0)
		return r;
	int code = sqlite3_prepare_v3(s->db, ob_buf_str(&sql), -1, SQLITE_PREPARE_PERSISTENT,
				      &s->stmt[id], NULL);
	return code == SQLITE_OK ? 0 : lite_err(s, code, err);
}

static int bind_json(struct lite_store *s, sqlite3_stmt *stmt, int i, const struct ob_sql_arg *arg,
		     struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf json = OB_BUF_INIT(JSON_MAX);

	ob_sql_table_json(arg->table, arg->kind == OB_SQL_KIND_LIST, &json);
	if (json.failed || sqlite3_bind_text64(stmt, i, ob_buf_str(&json), json.len,
					       SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK)
		return lite_oom(s, err);
	return 0;
}

/*
 * Binding of other values cannot fail: the memory is borrowed, so nothing is allocated, and no
 * value is longer than what SQLite handed out or the message bounds.
 */
static int bind_arg(struct lite_store *s, sqlite3_stmt *stmt, int i, const struct ob_sql_arg *arg,
		    struct ob_err *err)
{
	if (arg->table)
		return bind_json(s, stmt, i, arg, err);
	if (arg->kind == OB_SQL_KIND_INT)
		(void)sqlite3_bind_int64(stmt, i, arg->number);
	else if (!arg->text.p)
		(void)sqlite3_bind_null(stmt, i);
	else if (arg->kind == OB_SQL_KIND_BYTES)
		(void)sqlite3_bind_blob64(stmt, i, arg->text.p, arg->text.n, SQLITE_STATIC);
	else
		(void)sqlite3_bind_text64(stmt, i, arg->text.p, arg->text.n, SQLITE_STATIC,
					  SQLITE_UTF8);
	return 0;
}

int lite_bind_args(struct lite_store *s, sqlite3_stmt *stmt, const struct ob_sql_arg *args,
		   struct ob_err *err)
{
	int r = 0;

	for (int i = sqlite3_bind_parameter_count(stmt); i > 0 && r == 0; i--) {
		const char *name = sqlite3_bind_parameter_name(stmt, i) + 1;
		const struct ob_sql_arg *arg = ob_sql_find(args, name, strlen(name));

		if (arg)
			r = bind_arg(s, stmt, i, arg, err);
		else if (strcmp(name, "now") == 0)
			(void)sqlite3_bind_int64(stmt, i, s->now);
	}
	return r;
}

int lite_bind(struct lite_store *s, int id, const struct ob_sql_arg *args, struct ob_err *err)
{
	int r = s->stmt[id] ? 0 : prepare(s, id, err);

	if (r < 0)
		return r;
	(void)sqlite3_reset(s->stmt[id]);
	(void)sqlite3_clear_bindings(s->stmt[id]);
	return lite_bind_args(s, s->stmt[id], args, err);
}

void lite_reset(struct lite_store *s, int id)
{
	(void)sqlite3_reset(s->stmt[id]);
}

int lite_step(struct lite_store *s, int id, struct ob_err *err)
{
	int code = sqlite3_step(s->stmt[id]);

	if (code == SQLITE_ROW)
		return 1;
	int r = code == SQLITE_DONE ? 0 : lite_err(s, code, err);
	lite_reset(s, id);
	return r;
}

int lite_run(struct lite_store *s, int id, const struct ob_sql_arg *args, struct ob_err *err)
{
	int r = lite_bind(s, id, args, err);

	if (r == 0)
		r = lite_step(s, id, err);
	if (r > 0) /* a PRAGMA that answers */
		lite_reset(s, id);
	return r < 0 ? r : sqlite3_changes(s->db);
}

int lite_value(struct lite_store *s, int id, const struct ob_sql_arg *args, int64_t *ret_value,
	       struct ob_err *err)
{
	int r = lite_bind(s, id, args, err);

	*ret_value = 0;
	if (r == 0)
		r = lite_step(s, id, err);
	if (r <= 0)
		return r;
	r = sqlite3_column_type(s->stmt[id], 0) != SQLITE_NULL;
	*ret_value = sqlite3_column_int64(s->stmt[id], 0);
	lite_reset(s, id);
	return r;
}

void lite_finalize(struct lite_store *s)
{
	for (int id = 0; id < LITE_COUNT; id++) {
		(void)sqlite3_finalize(s->stmt[id]);
		s->stmt[id] = NULL;
	}
}

struct ob_str lite_str(sqlite3_stmt *stmt, int column)
{
	int type = sqlite3_column_type(stmt, column);

	if (type == SQLITE_NULL)
		return OB_STR_NULL;
	/* Not column_blob for text: the database may be UTF-16. */
	const void *p = type == SQLITE_BLOB ? sqlite3_column_blob(stmt, column)
					    : (const void *)sqlite3_column_text(stmt, column);
	size_t n = (size_t)sqlite3_column_bytes(stmt, column);
	return (struct ob_str){ p ? p : "", p ? n : 0 };
}

/* ---- transactions ---------------------------------------------------- */

static int run_simple(struct lite_store *s, int id, struct ob_err *err)
{
	int r = lite_run(s, id, OB_NO_ARGS, err);

	return r < 0 ? r : 0;
}

int lite_begin(struct lite_store *s, const char *doing, struct ob_err *err)
{
	if (s->in_tx)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a transaction is open on this store: end it first");
	int r = lite_ready(s, doing, false, err);
	if (r < 0)
		return r;
	ob_lock_wait_before(&s->busy);
	r = run_simple(s, LITE_begin_write, err);
	if (r < 0)
		return r;
	ob_lock_wait_locked(&s->busy);
	s->now = ob_clock_real_us(s->base.clock); /* the wait may have been long */
	return 0;
}

int lite_end(struct lite_store *s, int r, struct ob_err *err)
{
	if (r >= 0 && OB_FAULT("store.before_commit"))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit");
	if (r < 0) {
		lite_rollback(s);
		return r;
	}
	int committed = run_simple(s, LITE_commit, err);
	if (committed < 0) {
		lite_rollback(s);
		return committed;
	}
	ob_lock_wait_unlocked(&s->busy);
	if (OB_FAULT("store.after_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

int lite_begin_read(struct lite_store *s, const char *doing, struct ob_err *err)
{
	if (s->in_tx)
		return 0;
	int r = lite_ready(s, doing, false, err);
	return r < 0 ? r : run_simple(s, LITE_begin_read, err);
}

int lite_end_read(struct lite_store *s, int r, struct ob_err *err)
{
	if (s->in_tx)
		return r;
	if (r < 0) {
		lite_rollback(s);
		return r;
	}
	int ended = run_simple(s, LITE_commit, err);
	return ended < 0 ? ended : r;
}

void lite_rollback(struct lite_store *s)
{
	struct ob_err ignored;

	/* SQLite may have rolled back by itself: after a full disk, for one. */
	if (s->db && !sqlite3_get_autocommit(s->db) && run_simple(s, LITE_rollback, &ignored) < 0)
		s->broken = true;
}
