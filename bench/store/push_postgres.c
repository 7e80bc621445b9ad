/* SPDX-License-Identifier: MIT */
/* Writing messages on PostgreSQL: by the library, and by a prepared INSERT of many rows. */
#include "base/buf.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/sql_postgres.h"

#include "outbox/postgres.h"

#include "outbox/events.h"

#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 6, ROWS_MAX = 1000, SQL_MAX = 1 << 20 };

/* A prepared INSERT; its name is the table's. */
struct inserter {
	const char *table, *version; /* version: the name of that column */
	size_t prepared;             /* rows of the statement */
	size_t columns;              /* 6 with a version, else 5 */
};

struct producer {
	PGconn *conn;
	outbox *ob; /* NULL: bare */
	bool twice;
	struct inserter log, events;
};

void *bench_pg_producer_open(struct bench_store *store, enum bench_writer writer)
{
	struct producer *p = bench_need(calloc(1, sizeof(*p)));
	struct outbox_error err;

	p->conn = bench_pg_connect(store->url);
	p->twice = writer == BENCH_TWICE;
	p->log = (struct inserter){ .table = "outbox", .version = "sequence_number" };
	p->events = (struct inserter){ .table = "bench_events", .version = "version" };
	if (writer == BENCH_LIBRARY && outbox_postgres_open(p->conn, NULL, &p->ob, &err) < 0)
		bench_fatal("%s", err.message);
	return p;
}

static void prepare(PGconn *conn, struct inserter *p, size_t rows)
{
	struct ob_buf sql = OB_BUF_INIT(SQL_MAX);

	ob_buf_addf(&sql,
		    "INSERT INTO %s (id, aggregate_type, aggregate_id, event_type, payload%s%s) "
		    "VALUES ",
		    p->table, p->columns > 5 ? ", " : "", p->columns > 5 ? p->version : "");
	for (size_t i = 0; i < rows; i++)
		for (size_t c = 1; c <= p->columns; c++)
			ob_buf_addf(&sql, "%s$%zu%s",
				    c > 1 ? ","
				    : i   ? ",("
					  : "(",
				    i * p->columns + c, c == p->columns ? ")" : "");
	if (p->prepared)
		bench_pg_do(conn,
			    p->table[0] == 'o' ? "DEALLOCATE outbox" : "DEALLOCATE bench_events");
	PQclear(bench_pg_check(conn, PQprepare(conn, p->table, ob_buf_str(&sql), 0, NULL)));
	ob_buf_done(&sql);
	p->prepared = rows;
}

static void insert(PGconn *conn, struct inserter *p, const struct outbox_message *messages,
		   size_t count)
{
	static _Thread_local struct outbox_id ids[ROWS_MAX];
	const char *values[ROWS_MAX * COLUMNS_MAX];
	char number[24];

	(void)snprintf(number, sizeof(number), "%lld", (long long)messages->sequence_number);

	if (count > ROWS_MAX)
		bench_fatal("at most %d rows go into one INSERT", ROWS_MAX);
	size_t columns = messages->sequence_number > 0 ? 6 : 5;

	if (p->prepared != count || p->columns != columns) {
		p->columns = columns;
		prepare(conn, p, count);
	}
	for (size_t i = 0; i < count; i++) {
		const char **row = &values[i * columns];

		ids[i] = outbox_id_new();
		row[0] = ids[i].text;
		row[1] = messages[i].aggregate_type;
		row[2] = messages[i].aggregate_id;
		row[3] = messages[i].event_type;
		row[4] = messages[i].payload;
		if (columns > 5)
			row[5] = number;
	}
	PQclear(bench_pg_check(conn, PQexecPrepared(conn, p->table, (int)(count * columns), values,
						    NULL, NULL, 0)));
}

static void insert_twice(struct producer *p, const struct outbox_message *message)
{
	struct outbox_message copy = *message;

	copy.sequence_number = 0;
	insert(p->conn, &p->events, message, 1);
	insert(p->conn, &p->log, &copy, 1);
}

/* An event: its stream and version stand in the message. */
static void append(outbox *ob, const struct outbox_message *message)
{
	const struct outbox_stream stream = { .type = message->aggregate_type,
					      .id = message->aggregate_id };
	const struct outbox_message event = { .event_type = message->event_type,
					      .payload = message->payload };
	struct outbox_error err;

	if (outbox_append(ob, &stream, message->sequence_number - 1, &event, 1, NULL, NULL, &err) <
	    0)
		bench_fatal("%s", err.message);
}

double bench_pg_produce(void *producer, const struct outbox_message *messages, size_t count)
{
	struct producer *p = producer;
	struct outbox_error err;

	bench_pg_do(p->conn, "BEGIN");
	if (p->twice)
		insert_twice(p, messages);
	else if (!p->ob)
		insert(p->conn, &p->log, messages, count);
	else if (messages->sequence_number > 0)
		append(p->ob, messages);
	else if (outbox_push(p->ob, messages, count, NULL, &err) < 0)
		bench_fatal("%s", err.message);
	double commit_us = bench_now_us();
	bench_pg_do(p->conn, "COMMIT");
	return commit_us;
}

void bench_pg_producer_close(void *producer)
{
	struct producer *p = producer;

	outbox_close(p->ob);
	PQfinish(p->conn);
	free(p);
}
