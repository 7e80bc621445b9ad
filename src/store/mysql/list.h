/* SPDX-License-Identifier: MIT */
/* Rows that match a filter, with what a reader has of them. */
#ifndef OB_STORE_MYSQL_LIST_H
#define OB_STORE_MYSQL_LIST_H

#include "store/mysql/journal.h"

/* Append the statement that finds them: all their fields (list_head), or what a verb needs
 * (pick_head). The reach is the reader's. */
void my_filter_add(struct my_packet *p, const struct ob_filter *filter,
		   const struct my_reach *reach, bool pick);

ob_store_list_fn my_list_messages;
ob_store_operate_fn my_operate;
ob_store_stats_fn my_stats;

#endif
