/* SPDX-License-Identifier: MIT */
/* Rows are brought into their states by plain SQL: no command is trusted with another's test. */
#include "database.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>

static sqlite3 *open_database(void)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path_of("test.db"), &db), SQLITE_OK);
	/* A relay may be at work on it. */
	ck_assert_int_eq(sqlite3_busy_timeout(db, 60000), SQLITE_OK);
	return db;
}

void begin_database(void)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(0, NULL, "", "setup", NULL);
}

void sql(const char *fmt, ...)
{
	sqlite3 *db = open_database();
	char *error = NULL;
	va_list ap;

	va_start(ap, fmt);
	char *text = sqlite3_vmprintf(fmt, ap);
	va_end(ap);
	int r = sqlite3_exec(db, text, NULL, NULL, &error);
	ck_assert_msg(r == SQLITE_OK, "%s: %s", text, error);
	sqlite3_free(text);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

void row(int n, const char *type, const char *aggregate, int status)
{
	sql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, status) "
	    "VALUES (x'0196a1f03c5b70008000%012d', '%s', '%s', 'Happened', '{}', %d)",
	    n, type, aggregate, status);
}

const char *ask(const char *query)
{
	static char text[4096];
	sqlite3 *db = open_database();
	sqlite3_stmt *stmt;
	size_t len = 0;

	ck_assert_int_eq(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
	text[0] = '\0';
	for (int rows = 0; sqlite3_step(stmt) == SQLITE_ROW; rows++) {
		for (int i = 0; i < sqlite3_column_count(stmt); i++) {
			const char *value = (const char *)sqlite3_column_text(stmt, i);
			int n = snprintf(text + len, sizeof(text) - len, "%s%s",
					 i      ? ","
					 : rows ? " "
						: "",
					 value ? value : "null");
			len += (size_t)n;
			ck_assert_uint_lt(len, sizeof(text));
		}
	}
	ck_assert_int_eq(sqlite3_finalize(stmt), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return text;
}
