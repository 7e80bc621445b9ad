/* SPDX-License-Identifier: MIT */
/* A statement of the operator's with values of a message, in the MySQL store's transaction. */
#include "base/cleanup.h"
#include "base/when.h"
#include "store/message_sql.h"
#include "store/mysql/tx.h"
#include "store/writer.h"

#include <mysqld_error.h>

enum { TEXT_MAX = 1 << 20, TIME_SIZE = 26 };

struct values {
	struct ob_bound bound[OB_MESSAGE_SQL_VALUES];
	MYSQL_BIND binds[OB_MESSAGE_SQL_VALUES];
	unsigned long sizes[OB_MESSAGE_SQL_VALUES];
};

static int refuse(struct my_store *s, bool broken, struct ob_err *err)
{
	unsigned code = s->exec.stmt ? mysql_stmt_errno(s->exec.stmt) : mysql_errno(s->db);
	const char *text = s->exec.stmt ? mysql_stmt_error(s->exec.stmt) : mysql_error(s->db);
	struct ob_err said = OB_ERR_INIT;

	(void)my_err(s, code, text, "running the statement", &said);
	(void)ob_err_set(err, said.status, said.kind, "running the statement: %.300s", text);
	(void)snprintf(err->native, sizeof(err->native), "%s", said.native);
	/* In tables of ours it passes by itself; here it is the message's. */
	if (code == ER_DUP_ENTRY)
		err->kind = OB_ERR_RETRY;
	return ob_message_sql_fail(broken, err);
}

void my_exec_forget(struct my_store *s)
{
	if (s->exec.stmt)
		(void)mysql_stmt_close(s->exec.stmt);
	s->exec.stmt = NULL;
	s->exec.serial = 0;
}

/* The last statement stays prepared: a handler runs the same one for every message. */
static int prepare_statement(struct my_store *s, const struct ob_message_sql *sql,
			     struct ob_err *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(TEXT_MAX);

	if (s->exec.stmt && s->exec.serial == sql->serial)
		return 0;
	my_exec_forget(s);
	ob_message_sql_text(sql, '?', &text);
	s->exec.stmt = mysql_stmt_init(s->db);
	if (!s->exec.stmt || text.failed)
		return my_oom("running the statement", err);
	if (mysql_stmt_prepare(s->exec.stmt, text.data, text.len) != 0)
		return refuse(s, true, err);
	if (mysql_stmt_param_count(s->exec.stmt) != sql->count)
		return ob_err_set(
			err, OUTBOX_ESTORE, OB_ERR_FATAL,
			"running the statement: it has '?' in it: use the names of values");
	s->exec.serial = sql->serial;
	return 0;
}

/* "2026-05-01 12:00:00.123456": DATETIME(6) knows neither the T nor the Z. */
static void format_time(struct ob_bound *b)
{
	ob_when_iso(b->number, b->room);
	b->room[10] = ' ';
	b->room[TIME_SIZE] = '\0';
	b->text = ob_str(b->room);
}

static void make_bind(struct ob_bound *b, MYSQL_BIND *ret, unsigned long *size)
{
	*ret = (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_NULL };
	if (b->kind == OB_BOUND_NULL)
		return;
	if (b->kind == OB_BOUND_NUMBER) {
		ret->buffer_type = MYSQL_TYPE_LONGLONG;
		ret->buffer = &b->number;
		return;
	}
	if (b->kind == OB_BOUND_TIME)
		format_time(b);
	*size = b->text.n;
	ret->buffer_type = b->kind == OB_BOUND_BYTES ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
	/* The library only reads it, but has no const there. */
	memcpy(&ret->buffer, &b->text.p, sizeof(ret->buffer));
	ret->buffer_length = b->text.n;
	ret->length = size;
}

/* A CALL has a result after the rows of its SELECTs; all must be fetched. */
static int drop_rows(MYSQL_STMT *stmt)
{
	int more;

	do {
		if (mysql_stmt_field_count(stmt) > 0 && mysql_stmt_store_result(stmt) != 0)
			return -1;
		(void)mysql_stmt_free_result(stmt);
		more = mysql_stmt_next_result(stmt);
	} while (more == 0);
	return more > 0 ? -1 : 0;
}

int my_tx_exec(struct ob_store *store, const struct ob_message_sql *sql,
	       const struct ob_message *message, uint64_t *ret_changed, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	struct values v = { 0 };

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	int r = prepare_statement(s, sql, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sql->count; i++) {
		ob_message_sql_bind(sql, i, message, store->layout->binary_payload, &v.bound[i]);
		make_bind(&v.bound[i], &v.binds[i], &v.sizes[i]);
	}
	MYSQL_STMT *stmt = s->exec.stmt;
	if ((sql->count > 0 && mysql_stmt_bind_param(stmt, v.binds)) ||
	    mysql_stmt_execute(stmt) != 0)
		return refuse(s, false, err);
	uint64_t changed = mysql_stmt_affected_rows(stmt);
	if (drop_rows(stmt) != 0)
		return refuse(s, false, err);
	/* A statement with rows counts them here. */
	*ret_changed = changed == UINT64_MAX ? 0 : changed;
	return 0;
}

void *my_tx_native(struct ob_store *store)
{
	return ((struct my_store *)store)->db;
}
