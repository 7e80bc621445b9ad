/* SPDX-License-Identifier: MIT */
/*
 * A small relay for tests of sinks: sends a few messages of a few keys, in order within
 * each key, and sends again what failed, until all are confirmed. Failures end the test.
 */
#ifndef OB_TESTS_SINK_RELAY_H
#define OB_TESTS_SINK_RELAY_H

#include "sink_harness.h"

enum { SINK_RELAY_COUNT = 24, SINK_RELAY_KEYS = 3 };

struct sink_relay {
	struct ob_sink *sink; /* the caller's; not opened */
	int wait_ms;
	struct parcel parcels[SINK_RELAY_COUNT];
	uint8_t state[SINK_RELAY_COUNT];
	bool usable;
	size_t done;
};

/* Prepare the messages; the caller then sets the sink. */
void sink_relay_init(struct sink_relay *relay, const struct sink_env *env);
/* Until every message is confirmed. */
void sink_relay_run(struct sink_relay *relay);
/* Every message is stored, and the first copy of each behind the first of its predecessor. */
void sink_relay_check(struct sink_env *env);

#endif
