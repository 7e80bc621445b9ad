/* SPDX-License-Identifier: MIT */
/* A database of the test's own, with rows in whatever state a test needs. */
#ifndef OB_TESTS_CLI_DATABASE_H
#define OB_TESTS_CLI_DATABASE_H

#include "outbox.h"

/* The ids of the rows 1, 2, ... */
#define ID(n) "0196a1f0-3c5b-7000-8000-00000000000" #n

/* As the status column has them. */
enum { PENDING = 0, PUBLISHED = 1, FAILED = 2, PARKED = 3, DEAD = -1, DEAD_HOLD = -2 };

/* Now and then, for sql(): microseconds. */
#define NOW     "(CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000)"
#define MINUTES "60000000"

/* begin(), set up a database, and use it from then on. */
void begin_database(void);
/* Run SQL, as an application would. */
void sql(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A message with ID(n), its key "type:aggregate". */
void row(int n, const char *type, const char *aggregate, int status);
/* What a query returns: columns by a comma, rows by a space; the next call reuses the memory. */
const char *ask(const char *query);
/* Demand it. */
#define ASK(query, want) ck_assert_str_eq(ask(query), want)

#endif
