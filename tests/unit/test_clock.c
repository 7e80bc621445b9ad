/* SPDX-License-Identifier: MIT */
/* The clocks: one that the machine moves, one that tests move. */
#include "base/clock.h"
#include "suite.h"

OB_TEST(a_virtual_clock_moves_only_when_told)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000000000);
	int64_t boot = ob_clock_boot_us(&clock.clock);

	ck_assert_int_eq(ob_clock_real_us(&clock.clock), 1700000000000000);
	ck_assert_int_eq(ob_clock_boot_us(&clock.clock), boot);
	ob_clock_advance_us(&clock, 1500);
	ck_assert_int_eq(ob_clock_real_us(&clock.clock), 1700000000001500);
	ck_assert_int_eq(ob_clock_boot_us(&clock.clock), boot + 1500);
}
OB_TEST_END

OB_TEST(a_step_of_the_wall_clock_leaves_durations_alone)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1700000000000000);
	int64_t boot = ob_clock_boot_us(&clock.clock);

	clock.real_us -= 3600000000;
	ck_assert_int_eq(ob_clock_real_us(&clock.clock), 1699996400000000);
	ck_assert_int_eq(ob_clock_boot_us(&clock.clock), boot);
}
OB_TEST_END

OB_TEST(the_systems_clocks_are_in_microseconds_and_go_forward)
{
	int64_t last = ob_clock_boot_us(&ob_clock_system);

	for (int i = 0; i < 1000; i++) {
		int64_t now = ob_clock_boot_us(&ob_clock_system);

		ck_assert_int_ge(now, last);
		last = now;
	}
	/* Between 2020 and 2200. */
	ck_assert_int_gt(ob_clock_real_us(&ob_clock_system), INT64_C(1577836800) * 1000000);
	ck_assert_int_lt(ob_clock_real_us(&ob_clock_system), INT64_C(7258118400) * 1000000);
}
OB_TEST_END

OB_SUITE("clock", a_virtual_clock_moves_only_when_told,
	 a_step_of_the_wall_clock_leaves_durations_alone,
	 the_systems_clocks_are_in_microseconds_and_go_forward)
