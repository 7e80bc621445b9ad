/* SPDX-License-Identifier: MIT */
/*
 * A consumer behind `outbox consume`, in C: each message is counted once.
 *
 *   consumers:
 *     - name: billing
 *       source: { type: redis, url: "redis://localhost:6379", stream: orders }
 *       exec: { command: "./consumer_sqlite shop.db" }
 *
 *   cc consumer_sqlite.c $(pkg-config --cflags --libs outbox-sqlite sqlite3) -o consumer_sqlite
 *
 * One JSON message per line in, one answer per line out: ok ID | retry ID reason | reject ID
 * reason. The table: CREATE TABLE paid (order_id TEXT NOT NULL, payload TEXT NOT NULL)
 */
#include <outbox/inbox.h>
#include <outbox/sqlite.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char apply[] =
	"INSERT INTO paid SELECT json_extract(?1, '$.aggregate_id'), json_extract(?1, '$.payload')";

static int work(sqlite3 *db, const char *line)
{
	sqlite3_stmt *stmt = NULL;
	int ok = sqlite3_prepare_v2(db, apply, -1, &stmt, NULL) == SQLITE_OK &&
		 sqlite3_bind_text(stmt, 1, line, -1, SQLITE_STATIC) == SQLITE_OK &&
		 sqlite3_step(stmt) == SQLITE_DONE;

	sqlite3_finalize(stmt);
	return ok;
}

/* The inbox and the work in one transaction: a copy changes nothing. */
static int handle(sqlite3 *db, outbox *ob, const char *id, const char *line,
		  struct outbox_error *err)
{
	int is_new = 0;
	int ok = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
		 outbox_inbox(ob, "billing", id, &is_new, err) == OUTBOX_OK &&
		 (!is_new || work(db, line)) &&
		 sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;

	if (!ok)
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return ok;
}

int main(int argc, char **argv)
{
	struct outbox_error err = { .message = "the database refuses" };
	char id[37], *line = NULL;
	size_t size = 0;
	sqlite3 *db;
	outbox *ob;

	if (argc < 2 || sqlite3_open(argv[1], &db) != SQLITE_OK ||
	    outbox_sqlite_open(db, NULL, &ob, &err) != OUTBOX_OK) {
		fprintf(stderr, "%s\n", err.message);
		return EXIT_FAILURE;
	}
	sqlite3_busy_timeout(db, 60000);
	while (getline(&line, &size, stdin) > 0) {
		/* "id" always comes first in a line. */
		if (sscanf(line, "{\"id\":\"%36[0-9a-f-]\"", id) != 1)
			continue;
		if (handle(db, ob, id, line, &err))
			printf("ok %s\n", id);
		else
			printf("retry %s %s\n", id, err.message);
		fflush(stdout);
	}
	outbox_close(ob);
	sqlite3_close(db);
	free(line);
	return EXIT_SUCCESS;
}
