/* SPDX-License-Identifier: MIT */
/* Writing messages on PostgreSQL: by the library, and by a prepared INSERT of many rows. */
#include "base/buf.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/sql_postgres.h"

#include "outbox/postgres.h"

#include <stdlib.h>

enum { COLUMNS = 5, ROWS_MAX = 1000, SQL_MAX = 1 << 20 };

struct producer {
	PGconn *conn;
	outbox *ob;      /* NULL: bare */
	size_t prepared; /* rows of the statement */
};

void *bench_pg_producer_open(struct bench_store *store, bool bare)
{
	struct producer *p = bench_need(calloc(1, sizeof(*p)));
	struct outbox_error err;

	p->conn = bench_pg_connect(store->url);
	if (!bare && outbox_postgres_open(p->conn, NULL, &p->ob, &err) < 0)
		bench_fatal("%s", err.message);
	return p;
}

static void prepare(struct producer *p, size_t rows)
{
	struct ob_buf sql = OB_BUF_INIT(SQL_MAX);

	ob_buf_adds(&sql,
		    "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, "
		    "payload) VALUES ");
	for (size_t i = 0; i < rows; i++)
		ob_buf_addf(&sql, "%s($%zu,$%zu,$%zu,$%zu,$%zu)", i ? "," : "", i * COLUMNS + 1,
			    i * COLUMNS + 2, i * COLUMNS + 3, i * COLUMNS + 4, i * COLUMNS + 5);
	if (p->prepared)
		bench_pg_do(p->conn, "DEALLOCATE push");
	PQclear(bench_pg_check(p->conn, PQprepare(p->conn, "push", ob_buf_str(&sql), 0, NULL)));
	ob_buf_done(&sql);
	p->prepared = rows;
}

static void insert(struct producer *p, const struct outbox_message *messages, size_t count)
{
	static _Thread_local struct outbox_id ids[ROWS_MAX];
	const char *values[ROWS_MAX * COLUMNS];

	if (count > ROWS_MAX)
		bench_fatal("at most %d rows go into one INSERT", ROWS_MAX);
	if (p->prepared != count)
		prepare(p, count);
	for (size_t i = 0; i < count; i++) {
		const char **row = &values[i * COLUMNS];

		ids[i] = outbox_id_new();
		row[0] = ids[i].text;
		row[1] = messages[i].aggregate_type;
		row[2] = messages[i].aggregate_id;
		row[3] = messages[i].event_type;
		row[4] = messages[i].payload;
	}
	PQclear(bench_pg_check(p->conn, PQexecPrepared(p->conn, "push", (int)(count * COLUMNS),
						       values, NULL, NULL, 0)));
}

double bench_pg_produce(void *producer, const struct outbox_message *messages, size_t count)
{
	struct producer *p = producer;
	struct outbox_error err;

	bench_pg_do(p->conn, "BEGIN");
	if (!p->ob)
		insert(p, messages, count);
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
