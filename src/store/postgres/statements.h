/* SPDX-License-Identifier: MIT */
/* The statements of the PostgreSQL store that have a number: each is a template in sql/postgres. */
#ifndef OB_STORE_POSTGRES_STATEMENTS_H
#define OB_STORE_POSTGRES_STATEMENTS_H

/* Statement; planned once on a connection that is ours alone; what it does, for messages. */
#define PG_MAP(X) \
	X(begin, true, "beginning a transaction") \
	X(begin_snapshot, false, "beginning a transaction") \
	X(pins, true, "beginning a transaction") \
	X(commit, true, "committing") \
	X(rollback, false, "rolling back") \
	X(hello, false, "connecting") \
	X(listen, false, "listening") \
	X(notify, false, "listening") \
	X(ping, false, "looking for news") \
	X(advise, false, "reading the server's settings") \
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
	X(lock_log, false, "waiting for the table") \
	X(reader_make, false, "making a reader") \
	X(reader_target, false, "looking for a reader") \
	X(readers, false, "listing readers") \
	X(seek_leases, false, "moving a reader") \
	X(seek, false, "moving a reader") \
	X(seek_journal, false, "moving a reader") \
	X(seek_exceptions, false, "moving a reader") \
	X(reader_busy, false, "looking for workers") \
	X(reader_remove, false, "removing a reader") \
	X(take_over, false, "taking over partitions") \
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
	X(journal, true, "settling") \
	X(journal_state, false, "settling") \
	X(except_add, true, "settling") \
	X(except_set, true, "settling") \
	X(except_remove, true, "settling") \
	X(promote, true, "settling") \
	X(verb_these, false, "operating") \
	X(operator_row, false, "operating") \
	X(beat, true, "writing the heartbeat") \
	X(session_lock, false, "writing the heartbeat") \
	X(session_unlock, false, "leaving") \
	X(cache, true, "writing the heartbeat") \
	X(reap, true, "removing dead workers") \
	X(leave_leases, false, "leaving") \
	X(leave_worker, false, "leaving") \
	X(workers, true, "listing workers") \
	X(seed, false, "making lease rows") \
	X(prune, false, "dropping lease rows") \
	X(partition_count, false, "reading the partition count") \
	X(take, true, "taking leases") \
	X(renew, true, "renewing leases") \
	X(release, false, "releasing leases") \
	X(partitions, false, "listing partitions") \
	X(free_leases, false, "freeing leases") \
	X(now, false, "listing") \
	X(stats, false, "counting") \
	X(throughput, false, "reading the throughput") \
	X(retain_lock, false, "removing old rows") \
	X(retain_bounds, false, "removing old rows") \
	X(retain_rows, false, "removing old rows") \
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
	X(ended_readers, false, "looking for replays that ended") \
	X(held_by, false, "looking for readers that stand still")

enum pg_id {
#define X(name, planned, doing) PG_##name,
	PG_MAP(X)
#undef X
		PG_COUNT
};

#endif
