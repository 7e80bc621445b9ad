/* SPDX-License-Identifier: MIT */
/* The inbox on SQLite. */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/fail.h"
#include "lib/inbox/drivers.h"
#include "lib/sqlite_push.h"
#include "sql_sqlite.h"

enum { SQL_MAX = 4096 };

static int prepare_inbox(struct ob_sqlite_driver *driver, sqlite3_stmt **ret,
			 struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	struct ob_err inner = OB_ERR_INIT;

	if (ob_sqltmpl_expand(&sql, sql_sqlite_inbox_push, &driver->layout, '"', NULL, &inner) < 0)
		return ob_fail(err, OUTBOX_ECONFIG, OUTBOX_NO_INDEX, "%s", inner.msg);
	if (sqlite3_prepare_v2(driver->db, ob_buf_str(&sql), -1, ret, NULL) == SQLITE_OK)
		return 0;
	if ((sqlite3_errcode(driver->db) & 0xff) == SQLITE_ERROR)
		return ob_fail(err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
			       "%s: run `outbox setup --inbox`", sqlite3_errmsg(driver->db));
	return ob_sqlite_fail(driver, NULL, "asking the inbox", err);
}

int ob_sqlite_inbox(void *self, const char *consumer, const char *id, bool *ret_new,
		    struct outbox_error *err)
{
	struct ob_sqlite_driver *driver = self;
	sqlite3_stmt *stmt = NULL;
	int r = prepare_inbox(driver, &stmt, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_text(stmt, 1, consumer, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 2, id, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) == SQLITE_DONE)
		*ret_new = sqlite3_changes(driver->db) > 0;
	else
		r = ob_sqlite_fail(driver, NULL, "asking the inbox", err);
	(void)sqlite3_finalize(stmt);
	return r > 0 ? err->status : r;
}
