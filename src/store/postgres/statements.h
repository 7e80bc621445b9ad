/* SPDX-License-Identifier: MIT */
/* The statements that are the PostgreSQL store's own: each is a template in sql/postgres. */
#ifndef OB_STORE_POSTGRES_STATEMENTS_H
#define OB_STORE_POSTGRES_STATEMENTS_H

#include "store/sql/statements.h"

/* Statement; planned once on a connection that is ours alone; what it does, for messages. */
#define PG_MAP(X) \
	X(begin, true, "beginning a transaction") \
	X(begin_read, true, "beginning a transaction") \
	X(begin_snapshot, false, "beginning a transaction") \
	X(pins, true, "beginning a transaction") \
	X(commit, true, "committing") \
	X(rollback, false, "rolling back") \
	X(hello, false, "connecting") \
	X(listen, false, "listening") \
	X(notify, false, "listening") \
	X(ping, false, "looking for news") \
	X(diagnose, false, "reading the server's settings") \
	X(diagnose_tables, false, "reading the statistics") \
	X(setup_lock, false, "waiting for another setup") \
	X(lock_tables, false, "waiting for the tables") \
	X(object, false, "reading the schema") \
	X(columns, false, "reading the schema") \
	X(table_indexes, false, "reading the schema") \
	X(copy_trigger, false, "reading the schema") \
	X(meta_get, false, "reading the schema version") \
	X(meta_set, false, "changing the schema") \
	X(any_lease, false, "looking for leases") \
	X(promote_all, false, "changing the partitions") \
	X(same_cluster, false, "reading the system identifier") \
	X(any_ahead, false, "reading the journal") \
	X(adopted, false, "adopting the log") \
	X(snapshot, true, "reading") \
	X(due, true, "reading") \
	X(late, true, "reading") \
	X(next, true, "reading") \
	X(sequence, false, "reading") \
	X(log_end, true, "reading") \
	X(read_large, true, "reading") \
	X(session_lock, false, "writing the heartbeat") \
	X(retain_lock, false, "removing old rows") \
	X(retain_bounds, false, "removing old rows") \
	X(retain_rows, false, "removing old rows") \
	X(retain_these, false, "removing old rows") \
	X(retain_default, false, "removing old rows") \
	X(parts_kind, false, "reading the schema") \
	X(parts_list, false, "reading the partitions of the log") \
	X(parts_state, false, "reading the partitions of the log") \
	X(part_make, false, "making a partition of the log") \
	X(part_held, false, "looking for partitions to drop") \
	X(part_count, false, "looking for partitions to drop") \
	X(part_clear, false, "emptying a partition of the log") \
	X(part_remove, false, "dropping partitions of the log") \
	X(retain_dead, false, "removing old rows") \
	X(retain_finished, false, "removing old rows") \
	X(prune_minutes, false, "pruning the journal") \
	X(prune_old, false, "pruning the journal") \
	X(retain_throughput, false, "removing old rows") \
	X(retain_audit, false, "removing old rows") \
	X(ended_readers, false, "looking for replays that ended") \
	X(held_by, false, "looking for readers that stand still")

/* They are numbered after those that all databases share. */
enum pg_id {
	PG_BEFORE = OB_SQL_COUNT - 1,
#define X(name, planned, doing) PG_##name,
	PG_MAP(X)
#undef X
		PG_COUNT
};

#endif
