/* SPDX-License-Identifier: MIT */
/* Receivers of the torture: where messages go, and what trouble they make. */
#ifndef OB_TESTS_CRASH_TORTURE_H
#define OB_TESTS_CRASH_TORTURE_H

#include "base/rng.h"
#include "rig.h"

enum { TORTURE_SINK = 512 };

struct torture_receiver {
	/* Start it; `rejects`: it may refuse any message for good. The options of its sink, and
	 * more ones of the relay. */
	void (*start)(uint64_t seed, bool rejects, char sink[TORTURE_SINK],
		      char relay[TORTURE_SINK]);
	/* Called all the time while there may be trouble. NULL: it makes its own. */
	void (*vex)(struct ob_rng *rng, int64_t now_ms);
	/* From now on it behaves. */
	void (*calm)(const struct rig *rig);
	/* Write what it has to the rig's events, each line with the time it was `received`. NULL:
	 * it has. */
	void (*collect)(const struct rig *rig);
	/* How often it hung up, and how many messages may have come again because of that. */
	uint64_t (*hung_up)(const struct rig *rig);
	uint64_t repeats_each;
	void (*stop)(void);
};

extern const struct torture_receiver torture_exec, torture_redis;

#endif
