/* SPDX-License-Identifier: MIT */
/*
 * An order and its event in one transaction, on MySQL or MariaDB: either both are
 * stored or neither is. A second order is rolled back, so nobody will hear of it.
 *
 *   outbox setup                 # once: makes the tables
 *   cc orders_mysql.c $(pkg-config --cflags --libs outbox-mysql libmariadb) -o orders_mysql
 *   ./orders_mysql HOST USER PASSWORD DATABASE [PORT | SOCKET]
 */
#include <outbox/mysql.h>

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

/* Any SQL of your own; this program just stops when it fails. */
static void run(MYSQL *db, const char *sql)
{
	if (mysql_query(db, sql) != 0) {
		fprintf(stderr, "%s: %s\n", sql, mysql_error(db));
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
	outbox *ob = NULL;
	struct outbox_error err;

	if (argc < 5) {
		fprintf(stderr, "usage: %s HOST USER PASSWORD DATABASE [PORT | SOCKET]\n", argv[0]);
		return 2;
	}
	/* A number is a port, everything else the path of a socket. */
	unsigned port = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 0;
	const char *socket = argc > 5 && port == 0 ? argv[5] : NULL;

	/* Your own connection, opened your own way. */
	MYSQL *db = mysql_init(NULL);
	if (!mysql_real_connect(db, argv[1], argv[2], argv[3], argv[4], port, socket, 0)) {
		fprintf(stderr, "%s\n", mysql_error(db));
		mysql_close(db);
		return EXIT_FAILURE;
	}
	run(db, "CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY, total INT) ENGINE=InnoDB");

	/* The writer for that connection; keep it as long as the connection. */
	if (outbox_mysql_open(db, NULL, &ob, &err) != OUTBOX_OK) {
		fprintf(stderr, "%s\n", err.message);
		mysql_close(db);
		return EXIT_FAILURE;
	}

	run(db, "START TRANSACTION");
	run(db, "REPLACE INTO orders (id, total) VALUES (1042, 9950)");
	push_event(ob, "1042", "{\"order\": 1042, \"total\": 9950}");
	run(db, "COMMIT");
	printf("order 1042: committed, the event will be delivered\n");

	run(db, "START TRANSACTION");
	run(db, "REPLACE INTO orders (id, total) VALUES (1043, 120)");
	push_event(ob, "1043", "{\"order\": 1043, \"total\": 120}");
	run(db, "ROLLBACK");
	printf("order 1043: rolled back, and its event with it\n");

	outbox_close(ob); /* before the connection */
	mysql_close(db);
	return EXIT_SUCCESS;
}
