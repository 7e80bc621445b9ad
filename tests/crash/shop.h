/* SPDX-License-Identifier: MIT */
/*
 * Producers that write to any store in real transactions, some of which are rolled back,
 * and the books they keep together: what the audit believes. Customers are the ordering
 * keys. A producer holds its customers' locks from before its insert until its
 * commit has been acknowledged, as applications lock a business row: so the order of
 * a customer's events is defined, whoever wrote them.
 */
#ifndef OB_TESTS_CRASH_SHOP_H
#define OB_TESTS_CRASH_SHOP_H

#include "base/rng.h"
#include "cli/demo/audit.h"
#include "store/store.h"

#include <pthread.h>

enum { SHOP_CUSTOMERS = 200, SHOP_EVENTS_MAX = 3, SHOP_LANES = 3 };

/* What the events are like, each in a hundred; all zero: orders that are due at once. */
struct shop_mix {
	uint32_t poison_pc;  /* no receiver ever takes it */
	uint32_t doomed_pc;  /* an operator may discard it, or may come too late */
	uint32_t delayed_pc; /* by up to delay_ms */
	uint32_t lane_pc;    /* of another priority: in order among its own alone */
	uint32_t delay_ms;
	bool delayed_holds; /* a delayed one keeps its place in its key */
	int blocked;        /* > 0: only orders for this customer */
};

/* An event that must not come before its time. */
struct shop_due {
	struct ob_uuid id;
	int64_t due_us; /* of the real clock */
};

struct books {
	pthread_mutex_t customer[SHOP_CUSTOMERS]; /* each guards its sequence; taken in order */
	int64_t sequence[SHOP_CUSTOMERS];
	pthread_mutex_t lock; /* guards the rest */
	struct ob_audit_journal journal;
	uint32_t keys;         /* handed out to those that are in order with nobody */
	uint64_t poison;       /* committed */
	uint64_t of_blocked;   /* orders of the blocked customer, committed, of the normal lane */
	struct shop_due *dues; /* committed */
	size_t due_count, due_cap;
};

void books_init(struct books *books);
void books_done(struct books *books);

struct shop {
	struct books *books;
	struct ob_store *store;
	struct ob_rng rng;
	struct shop_mix mix;
	uint32_t rollback_pc; /* of a hundred transactions */
	int hold_ms;          /* transactions stay open so long before they end */
};

/* Connect; `url` must live as long as the shop. One shop is used by one thread at a time. */
int shop_open(struct shop *shop, struct books *books, const char *url, uint64_t seed,
	      struct ob_err *err);
void shop_close(struct shop *shop);

/*
 * One transaction of one to three events, committed or rolled back, and noted in the books.
 * DOWN when the database did not let it: nothing was written. A commit whose
 * answer was lost is looked up, for as long as it takes the database to come back, at most
 * `patience_ms`.
 */
int shop_step(struct shop *shop, int patience_ms, struct ob_err *err);

/*
 * For writers of their own kind: lock some customers at random; then note each event, in the order
 * of its insert and once its fate is known; then unlock.
 */
struct shop_order;
struct shop_order *shop_begin(struct shop *shop, size_t events);
void shop_event(const struct shop_order *order, size_t at, uint32_t *ret_customer, char hex[33]);
int shop_end(struct shop *shop, struct shop_order *order, const bool *committed,
	     struct ob_err *err);

#endif
