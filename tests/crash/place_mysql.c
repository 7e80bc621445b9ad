/* SPDX-License-Identifier: MIT */
/* A private MariaDB server as a place. */
#include "mysql_server.h"
#include "place.h"

#include <check.h>
#include <mysql.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SESSIONS_MAX = 256 };

static struct mysql_server server;

static const char *mysql_start(void)
{
	/* What is committed survives a kill -9. */
	static const char *const settings[] = { "--innodb-flush-log-at-trx-commit=2",
						"--max-connections=200", NULL };

	return mysql_server_start(&server, settings) ? NULL : server.reason;
}

static void mysql_stop(void)
{
	mysql_server_stop(&server);
}

/* "mysql://root@/NAME?socket=...": the database is what stands behind the slash. */
static void name_of(const char *url, char name[64])
{
	const char *slash = strstr(url, "@/");

	ck_assert_ptr_nonnull(slash);
	(void)snprintf(name, 64, "%.*s", (int)strcspn(slash + 2, "?"), slash + 2);
}

static MYSQL *connect_to(const char *database)
{
	char path[128];
	MYSQL *db = mysql_init(NULL);

	ck_assert_msg(mysql_real_connect(db, NULL, "root", NULL, database, 0,
					 mysql_server_socket(&server, path),
					 CLIENT_MULTI_STATEMENTS),
		      "%s", mysql_error(db));
	return db;
}

static void exec(MYSQL *db, const char *sql)
{
	int next = mysql_query(db, sql);

	ck_assert_msg(next == 0, "%s: %s", sql, mysql_error(db));
	for (; next == 0; next = mysql_next_result(db)) {
		MYSQL_RES *result = mysql_store_result(db);

		if (result)
			mysql_free_result(result);
	}
	ck_assert_msg(next < 0, "%s: %s", sql, mysql_error(db));
}

static void *mysql_hold(const char *url, const char *sql)
{
	char name[64];

	name_of(url, name);
	MYSQL *db = connect_to(name);
	exec(db, sql);
	return db;
}

static void mysql_also(void *held, const char *sql)
{
	exec(held, sql);
}

static void mysql_let_go(void *held)
{
	mysql_close(held);
}

static void mysql_run(const char *url, const char *sql)
{
	mysql_let_go(mysql_hold(url, sql));
}

static int64_t mysql_number(const char *url, const char *sql)
{
	char name[64];

	name_of(url, name);
	MYSQL *db = connect_to(name);
	ck_assert_msg(mysql_query(db, sql) == 0, "%s: %s", sql, mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	MYSQL_ROW row = result ? mysql_fetch_row(result) : NULL;
	ck_assert_msg(row && row[0], "%s: no number", sql);
	int64_t value = strtoll(row[0], NULL, 10);
	mysql_free_result(result);
	mysql_close(db);
	return value;
}

static void mysql_make(const char *dir, char url[PLACE_URL])
{
	static unsigned made;
	char name[64], sql[128];
	MYSQL *db = connect_to(NULL);

	(void)dir;
	(void)snprintf(name, sizeof(name), "t%d_%u", (int)getpid(), ++made);
	(void)snprintf(sql, sizeof(sql), "CREATE DATABASE %s", name);
	exec(db, sql);
	mysql_close(db);
	mysql_server_url(&server, "root", name, url);
}

/* A database is a directory, and may be a link to one. */
static void mysql_move(const char *url, const char *dir)
{
	const struct passwd *user = geteuid() == 0 ? getpwnam("mysql") : NULL;
	char name[64], from[160], options[192];

	if (user)
		ck_assert_int_eq(chown(dir, user->pw_uid, user->pw_gid), 0);
	name_of(url, name);
	(void)snprintf(from, sizeof(from), "%s/data/%s", server.dir, name);
	(void)snprintf(options, sizeof(options), "%s/db.opt", from);
	ck_assert_int_eq(unlink(options), 0);
	ck_assert_int_eq(rmdir(from), 0);
	ck_assert_int_eq(symlink(dir, from), 0);
}

static int64_t mysql_kick(const char *url)
{
	unsigned long ids[SESSIONS_MAX];
	char sql[160], name[64];
	size_t count = 0;
	int64_t ended = 0;
	MYSQL_ROW row;

	name_of(url, name);
	MYSQL *db = connect_to(name);
	(void)snprintf(sql, sizeof(sql),
		       "SELECT id FROM information_schema.PROCESSLIST "
		       "WHERE db = '%s' AND id <> CONNECTION_ID()",
		       name);
	ck_assert_msg(mysql_query(db, sql) == 0, "%s", mysql_error(db));
	MYSQL_RES *result = mysql_store_result(db);
	ck_assert_ptr_nonnull(result);
	while ((row = mysql_fetch_row(result)) && count < SESSIONS_MAX)
		ids[count++] = strtoul(row[0], NULL, 10);
	mysql_free_result(result);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(sql, sizeof(sql), "KILL CONNECTION %lu", ids[i]);
		ended += mysql_query(db, sql) == 0; /* else it has left by itself */
	}
	mysql_close(db);
	return ended;
}

static void mysql_crash(void)
{
	ck_assert(mysql_server_crash(&server));
}

static bool mysql_crashed(void)
{
	return mysql_server_crashed(&server);
}

static void mysql_again(void)
{
	ck_assert_msg(mysql_server_again(&server), "%s", server.reason);
}

const struct place place_mysql = {
	.name = "mysql",
	.concurrent = true,
	.start = mysql_start,
	.stop = mysql_stop,
	.make = mysql_make,
	.run = mysql_run,
	.number = mysql_number,
	.hold = mysql_hold,
	.also = mysql_also,
	.let_go = mysql_let_go,
	.begin = "START TRANSACTION",
	.half_hour = "INTERVAL 30 MINUTE",
	.id_left = "UNHEX('",
	.id_right = "')",
	.move = mysql_move,
	.kick = mysql_kick,
	.crashed = mysql_crashed,
	.crash = mysql_crash,
	.again = mysql_again,
};
