/* SPDX-License-Identifier: MIT */
/* Writing messages on MariaDB: by the library, and by a prepared INSERT of many rows. */
#include "base/buf.h"
#include "base/uuid.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/sql_mysql.h"

#include "outbox/mysql.h"

#include <stdint.h>
#include <stdlib.h>

enum { COLUMNS = 5, SQL_MAX = 1 << 20 };

struct producer {
	MYSQL *db;
	outbox *ob; /* NULL: bare */
	MYSQL_STMT *push;
	size_t prepared; /* rows of the statement */
	MYSQL_BIND *binds;
	struct ob_uuid *ids;
};

void *bench_mysql_producer_open(struct bench_store *store, bool bare)
{
	struct producer *p = bench_need(calloc(1, sizeof(*p)));
	struct outbox_error err;

	p->db = bench_mysql_connect(store->url);
	if (!bare && outbox_mysql_open(p->db, NULL, &p->ob, &err) < 0)
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
		ob_buf_adds(&sql, i ? ",(?,?,?,?,?)" : "(?,?,?,?,?)");
	if (p->push)
		(void)mysql_stmt_close(p->push);
	p->push = bench_need(mysql_stmt_init(p->db));
	if (mysql_stmt_prepare(p->push, ob_buf_str(&sql), sql.len) != 0)
		bench_fatal("MariaDB: %s", mysql_stmt_error(p->push));
	ob_buf_done(&sql);
	p->binds = bench_need(realloc(p->binds, rows * COLUMNS * sizeof(*p->binds)));
	p->ids = bench_need(realloc(p->ids, rows * sizeof(*p->ids)));
	p->prepared = rows;
}

static void bind(MYSQL_BIND *out, const void *bytes, size_t size)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): a parameter is only read */
	*out = (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_STRING,
			     .buffer = (void *)(uintptr_t)bytes,
			     .buffer_length = size };
}

static void insert(struct producer *p, const struct outbox_message *messages, size_t count)
{
	if (p->prepared != count)
		prepare(p, count);
	for (size_t i = 0; i < count; i++) {
		const struct outbox_message *m = &messages[i];
		MYSQL_BIND *row = &p->binds[i * COLUMNS];

		p->ids[i] = ob_uuid_new();
		bind(&row[0], p->ids[i].b, sizeof(p->ids[i].b));
		row[0].buffer_type = MYSQL_TYPE_BLOB;
		bind(&row[1], m->aggregate_type, strlen(m->aggregate_type));
		bind(&row[2], m->aggregate_id, strlen(m->aggregate_id));
		bind(&row[3], m->event_type, strlen(m->event_type));
		bind(&row[4], m->payload, strlen(m->payload));
	}
	if (mysql_stmt_bind_param(p->push, p->binds) != 0 || mysql_stmt_execute(p->push) != 0)
		bench_fatal("MariaDB: %s", mysql_stmt_error(p->push));
}

double bench_mysql_produce(void *producer, const struct outbox_message *messages, size_t count)
{
	struct producer *p = producer;
	struct outbox_error err;

	bench_mysql_do(p->db, "START TRANSACTION");
	if (!p->ob)
		insert(p, messages, count);
	else if (outbox_push(p->ob, messages, count, NULL, &err) < 0)
		bench_fatal("%s", err.message);
	double commit_us = bench_now_us();
	bench_mysql_do(p->db, "COMMIT");
	return commit_us;
}

void bench_mysql_producer_close(void *producer)
{
	struct producer *p = producer;

	outbox_close(p->ob);
	if (p->push)
		(void)mysql_stmt_close(p->push);
	mysql_close(p->db);
	free(p->binds);
	free(p->ids);
	free(p);
}
