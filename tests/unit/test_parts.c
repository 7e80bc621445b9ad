/* SPDX-License-Identifier: MIT */
/* Which partitions a log should have, and what may be named in SQL. */
#include "store/parts.h"
#include "suite.h"

static void expect_ahead(int64_t last, int64_t top, bool apart, int64_t low, int64_t high)
{
	struct ob_part got = ob_parts_ahead(100000, last, top, apart);

	ck_assert_int_eq(got.low, low);
	ck_assert_int_eq(got.high, high);
}

OB_TEST(two_that_are_not_begun_are_enough)
{
	expect_ahead(0, 400000, false, 0, 0);
	expect_ahead(199999, 400000, false, 0, 0);
	expect_ahead(200000, 400000, false, 400000, 600000);
	expect_ahead(399999, 400000, true, 400000, 700000);
}
OB_TEST_END

OB_TEST(a_log_that_has_outrun_them_begins_apart_where_it_can)
{
	expect_ahead(400000, 400000, false, 400000, 800000);
	expect_ahead(400000, 400000, true, 600000, 1000000);
	expect_ahead(0, 0, false, 0, 400000);
	/* Small ones, and many who draw numbers at this moment. */
	struct ob_part got = ob_parts_ahead(10, 45, 40, true);
	ck_assert_int_gt(got.low, 45 + 9999);
	ck_assert_int_eq(got.low % 10, 0);
	ck_assert_int_eq(got.high, got.low + 40);
}
OB_TEST_END

OB_TEST(numbers_at_the_end_of_their_range_make_nothing)
{
	expect_ahead(INT64_MAX, 400000, true, 0, 0);
	expect_ahead(5, INT64_MAX, true, 0, 0);
	ck_assert_int_eq(ob_parts_ahead(0, 5, 5, true).high, 0);
	ck_assert_int_eq(ob_parts_ahead(INT64_MAX, 5, 5, true).high, 0);
}
OB_TEST_END

OB_TEST(a_name_that_is_not_plain_is_not_valid)
{
	char longest[66] = { 0 };

	memset(longest, 'p', 65);
	ck_assert(ob_part_name_valid(OB_STR("select")));
	ck_assert(ob_part_name_valid(OB_STR("_p0")));
	ck_assert(ob_part_name_valid((struct ob_str){ longest, 64 }));
	ck_assert(!ob_part_name_valid((struct ob_str){ longest, 65 }));
	longest[63] = '`';
	ck_assert(!ob_part_name_valid((struct ob_str){ longest, 64 }));
	ck_assert(!ob_part_name_valid(OB_STR("")));
	ck_assert(!ob_part_name_valid(OB_STR("0p")));
	ck_assert(!ob_part_name_valid(OB_STR("p 0")));
	ck_assert(!ob_part_name_valid(OB_STR("p`; DROP TABLE x")));
	ck_assert(!ob_part_name_valid(OB_STR("p\xc3\xa4")));
}
OB_TEST_END

OB_TEST(a_bound_is_a_number_or_the_highest)
{
	static const char *const wrong[] = { "",
					     "+",
					     "-",
					     "1 ",
					     " 1",
					     "0x1",
					     "maxvalue",
					     "9223372036854775808",
					     "1;x",
					     "1.0",
					     "MAXVALUE ",
					     "-9223372036854775809",
					     "1e3",
					     "++1",
					     "99999999999999999999999" };
	int64_t bound;

	ck_assert(ob_part_bound(OB_STR("+10"), &bound) && bound == 10);
	ck_assert(ob_part_bound(OB_STR("9223372036854775807"), &bound) && bound == INT64_MAX);
	ck_assert(ob_part_bound(OB_STR("-9223372036854775808"), &bound) && bound == INT64_MIN);
	ck_assert(ob_part_bound(OB_STR("MAXVALUE"), &bound) && bound == INT64_MAX);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(!ob_part_bound(ob_str(wrong[i]), &bound), "%s", wrong[i]);
}
OB_TEST_END

OB_SUITE("parts", two_that_are_not_begun_are_enough,
	 a_log_that_has_outrun_them_begins_apart_where_it_can,
	 numbers_at_the_end_of_their_range_make_nothing, a_name_that_is_not_plain_is_not_valid,
	 a_bound_is_a_number_or_the_highest)
