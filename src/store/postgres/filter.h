/* SPDX-License-Identifier: MIT */
/* Messages that a filter matches, for a list and for an operator's verb. */
#ifndef OB_STORE_POSTGRES_FILTER_H
#define OB_STORE_POSTGRES_FILTER_H

#include "store/postgres/stmt.h"

/* Queue the statement that finds them, in the filter's order, and returns the columns of `rows`:
 * list_rows or verb_rows. */
int pg_add_filter(struct pg_store *s, const struct ob_filter *filter, const char *rows,
		  struct ob_err *err);

#endif
