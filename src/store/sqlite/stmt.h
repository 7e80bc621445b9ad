/* SPDX-License-Identifier: MIT */
/* Statements and transactions of the SQLite store. */
#ifndef OB_STORE_SQLITE_STMT_H
#define OB_STORE_SQLITE_STMT_H

#include "store/sql/sql.h"
#include "store/sqlite/conn.h"

/* The statements are those of enum ob_sql_id and lite_id. */

/* Expand a template; {=partition_count} is `partition_count`, states and the like are known. */
int lite_expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
		struct ob_buf *out, struct ob_err *err);

/*
 * Prepare a statement and bind it; :now, the time of the operation, is bound by itself. A
 * parameter that the statement does not have (its column is switched off) is passed over. Then
 * s->stmt[id] is stepped.
 */
int lite_bind(struct lite_store *s, int id, const struct ob_sql_arg *args, struct ob_err *err);
/* 1: a row; 0: no more, and reset. A failure resets too. */
int lite_step(struct lite_store *s, int id, struct ob_err *err);
void lite_reset(struct lite_store *s, int id);
/* Bind and run a statement without rows; how many rows it changed. */
int lite_run(struct lite_store *s, int id, const struct ob_sql_arg *args, struct ob_err *err);
/* Bind and step to the first row: 1, and its first column; 0, and 0, when it is NULL or there is
 * none. */
int lite_value(struct lite_store *s, int id, const struct ob_sql_arg *args, int64_t *ret_value,
	       struct ob_err *err);
/* The template of a statement. */
const char *lite_template(int id);
/* Finalize all of them. */
void lite_finalize(struct lite_store *s);

/* Bind to any statement. Tables are bound as JSON. */
int lite_bind_args(struct lite_store *s, sqlite3_stmt *stmt, const struct ob_sql_arg *args,
		   struct ob_err *err);
/* A column of the row; valid until the next step; NULL is absent, or 0. */
struct ob_str lite_str(sqlite3_stmt *stmt, int column);

/*
 * Transactions. `doing` says what the operation does, for messages. Every write is begin, work,
 * end(result of the work): commits when r >= 0, else rolls back.
 */
int lite_begin(struct lite_store *s, const char *doing, struct ob_err *err);
int lite_end(struct lite_store *s, int r, struct ob_err *err);
/* The same for reading one snapshot. */
int lite_begin_read(struct lite_store *s, const char *doing, struct ob_err *err);
int lite_end_read(struct lite_store *s, int r, struct ob_err *err);
/* Roll back if a transaction is open. */
void lite_rollback(struct lite_store *s);

#endif
