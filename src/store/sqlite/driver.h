/* SPDX-License-Identifier: MIT */
/* The SQLite store under store/sql. */
#ifndef OB_STORE_SQLITE_DRIVER_H
#define OB_STORE_SQLITE_DRIVER_H

#include "store/sqlite/stmt.h"

extern const struct ob_sql_driver lite_driver;

void lite_run_free(struct lite_run *run);

/* What is SQLite's own way: read.c, retain.c */
ob_store_read_fn lite_read;
ob_store_retain_fn lite_retain;

#endif
