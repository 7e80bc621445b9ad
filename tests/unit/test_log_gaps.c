/* SPDX-License-Identifier: MIT */
/* Gap lists, checked against a plain set of numbers. */
#include "base/rng.h"
#include "log/gaps.h"
#include "suite.h"

#include <stdlib.h>

static struct ob_gaps gaps;
static struct ob_buf text = OB_BUF_INIT(1 << 20);

/* From memory that ends with the text: a sanitizer sees a read beyond it. */
static bool try_parse(const char *from)
{
	size_t n = strlen(from);
	char *copy = malloc(n ? n : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, from, n);

	bool ok = ob_gaps_parse(&gaps, (struct ob_str){ copy, n });

	free(copy);
	return ok;
}

static void parse(const char *from)
{
	ck_assert_msg(try_parse(from), "%s", from);
}

static const char *format(void)
{
	ob_buf_clear(&text);
	ob_gaps_format(&gaps, &text);
	return ob_buf_str(&text);
}

OB_TEST(a_list_is_text_and_back)
{
	static const char *const texts[] = { "", "7", "7,12-15,40", "0-1",
					     "9223372036854775800-9223372036854775806" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		parse(texts[i]);
		ck_assert_str_eq(format(), texts[i]);
	}
	ck_assert(ob_gaps_parse(&gaps, OB_STR_NULL));
	ck_assert_uint_eq(gaps.count, 0);
}
OB_TEST_END

OB_TEST(what_is_not_a_list_is_refused)
{
	static const char *const texts[] = {
		",",  "7,",   "7,7", "7-8,9", "8,7", "9-8",  "x",
		"7 ", "7--9", "-7",  "7-",    "7;9", "1:2:", "9223372036854775807"
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(!try_parse(texts[i]), "%s", texts[i]);
}
OB_TEST_END

OB_TEST(numbers_are_added_at_the_end)
{
	ck_assert(ob_gaps_add(&gaps, 3, 3));
	ck_assert(ob_gaps_add(&gaps, 4, 6));
	ck_assert(ob_gaps_add(&gaps, 9, 9));
	ck_assert_str_eq(format(), "3-6,9");
}
OB_TEST_END

OB_TEST(numbers_are_taken_out_of_the_middle)
{
	parse("3-9,12,20-30");
	ck_assert(ob_gaps_remove(&gaps, 5, 6));
	ck_assert_str_eq(format(), "3-4,7-9,12,20-30");
	ck_assert(ob_gaps_remove(&gaps, 12, 12));
	ck_assert(ob_gaps_remove(&gaps, 1, 3));
	ck_assert_str_eq(format(), "4,7-9,20-30");
	ck_assert(ob_gaps_remove(&gaps, 9, 24));
	ck_assert_str_eq(format(), "4,7-8,25-30");
	ck_assert(ob_gaps_remove(&gaps, 40, 50));
	ck_assert(ob_gaps_remove(&gaps, 1, 100));
	ck_assert_str_eq(format(), "");
	ck_assert(ob_gaps_remove(&gaps, 1, 100));
}
OB_TEST_END

OB_TEST(two_lists_become_one)
{
	struct ob_gaps other = { 0 };

	ck_assert(ob_gaps_parse(&other, OB_STR("1,5-9,30")));
	parse("2-3,7-12,20");
	ck_assert(ob_gaps_merge(&gaps, &other));
	ck_assert_str_eq(format(), "1-3,5-12,20,30");
	ob_gaps_done(&other);
	ck_assert(ob_gaps_merge(&gaps, &other));
	ck_assert_str_eq(format(), "1-3,5-12,20,30");
	ob_gaps_done(&gaps);
}
OB_TEST_END

OB_TEST(a_list_has_a_limit)
{
	for (int64_t i = 0; i < OB_GAPS_MAX; i++)
		ck_assert(ob_gaps_add(&gaps, i * 3, i * 3 + 1));
	ck_assert(!ob_gaps_add(&gaps, 3 * OB_GAPS_MAX, 3 * OB_GAPS_MAX));
	ck_assert(ob_gaps_has(&gaps, 3));
	ck_assert(!ob_gaps_has(&gaps, 3 * OB_GAPS_MAX));
	ob_gaps_done(&gaps);
}
OB_TEST_END

enum { NUMBERS = 60 };

static void check_equals(const bool *set)
{
	for (int i = 0; i < NUMBERS; i++)
		ck_assert_msg(ob_gaps_has(&gaps, i) == set[i], "%d in %s", i, format());
	for (size_t i = 1; i < gaps.count; i++)
		ck_assert(gaps.ranges[i].low > gaps.ranges[i - 1].high + 1);
}

OB_TEST(any_sequence_of_changes_is_a_set)
{
	struct ob_rng rng;

	ob_rng_init(&rng, 11);
	for (int round = 0; round < 2000; round++) {
		bool set[NUMBERS] = { 0 };
		int top = 0;

		gaps.count = 0;
		while (top < NUMBERS - 8) {
			int low = top + (int)ob_rng_below(&rng, 4);
			int high = low + (int)ob_rng_below(&rng, 4);

			ck_assert(ob_gaps_add(&gaps, low, high));
			for (int i = low; i <= high; i++)
				set[i] = true;
			top = high + 1;
		}
		check_equals(set);
		for (int change = 0; change < 12; change++) {
			int low = (int)ob_rng_below(&rng, NUMBERS);
			int high = low + (int)ob_rng_below(&rng, 6);

			ck_assert(ob_gaps_remove(&gaps, low, high));
			for (int i = low; i <= high && i < NUMBERS; i++)
				set[i] = false;
			check_equals(set);
		}
		ck_assert(ob_gaps_parse(&gaps, ob_str(format())));
		check_equals(set);
	}
	ob_gaps_done(&gaps);
}
OB_TEST_END

OB_SUITE("log_gaps", a_list_is_text_and_back, what_is_not_a_list_is_refused,
	 numbers_are_added_at_the_end, numbers_are_taken_out_of_the_middle, two_lists_become_one,
	 a_list_has_a_limit, any_sequence_of_changes_is_a_set)
