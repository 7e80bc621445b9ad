/* SPDX-License-Identifier: MIT */
/* A statement of the operator's with values of a message, in the SQLite store's transaction. */
#include "base/cleanup.h"
#include "store/message_sql.h"
#include "store/sqlite/push.h"
#include "store/sqlite/stmt.h"
#include "store/writer.h"

enum { TEXT_MAX = 1 << 20 };

static int refuse(struct lite_store *s, bool broken, struct ob_err *err)
{
	int code = sqlite3_extended_errcode(s->db);
	const char *text = sqlite3_errmsg(s->db);
	struct ob_err said = OB_ERR_INIT;

	(void)lite_err(s, code, &said);
	(void)ob_err_set(err, said.status, said.kind, "running the statement: %.300s", text);
	(void)snprintf(err->native, sizeof(err->native), "SQLITE_%d", code);
	return ob_message_sql_fail(broken, err);
}

/* The last statement stays prepared: a handler runs the same one for every message. */
static int prepare_statement(struct lite_store *s, const struct ob_message_sql *sql,
			     struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(TEXT_MAX);

	if (s->exec.stmt && s->exec.serial == sql->serial)
		return 0;
	(void)sqlite3_finalize(s->exec.stmt);
	s->exec.stmt = NULL;
	ob_message_sql_text(sql, '?', &text);
	if (text.failed)
		return lite_oom(s, err);
	if (sqlite3_prepare_v2(s->db, ob_buf_str(&text), -1, &s->exec.stmt, NULL) != SQLITE_OK)
		return refuse(s, (sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY, err);
	if (!s->exec.stmt || sqlite3_bind_parameter_count(s->exec.stmt) != (int)sql->count)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "running the statement: it has '?' in it, or is empty: use the "
				  "names of values");
	s->exec.serial = sql->serial;
	return 0;
}

static int bind_value(sqlite3_stmt *stmt, int at, const struct ob_bound *value)
{
	switch (value->kind) {
	case OB_BOUND_NULL:
		return sqlite3_bind_null(stmt, at);
	case OB_BOUND_NUMBER:
	case OB_BOUND_TIME:
		return sqlite3_bind_int64(stmt, at, value->number);
	case OB_BOUND_BYTES:
		return sqlite3_bind_blob64(stmt, at, value->text.p, value->text.n,
					   SQLITE_TRANSIENT);
	case OB_BOUND_TEXT:
	default:
		return sqlite3_bind_text64(stmt, at, value->text.p, value->text.n, SQLITE_TRANSIENT,
					   SQLITE_UTF8);
	}
}

int lite_tx_exec(struct ob_store *store, const struct ob_message_sql *sql,
		 const struct ob_message *message, uint64_t *ret_changed, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int code = SQLITE_OK;

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	int r = prepare_statement(s, sql, err);
	if (r < 0)
		return r;
	sqlite3_stmt *stmt = s->exec.stmt;
	int before = sqlite3_total_changes(s->db);
	for (size_t i = 0; i < sql->count && code == SQLITE_OK; i++) {
		struct ob_bound value;

		ob_message_sql_bind(sql, i, message, store->layout->binary_payload, &value);
		code = bind_value(stmt, (int)i + 1, &value);
	}
	while (code == SQLITE_OK || code == SQLITE_ROW)
		code = sqlite3_step(stmt);
	if (code != SQLITE_DONE)
		r = refuse(s, false, err);
	else
		*ret_changed = (uint64_t)(sqlite3_total_changes(s->db) - before);
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt);
	return r;
}

void *lite_tx_native(struct ob_store *store)
{
	return ((struct lite_store *)store)->db;
}
