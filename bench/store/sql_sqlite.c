/* SPDX-License-Identifier: MIT */
/* A few calls of SQLite. */
#include "bench/store/sql_sqlite.h"

#include "bench/fatal.h"

#include <string.h>

enum { BUSY_MS = 60000 };

void bench_sqlite_fail(sqlite3 *db)
{
	bench_fatal("SQLite: %s", sqlite3_errmsg(db));
}

void bench_sqlite_do(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		bench_sqlite_fail(db);
}

sqlite3 *bench_sqlite_connect(const char *url)
{
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(url + strlen("sqlite:"), &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		bench_sqlite_fail(db);
	(void)sqlite3_busy_timeout(db, BUSY_MS);
	bench_sqlite_do(db, "PRAGMA synchronous = FULL; PRAGMA cache_size = -16000");
	return db;
}

sqlite3_stmt *bench_sqlite_prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		bench_sqlite_fail(db);
	return stmt;
}

int64_t bench_sqlite_step(sqlite3 *db, sqlite3_stmt *stmt)
{
	int64_t number = 0;
	int r;

	for (int row = 0; (r = sqlite3_step(stmt)) == SQLITE_ROW; row++) {
		if (row == 0)
			number = sqlite3_column_int64(stmt, 0);
	}
	if (r != SQLITE_DONE)
		bench_sqlite_fail(db);
	(void)sqlite3_reset(stmt);
	return number;
}
