/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: a log that is partitioned by number. */
#ifndef OB_STORE_POSTGRES_PARTS_H
#define OB_STORE_POSTGRES_PARTS_H

#include "log/retention.h"
#include "store/postgres/conn.h"

/* Make what of a partitioned log is missing, but for the companions' functions; inside setup's
 * transaction. */
int pg_parts_setup(struct pg_store *s, int64_t partition_count, int64_t rows, struct ob_err *err);
/* The same as SQL. */
int pg_parts_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err);
/* Is the partitioned table `oid` one that setup made? Inside a transaction. */
int pg_parts_check(struct pg_store *s, int64_t oid, int64_t *ret_rows, struct ob_err *err);
/* Is the log partitioned? Inside a transaction. */
int pg_parts_any(struct pg_store *s, bool *ret_any, struct ob_err *err);
/* The part of retain that is about partitions, in transactions of its own: empty and drop what
 * `bound` allows, make what is missing above. */
int pg_parts_retain(struct pg_store *s, const struct ob_retain *retain,
		    const struct ob_retain_bound *bound, struct ob_retained *done,
		    struct ob_err *err);
/* The operation `parts`. */
int pg_parts(struct ob_store *store, struct ob_arena *arena, struct ob_table_parts *ret_parts,
	     struct ob_err *err);
/* The last number, and where the highest partition ends; 0: the log is not partitioned. Inside a
 * transaction. */
int pg_parts_reach(struct pg_store *s, int64_t *ret_last, int64_t *ret_top, struct ob_err *err);

#endif
