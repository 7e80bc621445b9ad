/* SPDX-License-Identifier: MIT */
/* The progress of a place in the log. */
#ifndef OB_STORE_MYSQL_PLACE_H
#define OB_STORE_MYSQL_PLACE_H

#include "store/mysql/sql.h"

/* The position, and into `gaps` (empty) the numbers below it that may still appear. */
int my_find_place(struct my_store *s, const struct ob_place *place, int64_t *ret_pos,
		  struct ob_gaps *gaps, struct ob_err *err);

#endif
