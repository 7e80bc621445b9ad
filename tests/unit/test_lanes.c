/* SPDX-License-Identifier: MIT */
/* Lanes: one command of a key at a time, outcomes in order, nothing past a failure. */
#include "sink/lanes.h"
#include "suite.h"

#include <stdlib.h>

static struct ob_lanes lanes;
static struct ob_message messages[1024]; /* by tag */

static void begin(uint32_t window)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_lanes_init(&lanes, window, &err), 0);
}

static int add(uint64_t tag, const char *key)
{
	struct ob_delivery d = { .tag = tag, .message = &messages[tag], .key = OB_STR("given") };

	ck_assert_uint_lt(tag, sizeof(messages) / sizeof(messages[0]));
	messages[tag].key = ob_str(key);
	return ob_lanes_add(&lanes, &d);
}

static struct ob_err error_of(enum ob_err_kind kind)
{
	struct ob_err err = OB_ERR_INIT;

	(void)ob_err_set(&err, OUTBOX_ESINK, kind, "because");
	return err;
}

/* The next outcome is this one. */
static void expect(uint64_t tag, enum ob_err_kind kind)
{
	struct ob_ack ack;

	ck_assert_int_eq(ob_lanes_outcomes(&lanes, &ack, 1), 1);
	ck_assert_uint_eq(ack.tag, tag);
	ck_assert_int_eq(ack.err.kind, kind);
}

static void expect_nothing(void)
{
	struct ob_ack ack;

	ck_assert_int_eq(ob_lanes_outcomes(&lanes, &ack, 1), 0);
}

OB_TEST(a_taken_lane_is_not_ready_until_it_is_given_back)
{
	begin(10);
	(void)add(1, "a");
	(void)add(2, "a");
	struct ob_lane *lane = ob_lanes_take(&lanes);
	ck_assert_ptr_nonnull(lane);
	(void)add(3, "a");
	ck_assert_ptr_null(ob_lanes_take(&lanes));
	ob_lane_stored(&lanes, lane, 2);
	ob_lane_give_back(&lanes, lane);
	ck_assert_uint_eq(ob_lanes_waiting(&lanes), 1);
	expect(1, OB_ERR_NONE);
	expect(2, OB_ERR_NONE);
	expect_nothing();
	lane = ob_lanes_take(&lanes);
	ck_assert_uint_eq(lane->head->delivery.tag, 3);
	ob_lanes_done(&lanes);
}
OB_TEST_END

OB_TEST(a_rejected_message_leaves_those_behind_it_in_the_lane)
{
	struct ob_err reject = error_of(OB_ERR_REJECT);

	begin(10);
	for (uint64_t i = 1; i <= 4; i++)
		(void)add(i, "a");
	struct ob_lane *lane = ob_lanes_take(&lanes);
	ob_lane_stored(&lanes, lane, 1);
	ob_lane_rejected(&lanes, lane, &reject);
	ob_lane_give_back(&lanes, lane);
	ck_assert_int_eq(add(5, "a"), 0);
	lane = ob_lanes_take(&lanes);
	ob_lane_stored(&lanes, lane, 3);
	ob_lane_give_back(&lanes, lane);
	expect(1, OB_ERR_NONE);
	expect(2, OB_ERR_REJECT);
	expect(3, OB_ERR_NONE);
	expect(4, OB_ERR_NONE);
	expect(5, OB_ERR_NONE);
	ob_lanes_done(&lanes);
}
OB_TEST_END

