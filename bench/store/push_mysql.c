/* SPDX-License-Identifier: MIT */
/* Writing messages on MariaDB: by the library, and by a prepared INSERT of many rows. */
#include "base/buf.h"
#include "base/uuid.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/sql_mysql.h"

#include "outbox/mysql.h"

#include "outbox/events.h"
#include <stdint.h>

#include <stdlib.h>

enum { COLUMNS_MAX = 6, SQL_MAX = 1 << 20 };

struct inserter {
	const char *table, *version; /* version: the name of that column */
	MYSQL_STMT *push;
	size_t prepared; /* rows of the statement */
	size_t columns;  /* 6 with a version, else 5 */
	MYSQL_BIND *binds;
	struct ob_uuid *ids;
};

struct producer {
	MYSQL *db;
	outbox *ob; /* NULL: bare */
	bool twice;
	struct inserter log, events;
};

void *bench_mysql_producer_open(struct bench_store *store, enum bench_writer writer)
{
	struct producer *p = bench_need(calloc(1, sizeof(*p)));
	struct outbox_error err;

	p->db = bench_mysql_connect(store->url);
	p->twice = writer == BENCH_TWICE;
	p->log = (struct inserter){ .table = "outbox", .version = "sequence_number" };
	p->events = (struct inserter){ .table = "bench_events", .version = "version" };
	if (writer == BENCH_LIBRARY && outbox_mysql_open(p->db, NULL, &p->ob, &err) < 0)
		bench_fatal("%s", err.message);
	return p;
}

static void prepare(MYSQL *db, struct inserter *p, size_t rows)
{
	struct ob_buf sql = OB_BUF_INIT(SQL_MAX);

	ob_buf_addf(&sql,
		    "INSERT INTO %s (id, aggregate_type, aggregate_id, event_type, payload%s%s) "
		    "VALUES ",
		    p->table, p->columns > 5 ? ", " : "", p->columns > 5 ? p->version : "");
	for (size_t i = 0; i < rows; i++)
		ob_buf_addf(&sql, "%s(?,?,?,?,?%s)", i ? "," : "", p->columns > 5 ? ",?" : "");
	if (p->push)
		(void)mysql_stmt_close(p->push);
	p->push = bench_need(mysql_stmt_init(db));
	if (mysql_stmt_prepare(p->push, ob_buf_str(&sql), sql.len) != 0)
		bench_fatal("MariaDB: %s", mysql_stmt_error(p->push));
	ob_buf_done(&sql);
	p->binds = bench_need(realloc(p->binds, rows * COLUMNS_MAX * sizeof(*p->binds)));
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

static void insert(MYSQL *db, struct inserter *p, const struct outbox_message *messages,
		   size_t count)
{
	size_t columns = messages->sequence_number > 0 ? 6 : 5;

	if (p->prepared != count || p->columns != columns) {
		p->columns = columns;
		prepare(db, p, count);
	}
	for (size_t i = 0; i < count; i++) {
		const struct outbox_message *m = &messages[i];
		MYSQL_BIND *row = &p->binds[i * columns];

		p->ids[i] = ob_uuid_new();
		bind(&row[0], p->ids[i].b, sizeof(p->ids[i].b));
		row[0].buffer_type = MYSQL_TYPE_BLOB;
		bind(&row[1], m->aggregate_type, strlen(m->aggregate_type));
		bind(&row[2], m->aggregate_id, strlen(m->aggregate_id));
		bind(&row[3], m->event_type, strlen(m->event_type));
		bind(&row[4], m->payload, strlen(m->payload));
		if (columns > 5) {
			bind(&row[5], &m->sequence_number, sizeof(m->sequence_number));
			row[5].buffer_type = MYSQL_TYPE_LONGLONG;
		}
	}
	if (mysql_stmt_bind_param(p->push, p->binds) != 0 || mysql_stmt_execute(p->push) != 0)
		bench_fatal("MariaDB: %s", mysql_stmt_error(p->push));
}

static void insert_twice(struct producer *p, const struct outbox_message *message)
{
	struct outbox_message copy = *message;

	copy.sequence_number = 0;
	insert(p->db, &p->events, message, 1);
	insert(p->db, &p->log, &copy, 1);
}

static void close_inserter(struct inserter *p)
{
	if (p->push)
		(void)mysql_stmt_close(p->push);
	free(p->binds);
	free(p->ids);
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

double bench_mysql_produce(void *producer, const struct outbox_message *messages, size_t count)
{
	struct producer *p = producer;
	struct outbox_error err;

	bench_mysql_do(p->db, "START TRANSACTION");
	if (p->twice)
		insert_twice(p, messages);
	else if (!p->ob)
		insert(p->db, &p->log, messages, count);
	else if (messages->sequence_number > 0)
		append(p->ob, messages);
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
	close_inserter(&p->log);
	close_inserter(&p->events);
	mysql_close(p->db);
	free(p);
}
