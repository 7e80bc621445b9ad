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
	add_reader("default", "default");
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

/* For each partition of the three lanes a journal row at the beginning. */
void add_reader(const char *name, const char *target)
{
	sql("INSERT INTO outbox_readers (name, target, created_at) VALUES ('%s', '%s', " NOW ")",
	    name, target);
	sql("INSERT INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos) "
	    "WITH RECURSIVE p (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM p WHERE n < 47) "
	    "SELECT '%s', n, 0, 0, zeroblob(16), " NOW ", 0 FROM p",
	    name);
}

/* The reader goes on over the newest message. */
static void pass(void)
{
	sql("INSERT INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos) "
	    "SELECT b.reader, b.partition_no, max(b.batch) + 1, b.epoch, b.owner, " NOW
	    ", o.seq "
	    "FROM outbox AS o JOIN outbox_batches AS b USING (partition_no) "
	    "WHERE b.reader = 'default' AND o.seq = (SELECT max(seq) FROM outbox)");
}

static void except(int state, const char *due, const char *queue)
{
	sql("INSERT INTO outbox_exceptions (reader, partition_no, seq, state, due, queue, since) "
	    "SELECT 'default', partition_no, seq, %d, %s, %s, " NOW
	    " FROM outbox "
	    "WHERE seq = (SELECT max(seq) FROM outbox)",
	    state, due, queue);
}

void row(int n, const char *type, const char *aggregate, enum state state)
{
	/* As src/log/exception.h has them. */
	enum { WAITING = 0, FAILS = 1, DELAYS = 2, DIED = 3, HOLDS = 4 };

	sql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
	    "VALUES (x'0196a1f03c5b70008000%012d', '%s', '%s', 'Happened', '{}')",
	    n, type, aggregate);
	switch (state) {
	case PENDING:
		return;
	case PUBLISHED:
		break;
	case FAILED:
		except(FAILS, "0", "ordering_key");
		break;
	case PARKED:
		except(WAITING, "NULL", "ordering_key");
		break;
	case DELAYED:
		except(DELAYS, NOW " + 90 * " MINUTES, "NULL");
		break;
	case DEAD:
		except(DIED, "NULL", "NULL");
		break;
	case DEAD_HOLD:
		except(HOLDS, "NULL", "ordering_key");
		break;
	}
	pass();
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
