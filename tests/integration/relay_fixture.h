/* SPDX-License-Identifier: MIT */
/* What the tests of a whole relay in front of a failing sink share. Failures end the test. */
#ifndef OB_TESTS_RELAY_FIXTURE_H
#define OB_TESTS_RELAY_FIXTURE_H

#include "relay/relay.h"
#include "suite.h"

enum { RELAY_MANY = 20000, RELAY_KEYS = 37, RELAY_PARTITIONS = 8 };

/* Two workers on these; not started. */
struct ob_relay *relay_make(int (*open_store)(void *, struct ob_store **, struct ob_err *),
			    int (*open_sink)(void *, struct ob_sink **, struct ob_err *));
/* Commit RELAY_MANY messages of RELAY_KEYS keys; the payload is the number. */
void relay_push(struct ob_store *writer);
/* Wait until so many are settled as published. */
void relay_wait_published(struct ob_relay *relay, uint64_t count);
/* Drain and end it; it must have met an outage, which cost no message an attempt. */
void relay_end(struct ob_relay *relay);

/* The order of what arrived: every copy is seen, then all must be there. */
struct relay_order {
	int next[RELAY_KEYS];
};
void relay_order_init(struct relay_order *order);
/* A copy of message n: the first ones of a key are in order. */
void relay_order_see(struct relay_order *order, int n);
void relay_order_end(const struct relay_order *order);

#endif
