/* SPDX-License-Identifier: MIT */
/* A private PostgreSQL server for a test program, and a database of its own for every test. */
#ifndef OB_TESTS_PG_FIXTURE_H
#define OB_TESTS_PG_FIXTURE_H

#include "outbox/postgres.h"
#include "pg_server.h"
#include "store/store.h"
#include "suite.h"

#include <libpq-fe.h>

extern struct pg_server server;
extern struct ob_err err; /* of the last call on a store */

/* A new database, whose URL is `url`; its connections are the test's to close. */
void fixture_new(void);
extern char url[256];
/* The same database for another user. */
const char *url_of(const char *user);

/* A connection of an application. */
PGconn *app_open(void);
/* Run SQL that must succeed. */
void exec(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first value of a query, as a number or as text (valid until the next call). */
int64_t number(PGconn *conn, const char *sql);
const char *text(PGconn *conn, const char *sql);

/* A store on the database; `options` ends without a name, NULL: none. The test fails if it cannot
 * be opened. */
struct ob_store *store_open_with(const struct ob_opt_value *options);
struct ob_store *store_open(void);
/* Opened, with tables for that many partitions. */
struct ob_store *store_new(uint32_t partitions);
int store_setup(struct ob_store *store, uint32_t partitions);
/* Opening must fail: with this kind and message. */
void expect_refused(const char *where, enum ob_err_kind kind, const char *message);
/* Commit one message with this key; its event_type is the label. */
void put(struct ob_store *store, const char *label, const char *key);

/* ---- a worker of reader "default" ------------------------------------- */

enum { WORKER_PARTS = 3 * 64 };

struct worker {
	struct ob_store *store;
	struct ob_uuid id;
	struct ob_arena arena;
	uint32_t partitions; /* of the schema */
	struct worker_part {
		uint32_t partition;
		uint64_t epoch, batch;
		struct ob_progress at; /* where reading goes on */
		bool reached;          /* since the last settle */
	} parts[WORKER_PARTS];
	size_t count;
	struct ob_read_done done; /* of the last read */
};

extern struct ob_batch batch; /* what was read last */

/* Make the reader at the beginning if it is not there, take up to `want` leases (and their lanes),
 * take them over. The store is the test's. */
void worker_begin(struct worker *w, struct ob_store *store, uint8_t n, uint32_t want);
/* Read on: the labels, "a b", valid until the next call. */
const char *worker_read(struct worker *w, uint32_t limit);
/* Record what was read as published; how many partitions were not SETTLED. */
size_t worker_settle(struct worker *w);
/* The same with changes and promotions. */
size_t worker_settle_with(struct worker *w, const struct ob_change *changes, size_t change_count,
			  const struct ob_promote *promotes, size_t promote_count);
void worker_end(struct worker *w);
/* One read of one partition from the beginning, whatever comes of it: what it returned. */
int read_one(struct ob_store *store);
/* Begin a worker, read everything, settle, end: its labels. */
const char *delivered(struct ob_store *store);
struct ob_uuid uuid(uint8_t n);

#define ok(call) \
	do { \
		int ok_r_ = (call); \
		ck_assert_msg(ok_r_ >= 0, "%s: %s", #call, err.msg); \
	} while (0)

/* A pooler in transaction mode before the server, with three connections; ended with this process.
 * Its url for the test's database is in `through`. False: none is installed. */
bool pooler_start(pid_t *ret_pid, char through[256]);
/* End it. */
void pooler_stop(pid_t pid);

/* main(): start the server (with these settings, or NULL), or report a skip; run; stop it. */
int pg_suite_run(const char *name, const char *const *settings, const TTest *const *tests,
		 size_t count, const char *only);

#define PG_SUITE(suite_name, ...) PG_SUITE_WITH(suite_name, NULL, __VA_ARGS__)

#define PG_SUITE_WITH(suite_name, settings, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return pg_suite_run(suite_name, settings, tests, sizeof(tests) / sizeof(tests[0]), \
				    argc > 1 ? argv[1] : NULL); \
	}

#endif
