/* SPDX-License-Identifier: MIT */
/* Messages from rows of the SQLite store. */
#ifndef OB_STORE_SQLITE_ROW_H
#define OB_STORE_SQLITE_ROW_H

#include "store/sqlite/conn.h"

/* Bytes of payload and headers of the statement's row. */
size_t lite_row_size(sqlite3_stmt *stmt);
/* Add the statement's row to the batch; everything is copied. */
int lite_row_add(struct lite_store *s, sqlite3_stmt *stmt, struct ob_batch *batch,
		 struct ob_message **ret_message, struct ob_err *err);

#endif
