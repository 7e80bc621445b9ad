/* SPDX-License-Identifier: MIT */
/* The inbox on MySQL and MariaDB. */
#include "lib/fail.h"
#include "lib/inbox/drivers.h"
#include "lib/mysql_push.h"
#include "sql_mysql.h"

#include <mysqld_error.h>
#include <stdlib.h>

int ob_mysql_inbox(void *self, const char *consumer, const char *id, bool *ret_new,
		   struct outbox_error *err)
{
	struct ob_mysql_driver *driver = self;
	unsigned long sizes[2];
	MYSQL_BIND binds[2] = { ob_mysql_bind_bytes(ob_str(consumer), &sizes[0]),
				ob_mysql_bind_bytes(ob_str(id), &sizes[1]) };
	MYSQL_STMT *stmt = NULL;
	struct ob_mysql_failure f = { 0 };
	int r = ob_mysql_prepare(driver, sql_mysql_inbox_push, &stmt, err);

	if (r < 0) {
		f.code = (unsigned)strtoul(err->native, NULL, 10);
	} else if (!mysql_stmt_bind_param(stmt, binds) && mysql_stmt_execute(stmt) == 0) {
		*ret_new = mysql_stmt_affected_rows(stmt) == 1;
	} else {
		f = ob_mysql_stmt_failure(stmt, "asking the inbox");
		r = ob_mysql_fail(driver, NULL, &f, err);
	}
	if (stmt)
		(void)mysql_stmt_close(stmt);
	/* The push knows only its own tables. */
	if (r != 0 && f.code == ER_NO_SUCH_TABLE)
		return ob_fail(err, OUTBOX_ESCHEMA, OUTBOX_NO_INDEX,
			       "the table of the inbox is missing: run `outbox setup --inbox`");
	return r > 0 ? err->status : r;
}
