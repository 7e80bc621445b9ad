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

/* What a worker does, on one connection. */
struct worker {
	struct ob_store *store;
	struct ob_batch batch;
	struct ob_arena arena;
	struct ob_lease leases[64];
	size_t lease_count;
	bool delete_published;
	struct ob_settled settled;
	struct ob_err err;
	int result;
};

extern const struct ob_uuid worker_id;

/* Connect as that user and take all partitions. */
void worker_begin(struct worker *w, const char *user);
void worker_end(struct worker *w);
/* Both leave an error in w->err. All of the batch gets that outcome. */
int worker_fetch(struct worker *w, uint32_t limit);
int worker_settle(struct worker *w, enum ob_outcome_kind kind);
/* Settle as published, for a thread; the result goes to w->result. */
void *settle_in_thread(void *arg);

#define ok(call) \
	do { \
		int ok_r_ = (call); \
		ck_assert_msg(ok_r_ >= 0, "%s: %s", #call, fault.msg); \
	} while (0)

#endif
