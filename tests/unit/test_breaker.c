/* SPDX-License-Identifier: MIT */
/* The circuit breaker's states and its sense for outages. */
#include "relay/breaker.h"
#include "suite.h"

static struct ob_breaker breaker;

/* Open until the wait is over; returns how long that was. */
static int64_t wait_over(int64_t *now)
{
	int64_t wait = breaker.open_until_us - *now;

	ck_assert_uint_eq(ob_breaker_allows(&breaker, breaker.open_until_us - 1), 0);
	*now = breaker.open_until_us;
	ck_assert_uint_eq(ob_breaker_allows(&breaker, *now), 1);
	return wait;
}

OB_TEST(a_closed_breaker_lets_everything_pass)
{
	ob_breaker_init(&breaker);
	ck_assert_uint_eq(ob_breaker_allows(&breaker, 0), UINT32_MAX);
	ck_assert(!ob_breaker_success(&breaker));
}
OB_TEST_END

OB_TEST(a_half_open_breaker_lets_one_probe_pass)
{
	int64_t now = 1000;

	ob_breaker_init(&breaker);
	ck_assert(ob_breaker_down(&breaker, now));
	(void)wait_over(&now);
	ob_breaker_probe(&breaker);
	ck_assert_uint_eq(ob_breaker_allows(&breaker, now + 1000000), 0);
	ck_assert(ob_breaker_success(&breaker));
	ck_assert_uint_eq(ob_breaker_allows(&breaker, now), UINT32_MAX);
}
OB_TEST_END

OB_TEST(a_failing_probe_waits_longer_up_to_a_second)
{
	int64_t now = 1000, waits[6];

	ob_breaker_init(&breaker);
	ck_assert(ob_breaker_down(&breaker, now));
	for (int i = 0; i < 6; i++) {
		waits[i] = wait_over(&now);
		ob_breaker_probe(&breaker);
		ck_assert(!ob_breaker_down(&breaker, now));
	}
	ck_assert_int_eq(waits[0], 100000);
	ck_assert_int_eq(waits[1], 200000);
	ck_assert_int_eq(waits[5], 1000000);
}
OB_TEST_END

OB_TEST(many_outcomes_of_one_outage_count_once)
{
	ob_breaker_init(&breaker);
	ck_assert(ob_breaker_down(&breaker, 1000));
	for (int i = 0; i < 100; i++)
		ck_assert(!ob_breaker_down(&breaker, 1000));
	ck_assert_int_eq(breaker.open_until_us, 101000);
}
OB_TEST_END

OB_TEST(a_late_success_does_not_close_an_open_breaker)
{
	ob_breaker_init(&breaker);
	(void)ob_breaker_down(&breaker, 1000);
	ck_assert(!ob_breaker_success(&breaker));
	ck_assert_int_eq(breaker.state, OB_BREAKER_OPEN);
}
OB_TEST_END

OB_TEST(an_answer_about_the_probe_itself_means_that_the_sink_is_back)
{
	int64_t now = 1000;

	ob_breaker_init(&breaker);
	(void)ob_breaker_down(&breaker, now);
	(void)wait_over(&now);
	ob_breaker_probe(&breaker);
	ck_assert(ob_breaker_answer(&breaker, now));
	ck_assert_int_eq(breaker.state, OB_BREAKER_CLOSED);
}
OB_TEST_END

OB_TEST(a_probe_that_is_refused_while_most_keys_fail_is_one_more_of_them)
{
	int64_t now = 1000;

	ob_breaker_init(&breaker);
	ck_assert(ob_breaker_mass(&breaker, now));
	ck_assert(!ob_breaker_mass(&breaker, now));
	(void)wait_over(&now);
	ob_breaker_probe(&breaker);
	ck_assert(!ob_breaker_answer(&breaker, now));
	ck_assert_int_eq(breaker.state, OB_BREAKER_OPEN);
	ck_assert(breaker.alarm);
	(void)wait_over(&now);
	ob_breaker_probe(&breaker);
	ck_assert(ob_breaker_success(&breaker));
	ck_assert(!breaker.alarm);
}
OB_TEST_END

OB_TEST(a_probe_that_was_taken_back_makes_room_for_another)
{
	int64_t now = 1000;

	ob_breaker_init(&breaker);
	(void)ob_breaker_down(&breaker, now);
	(void)wait_over(&now);
	ob_breaker_probe(&breaker);
	ob_breaker_unprobe(&breaker);
	ck_assert_uint_eq(ob_breaker_allows(&breaker, now), 1);
}
OB_TEST_END

OB_TEST(ten_failing_keys_that_are_most_of_them_are_an_outage)
{
	ob_breaker_init(&breaker);
	for (uint64_t key = 1; key <= 9; key++)
		ob_breaker_note(&breaker, key, true, 1000);
	ck_assert(!ob_breaker_is_mass(&breaker, 1000));
	ob_breaker_note(&breaker, 10, true, 1000);
	ck_assert(ob_breaker_is_mass(&breaker, 1000));
	for (uint64_t key = 11; key <= 20; key++)
		ob_breaker_note(&breaker, key, false, 1000);
	ck_assert(!ob_breaker_is_mass(&breaker, 1000));
}
OB_TEST_END

OB_TEST(one_key_that_fails_often_is_no_outage)
{
	ob_breaker_init(&breaker);
	for (int i = 0; i < 100; i++)
		ob_breaker_note(&breaker, 7, true, 1000);
	ck_assert(!ob_breaker_is_mass(&breaker, 1000));
}
OB_TEST_END

OB_TEST(a_key_counts_with_its_newest_outcome_and_old_ones_are_forgotten)
{
	ob_breaker_init(&breaker);
	for (uint64_t key = 1; key <= 12; key++)
		ob_breaker_note(&breaker, key, true, 1000);
	ck_assert(!ob_breaker_is_mass(&breaker, 1000 + 61 * INT64_C(1000000)));
	for (uint64_t key = 1; key <= 8; key++)
		ob_breaker_note(&breaker, key, false, 2000);
	ck_assert(!ob_breaker_is_mass(&breaker, 2000));
}
OB_TEST_END

OB_SUITE("breaker", a_closed_breaker_lets_everything_pass, a_half_open_breaker_lets_one_probe_pass,
	 a_failing_probe_waits_longer_up_to_a_second, many_outcomes_of_one_outage_count_once,
	 a_late_success_does_not_close_an_open_breaker,
	 an_answer_about_the_probe_itself_means_that_the_sink_is_back,
	 a_probe_that_is_refused_while_most_keys_fail_is_one_more_of_them,
	 a_probe_that_was_taken_back_makes_room_for_another,
	 ten_failing_keys_that_are_most_of_them_are_an_outage,
	 one_key_that_fails_often_is_no_outage,
	 a_key_counts_with_its_newest_outcome_and_old_ones_are_forgotten)
