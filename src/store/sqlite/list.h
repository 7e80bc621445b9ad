/* SPDX-License-Identifier: MIT */
/* Filters of the SQLite store: the rows that match, and listing them. */
#ifndef OB_STORE_SQLITE_LIST_H
#define OB_STORE_SQLITE_LIST_H

#include "store/sqlite/conn.h"

/* Run the filter, with its order and limit; then next() until it returns 0; then done(). The queue
 * of a row is valid until the next one. */
int lite_pick(struct lite_store *s, const struct ob_filter *filter, struct ob_err *err);
int lite_pick_next(struct lite_store *s, struct ob_verb_row *ret_row, struct ob_err *err);
void lite_pick_done(struct lite_store *s);

ob_store_list_fn lite_list;
ob_store_stats_fn lite_stats;

/* operate.c */
ob_store_operate_fn lite_operate;

#endif
