/* SPDX-License-Identifier: MIT */
/*
 * A store that wraps another and fails once, at the n-th call. For tests: run a
 * scenario with n = 1, 2, 3, ... until no fault fires, and every error path ran.
 */
#ifndef OB_DOUBLES_FAULT_STORE_H
#define OB_DOUBLES_FAULT_STORE_H

#include "store/store.h"

/* The operations that can fail, in the order of the table. */
#define OB_STORE_FAULT_MAP(X) \
	X(setup) \
	X(check) \
	X(diagnose) \
	X(oldest) \
	X(tx_begin) \
	X(tx_push) \
	X(tx_end) \
	X(tx_writer) \
	X(tx_exec) \
	X(reader_make) \
	X(readers) \
	X(reader_seek) \
	X(reader_remove) \
	X(take_over) \
	X(read) \
	X(settle) \
	X(tx_settle) \
	X(beat) \
	X(reap) \
	X(leave) \
	X(workers) \
	X(seed) \
	X(take) \
	X(renew) \
	X(release) \
	X(partitions) \
	X(free_leases) \
	X(resize) \
	X(adopt) \
	X(stats) \
	X(throughput) \
	X(list) \
	X(operate) \
	X(audit) \
	X(audits) \
	X(retain) \
	X(parts) \
	X(wake_check)

enum ob_store_fault_op {
#define X(name) OB_STORE_FAULT_##name,
	OB_STORE_FAULT_MAP(X)
#undef X
};

enum ob_store_fault_mode {
	OB_FAULT_BEFORE, /* the wrapped store is not called */
	OB_FAULT_AFTER,  /* it is called and its effect stays: the reply is lost */
};

struct ob_store_fault_plan {
	uint64_t nth; /* the call that fails, from 1; 0: none */
	enum ob_store_fault_mode mode;
	uint64_t only; /* bits 1 << OB_STORE_FAULT_...: only these are counted; 0: all */
};

struct ob_store_fault_count {
	uint64_t calls;       /* counted so far */
	bool fired;           /* the fault has happened */
	const char *fired_in; /* the operation's name, or NULL */
};

/*
 * Wrap `inner`, which belongs to the new store on success. The failing call
 * is OUTBOX_ESTORE, DOWN, and writes no ret_ parameter. Rolling back is not
 * counted: it cannot fail. When the wrapped call fails by itself, its own error stays.
 */
int ob_store_fault_new(struct ob_store *inner, const struct ob_store_fault_plan *plan,
		       struct ob_store **ret_store, struct ob_err *err);
/* A new plan for a store made by ob_store_fault_new(); counting starts again. */
void ob_store_fault_arm(struct ob_store *store, const struct ob_store_fault_plan *plan);
struct ob_store_fault_count ob_store_fault_counted(const struct ob_store *store);

#endif
