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
#include "cli/audit.h"
#include "store/store.h"

#include <pthread.h>

enum { SHOP_CUSTOMERS = 200, SHOP_EVENTS_MAX = 3 };

struct books {
	pthread_mutex_t customer[SHOP_CUSTOMERS]; /* each guards its sequence; taken in order */
	int64_t sequence[SHOP_CUSTOMERS];
	pthread_mutex_t lock; /* guards the journal */
	struct ob_audit_journal journal;
};

void books_init(struct books *books);
void books_done(struct books *books);

struct shop {
	struct books *books;
	struct ob_store *store;
	struct ob_rng rng;
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

#endif