OB_TEST(a_failure_fails_the_whole_lane_and_closes_it_until_that_is_known)
{
	struct ob_err down = error_of(OB_ERR_DOWN);

	begin(10);
	(void)add(1, "a");
	(void)add(2, "b");
	struct ob_lane *lane = ob_lanes_take(&lanes);
	(void)add(3, "a");
	ob_lane_failed(&lanes, lane, &down);
	ob_lane_give_back(&lanes, lane);
	ck_assert_int_eq(add(4, "a"), OB_SINK_FULL);
	ck_assert_int_eq(add(4, "b"), 0);
	expect(1, OB_ERR_DOWN);
	ck_assert_int_eq(add(5, "a"), OB_SINK_FULL);
	expect(3, OB_ERR_DOWN);
	ck_assert_int_eq(add(5, "a"), 0);
	ck_assert_uint_eq(ob_lanes_waiting(&lanes), 3);
	ob_lanes_done(&lanes);
}
OB_TEST_END

OB_TEST(messages_without_a_key_have_lanes_of_their_own)
{
	begin(3);
	ck_assert_int_eq(add(1, NULL), 0);
	ck_assert_int_eq(add(2, NULL), 0);
	ck_assert_int_eq(add(3, NULL), 0);
	ck_assert_int_eq(add(4, NULL), OB_SINK_FULL);
	for (uint64_t i = 1; i <= 3; i++) {
		struct ob_lane *lane = ob_lanes_take(&lanes);
		ck_assert_uint_eq(lane->head->delivery.tag, i);
		if (i == 2) {
			ob_lanes_untake(&lanes, lane);
			ck_assert_ptr_eq(ob_lanes_take(&lanes), lane);
		}
	}
	ob_lanes_clear(&lanes);
	expect_nothing();
	ck_assert_int_eq(add(5, NULL), 0);
	ob_lanes_done(&lanes);
}
OB_TEST_END

/* A key's text lives only as long as its message is unconfirmed. */
OB_TEST(the_key_is_borrowed_from_a_message_that_is_still_out)
{
	struct ob_err down = error_of(OB_ERR_DOWN);
	char *keys[4];

	begin(10);
	for (uint64_t i = 0; i < 4; i++) {
		keys[i] = strdup("key");
		ck_assert_int_eq(add(i, keys[i]), 0);
	}
	struct ob_lane *lane = ob_lanes_take(&lanes);
	ob_lane_stored(&lanes, lane, 1);
	ob_lane_give_back(&lanes, lane);
	expect(0, OB_ERR_NONE);
	free(keys[0]);
	ck_assert_int_eq(add(4, "key"), 0);
	lane = ob_lanes_take(&lanes);
	ob_lane_stored(&lanes, lane, 1);
	ob_lane_failed(&lanes, lane, &down);
	ob_lane_give_back(&lanes, lane);
	expect(1, OB_ERR_NONE);
	free(keys[1]);
	expect(2, OB_ERR_DOWN);
	free(keys[2]);
	ck_assert_int_eq(add(5, "key"), OB_SINK_FULL);
	expect(3, OB_ERR_DOWN);
	free(keys[3]);
	expect(4, OB_ERR_DOWN);
	ck_assert_int_eq(add(5, "key"), 0);
	ob_lanes_done(&lanes);
}
OB_TEST_END

OB_TEST(everything_that_is_ready_can_fail_at_once)
{
	struct ob_err down = error_of(OB_ERR_DOWN);

	begin(10);
	(void)add(1, "a");
	(void)add(2, NULL);
	(void)add(3, "a");
	ob_lanes_fail_ready(&lanes, &down);
	expect(1, OB_ERR_DOWN);
	expect(3, OB_ERR_DOWN);
	expect(2, OB_ERR_DOWN);
	expect_nothing();
	ck_assert_uint_eq(lanes.out, 0);
	ob_lanes_done(&lanes);
}
OB_TEST_END

OB_SUITE("lanes", a_taken_lane_is_not_ready_until_it_is_given_back,
	 a_rejected_message_leaves_those_behind_it_in_the_lane,
	 a_failure_fails_the_whole_lane_and_closes_it_until_that_is_known,
	 messages_without_a_key_have_lanes_of_their_own,
	 the_key_is_borrowed_from_a_message_that_is_still_out,
	 everything_that_is_ready_can_fail_at_once)
