/* SPDX-License-Identifier: MIT */
/* Waiting for a lock without a queue. */
#include "base/clock.h"
#include "base/lockwait.h"
#include "suite.h"

#include <stdbool.h>
#include <time.h>

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

static void spend_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

OB_TEST(it_asks_until_the_time_is_over_and_not_longer)
{
	struct ob_lock_wait wait = { .timeout_ms = 60 };
	int64_t start = now_us();
	int asked = 0;

	while (ob_lock_wait_again(&wait, asked))
		asked++;
	ck_assert_int_ge(now_us() - start, 60000);
	ck_assert_int_gt(asked, 1);
	ck_assert_int_eq(ob_lock_wait_again(&wait, asked), 0);
	/* another wait has its own time */
	ck_assert_int_eq(ob_lock_wait_again(&wait, 0), 1);
}
OB_TEST_END

OB_TEST(no_time_means_not_at_all)
{
	struct ob_lock_wait wait = { .timeout_ms = 0 };

	ck_assert_int_eq(ob_lock_wait_again(&wait, 0), 0);
}
OB_TEST_END

OB_TEST(who_held_it_for_long_rests_before_it_asks_again)
{
	struct ob_lock_wait wait = { .timeout_ms = 1000 };

	ob_lock_wait_before(&wait);
	ob_lock_wait_locked(&wait);
	spend_ms(40);
	ob_lock_wait_unlocked(&wait);
	int64_t end = wait.rest_until_us;
	ck_assert_int_gt(end, wait.locked_us + 40000);
	ob_lock_wait_before(&wait);
	ck_assert_int_ge(now_us(), end);
}
OB_TEST_END

OB_TEST(a_rest_is_short_however_long_the_hold_was)
{
	struct ob_lock_wait wait = { .timeout_ms = 1000 };

	wait.locked_us = now_us() - 60000000;
	ob_lock_wait_unlocked(&wait);
	ck_assert_int_le(wait.rest_until_us, now_us() + 50000);
}
OB_TEST_END

OB_TEST(a_short_hold_costs_no_rest)
{
	struct ob_lock_wait wait = { .timeout_ms = 1000 };

	wait.locked_us = now_us() + 1000000; /* so that a slow machine makes no difference */
	ob_lock_wait_unlocked(&wait);
	ck_assert_int_eq(wait.rest_until_us, 0);
}
OB_TEST_END

OB_SUITE("lockwait", it_asks_until_the_time_is_over_and_not_longer, no_time_means_not_at_all,
	 who_held_it_for_long_rests_before_it_asks_again, a_rest_is_short_however_long_the_hold_was,
	 a_short_hold_costs_no_rest)
