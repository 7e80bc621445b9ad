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
	X(throughput, false)

enum ob_sql_id {
#define X(name, planned) OB_SQL_##name,
	OB_SQL_MAP(X)
#undef X
		OB_SQL_COUNT
};

#endif
