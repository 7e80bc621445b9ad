/* SPDX-License-Identifier: MIT */
/*
 * Every sink behind the fault sink, with the n-th call failing for n = 1, 2, ...
 * until none fails. A small relay sends, and sends again what failed: in the
 * end everything confirmed is stored, and first copies are in order.
 */
#include "sink/fault.h"
#include "sink_harness.h"
#include "suite.h"

enum { COUNT = 24, KEYS = 3, ROUNDS = 2000 };

enum state { TODO, FLYING, DONE };

struct relay {
	struct ob_sink *sink;
	int wait_ms;
	struct parcel parcels[COUNT];
	enum state state[COUNT];
	bool usable;
	size_t done;
};

/* In order within the key, and never past a failure that is not settled. */
static bool may_send(const struct relay *relay, size_t at)
{
	bool ordered = relay->sink->ops->caps & OB_SINK_ORDERED;

	for (size_t i = at % KEYS; i < COUNT; i += KEYS) {
		if (i < at && (relay->state[i] == TODO || (relay->state[i] == FLYING && !ordered)))
			return false;
		if (i > at && relay->state[i] == FLYING)
			return false;
	}
	return relay->state[at] == TODO;
}

static void send_round(struct relay *relay)
{
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < COUNT && relay->usable; i++) {
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

static void poll_round(struct relay *relay)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[5];
	int n = ob_sink_poll(relay->sink, relay->wait_ms, acks, 5, &err);

	ck_assert_msg(n >= 0, "%s", err.msg);
	for (int i = 0; i < n; i++) {
		size_t at = acks[i].tag;

		ck_assert_uint_lt(at, COUNT);
		ck_assert_int_eq(relay->state[at], FLYING);
		relay->state[at] = acks[i].err.kind == OB_ERR_NONE ? DONE : TODO;
		relay->done += relay->state[at] == DONE;
		relay->usable &= relay->state[at] == DONE;
	}
}

static void run(struct relay *relay)
{
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; i < ROUNDS && relay->done < COUNT; i++) {
		if (!relay->usable)
			relay->usable = ob_sink_open(relay->sink, &err) == 0;
		if (relay->usable)
			send_round(relay);
		poll_round(relay);
	}
	ck_assert_msg(relay->done == COUNT, "only %zu of %d arrived", relay->done, COUNT);
}

/* Every message is stored, and the first copy of each behind the first of its predecessor. */
static void check_stored(struct sink_env *env)
{
	struct stored *stored;
	size_t count = sink_read(env, &stored);
	uint64_t next[KEYS] = { 0, 1, 2 };

	for (size_t i = 0; i < count; i++) {
		uint64_t key = stored[i].n % KEYS;

		ck_assert_uint_le(stored[i].n, next[key]);
		if (stored[i].n == next[key])
			next[key] += KEYS;
	}
	for (size_t key = 0; key < KEYS; key++)
		ck_assert_uint_ge(next[key], COUNT);
}

static bool fires(uint32_t at, bool after, enum ob_err_kind kind)
{
	static const char *const keys[KEYS] = { "a", "b", "c" };
	struct ob_sink_fault fault = { .at = at, .after = after, .kind = kind };
	struct relay relay = { .usable = false };
	struct ob_err err = OB_ERR_INIT;
	struct sink_env env;

	sink_env_init(&env);
	env.plan.window = 9;
	relay.wait_ms = env.kind->wait_ms;
	ck_assert_int_eq(ob_sink_fault_take(env.kind->make(&env), &fault, &relay.sink, &err), 0);
	for (size_t i = 0; i < COUNT; i++)
		parcel_init(&relay.parcels[i], i, ob_str(keys[i % KEYS]), OB_STR("{}"));
	run(&relay);
	ob_sink_free(relay.sink);
	check_stored(&env);
	sink_env_done(&env);
	return fault.fired;
}

static void sweep(bool after, enum ob_err_kind kind)
{
	uint32_t n = 1;

	while (fires(n, after, kind))
		n++;
	ck_assert_uint_gt(n, COUNT);
}

OB_TEST(nothing_is_lost_when_any_call_fails_before_it_happens)
{
	sweep(false, OB_ERR_DOWN);
}
OB_TEST_END

OB_TEST(nothing_is_lost_when_any_result_is_lost_after_it_happened)
{
	sweep(true, OB_ERR_DOWN);
}
OB_TEST_END

OB_TEST(nothing_is_lost_when_any_message_is_refused_once)
{
	sweep(false, OB_ERR_RETRY);
}
OB_TEST_END

OB_SUITE("sink faults", nothing_is_lost_when_any_call_fails_before_it_happens,
	 nothing_is_lost_when_any_result_is_lost_after_it_happened,
	 nothing_is_lost_when_any_message_is_refused_once)
