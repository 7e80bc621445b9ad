/* SPDX-License-Identifier: MIT */
/*
 * Connections to a memory database whose calls a test can hold up, let fail and count; any
 * number of them, on any threads.
 */
#ifndef OB_TESTS_STALL_STORE_H
#define OB_TESTS_STALL_STORE_H

#include "doubles/memory_store.h"

/* The calls of a running relay. */
#define STALL_MAP(X) \
	X(take_over) \
	X(read) \
	X(settle) \
	X(beat) \
	X(reap) \
	X(leave) \
	X(workers) \
	X(seed) \
	X(take) \
	X(renew) \
	X(release) \
	X(partitions) \
	X(retain)

enum stall_op {
#define X(name) STALL_##name,
	STALL_MAP(X)
#undef X
		STALL_OPS
};

/* The database of this test; one at a time. Opens no connection. */
void stall_init(struct ob_memdb *db);
/* One more connection; for ob_relay_conf.open_store and the like, `arg` is not used. */
int stall_open(void *arg, struct ob_store **ret_store, struct ob_err *err);
/* Calls of this kind wait from now on, before they reach the database. */
void stall_hold(enum stall_op op);
/* Only so many; later ones pass. */
void stall_hold_some(enum stall_op op, uint32_t count);
/* They go on, and later ones do not wait. */
void stall_let_go(enum stall_op op);
/* Calls of this kind fail from now on, with that kind; OB_ERR_NONE: no more. */
void stall_fail(enum stall_op op, enum ob_err_kind kind);
/* No more connections; or again. */
void stall_refuse(bool refuse);
/* Each call takes up to that long, drawn anew; 0: not. */
void stall_jitter_us(uint32_t max_us);
/* Wait until that many calls of this kind wait; or have been made. The test's time limit ends it.
 */
void stall_await_waiting(enum stall_op op, uint32_t count);
void stall_await_calls(enum stall_op op, uint32_t count);
uint32_t stall_calls(enum stall_op op);
/* Connections that are open; and all that ever were, the refused ones included. */
uint32_t stall_open_count(void);
uint32_t stall_opens(void);

#endif
