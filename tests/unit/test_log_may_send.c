/* SPDX-License-Identifier: MIT */
/* Each reason why a message waits, alone and before those that are asked later. */
#include "log/may_send.h"
#include "suite.h"

#define WHY(...) ob_may_send(&(struct ob_send_facts){ __VA_ARGS__ })

/* Whatever a worker can know against it. */
#define A_WORKER_THAT_CANNOT \
	.stopping = true, .store_failed = true, .store_waits = true, .cut_off = true, \
	.sink_full = true, .sink_down = true, .key_held = true, .suspect_under_way = true

OB_TEST(nothing_known_is_no_obstacle)
{
	ck_assert_int_eq(WHY(0), OB_MAY_SEND);
}
OB_TEST_END

OB_TEST(the_state_of_a_message_is_asked_first)
{
	ck_assert_int_eq(WHY(.no_reader = true, .view = OB_VIEW_DEAD), OB_WHY_NO_READER);
	ck_assert_int_eq(WHY(.filtered = true, .view = OB_VIEW_DEAD), OB_WHY_FILTERED);
	ck_assert_int_eq(WHY(.view = OB_VIEW_PUBLISHED, A_WORKER_THAT_CANNOT), OB_WHY_PUBLISHED);
	ck_assert_int_eq(WHY(.view = OB_VIEW_DISCARDED, .no_worker = true), OB_WHY_DISCARDED);
	ck_assert_int_eq(WHY(.view = OB_VIEW_DELAYED, .no_worker = true), OB_WHY_DELAYED);
	ck_assert_int_eq(WHY(.view = OB_VIEW_DEAD, .no_worker = true), OB_WHY_DEAD);
	ck_assert_int_eq(WHY(.view = OB_VIEW_DEAD, .dead_holds = true), OB_WHY_DEAD_HOLD);
	ck_assert_int_eq(WHY(.view = OB_VIEW_PARKED, .no_worker = true), OB_WHY_HELD);
	ck_assert_int_eq(WHY(.view = OB_VIEW_PARKED, .no_holder = true), OB_WHY_PARKED);
}
OB_TEST_END

OB_TEST(a_failed_message_goes_when_its_attempt_is_due)
{
	ck_assert_int_eq(WHY(.view = OB_VIEW_FAILED, .waits_for_retry = true), OB_WHY_RETRY_WAITS);
	ck_assert_int_eq(WHY(.view = OB_VIEW_FAILED), OB_MAY_SEND);
	/* What is said of a failed one says nothing of others. */
	ck_assert_int_eq(WHY(.waits_for_retry = true, .dead_holds = true, .no_holder = true),
			 OB_MAY_SEND);
}
OB_TEST_END

OB_TEST(somebody_must_hold_its_partition)
{
	ck_assert_int_eq(WHY(.no_worker = true, .no_lease = true), OB_WHY_NO_WORKER);
	ck_assert_int_eq(WHY(.no_lease = true, A_WORKER_THAT_CANNOT), OB_WHY_NO_LEASE);
}
OB_TEST_END

OB_TEST(a_store_that_failed_is_waited_for)
{
	ck_assert_int_eq(WHY(.store_failed = true, .store_waits = true), OB_WHY_STORE_DOWN);
	ck_assert_int_eq(WHY(.store_failed = true, .has_unrecorded = true), OB_WHY_STORE_DOWN);
	/* Nothing to record: only what is sent can tell whether it is back. */
	ck_assert_int_eq(WHY(.store_failed = true), OB_MAY_SEND);
	ck_assert_int_eq(WHY(.store_waits = true, .has_unrecorded = true), OB_MAY_SEND);
}
OB_TEST_END

OB_TEST(a_worker_that_cannot_send_says_why)
{
	ck_assert_int_eq(WHY(A_WORKER_THAT_CANNOT), OB_WHY_STOPPING);
	ck_assert_int_eq(WHY(.cut_off = true, .sink_full = true), OB_WHY_CUT_OFF);
	ck_assert_int_eq(WHY(.sink_full = true, .sink_down = true), OB_WHY_SINK_FULL);
	ck_assert_int_eq(WHY(.sink_down = true, .key_held = true), OB_WHY_SINK_DOWN);
}
OB_TEST_END

OB_TEST(a_key_has_one_under_way_unless_the_sink_keeps_order)
{
	ck_assert_int_eq(WHY(.key_under_way = true), OB_WHY_KEY_BUSY);
	ck_assert_int_eq(WHY(.key_under_way = true, .keeps_order = true), OB_MAY_SEND);
	ck_assert_int_eq(WHY(.key_held = true, .keeps_order = true), OB_WHY_HELD);
}
OB_TEST_END

OB_TEST(a_suspect_goes_by_itself)
{
	ck_assert_int_eq(WHY(.suspect_under_way = true, .company = UINT32_MAX), OB_WHY_SUSPECT);
	ck_assert_int_eq(WHY(.under_way = 1, .company = 0), OB_WHY_SUSPECT);
	ck_assert_int_eq(WHY(.under_way = 0, .company = 0), OB_MAY_SEND);
	ck_assert_int_eq(WHY(.under_way = 3, .company = 3), OB_MAY_SEND);
}
OB_TEST_END

OB_TEST(what_could_not_be_settled_in_time_is_not_sent)
{
	ck_assert_int_eq(WHY(.handover = true), OB_WHY_HANDOVER);
	ck_assert_int_eq(WHY(.has_deadline = true, .now_us = 9, .send_until_us = 10), OB_MAY_SEND);
	ck_assert_int_eq(WHY(.has_deadline = true, .now_us = 10, .send_until_us = 10),
			 OB_WHY_LEASE_ENDS);
	ck_assert_int_eq(WHY(.now_us = 11, .send_until_us = 10), OB_MAY_SEND);
}
OB_TEST_END

OB_TEST(every_reason_has_a_word_and_a_text)
{
	for (int i = 0; i < OB_WHY_COUNT; i++) {
		const char *word = ob_why_name((enum ob_why_reason)i);

		ck_assert_int_eq(ob_why_parse(word), i);
		ck_assert_int_gt((int)strlen(ob_why_help((enum ob_why_reason)i)), 0);
	}
	ck_assert_int_eq(ob_why_parse(""), -1);
}
OB_TEST_END

OB_SUITE("log_may_send", nothing_known_is_no_obstacle, the_state_of_a_message_is_asked_first,
	 a_failed_message_goes_when_its_attempt_is_due, somebody_must_hold_its_partition,
	 a_store_that_failed_is_waited_for, a_worker_that_cannot_send_says_why,
	 a_key_has_one_under_way_unless_the_sink_keeps_order, a_suspect_goes_by_itself,
	 what_could_not_be_settled_in_time_is_not_sent, every_reason_has_a_word_and_a_text)
