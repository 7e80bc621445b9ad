/* SPDX-License-Identifier: MIT */
/* Messages from rows of the SQLite store. */
#ifndef OB_STORE_SQLITE_ROW_H
#define OB_STORE_SQLITE_ROW_H

#include "store/sqlite/conn.h"

/* The first columns, which a walk needs of rows that it does not return. */
enum { LITE_ROW_SEQ, LITE_ROW_PARTITION };

/* Bytes of payload and headers of the statement's row. */
size_t lite_row_size(sqlite3_stmt *stmt);
/* Add the statement's row to the batch; everything is copied. `all`: the columns of list_row, not
 * only those of message_columns. */
int lite_row_add(struct lite_store *s, sqlite3_stmt *stmt, bool all, struct ob_batch *batch,
		 struct ob_message **ret_message, struct ob_err *err);

#endif
