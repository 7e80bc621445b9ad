/* SPDX-License-Identifier: MIT */
/* The small relay of the sinks' tests. */
#include "sink_relay.h"

#include <check.h>

enum { PATIENCE_S = 40 };
enum { TODO, FLYING, DONE };

/* In order within the key, and never past a failure that is not settled. */
static bool may_send(const struct sink_relay *relay, size_t at)
{
	bool ordered = relay->sink->ops->caps & OB_SINK_ORDERED;

	for (size_t i = at % SINK_RELAY_KEYS; i < SINK_RELAY_COUNT; i += SINK_RELAY_KEYS) {
		if (i < at && (relay->state[i] == TODO || (relay->state[i] == FLYING && !ordered)))
			return false;
		if (i > at && relay->state[i] == FLYING)
			return false;
	}
	return relay->state[at] == TODO;
}

static void send_round(struct sink_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < SINK_RELAY_COUNT && relay->usable; i++) {
		if (!may_send(relay, i))
			continue;
		int r = ob_sink_send(relay->sink, &relay->parcels[i].delivery, &err);
		if (r == 0)
			relay->state[i] = FLYING;
		else if (r == OB_SINK_FULL)
			return;
		else
			relay->usable = false;
	}
}

static void poll_round(struct sink_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[5];
	int n = ob_sink_poll(relay->sink, relay->wait_ms, acks, 5, &err);

	ck_assert_msg(n >= 0, "%s", err.msg);
	for (int i = 0; i < n; i++) {
		size_t at = acks[i].tag;

		ck_assert_uint_lt(at, SINK_RELAY_COUNT);
		ck_assert_int_eq(relay->state[at], FLYING);
		relay->state[at] = acks[i].err.kind == OB_ERR_NONE ? DONE : TODO;
		relay->done += relay->state[at] == DONE;
		relay->usable &= relay->state[at] == DONE;
	}
}

void sink_relay_init(struct sink_relay *relay, const struct sink_env *env)
{
	static const char *const keys[SINK_RELAY_KEYS] = { "a", "b", "c" };

	*relay = (struct sink_relay){ .wait_ms = env->kind->wait_ms };
	for (size_t i = 0; i < SINK_RELAY_COUNT; i++)
		parcel_init(&relay->parcels[i], i, ob_str(keys[i % SINK_RELAY_KEYS]), OB_STR("{}"));
}

void sink_relay_run(struct sink_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t end_us = ob_clock_boot_us(&ob_clock_system) + PATIENCE_S * INT64_C(1000000);

	while (relay->done < SINK_RELAY_COUNT && ob_clock_boot_us(&ob_clock_system) < end_us) {
		if (!relay->usable)
			relay->usable = ob_sink_open(relay->sink, &err) == 0;
		if (relay->usable)
			send_round(relay);
		poll_round(relay);
	}
	ck_assert_msg(relay->done == SINK_RELAY_COUNT, "only %zu of %d arrived: %s", relay->done,
		      SINK_RELAY_COUNT, err.msg);
}

void sink_relay_check(struct sink_env *env)
{
	struct stored *stored;
	size_t count = sink_read(env, &stored);
	uint64_t next[SINK_RELAY_KEYS] = { 0, 1, 2 };

	for (size_t i = 0; i < count; i++) {
		uint64_t key = stored[i].n % SINK_RELAY_KEYS;

		ck_assert_uint_le(stored[i].n, next[key]);
		if (stored[i].n == next[key])
			next[key] += SINK_RELAY_KEYS;
	}
	for (size_t key = 0; key < SINK_RELAY_KEYS; key++)
		ck_assert_uint_ge(next[key], SINK_RELAY_COUNT);
}
