/* SPDX-License-Identifier: MIT */
/* SQLite as a place, and the choice. */
#include "place.h"

#include "config.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *sqlite_start(void)
{
	return NULL;
}

static void sqlite_stop(void)
{
}

static void sqlite_make(const char *dir, char url[PLACE_URL])
{
	(void)snprintf(url, PLACE_URL, "sqlite:%s/outbox.db", dir);
}

static void sqlite_also(void *held, const char *sql)
{
	ck_assert_msg(sqlite3_exec(held, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
		      sqlite3_errmsg(held));
}

static void *sqlite_hold(const char *url, const char *sql)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(url + strlen("sqlite:"), &db, SQLITE_OPEN_READWRITE, NULL),
			 SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 60000);
	sqlite_also(db, sql);
	return db;
}

static void sqlite_let_go(void *held)
{
	ck_assert_int_eq(sqlite3_close(held), SQLITE_OK);
}

static void sqlite_run(const char *url, const char *sql)
{
	sqlite_let_go(sqlite_hold(url, sql));
}

static int64_t sqlite_number(const char *url, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *stmt;

	ck_assert_int_eq(sqlite3_open_v2(url + strlen("sqlite:"), &db, SQLITE_OPEN_READONLY, NULL),
			 SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 60000);
	ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, "%s: %s", sql,
		      sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return value;
}

const struct place place_sqlite = {
	.name = "sqlite",
	.start = sqlite_start,
	.stop = sqlite_stop,
	.make = sqlite_make,
	.run = sqlite_run,
	.number = sqlite_number,
	.hold = sqlite_hold,
	.also = sqlite_also,
	.let_go = sqlite_let_go,
	.begin = "BEGIN IMMEDIATE",
	.half_hour = "1800000000",
	.id_left = "X'",
	.id_right = "'",
};

const struct place *place_chosen(void)
{
	static const struct place *const places[] = {
		&place_sqlite,
#if HAVE_POSTGRES
		&place_postgres,
#endif
#if HAVE_MYSQL
		&place_mysql,
#endif
	};
	const char *name = getenv("CRASH_STORE");

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(places[i]->name, name ? name : "sqlite") == 0)
			return places[i];
	}
	(void)fprintf(stderr, "CRASH_STORE=%s: there is no such store in this build\n", name);
	exit(EXIT_FAILURE);
}
