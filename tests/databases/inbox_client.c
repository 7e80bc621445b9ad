/* SPDX-License-Identifier: MIT */
/*
 * One connection and outbox_inbox() on it, driven by lines on stdin: begin, commit, rollback,
 * inbox CONSUMER ID. Each is answered by one line: ok, new, seen, or the name of a status and why.
 * usage: inbox_client sqlite|postgres|mysql WHERE [SOCKET]
 */
#include "config.h"
#include "outbox/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HAVE_SQLITE
#include "outbox/sqlite.h"

#include <sqlite3.h>
#endif
#if HAVE_POSTGRES
#include "outbox/postgres.h"

#include <libpq-fe.h>
#endif
#if HAVE_MYSQL
#include "outbox/mysql.h"

#include <mysql.h>
#endif

static void *db;
static int (*run)(const char *sql);
static outbox *ob;
static struct outbox_error error;

#if HAVE_SQLITE
static int run_sqlite(const char *sql)
{
	return sqlite3_exec(db, strcmp(sql, "BEGIN") == 0 ? "BEGIN IMMEDIATE" : sql, NULL, NULL,
			    NULL) == SQLITE_OK;
}
#endif
#if HAVE_POSTGRES
static int run_postgres(const char *sql)
{
	PGresult *result = PQexec(db, sql);
	int ok = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return ok;
}
#endif
#if HAVE_MYSQL
static int run_mysql(const char *sql)
{
	return mysql_query(db, sql) == 0;
}
#endif

static int connect_to(const char *kind, const char *where, const char *socket)
{
	(void)socket;
#if HAVE_SQLITE
	if (strcmp(kind, "sqlite") == 0) {
		sqlite3 *lite = NULL;

		if (sqlite3_open(where, &lite) != SQLITE_OK)
			return 0;
		(void)sqlite3_busy_timeout(lite, 60000);
		db = lite;
		run = run_sqlite;
		return outbox_sqlite_open(lite, NULL, &ob, &error) == 0;
	}
#endif
#if HAVE_POSTGRES
	if (strcmp(kind, "postgres") == 0) {
		db = PQconnectdb(where);
		run = run_postgres;
		return outbox_postgres_open(db, NULL, &ob, &error) == 0;
	}
#endif
#if HAVE_MYSQL
	if (strcmp(kind, "mysql") == 0) {
		db = mysql_real_connect(mysql_init(NULL), NULL, "root", NULL, where, 0, socket, 0);
		run = run_mysql;
		return db && outbox_mysql_open(db, NULL, &ob, &error) == 0;
	}
#endif
	return 0;
}

static void ask_inbox(char *words)
{
	char *consumer = words, *id = strchr(words, ' ');
	int is_new = -1;

	if (id)
		*id++ = '\0';
	int r = outbox_inbox(ob, consumer, id, &is_new, &error);
	if (r < 0)
		printf("%s %s\n", outbox_status_name(r), error.message);
	else
		printf("%s\n", is_new ? "new" : "seen");
}

int main(int argc, char **argv)
{
	char line[2048];

	if (argc < 3 || !connect_to(argv[1], argv[2], argc > 3 ? argv[3] : NULL)) {
		printf("no connection: %s\n", error.message);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "inbox ", 6) == 0)
			ask_inbox(line + 6);
		else
			printf("%s\n", run(line) ? "ok" : "failed");
		(void)fflush(stdout);
	}
	outbox_close(ob);
	return 0;
}
