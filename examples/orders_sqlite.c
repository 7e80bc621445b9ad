/* SPDX-License-Identifier: MIT */
/*
 * An order and its event in one transaction, on SQLite: either both are stored
 * or neither is. A second order is rolled back, so nobody will hear of it.
 *
 *   outbox setup                 # once: makes the tables
 *   cc orders_sqlite.c $(pkg-config --cflags --libs outbox-sqlite sqlite3) -o orders_sqlite
 *   ./orders_sqlite outbox.db
 */
#include <outbox/sqlite.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* Any SQL of your own; this program just stops when it fails. */
static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
		exit(EXIT_FAILURE);
	}
}

/* The event of an order, written on the same connection as the order itself. */
static void push_event(outbox *ob, const char *order, const char *payload)
{
	/* What is left out gets its default; an id is made for the message. */
	struct outbox_message event = {
		.aggregate_type = "order",
		.aggregate_id = order, /* events of one order are delivered in order */
		.event_type = "OrderPlaced",
		.payload = payload,
	};
	struct outbox_id id;
	struct outbox_error err;

	if (outbox_push(ob, &event, 1, &id, &err) != OUTBOX_OK) {
		fprintf(stderr, "cannot push: %s\n", err.message);
		exit(EXIT_FAILURE);
	}
	printf("order %s: event %s\n", order, id.text);
}

int main(int argc, char **argv)
{
	sqlite3 *db = NULL;
	outbox *ob = NULL;
	struct outbox_error err;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DATABASE\n", argv[0]);
		return 2;
	}
	/* Your own connection, opened your own way. */
	if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s (run `outbox setup` first)\n", argv[1], sqlite3_errmsg(db));
		sqlite3_close(db);
		return EXIT_FAILURE;
	}
	sqlite3_busy_timeout(db, 5000);
	run(db, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total INTEGER)");

	/* The writer for that connection; keep it as long as the connection. */
	if (outbox_sqlite_open(db, NULL, &ob, &err) != OUTBOX_OK) {
		fprintf(stderr, "%s: %s\n", argv[1], err.message);
		sqlite3_close(db);
		return EXIT_FAILURE;
	}

	/* IMMEDIATE: wait for the write lock now, while there is nothing to lose. */
	run(db, "BEGIN IMMEDIATE");
	run(db, "INSERT OR REPLACE INTO orders (id, total) VALUES (1042, 9950)");
	push_event(ob, "1042", "{\"order\": 1042, \"total\": 9950}");
	run(db, "COMMIT");
	printf("order 1042: committed, the event will be delivered\n");

	run(db, "BEGIN IMMEDIATE");
	run(db, "INSERT OR REPLACE INTO orders (id, total) VALUES (1043, 120)");
	push_event(ob, "1043", "{\"order\": 1043, \"total\": 120}");
	run(db, "ROLLBACK");
	printf("order 1043: rolled back, and its event with it\n");

	outbox_close(ob); /* before the connection */
	sqlite3_close(db);
	return EXIT_SUCCESS;
}
