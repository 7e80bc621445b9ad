/* SPDX-License-Identifier: MIT */
/* The SQLite store: applying what was decided about exceptions, inside a write transaction. */
#ifndef OB_STORE_SQLITE_EXCEPTION_H
#define OB_STORE_SQLITE_EXCEPTION_H

#include "store/sqlite/conn.h"

/* `verb`: an operator's, which applies whatever the row says. */
int lite_exception_change(struct lite_store *s, const char *reader, const struct ob_change *change,
			  bool verb, struct ob_err *err);
int lite_exception_promote(struct lite_store *s, const char *reader,
			   const struct ob_promote *promote, struct ob_err *err);

#endif
