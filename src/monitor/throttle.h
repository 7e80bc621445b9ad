/* SPDX-License-Identifier: MIT */
/*
 * Wrong tokens slow down whoever sends them: from one address OB_THROTTLE_BURST, then one each
 * second. Of an IPv6 address the network counts. Memory is bounded: the address that was wrong
 * longest ago gives its place to a new one.
 */
#ifndef OB_MONITOR_THROTTLE_H
#define OB_MONITOR_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	OB_THROTTLE_SLOTS = 256,
	OB_THROTTLE_BURST = 10,
	OB_THROTTLE_US = 1000000,
	OB_THROTTLE_ADDRESS = 48,
};

struct ob_throttle {
	struct ob_throttle_slot {
		char address[OB_THROTTLE_ADDRESS]; /* "": free */
		int64_t full_us;                   /* boot clock: when all its tries are back */
	} slots[OB_THROTTLE_SLOTS];
	uint64_t wrong; /* tokens since the start */
};

/* May a token from this address be tried at all? The right one waits too: else guessing would go on
 * at full speed. */
bool ob_throttle_allows(const struct ob_throttle *throttle, const char *address, int64_t now_us);
/* It was wrong. */
void ob_throttle_note(struct ob_throttle *throttle, const char *address, int64_t now_us);

#endif
