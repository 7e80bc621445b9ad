/* SPDX-License-Identifier: MIT */
/* The tables of the SQLite store. */
#ifndef OB_STORE_SQLITE_SCHEMA_H
#define OB_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/conn.h"

/* A number of the meta table; OUTBOX_ESCHEMA when it is not there. */
int lite_meta(struct lite_store *s, const char *name, int64_t *ret_value, struct ob_err *err);
int lite_set_meta(struct lite_store *s, const char *name, int64_t value, struct ob_err *err);
/* Run a template as a script; {=partition_count} is `partition_count`. */
int lite_run_script(struct lite_store *s, const char *tmpl, int64_t partition_count,
		    struct ob_err *err);

/* One column as the database has it. */
struct lite_column {
	bool exists, generated;
	char type[64];
};

int lite_column(struct lite_store *s, const char *table, const char *name, struct lite_column *ret,
		struct ob_err *err);

ob_store_setup_fn lite_setup;
ob_store_setup_sql_fn lite_setup_sql;
ob_store_grants_sql_fn lite_grants_sql;
ob_store_check_fn lite_check;

/* resize.c */
ob_store_resize_fn lite_resize;

#endif
