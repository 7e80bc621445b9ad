/* SPDX-License-Identifier: MIT */
/*
 * An order and its event in one transaction, on PostgreSQL: either both are stored
 * or neither is. A second order is rolled back, so nobody will hear of it.
 *
 *   outbox setup                 # once: makes the tables
 *   cc orders_postgres.c $(pkg-config --cflags --libs outbox-postgres libpq) -o orders_postgres
 *   ./orders_postgres postgresql://localhost/shop
 */
#include <outbox/postgres.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

/* Any SQL of your own; this program just stops when it fails. */
static void run(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK) {
		fprintf(stderr, "%s: %s", sql, PQerrorMessage(conn));
		exit(EXIT_FAILURE);
	}
	PQclear(result);
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

	if (argc != 2) {
		fprintf(stderr, "usage: %s URL\n", argv[0]);
		return 2;
	}
	/* Your own connection, opened your own way. */
	PGconn *conn = PQconnectdb(argv[1]);
	if (PQstatus(conn) != CONNECTION_OK) {
		fprintf(stderr, "%s", PQerrorMessage(conn));
		PQfinish(conn);
		return EXIT_FAILURE;
	}
	run(conn, "SET client_min_messages = warning");
	run(conn, "CREATE TABLE IF NOT EXISTS orders (id integer PRIMARY KEY, total integer)");

	/* The writer for that connection; keep it as long as the connection. */
	if (outbox_postgres_open(conn, NULL, &ob, &err) != OUTBOX_OK) {
		fprintf(stderr, "%s\n", err.message);
		PQfinish(conn);
		return EXIT_FAILURE;
	}

	run(conn, "BEGIN");
	run(conn, "INSERT INTO orders (id, total) VALUES (1042, 9950) ON CONFLICT DO NOTHING");
	push_event(ob, "1042", "{\"order\": 1042, \"total\": 9950}");
	run(conn, "COMMIT");
	printf("order 1042: committed, the event will be delivered\n");

	run(conn, "BEGIN");
	run(conn, "INSERT INTO orders (id, total) VALUES (1043, 120) ON CONFLICT DO NOTHING");
	push_event(ob, "1043", "{\"order\": 1043, \"total\": 120}");
	run(conn, "ROLLBACK");
	printf("order 1043: rolled back, and its event with it\n");

	outbox_close(ob); /* before the connection */
	PQfinish(conn);
	return EXIT_SUCCESS;
}
