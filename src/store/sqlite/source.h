/* SPDX-License-Identifier: MIT */
/* The SQLite store: the table that is copied from, if the layout has one. */
#ifndef OB_STORE_SQLITE_SOURCE_H
#define OB_STORE_SQLITE_SOURCE_H

#include "store/sqlite/conn.h"

/* Make the trigger if it is not there; inside a write transaction. */
int lite_source_attach(struct lite_store *s, struct ob_err *err);
int lite_source_check(struct lite_store *s, struct ob_err *err);
int lite_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err);

#endif
