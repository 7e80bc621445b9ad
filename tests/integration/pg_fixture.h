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
/* The labels that a fetch of all partitions brings: "a b"; valid until the next call. */
const char *fetched(struct ob_store *store);
extern struct ob_batch batch; /* what was fetched */
/* Take all partitions for a worker; its leases, valid until the end. */
struct ob_settle hold(struct ob_store *store, uint8_t owner, int64_t ttl_ms);
/* Settle the whole batch as published. */
struct ob_settled publish(struct ob_store *store, struct ob_settle settle);

#define ok(call) \
	do { \
		int ok_r_ = (call); \
		ck_assert_msg(ok_r_ >= 0, "%s: %s", #call, err.msg); \
	} while (0)

/* main(): start the server, or report a skip; run; stop it. */
int pg_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only);

#define PG_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return pg_suite_run(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
				    argc > 1 ? argv[1] : NULL); \
	}

#endif
