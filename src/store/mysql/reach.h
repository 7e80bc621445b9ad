/* SPDX-License-Identifier: MIT */
/*
 * What a reader has behind it, over all of its partitions: the lowest and highest position, and
 * all gaps below the lowest one. Every row that is not delivered is above `low`, or one of `gaps`.
 */
#ifndef OB_STORE_MYSQL_REACH_H
#define OB_STORE_MYSQL_REACH_H

#include "store/mysql/sql.h"

struct my_reach {
	int64_t low, high;
	struct ob_gaps gaps;
	int64_t moved_us; /* time of the newest row */
	size_t rows;      /* partitions that have a row */
};

/* `age_us` < 0: now; else as of that long ago. */
int my_reach_read(struct my_store *s, struct ob_str reader, int64_t age_us,
		  struct my_reach *ret_reach, struct ob_err *err);
void my_reach_done(struct my_reach *reach);

#endif
