/* SPDX-License-Identifier: MIT */
/* The inbox on PostgreSQL. */
#include "base/cleanup.h"
#include "base/sqltmpl.h"
#include "lib/fail.h"
#include "lib/inbox/drivers.h"
#include "lib/postgres_push.h"
#include "sql_postgres.h"

enum { SQL_MAX = 4096 };

static bool begins(const char *state, const char *with)
{
	return state && strncmp(state, with, strlen(with)) == 0;
}

/* A failed statement ends the transaction. */
static int fail_inbox(const PGresult *result, const PGconn *conn, struct outbox_error *err)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	bool schema = begins(state, "42P01") || begins(state, "42703");
	/* A serialisation failure, a deadlock, a lock that was not had in time. */
	bool busy = begins(state, "40") || begins(state, "55P03");

	(void)ob_fail(err,
		      schema ? OUTBOX_ESCHEMA
		      : busy ? OUTBOX_EBUSY
			     : OUTBOX_ESTORE,
		      OUTBOX_NO_INDEX, "asking the inbox: %.150s; %s",
		      text ? text : PQerrorMessage(conn),
		      schema ? "run `outbox setup --inbox`"
		      : busy ? "roll the transaction back and run it again"
			     : "roll the transaction back");
	(void)snprintf(err->native, sizeof(err->native), "%s", state ? state : "");
	return err->status;
}

int ob_postgres_inbox(void *self, const char *consumer, const char *id, bool *ret_new,
		      struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf sql = OB_BUF_INIT(SQL_MAX);
	const struct ob_postgres_driver *driver = self;
	const char *const values[] = { consumer, id };
	struct ob_err inner = OB_ERR_INIT;
	int r = 0;

	if (ob_sqltmpl_expand(&sql, sql_postgres_inbox_push, &driver->layout, '"', NULL, &inner) <
	    0)
		return ob_fail(err, OUTBOX_ECONFIG, OUTBOX_NO_INDEX, "%s", inner.msg);
	PGresult *result =
		PQexecParams(driver->conn, ob_buf_str(&sql), 2, NULL, values, NULL, NULL, 0);
	if (PQresultStatus(result) == PGRES_COMMAND_OK)
		*ret_new = strcmp(PQcmdTuples(result), "1") == 0;
	else
		r = fail_inbox(result, driver->conn, err);
	PQclear(result);
	return r;
}
