/* SPDX-License-Identifier: MIT */
/* An SQLite database with outbox tables, in a directory of its own. */
#ifndef OB_TESTS_SQLITE_FIXTURE_H
#define OB_TESTS_SQLITE_FIXTURE_H

#include "base/layout.h"
#include "outbox/sqlite.h"

#include <sqlite3.h>
#include <stdbool.h>

/* A good message; more members may follow. */
#define GOOD .aggregate_type = "order", .event_type = "OrderPlaced", .payload = "{}"

/* Where failed calls put their error. */
extern struct outbox_error error;

/* Make a directory; fixture_done() removes it with all that is in it. */
void fixture_init(void);
void fixture_done(void);
/* Open the database file of the directory; every connection is closed by its test. */
sqlite3 *fixture_open(void);
/* The tables of a layout, NULL: the default one. */
void fixture_tables(sqlite3 *db, const struct ob_layout *layout);
/* A fresh database with the default tables. */
sqlite3 *fixture_new(void);
/* A writer; the test fails when it cannot be opened. */
outbox *fixture_outbox(sqlite3 *db, const struct outbox_options *options);

/* Run SQL that must succeed. */
void exec(sqlite3 *db, const char *sql);
/* The first value of a query, as a number or as text (valid until the next call). */
int64_t number(sqlite3 *db, const char *sql);
const char *text(sqlite3 *db, const char *sql);
/* Rows of the table `outbox`. */
int64_t rows(sqlite3 *db);

/* Push one message and return the status; the error is in `error`. */
int push(outbox *ob, struct outbox_message message);

#endif
