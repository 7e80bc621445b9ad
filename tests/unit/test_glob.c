/* SPDX-License-Identifier: MIT */
/* Patterns with stars. */
#include "base/glob.h"
#include "suite.h"

static bool match(const char *pattern, const char *text)
{
	return ob_glob_match(ob_str(pattern), ob_str(text));
}

OB_TEST(a_pattern_matches_the_whole_text)
{
	ck_assert(match("OrderPlaced", "OrderPlaced"));
	ck_assert(!match("Order", "OrderPlaced"));
	ck_assert(!match("OrderPlaced", "Order"));
	ck_assert(!match("orderPlaced", "OrderPlaced"));
	ck_assert(match("", ""));
	ck_assert(!match("", "x"));
	ck_assert(!match("?", "x"));
}
OB_TEST_END

OB_TEST(a_star_stands_for_any_text)
{
	ck_assert(match("*", ""));
	ck_assert(match("*", "anything"));
	ck_assert(match("Order*", "Order"));
	ck_assert(match("Order*", "OrderPlaced"));
	ck_assert(match("*Placed", "OrderPlaced"));
	ck_assert(match("*a*b*", "xxaxxbxx"));
	ck_assert(!match("*a*b*", "xxbxxaxx"));
	ck_assert(match("a**b", "ab"));
	ck_assert(match("*ab", "aab"));
	ck_assert(match("*aab*", "aaaab"));
	ck_assert(!match("*.created", "order.created.v2"));
	ck_assert(match("*.created*", "order.created.v2"));
}
OB_TEST_END

OB_TEST(many_stars_take_no_time)
{
	char pattern[201], text[20001];

	for (size_t i = 0; i < 200; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[200] = '\0';
	memset(text, 'a', 20000);
	text[20000] = '\0';
	ck_assert(match(pattern, text));
	text[19999] = 'b';
	ck_assert(!match(pattern, text));
}
OB_TEST_END

OB_SUITE("glob", a_pattern_matches_the_whole_text, a_star_stands_for_any_text,
	 many_stars_take_no_time)
