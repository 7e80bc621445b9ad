/* SPDX-License-Identifier: MIT */
/* Reading what arrives at a broker, as it arrives. */
#ifndef OB_BENCH_FOLLOW_H
#define OB_BENCH_FOLLOW_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_FOLLOW_MAX = 1000 };

struct bench_follow_ops {
	/* From what was there first; `address` as the bare loop has it. `field`: of a message,
	 * which is a number: "aggregate_id", "event_type". */
	void *(*open)(const char *address, const char *field);
	/* Wait up to timeout_ms for messages; their numbers. */
	size_t (*read)(void *follower, uint64_t numbers[BENCH_FOLLOW_MAX], int timeout_ms);
	void (*close)(void *follower);
};

extern const struct bench_follow_ops bench_follow_redis;
extern const struct bench_follow_ops bench_follow_file;

#endif
