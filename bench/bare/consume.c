/* SPDX-License-Identifier: MIT */
/* The bare loop of a consumer, on SQLite and PostgreSQL. */
#include "bench/bare/consume.h"

#include "bench/fatal.h"
#include "bench/store/sql_sqlite.h"
#if BENCH_POSTGRES
#include "bench/store/sql_postgres.h"
#endif

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 3 + BARE_CONSUME_BATCH };

struct entry {
	const char *place, *id, *order_id, *payload;
};

struct bare_db_ops {
	const char *name;
	void *(*open)(const char *url);
	void (*run)(void *db, const char *sql); /* BEGIN, COMMIT */
	/* The id into the inbox; when it was new the message is applied. */
	void (*handle)(void *db, const struct entry *entry);
};

#define INBOX "INSERT INTO outbox_inbox (consumer, id) VALUES ('bare', "
#define APPLY "INSERT INTO paid (id, order_id, payload) VALUES ("

/* ---- SQLite ---------------------------------------------------------- */

struct bare_lite {
	sqlite3 *db;
	sqlite3_stmt *inbox, *apply;
};

static void *lite_open(const char *url)
{
	struct bare_lite *lite = bench_need(calloc(1, sizeof(*lite)));

	lite->db = bench_sqlite_connect(url);
	lite->inbox = bench_sqlite_prepare(lite->db, INBOX "?1) ON CONFLICT DO NOTHING");
	lite->apply = bench_sqlite_prepare(lite->db, APPLY "?1, ?2, ?3)");
	return lite;
}

static void lite_run(void *db, const char *sql)
{
	bench_sqlite_do(((struct bare_lite *)db)->db, sql);
}

static void lite_handle(void *db, const struct entry *e)
{
	struct bare_lite *lite = db;

	(void)sqlite3_bind_text(lite->inbox, 1, e->id, -1, SQLITE_STATIC);
	(void)bench_sqlite_step(lite->db, lite->inbox);
	if (sqlite3_changes(lite->db) == 0)
		return;
	(void)sqlite3_bind_text(lite->apply, 1, e->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(lite->apply, 2, e->order_id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(lite->apply, 3, e->payload, -1, SQLITE_STATIC);
	(void)bench_sqlite_step(lite->db, lite->apply);
}

/* ---- PostgreSQL ------------------------------------------------------ */

#if BENCH_POSTGRES
static void *pg_open(const char *url)
{
	PGconn *conn = bench_pg_connect(url);

	PQclear(bench_pg_check(
		conn, PQprepare(conn, "inbox", INBOX "$1) ON CONFLICT DO NOTHING", 0, NULL)));
	PQclear(bench_pg_check(conn, PQprepare(conn, "apply", APPLY "$1, $2, $3)", 0, NULL)));
	return conn;
}

static void pg_run(void *db, const char *sql)
{
	bench_pg_do(db, sql);
}

static void pg_handle(void *db, const struct entry *e)
{
	const char *values[] = { e->id, e->order_id, e->payload };
	PGresult *result =
		bench_pg_check(db, PQexecPrepared(db, "inbox", 1, values, NULL, NULL, 0));
	bool is_new = strcmp(PQcmdTuples(result), "1") == 0;

	PQclear(result);
	if (is_new)
		PQclear(bench_pg_check(db, PQexecPrepared(db, "apply", 3, values, NULL, NULL, 0)));
}
#endif

static const struct bare_db_ops databases[] = {
	{ "sqlite", lite_open, lite_run, lite_handle },
#if BENCH_POSTGRES
	{ "postgres", pg_open, pg_run, pg_handle },
#endif
};

/* ---- the loop -------------------------------------------------------- */

static redisReply *answer_of(redisContext *redis, void *reply)
{
	redisReply *answer = reply;

	if (!answer || answer->type == REDIS_REPLY_ERROR)
		bench_fatal("Redis: %s", answer ? answer->str : redis->errstr);
	return answer;
}

static const char *field(const redisReply *fields, const char *name)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		if (strcmp(fields->element[i]->str, name) == 0)
			return fields->element[i + 1]->str;
	}
	bench_fatal("an entry has no %s", name);
}

static void handle_batch(const struct bare_db_ops *ops, void *db, redisContext *redis,
			 const redisReply *entries)
{
	const char *words[WORDS] = { "XACK", BARE_STREAM, "bare" };

	ops->run(db, "BEGIN");
	for (size_t i = 0; i < entries->elements; i++) {
		const redisReply *entry = entries->element[i], *fields = entry->element[1];

		ops->handle(db, &(struct entry){ .id = field(fields, "id"),
						 .order_id = field(fields, "aggregate_id"),
						 .payload = field(fields, "payload") });
		words[3 + i] = entry->element[0]->str;
	}
	ops->run(db, "COMMIT");
	freeReplyObject(answer_of(
		redis, redisCommandArgv(redis, (int)(3 + entries->elements), words, NULL)));
}

int bare_consume(const char *store, const char *url, const char *address)
{
	redisContext *redis = redisConnectUnix(address);
	const struct bare_db_ops *ops = NULL;

	for (size_t i = 0; i < sizeof(databases) / sizeof(databases[0]); i++) {
		if (strcmp(databases[i].name, store) == 0)
			ops = &databases[i];
	}
	if (!ops || !redis || redis->err)
		bench_fatal("no bare loop for %s", store);
	void *db = ops->open(url);
	freeReplyObject(
		answer_of(redis, redisCommand(redis, "XGROUP CREATE %s bare 0", BARE_STREAM)));
	for (;;) {
		redisReply *reply = answer_of(
			redis,
			redisCommand(redis, "XREADGROUP GROUP bare loop COUNT %d STREAMS %s >",
				     BARE_CONSUME_BATCH, BARE_STREAM));

		if (reply->type == REDIS_REPLY_NIL) {
			freeReplyObject(reply);
			return EXIT_SUCCESS;
		}
		handle_batch(ops, db, redis, reply->element[0]->element[1]);
		freeReplyObject(reply);
	}
}
