/* SPDX-License-Identifier: MIT */
/* What is known of a MySQL or MariaDB server, and what that means. */
#ifndef OB_STORE_MYSQL_DIAGNOSE_H
#define OB_STORE_MYSQL_DIAGNOSE_H

#include "store/store.h"

struct my_health {
	int64_t flush_log, sync_binlog; /* the settings; 1 is safe */
	bool log_bin;
	bool keeps_escapes;          /* JSON_TABLE returns a text with its escapes */
	int64_t cluster;             /* nodes of a Galera cluster; 0: it is none */
	bool sees_statements;        /* this user sees what others run */
	int64_t prepared;            /* XA transactions; -1: not known */
	int64_t oldest_s, oldest_id; /* the oldest transaction of others, if they are seen */
	int64_t not_purged;          /* the history list */
	int64_t part_last, part_top; /* partitioned log: last number; first above its partitions */
};

extern const struct ob_check my_checks[];

void my_judge(const struct my_health *health, struct ob_findings *out);

ob_store_diagnose_fn my_diagnose;
ob_store_oldest_fn my_oldest;

#endif
