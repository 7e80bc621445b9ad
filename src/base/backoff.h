/* SPDX-License-Identifier: MIT */
/* How long to wait: before a message's next attempt, and before asking a peer again. */
#ifndef OB_BASE_BACKOFF_H
#define OB_BASE_BACKOFF_H

#include <stdint.h>

/* When a message is tried again. */
struct ob_retry_policy {
	int64_t base_ms, max_ms;
	double multiplier; /* 1 or more */
	double jitter;     /* 0 to 1 */
};

/*
 * The delay after the attempt of that number (from 1) failed: base after the
 * first, times multiplier after each more, at most max; then plus or minus up
 * to the jitter's fraction, so the spread remains at the maximum too. `random`
 * in [0, 1) picks the place: 0 the shortest, 0.5 no jitter. Never negative.
 */
int64_t ob_retry_delay_ms(const struct ob_retry_policy *policy, uint32_t attempt, double random);

/* Waiting for a peer or for work: doubles from base to cap until reset. */
struct ob_backoff {
	int64_t base_ms, cap_ms;
	int64_t next_ms; /* what the next call returns */
};

/* A cap not above base means that the wait never grows. */
void ob_backoff_init(struct ob_backoff *backoff, int64_t base_ms, int64_t cap_ms);
/* The time to wait now; the next will be twice as long, up to the cap. */
int64_t ob_backoff_next_ms(struct ob_backoff *backoff);
/* It worked: begin at base again. */
void ob_backoff_reset(struct ob_backoff *backoff);

#endif
