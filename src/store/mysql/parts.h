/* SPDX-License-Identifier: MIT */
/* The MySQL store: a log that is partitioned by number. */
#ifndef OB_STORE_MYSQL_PARTS_H
#define OB_STORE_MYSQL_PARTS_H

#include "log/retention.h"
#include "store/mysql/conn.h"

/* Make the table of the log, with so many numbers in a partition. */
int my_parts_setup(struct my_store *s, int64_t partition_count, int64_t rows, struct ob_err *err);
/* The same as SQL. */
int my_parts_sql(const struct ob_layout *layout, const struct ob_setup *wish, struct ob_buf *out,
		 struct ob_err *err);
/* How many numbers a partition of the log has; 0: it is not partitioned. Partitions that setup does
 * not make are OUTBOX_ESCHEMA. */
int my_parts_look(struct my_store *s, int64_t *ret_rows, struct ob_err *err);

/* What of retain is about partitions. */
struct my_parts_retain {
	const struct ob_retain *retain;
	const struct ob_retain_bound *bound;
	const struct ob_str *readers;
	size_t reader_count;
	int64_t partition_count; /* of keys, not of the table */
};

/* Drop those of which nothing is needed and no number can appear any more, make those that are
 * missing above. */
int my_parts_retain(struct my_store *s, const struct my_parts_retain *how, struct ob_retained *done,
		    struct ob_err *err);
/* The operation `parts`. */
int my_parts(struct ob_store *store, struct ob_arena *arena, struct ob_table_parts *ret_parts,
	     struct ob_err *err);
/* The last number, and where the highest partition ends; 0: the log is not partitioned. */
int my_parts_reach(struct my_store *s, int64_t *ret_last, int64_t *ret_top, struct ob_err *err);

#endif
