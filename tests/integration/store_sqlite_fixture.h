/* SPDX-License-Identifier: MIT */
/* What the tests of the SQLite store share: files in one directory, stores on them, and plain SQL.
 */
#ifndef OB_TESTS_STORE_SQLITE_FIXTURE_H
#define OB_TESTS_STORE_SQLITE_FIXTURE_H

#include "store/sqlite/conn.h"
#include "suite.h"

/* main(): a directory around ob_suite_run(). */
int lite_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only);

#define LITE_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return lite_suite_run(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
				      argc > 1 ? argv[1] : NULL); \
	}

/* Where failed calls put their error. */
extern struct ob_err err;

#define ok(call) \
	do { \
		int ok_r_ = (call); \
		ck_assert_msg(ok_r_ >= 0, "%s: %s", #call, err.msg); \
	} while (0)
/* The call fails with this status and kind, and says this. */
#define fails(call, want_status, want_kind, text) \
	do { \
		err = OB_ERR_INIT; \
		ck_assert_int_eq((call), (want_status)); \
		ck_assert_msg(err.kind == (want_kind), "%s", err.msg); \
		ck_assert_msg(strstr(err.msg, (text)) != NULL, "'%s' is not in: %s", (text), \
			      err.msg); \
	} while (0)

/* The path of a file of this test; four of them stay valid. */
const char *file(const char *name);
/* Open "sqlite:" and the path; the result of connecting. */
int try_open(const char *path, const struct ob_layout *layout, struct ob_store **ret_store);
/* A store on `name`, opened; with tables of 16 partitions. */
struct ob_store *open_store(const char *name, const struct ob_layout *layout);
struct ob_store *new_store(const char *name, const struct ob_layout *layout);
int setup(struct ob_store *store);
struct lite_store *lite(struct ob_store *store);

/* Plain SQL on a connection of its own. */
sqlite3 *sql_open(const char *name);
void sql(sqlite3 *db, const char *text);
int64_t number(sqlite3 *db, const char *text);
/* The same on a connection that is closed again. */
void sql_on(const char *name, const char *text);
int64_t number_on(const char *name, const char *text);

/* Commit a message of that key; `count` of them. */
int try_put(struct ob_store *store, struct outbox_message message, int count);
void put(struct ob_store *store, const char *key, int count);
/*
 * A worker of the reader "default" that has all partitions: read from the recorded progress on, log
 * and exceptions; how many messages. Then settle every message of the batch so: how many partitions
 * took it. The leases are given up again.
 */
uint32_t read_all(struct ob_store *store, struct ob_batch *batch);
int try_read(struct ob_store *store, struct ob_batch *batch);
uint32_t settle(struct ob_store *store, const struct ob_batch *batch, enum ob_outcome_kind kind);
int try_settle(struct ob_store *store, const struct ob_batch *batch, enum ob_outcome_kind kind,
	       uint32_t *ret_settled);

/* Run `fn` in another process as a user without privileges; true when it returned true. */
bool as_nobody(bool (*fn)(void));
/* In another process as we are; returns its pid. */
pid_t in_child(void (*fn)(void));
void wait_child(pid_t pid);

#endif
