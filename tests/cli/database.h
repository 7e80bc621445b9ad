/* SPDX-License-Identifier: MIT */
/* A database of the test's own, with rows in whatever state a test needs. */
#ifndef OB_TESTS_CLI_DATABASE_H
#define OB_TESTS_CLI_DATABASE_H

#include "outbox.h"

/* The ids of the rows 1, 2, ... */
#define ID(n) "0196a1f0-3c5b-7000-8000-00000000000" #n

/* What a message can be for the reader default. */
enum state { PENDING, PUBLISHED, FAILED, PARKED, DELAYED, DEAD, DEAD_HOLD };

/* Now and then, for sql(): microseconds. */
#define NOW     "(CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000)"
#define MINUTES "60000000"

/* begin(), set up a database with a reader `default`, and use it from then on. */
void begin_database(void);
/* One more reader that has read nothing. */
void add_reader(const char *name, const char *target);
/* Run SQL, as an application would. */
void sql(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * A message with ID(n), its key "type:aggregate", in that state for the reader default. PENDING and
 * PUBLISHED go by the reader's position in the message's partition: what stands before a message
 * that is not pending, and has no exception, is published.
 */
void row(int n, const char *type, const char *aggregate, enum state state);
/* What a query returns: columns by a comma, rows by a space; the next call reuses the memory. */
const char *ask(const char *query);
/* The states of all messages, as the view has them for the reader default. */
#define STATES "SELECT state FROM outbox_messages WHERE reader = 'default' ORDER BY seq"
/* Demand it. */
#define ASK(query, want) ck_assert_str_eq(ask(query), want)

#endif
