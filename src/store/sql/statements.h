/* SPDX-License-Identifier: MIT */
/* The statements of the operations: each is a template of that name in every sql/<store>. */
#ifndef OB_STORE_SQL_STATEMENTS_H
#define OB_STORE_SQL_STATEMENTS_H

/* Statement; whether it runs all the time, so that its plan is worth keeping. */
#define OB_SQL_MAP(X) \
	X(time, false) \
	X(hold_session, true) \
	X(count_minute, true) \
	X(beat, true) \
	X(numbering, true) \
	X(gone_workers, true) \
	X(forget_workers, false) \
	X(free_gone_leases, false) \
	X(leave_leases, false) \
	X(leave_worker, false) \
	X(leave_session, false) \
	X(workers, true) \
	X(seed, false) \
	X(prune_leases, false) \
	X(partition_count, false) \
	X(take_look, true) \
	X(take, true) \
	X(taken, true) \
	X(note_held, true) \
	X(renew, true) \
	X(held_leases, true) \
	X(release, false) \
	X(forget_holders, false) \
	X(free_leases, false) \
	X(partitions, false) \
	X(throughput, false) \
	X(audit, false) \
	X(audits, false) \
	X(stats_readers, false) \
	X(stats_exceptions, false) \
	X(stats_log, false) \
	X(stats_held, false) \
	X(list_any, false) \
	X(list_any_one, false) \
	X(list_all, false) \
	X(list_one, false) \
	X(list_stream, false) \
	X(list_open, false) \
	X(verb_all, false) \
	X(verb_one, false) \
	X(verb_open, false) \
	X(verb_these, false) \
	X(operator_row, false) \
	X(operator_made, false) \
	X(journal, true) \
	X(won, true) \
	X(except_add, true) \
	X(except_set, true) \
	X(except_remove, true) \
	X(promote, true) \
	X(journal_state, false) \
	X(foreign_progress, false) \
	X(take_over, false) \
	X(progress, false) \
	X(reader_target, false) \
	X(place, false) \
	X(lock_log, false) \
	X(reader_make, false) \
	X(reader_begin, false) \
	X(reader_refilter, false) \
	X(readers, false) \
	X(reader_lock, false) \
	X(seek, false) \
	X(seek_forget, false) \
	X(seek_exceptions, false) \
	X(reader_busy, false) \
	X(remove_leases, false) \
	X(remove_workers, false) \
	X(remove_exceptions, false) \
	X(remove_batches, false) \
	X(remove_reader, false) \
	X(inbox_there, false) \
	X(inbox_add, true) \
	X(inbox_purge, false) \
	X(consumer_make, false) \
	X(consumer_take, false) \
	X(consumer_state, false) \
	X(consumer_renew, true) \
	X(consumer_count, false) \
	X(consumer_release, false) \
	X(member_beat, false) \
	X(member_leave, false) \
	X(members_forget, false) \
	X(members, false) \
	X(consumer_fence, true) \
	X(consumer_list, false) \
	X(positions, false) \
	X(position_set, true) \
	X(park, false) \
	X(parked_keys, false) \
	X(parked_count, false) \
	X(parked_due, true) \
	X(parked_wait, true) \
	X(parked_list, false) \
	X(parked_lock, false) \
	X(parked_state, false) \
	X(parked_set, false) \
	X(parked_unqueue, false) \
	X(parked_remove, true) \
	X(parked_promote, false)

enum ob_sql_id {
#define X(name, planned) OB_SQL_##name,
	OB_SQL_MAP(X)
#undef X
		OB_SQL_COUNT
};

#endif
