/* SPDX-License-Identifier: MIT */
/* One private MariaDB server for a test program, and a fresh database for each test. */
#ifndef OB_TESTS_MYSQL_FIXTURE_H
#define OB_TESTS_MYSQL_FIXTURE_H

#include "mysql_server.h"
#include "outbox/mysql.h"
#include "store/store.h"
#include "suite.h"

#include <mysql.h>

/* A good message; more members may follow. */
#define GOOD .aggregate_type = "order", .event_type = "OrderPlaced", .payload = "{}"

extern struct mysql_server server;
extern MYSQL *admin;        /* root, in the test's database */
extern char database[64];   /* its name */
extern struct ob_err fault; /* of the last store call */

/* main(): start the server, run the tests, stop it; without a server a reported skip. */
int fixture_main(const char *name, const TTest *const *tests, size_t count, const char *only);

#define MYSQL_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return fixture_main(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
				    argc > 1 ? argv[1] : NULL); \
	}

/* Make the test's database on `server`, with our tables unless `partitions` is 0. */
void fixture_begin(uint32_t partitions);
void fixture_end(void);

/* A connection of the user's own, to the test's database. */
MYSQL *fixture_connect(const char *user);
/* A store on it, with options "name", "value", ...; the test fails when it cannot be opened. */
struct ob_store *fixture_store(const char *user);
struct ob_store *fixture_store_with(const char *url, const char *option, const char *value);

/* Run SQL that must succeed. */
void sql(MYSQL *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first value of a query, as text (valid until the next call) or as a number. */
const char *text(MYSQL *db, const char *query);
long long number(MYSQL *db, const char *query);

/* Wait until some statement of the server waits for a row lock. */
void wait_for_a_waiter(void);

/* Commit one message of this event type and key. */
void put(struct ob_store *store, const char *event_type, const char *key);

#define ok(call) \
	do { \
		int ok_r_ = (call); \
		ck_assert_msg(ok_r_ >= 0, "%s: %s", #call, fault.msg); \
	} while (0)

#endif
