/* SPDX-License-Identifier: MIT */
/* Errors with their numbers blanked. */
#include "operate/cause.h"
#include "suite.h"

static const char *cause(const char *error)
{
	static char text[256];
	struct ob_buf out = OB_BUF_INIT(1024);

	ob_cause_of(ob_str(error), &out);
	(void)snprintf(text, sizeof(text), "%s", ob_buf_str(&out));
	ob_buf_done(&out);
	return text;
}

OB_TEST(every_run_of_digits_is_blanked)
{
	ck_assert_str_eq(cause("HTTP 422: order 1042"), "HTTP #: order #");
	ck_assert_str_eq(cause("timeout after 5000ms"), "timeout after #ms");
	ck_assert_str_eq(cause("p07 v1.2.3"), "p# v#.#.#");
	ck_assert_str_eq(cause("10.0.0.7:5432"), "#.#.#.#:#");
}
OB_TEST_END

OB_TEST(words_stay_though_their_letters_are_hexadecimal)
{
	ck_assert_str_eq(cause("deadbeef facade bad"), "deadbeef facade bad");
	ck_assert_str_eq(cause("defaced1x feed"), "defaced#x feed");
	ck_assert_str_eq(cause(""), "");
	ck_assert_str_eq(cause("caf\xc3\xa9 7"), "caf\xc3\xa9 #");
}
OB_TEST_END

OB_TEST(ids_are_one_number)
{
	ck_assert_str_eq(cause("no row 0196a1f0-3c5b-7000-8000-00c0ffee0001 there"),
			 "no row # there");
	ck_assert_str_eq(cause("abcdef01-abcd-abcd-abcd-abcdefabcdef"), "#");
	ck_assert_str_eq(cause("trace a1b2c3d4e5f60718"), "trace #");
	ck_assert_str_eq(cause("x0196a1f0"), "x#");
}
OB_TEST_END

OB_SUITE("cause", every_run_of_digits_is_blanked, words_stay_though_their_letters_are_hexadecimal,
	 ids_are_one_number)
