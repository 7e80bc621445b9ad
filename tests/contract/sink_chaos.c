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

/* One message passes, and over the next one's body the connection is cut. */
static void cut_over_a_body(enum chaos_end end)
{
	struct chaos_plan plan = { .end = end, .cut[CHAOS_TO_SERVER].match = "poison" };
	struct tally tally = { 0 };
	struct sink_env env;
	struct parcel parcel;

	sink_env_init(&env);
	env.timeout = "2s";
	struct chaos_proxy *proxy = chaos_proxy_new(env.kind->port(&env));
	if (env.kind->front)
		env.kind->front(&env, proxy);
	env.port = chaos_proxy_port(proxy);
	struct ob_sink *sink = sink_make(&env);
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("\"sound\""));
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 1);
	ck_assert_uint_eq(tally.confirmed, 1);
	chaos_proxy_plan(proxy, &plan);
	parcel_init(&parcel, 2, OB_STR("k"), OB_STR("\"poison\""));
	sink_push(sink, &parcel.delivery, &tally);
	sink_drain(sink, &tally, 2);
	ck_assert_uint_eq(tally.failed, 1);
	ck_assert_msg(tally.last.hung_up == (end != CHAOS_MUTE && !env.kind->reconnects), "%s",
		      tally.last.msg);
	ck_assert_msg(!tally.last.hung_up || tally.last.kind == OB_ERR_DOWN, "%s", tally.last.msg);
	ob_sink_free(sink);
	chaos_proxy_free(proxy);
	sink_env_done(&env);
}

OB_TEST(a_peer_that_hangs_up_over_a_message_is_told_from_one_that_is_silent)
{
	cut_over_a_body(CHAOS_CLOSE);
	cut_over_a_body(CHAOS_RESET);
	cut_over_a_body(CHAOS_MUTE);
}
OB_TEST_END

SINK_SUITE("sink chaos", nothing_is_lost_when_the_way_there_is_cut,
	   nothing_is_lost_when_answers_are_cut, nothing_is_lost_by_a_reset,
	   nothing_is_lost_when_the_network_goes_mute, bytes_may_come_one_by_one,
	   bytes_may_come_late, a_peer_that_hangs_up_over_a_message_is_told_from_one_that_is_silent)
