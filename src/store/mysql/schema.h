/* SPDX-License-Identifier: MIT */
/* The tables of the MySQL store: making them, checking them, changing the partition count. */
#ifndef OB_STORE_MYSQL_SCHEMA_H
#define OB_STORE_MYSQL_SCHEMA_H

#include "store/mysql/conn.h"

/* What is there under our names. */
struct my_found {
	bool table[OB_TABLE_COUNT];
	bool any;
	int64_t version;         /* 0: none, or a setup that did not end */
	int64_t partition_count; /* of the meta table */
	int64_t modulus;         /* of the column partition_no; 0: not known */
	int64_t partition_rows;  /* of a log that is partitioned by number; 0: it is not */
};

/* A number of the meta table; OUTBOX_ESCHEMA when it is not there. */
int my_meta(struct my_store *s, const char *name, int64_t *ret_value, struct ob_err *err);
int my_look_schema(struct my_store *s, struct my_found *found, struct ob_err *err);
/* Are the tables ours? Fills found->modulus. */
int my_check_columns(struct my_store *s, struct my_found *found, struct ob_err *err);
/* Has a table that column? */
int my_has_column(struct my_store *s, const char *table, const char *column, bool *ret_has,
		  struct ob_err *err);
/* The columns of an index of the log, "" when there is none. */
int my_index_columns(struct my_store *s, const char *suffix, char out[1024], struct ob_err *err);
/* The schema's name for lookups; NULL: the connection's own. */
const char *my_schema(const struct my_store *s);
/* Is a server that calls itself so ("10.11.6-MariaDB-...") new enough? */
int my_check_version(const char *version, struct ob_err *err);

/* Hold the session lock of that purpose; OUTBOX_EBUSY when another has it for longer than
 * `seconds`. */
int my_lock(struct my_store *s, const char *purpose, int seconds, struct ob_err *err);
void my_unlock(struct my_store *s, const char *purpose);
/* Run a template of the schema on a connection; `count` partitions. */
int my_run_schema(struct my_store *s, MYSQL *db, const char *tmpl, int64_t count,
		  struct ob_err *err);

ob_store_setup_fn my_setup;
ob_store_setup_sql_fn my_setup_sql;
ob_store_grants_sql_fn my_grants_sql;
ob_store_check_fn my_check;
ob_store_resize_fn my_resize;

#endif
