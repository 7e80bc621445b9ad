/* SPDX-License-Identifier: MIT */
/* Writing messages on SQLite: by the library, and by a prepared INSERT of many rows. */
#include "base/buf.h"
#include "base/uuid.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/sql_sqlite.h"

#include "outbox/sqlite.h"

#include "outbox/events.h"

#include <stdlib.h>

enum { SQL_MAX = 1 << 20 };

struct inserter {
	const char *table, *version; /* version: the name of that column */
	sqlite3_stmt *push;
	size_t prepared; /* rows of the statement */
	size_t columns;  /* 6 with a version, else 5 */
};

struct producer {
	sqlite3 *db;
	outbox *ob; /* NULL: bare */
	bool twice;
	struct inserter log, events;
};

void *bench_sqlite_producer_open(struct bench_store *store, enum bench_writer writer)
{
	struct producer *p = bench_need(calloc(1, sizeof(*p)));
	struct outbox_error err;

	p->db = bench_sqlite_connect(store->url);
	p->twice = writer == BENCH_TWICE;
	p->log = (struct inserter){ .table = "outbox", .version = "sequence_number" };
	p->events = (struct inserter){ .table = "bench_events", .version = "version" };
	if (writer == BENCH_LIBRARY && outbox_sqlite_open(p->db, NULL, &p->ob, &err) < 0)
		bench_fatal("%s", err.message);
	return p;
}

static void prepare(sqlite3 *db, struct inserter *p, size_t rows)
{
	struct ob_buf sql = OB_BUF_INIT(SQL_MAX);

	ob_buf_addf(&sql,
		    "INSERT INTO %s (id, aggregate_type, aggregate_id, event_type, payload%s%s) "
		    "VALUES ",
		    p->table, p->columns > 5 ? ", " : "", p->columns > 5 ? p->version : "");
	for (size_t i = 0; i < rows; i++)
		ob_buf_addf(&sql, "%s(?,?,?,?,?%s)", i ? "," : "", p->columns > 5 ? ",?" : "");
	(void)sqlite3_finalize(p->push);
	p->push = bench_sqlite_prepare(db, ob_buf_str(&sql));
	ob_buf_done(&sql);
	p->prepared = rows;
}

static void insert(sqlite3 *db, struct inserter *p, const struct outbox_message *messages,
		   size_t count)
{
	size_t columns = messages->sequence_number > 0 ? 6 : 5;

	if (p->prepared != count || p->columns != columns) {
		p->columns = columns;
		prepare(db, p, count);
	}
	for (size_t i = 0; i < count; i++) {
		struct ob_uuid id = ob_uuid_new();
		int at = (int)(i * columns);

		(void)sqlite3_bind_blob(p->push, at + 1, id.b, sizeof(id.b), SQLITE_TRANSIENT);
		(void)sqlite3_bind_text(p->push, at + 2, messages[i].aggregate_type, -1, NULL);
		(void)sqlite3_bind_text(p->push, at + 3, messages[i].aggregate_id, -1, NULL);
		(void)sqlite3_bind_text(p->push, at + 4, messages[i].event_type, -1, NULL);
		(void)sqlite3_bind_text(p->push, at + 5, messages[i].payload, -1, NULL);
		if (columns > 5)
			(void)sqlite3_bind_int64(p->push, at + 6, messages[i].sequence_number);
	}
	(void)bench_sqlite_step(db, p->push);
}

static void insert_twice(struct producer *p, const struct outbox_message *message)
{
	struct outbox_message copy = *message;

	copy.sequence_number = 0;
	insert(p->db, &p->events, message, 1);
	insert(p->db, &p->log, &copy, 1);
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

double bench_sqlite_produce(void *producer, const struct outbox_message *messages, size_t count)
{
	struct producer *p = producer;
	struct outbox_error err;

	bench_sqlite_do(p->db, "BEGIN IMMEDIATE");
	if (p->twice)
		insert_twice(p, messages);
	else if (!p->ob)
		insert(p->db, &p->log, messages, count);
	else if (messages->sequence_number > 0)
		append(p->ob, messages);
	else if (outbox_push(p->ob, messages, count, NULL, &err) < 0)
		bench_fatal("%s", err.message);
	double commit_us = bench_now_us();
	bench_sqlite_do(p->db, "COMMIT");
	return commit_us;
}

void bench_sqlite_producer_close(void *producer)
{
	struct producer *p = producer;

	outbox_close(p->ob);
	(void)sqlite3_finalize(p->log.push);
	(void)sqlite3_finalize(p->events.push);
	(void)sqlite3_close(p->db);
	free(p);
}
