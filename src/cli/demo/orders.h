/* SPDX-License-Identifier: MIT */
/*
 * A shop that writes orders and their events in real transactions, some of
 * which are rolled back, and keeps a journal of what it did: the application side of
 * the demonstration and of the crash tests. Uses nothing but liboutbox and SQLite, as
 * any application would.
 */
#ifndef OB_CLI_DEMO_ORDERS_H
#define OB_CLI_DEMO_ORDERS_H

#include "cli/demo/audit.h"

struct ob_orders;

struct ob_orders_conf {
	const char *path;     /* of the database; the outbox is set up in it */
	uint64_t seed;        /* the same seed makes the same orders */
	uint32_t customers;   /* each is one ordering key; the journal's keys are 0..customers-1 */
	uint32_t rollback_pc; /* of a hundred transactions */
	int busy_ms;          /* how long to wait for the database's lock */
};

/* On success the caller owns *ret_orders; use it from one thread at a time. */
int ob_orders_new(const struct ob_orders_conf *conf, struct ob_orders **ret_orders,
		  struct ob_err *err);
void ob_orders_free(struct ob_orders *orders);

/*
 * One transaction of one to three events, committed or rolled back, and then noted
 * in the journal. DOWN when the database stayed locked: nothing was written.
 */
int ob_orders_step(struct ob_orders *orders, struct ob_err *err);
/* Borrowed; changes with every step. */
const struct ob_audit_journal *ob_orders_journal(const struct ob_orders *orders);

#endif
