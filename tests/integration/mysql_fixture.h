/* SPDX-License-Identifier: MIT */
/* One private MariaDB or MySQL server for a test program, and a fresh database for each test. */
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

/* The sum of the session's or the server's counters that are called so. */
long long status_of(MYSQL *db, const char *scope, const char *like);
/* A user of that name without rights; `password` NULL: none. */
void make_user(const char *name, const char *password);

/* Numbers 1 to a %d of the format, as a table "s" with a column "seq": sequences are MariaDB's. */
#define NUMBERS_TO_D \
	"JSON_TABLE(CONCAT('[0', REPEAT(',0', %d - 1), ']'), '$[*]' COLUMNS (seq FOR " \
	"ORDINALITY)) AS s"

/* Wait until some statement of the server waits for a row lock. */
void wait_for_a_waiter(void);

/* Commit one message of this event type and key. */
void put(struct ob_store *store, const char *event_type, const char *key);

enum { WORKER_PARTS = 3 * 16 };

/* What a worker does, on one connection, as reader "main" of target "default". */
struct worker {
	struct ob_store *store;
	struct ob_uuid id;
	struct ob_batch batch; /* what was read last */
	struct ob_arena arena;
	struct ob_read_part parts[WORKER_PARTS]; /* from: where the next read goes on */
	uint64_t epoch[WORKER_PARTS], recorded[WORKER_PARTS];
	size_t part_count;
	struct ob_read_done done;
	size_t lost, moved; /* parts of the last settle */
	struct ob_err err;
	int result;
};

/* Connect as that user and take all partitions; `number` tells workers apart. */
void worker_begin(struct worker *w, const char *user, uint8_t number);
void worker_end(struct worker *w);
/* Both leave an error in w->err. A read goes on where the last one ended; up to exception_limit
 * exceptions come too. */
int worker_read(struct worker *w, uint32_t limit);
/* All of the batch gets that outcome: progress and exceptions are recorded. */
int worker_settle(struct worker *w, enum ob_outcome_kind kind);
/* Settle as published, for a thread; the result goes to w->result. */
void *settle_in_thread(void *arg);
/* The event types of the batch, "a b"; valid until the next call. */
const char *worker_labels(const struct worker *w);
/* The gap list of the first part, "" when there is none. */
const char *worker_gaps(const struct worker *w);
/* Read, require these labels, and record them as published. */
void worker_expect(struct worker *w, const char *labels);

#define ok(call) \
	do { \
		int ok_r_ = (call); \
		ck_assert_msg(ok_r_ >= 0, "%s: %s", #call, fault.msg); \
	} while (0)

#endif
