/* SPDX-License-Identifier: MIT */
/*
 * Every sink that talks to a server, through a network that misbehaves: cut after each so many
 * bytes in either direction, reset, mute, late, byte by byte. In the end everything confirmed is
 * stored, and first copies are in order.
 */
#include "chaos_proxy.h"
#include "sink_relay.h"
#include "suite.h"

enum { POINTS = 24 };

/* Deliver all through the proxy; returns how often the plan cut. */
static size_t deliver(struct sink_env *env, const struct chaos_plan *plan)
{
	struct chaos_proxy *proxy = chaos_proxy_new(env->kind->port(env));
	struct sink_relay relay;

	if (env->kind->front)
		env->kind->front(env, proxy);
	chaos_proxy_plan(proxy, plan);
	env->port = chaos_proxy_port(proxy);
	sink_relay_init(&relay, env);
	relay.sink = env->kind->make(env);
	sink_relay_run(&relay);
	ob_sink_free(relay.sink);
	sink_relay_check(env);
	ck_assert_uint_gt(chaos_proxy_connections(proxy), 0);
	size_t cuts = chaos_proxy_cuts(proxy);
	chaos_proxy_free(proxy);
	return cuts;
}

static size_t deliver_alone(const struct chaos_plan *plan)
{
	struct sink_env env;

	sink_env_init(&env);
	env.timeout = "2s"; /* of a server that is well, on a busy machine */
	size_t cuts = deliver(&env, plan);
	sink_env_done(&env);
	return cuts;
}

/*
 * Cut once, at points further and further on, until no cut comes: all was said by then. The
 * steps grow, so that the first bytes of a connection, its handshake, are cut finely.
 */
static void sweep(enum chaos_way way, enum chaos_end end)
{
	size_t after = 1, fired = 0;

	while (fired < POINTS) {
		struct chaos_plan plan = { .end = end, .times = 1 };

		plan.cut[way].after = after;
		if (deliver_alone(&plan) == 0)
			break;
		fired++;
		after += 1 + after / 3;
	}
	ck_assert_uint_gt(fired, 8);
}

OB_TEST(nothing_is_lost_when_the_way_there_is_cut)
{
	sweep(CHAOS_TO_SERVER, CHAOS_CLOSE);
}
OB_TEST_END

OB_TEST(nothing_is_lost_when_answers_are_cut)
{
	sweep(CHAOS_TO_CLIENT, CHAOS_CLOSE);
}
OB_TEST_END

OB_TEST(nothing_is_lost_by_a_reset)
{
	sweep(CHAOS_TO_CLIENT, CHAOS_RESET);
}
OB_TEST_END

OB_TEST(nothing_is_lost_when_the_network_goes_mute)
{
	static const size_t points[] = { 1, 20, 150 };

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct chaos_plan plan = { .end = CHAOS_MUTE, .times = 1 };

		plan.cut[CHAOS_TO_CLIENT].after = points[i];
		ck_assert_uint_eq(deliver_alone(&plan), 1);
	}
}
OB_TEST_END

OB_TEST(bytes_may_come_one_by_one)
{
	ck_assert_uint_eq(deliver_alone(&(struct chaos_plan){ .slice = 1 }), 0);
}
OB_TEST_END

OB_TEST(bytes_may_come_late)
{
	ck_assert_uint_eq(deliver_alone(&(struct chaos_plan){ .delay_ms = 20 }), 0);
}
OB_TEST_END

SINK_SUITE("sink chaos", nothing_is_lost_when_the_way_there_is_cut,
	   nothing_is_lost_when_answers_are_cut, nothing_is_lost_by_a_reset,
	   nothing_is_lost_when_the_network_goes_mute, bytes_may_come_one_by_one,
	   bytes_may_come_late)
