/* SPDX-License-Identifier: MIT */
/* How fast a counter grows, second by second, over the last minute. */
#ifndef OB_CLI_OUT_RATE_H
#define OB_CLI_OUT_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OB_RATE_SECONDS = 60 };

/* All zero is one that has seen nothing. */
struct ob_rate {
	bool started;
	int64_t start_us;                /* of the second that is being filled */
	uint64_t total;                  /* the counter as seen last */
	double current;                  /* of the second that is being filled */
	double seconds[OB_RATE_SECONDS]; /* whole ones, oldest first */
	size_t count;
};

/* The counter stands at `total` now. After a gap what came meanwhile is spread over it. */
void ob_rate_note(struct ob_rate *rate, uint64_t total, int64_t now_us);
/* Per second, over the last three whole seconds; before there is one, what came so far. */
double ob_rate_now(const struct ob_rate *rate);
/* Per second, over the last minute, or since the start. */
double ob_rate_minute(const struct ob_rate *rate);

#endif
