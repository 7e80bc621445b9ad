/* SPDX-License-Identifier: MIT */
/* Prepared statements of the SQLite store, made from their templates on first use, and
 * transactions. */
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
	LITE_MAP(X)
#undef X
};

const char *lite_doing(enum lite_id id)
{
	return statements[id].doing;
}

int lite_prepare(struct lite_store *s, enum lite_id id, sqlite3_stmt **ret_stmt, struct ob_err *err)
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
		return lite_err(s, code, statements[id].doing, err);
	*ret_stmt = s->stmt[id];
	return 0;
}

void lite_reset(struct lite_store *s, enum lite_id id)
{
	(void)sqlite3_reset(s->stmt[id]);
}

int lite_step(struct lite_store *s, enum lite_id id, struct ob_err *err)
{
	int code = sqlite3_step(s->stmt[id]);

	if (code == SQLITE_ROW)
		return 1;
	int r = code == SQLITE_DONE ? 0 : lite_err(s, code, statements[id].doing, err);
	lite_reset(s, id);
	return r;
}

int lite_run(struct lite_store *s, enum lite_id id, struct ob_err *err)
{
	int r = lite_step(s, id, err);

	if (r > 0) /* a PRAGMA that answers */
		lite_reset(s, id);
	return r < 0 ? r : sqlite3_changes(s->db);
}

int lite_simple(struct lite_store *s, enum lite_id id, struct ob_err *err)
{
	sqlite3_stmt *stmt;
	int r = lite_prepare(s, id, &stmt, err);

	if (r == 0)
		r = lite_run(s, id, err);
	return r < 0 ? r : 0;
}

void lite_finalize(struct lite_store *s)
{
	for (int id = 0; id < LITE_COUNT; id++) {
		(void)sqlite3_finalize(s->stmt[id]);
		s->stmt[id] = NULL;
	}
}

/*
 * Binding cannot fail here: the memory is borrowed, so nothing is allocated,
 * and no value is longer than what SQLite handed out or the message bounds.
 */
void lite_bind_int(sqlite3_stmt *stmt, const char *name, int64_t value)
{
	int i = sqlite3_bind_parameter_index(stmt, name);

	if (i)
		(void)sqlite3_bind_int64(stmt, i, value);
}

void lite_bind_str(sqlite3_stmt *stmt, const char *name, struct ob_str value)
{
	int i = sqlite3_bind_parameter_index(stmt, name);

	if (i && value.p)
		(void)sqlite3_bind_text64(stmt, i, value.p, value.n, SQLITE_STATIC, SQLITE_UTF8);
}

void lite_bind_text(sqlite3_stmt *stmt, const char *name, const char *value)
{
	lite_bind_str(stmt, name, ob_str(value));
}

void lite_bind_uuid(sqlite3_stmt *stmt, const char *name, const struct ob_uuid *value)
{
	int i = sqlite3_bind_parameter_index(stmt, name);

	if (i)
		(void)sqlite3_bind_blob(stmt, i, value->b, sizeof(value->b), SQLITE_STATIC);
}

void lite_bind_id(const struct lite_store *s, sqlite3_stmt *stmt, const struct ob_uuid *id,
		  char text[OB_UUID_TEXT_SIZE])
{
	if (!s->base.layout->string_id) {
		lite_bind_uuid(stmt, ":id", id);
		return;
	}
	ob_uuid_format(id, text);
	lite_bind_text(stmt, ":id", text);
}

void lite_bind_targets(sqlite3_stmt *stmt, const char *target)
{
	lite_bind_text(stmt, ":target_min", target ? target : "");
	if (target)
		lite_bind_text(stmt, ":target_max", target);
	else
		(void)sqlite3_bind_zeroblob(stmt, sqlite3_bind_parameter_index(stmt, ":target_max"),
					    0);
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

void *lite_rows_add(struct lite_rows *rows)
{
	if (rows->count == rows->capacity) {
		size_t capacity = rows->capacity ? rows->capacity * 2 : 32;
		char *more = ob_arena_alloc(rows->arena, capacity * rows->size);

		if (!more)
			return NULL;
		if (rows->count)
			memcpy(more, rows->data, rows->count * rows->size);
		rows->data = more;
		rows->capacity = capacity;
	}
	return rows->data + rows->count++ * rows->size;
}

int lite_oom(const char *doing, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s: out of memory", doing);
}

int lite_begin(struct lite_store *s, struct ob_err *err)
{
	if (s->in_tx)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "a transaction is open on this store: end it first");
	int r = lite_ready(s, false, err);
	if (r < 0)
		return r;
	ob_lock_wait_before(&s->busy);
	r = lite_simple(s, LITE_begin_write, err);
	if (r == 0)
		ob_lock_wait_locked(&s->busy);
	return r;
}

int lite_end(struct lite_store *s, int r, struct ob_err *err)
{
	if (r >= 0 && OB_FAULT("store.before_commit"))
		r = ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault before the commit");
	if (r < 0) {
		lite_rollback(s);
		return r;
	}
	int committed = lite_simple(s, LITE_commit, err);
	if (committed < 0) {
		lite_rollback(s);
		return committed;
	}
	ob_lock_wait_unlocked(&s->busy);
	if (OB_FAULT("store.after_commit"))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "fault after the commit");
	return r;
}

int lite_begin_read(struct lite_store *s, struct ob_err *err)
{
	if (s->in_tx)
		return 0;
	int r = lite_ready(s, false, err);
	return r < 0 ? r : lite_simple(s, LITE_begin_read, err);
}

int lite_end_read(struct lite_store *s, int r, struct ob_err *err)
{
	if (s->in_tx)
		return r;
	if (r < 0) {
		lite_rollback(s);
		return r;
	}
	int ended = lite_simple(s, LITE_commit, err);
	return ended < 0 ? ended : r;
}

void lite_rollback(struct lite_store *s)
{
	struct ob_err ignored;

	/* SQLite may have rolled back by itself: after a full disk, for one. */
	if (s->db && !sqlite3_get_autocommit(s->db) && lite_simple(s, LITE_rollback, &ignored) < 0)
		s->broken = true;
}
