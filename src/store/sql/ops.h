/* SPDX-License-Identifier: MIT */
/* The operations that are the same in every SQL database; each has its contract in store/store.h.
 */
#ifndef OB_STORE_SQL_OPS_H
#define OB_STORE_SQL_OPS_H

#include "store/sql/sql.h"

ob_store_reader_make_fn ob_sql_op_reader_make;
ob_store_readers_fn ob_sql_op_readers;
ob_store_reader_seek_fn ob_sql_op_reader_seek;
ob_store_reader_remove_fn ob_sql_op_reader_remove;
ob_store_take_over_fn ob_sql_op_take_over;
ob_store_settle_fn ob_sql_op_settle;
ob_store_settle_fn ob_sql_op_tx_settle;
ob_store_beat_fn ob_sql_op_beat;
ob_store_reap_fn ob_sql_op_reap;
ob_store_leave_fn ob_sql_op_leave;
ob_store_workers_fn ob_sql_op_workers;
ob_store_seed_fn ob_sql_op_seed;
ob_store_take_fn ob_sql_op_take;
ob_store_renew_fn ob_sql_op_renew;
ob_store_release_fn ob_sql_op_release;
ob_store_partitions_fn ob_sql_op_partitions;
ob_store_free_leases_fn ob_sql_op_free_leases;
ob_store_stats_fn ob_sql_op_stats;
ob_store_throughput_fn ob_sql_op_throughput;
ob_store_list_fn ob_sql_op_list;
ob_store_operate_fn ob_sql_op_operate;
ob_store_audit_fn ob_sql_op_audit;
ob_store_audits_fn ob_sql_op_audits;

/* Their part of a backend's table. */
#define OB_SQL_OPS \
	.reader_make = ob_sql_op_reader_make, .readers = ob_sql_op_readers, \
	.reader_seek = ob_sql_op_reader_seek, .reader_remove = ob_sql_op_reader_remove, \
	.take_over = ob_sql_op_take_over, .settle = ob_sql_op_settle, \
	.tx_settle = ob_sql_op_tx_settle, .beat = ob_sql_op_beat, .reap = ob_sql_op_reap, \
	.leave = ob_sql_op_leave, .workers = ob_sql_op_workers, .seed = ob_sql_op_seed, \
	.take = ob_sql_op_take, .renew = ob_sql_op_renew, .release = ob_sql_op_release, \
	.partitions = ob_sql_op_partitions, .free_leases = ob_sql_op_free_leases, \
	.stats = ob_sql_op_stats, .throughput = ob_sql_op_throughput, .list = ob_sql_op_list, \
	.operate = ob_sql_op_operate, .audit = ob_sql_op_audit, .audits = ob_sql_op_audits

/* Add the statement that takes `entry` down; one of its plan that is there grows by `more`. */
void ob_sql_add_audit(struct ob_sql *q, const struct ob_audit_row *entry, uint64_t more);

/* The statements that remove a reader with all that is its own; their value is :reader. */
extern const enum ob_sql_id ob_sql_removal[];
extern const size_t ob_sql_removal_count;

#endif
