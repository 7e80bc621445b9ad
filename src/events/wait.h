/* SPDX-License-Identifier: MIT */
/* Waiting until a reader has delivered what was committed when the wait began. */
#ifndef OB_EVENTS_WAIT_H
#define OB_EVENTS_WAIT_H

#include "store/store.h"

/* How far a reader is from the end of its log. */
struct ob_lag {
	uint64_t messages; /* pending, parked and failed; counting stops at 10001 */
	int64_t oldest_us; /* age of the oldest of them; 0: there is none */
};

int ob_lag_read(struct ob_store *store, const char *reader, struct ob_lag *ret_lag,
		struct ob_err *err);

/*
 * Wait until every message that is committed now was delivered by the reader, is dead, discarded
 * or not due yet; at most timeout_ms (0: only look). *ret_caught: it is so. Unknown reader:
 * OUTBOX_EINVAL. A store that is down is asked again until the time is over.
 */
int ob_wait_caught_up(struct ob_store *store, const char *reader, int64_t timeout_ms,
		      bool *ret_caught, struct ob_err *err);

#endif
