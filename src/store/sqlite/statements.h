/* SPDX-License-Identifier: MIT */
/* The templates in sql/sqlite that are the SQLite store's own statements, prepared once for a
 * connection. */
#ifndef OB_STORE_SQLITE_STATEMENTS_H
#define OB_STORE_SQLITE_STATEMENTS_H

#include "store/sql/statements.h"

/* clang-format off */
#define LITE_MAP(X) \
	X(begin_write) X(begin_read) X(commit) X(rollback) X(wal) X(cache) X(only_read) X(data_version) \
	X(synchronous_full) X(synchronous_normal) X(journal_mode) X(pages) \
	X(object) X(columns) X(copy_table) X(meta_get) X(meta_set) X(go_on) X(stamp) \
	X(any_lease) X(resize_done) X(resize_journal) X(resize_forget) X(resize_leases) \
	X(resize_lost) X(resize_move) X(resize_promote) \
	X(walk) X(load) X(end_of_log) X(any_exception) X(next_exception) X(any_queue) X(in_queue) \
	X(due) X(queue_rows) \
	X(idle_reader) X(retain_dead) X(retain_finished) X(retain_throughput) X(retain_audit) \
	X(retain_bound) X(retain_to) X(retain_rows) X(retain_these) X(prune_old) X(prune_crowd) X(holder)
/* clang-format on */

/* They are numbered after those that all databases share. */
enum lite_id {
	LITE_BEFORE = OB_SQL_COUNT - 1,
#define X(name) LITE_##name,
	LITE_MAP(X)
#undef X
		LITE_COUNT
};

#endif
