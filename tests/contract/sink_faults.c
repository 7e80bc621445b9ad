/* SPDX-License-Identifier: MIT */
/*
 * Every sink behind the fault sink, with the n-th call failing for n = 1, 2, ...
 * until none fails. A small relay sends, and sends again what failed: in the
 * end everything confirmed is stored, and first copies are in order.
 */
#include "doubles/fault_sink.h"
#include "sink_relay.h"
#include "suite.h"

static bool fires(uint32_t at, bool after, enum ob_err_kind kind)
{
	struct ob_sink_fault fault = { .at = at, .after = after, .kind = kind };
	struct sink_relay relay;
	struct ob_err err = OB_ERR_INIT;
	struct sink_env env;

	sink_env_init(&env);
	env.plan.window = 9;
	sink_relay_init(&relay, &env);
	ck_assert_int_eq(ob_sink_fault_take(env.kind->make(&env), &fault, &relay.sink, &err), 0);
	sink_relay_run(&relay);
	ob_sink_free(relay.sink);
	sink_relay_check(&env);
	sink_env_done(&env);
	return fault.fired;
}

static void sweep(bool after, enum ob_err_kind kind)
{
	uint32_t n = 1;

	while (fires(n, after, kind))
		n++;
	ck_assert_uint_gt(n, SINK_RELAY_COUNT);
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

SINK_SUITE("sink faults", nothing_is_lost_when_any_call_fails_before_it_happens,
	   nothing_is_lost_when_any_result_is_lost_after_it_happened,
	   nothing_is_lost_when_any_message_is_refused_once)
