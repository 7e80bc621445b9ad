/* SPDX-License-Identifier: MIT */
/* Messages that a filter matches, for a list and for an operator's verb. */
#ifndef OB_STORE_SQL_FILTER_H
#define OB_STORE_SQL_FILTER_H

#include "store/sql/sql.h"

/* Before begin: what the driver must know of the filter's reader. */
int ob_sql_filter_reach(struct ob_store *store, const struct ob_filter *filter, struct ob_err *err);
/* Add the statement that finds them, in the filter's order; its number. `verb`: with what a verb
 * must know of them, else with all that people see. */
size_t ob_sql_add_filter(struct ob_sql *q, const struct ob_filter *filter, bool verb);
/* A row of the former. */
struct ob_verb_row ob_sql_verb_row(const struct ob_sql_rows *rows);

#endif
