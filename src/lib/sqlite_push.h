/* SPDX-License-Identifier: MIT */
/* What the files of the SQLite driver share. */
#ifndef OB_LIB_SQLITE_PUSH_H
#define OB_LIB_SQLITE_PUSH_H

#include "lib/insert.h"

#include <sqlite3.h>

struct ob_sqlite_driver {
	sqlite3 *db; /* the caller's */
	struct ob_layout layout;
	sqlite3_stmt *one[OB_INSERT_SHAPES]; /* inserts of one row, made when first needed */
	sqlite3_stmt *many;                  /* the last insert of several rows */
	size_t many_rows;
	unsigned many_shape;
	sqlite3_stmt *look; /* at a stream: every append runs it; made when first needed */
};

/* The rows of one statement, and where they stand in the call. */
struct ob_sqlite_chunk {
	const struct ob_push_row *rows;
	size_t count;
	size_t first;      /* index of the first row in the call */
	bool in_savepoint; /* a failure is undone by the caller */
};

/* Bind an id as the table holds it. */
int ob_sqlite_bind_id(const struct ob_sqlite_driver *driver, sqlite3_stmt *stmt, int at,
		      const struct ob_uuid *id);

/*
 * Turn what the connection reports into *err: the one place that knows
 * SQLite's codes. Call it right after the failure and before anything is
 * rolled back: it looks into the table. `chunk` NULL: not about rows. Returns a
 * negative status, or OB_DRIVER_CHECK.
 */
int ob_sqlite_fail(struct ob_sqlite_driver *driver, const struct ob_sqlite_chunk *chunk,
		   const char *doing, struct outbox_error *err);

/* Is the table there, with every column that a push needs? Else OUTBOX_ESCHEMA says what is not. */
int ob_sqlite_check_table(struct ob_sqlite_driver *driver, struct outbox_error *err);

#endif
