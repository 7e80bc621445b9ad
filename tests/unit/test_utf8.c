/* SPDX-License-Identifier: MIT */
/* UTF-8: what is valid, how long it is, and how it is made safe. */
#include "base/utf8.h"
#include "suite.h"

/* A second, slow way to know: decode by arithmetic. */
static size_t decoded_size(const uint8_t *b, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t size = b[0] < 0x80             ? 1
		      : (b[0] & 0xE0) == 0xC0 ? 2
		      : (b[0] & 0xF0) == 0xE0 ? 3
		      : (b[0] & 0xF8) == 0xF0 ? 4
					      : 0;

	if (size == 0 || n < size)
		return 0;
	uint32_t code = size == 1 ? b[0] : b[0] & (0x7FU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((b[i] & 0xC0) != 0x80)
			return 0;
		code = code << 6 | (b[i] & 0x3F);
	}
	if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
		return 0;
	return size;
}

/* All tails of two edge bytes behind these two: how many are judged wrong. */
static int misjudged(uint8_t first, uint8_t second)
{
	static const uint8_t edges[] = {
		0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF
	};
	int wrong = 0;

	for (size_t i = 0; i < 100; i++) {
		uint8_t b[4] = { first, second, edges[i / 10], edges[i % 10] };

		for (size_t n = 1; n <= 4; n++)
			wrong += ob_utf8_step((const char *)b, n) != decoded_size(b, n);
	}
	return wrong;
}

OB_TEST(every_sequence_of_two_bytes_and_edges_of_longer_ones_is_judged_right)
{
	for (unsigned i = 0; i < 65536; i++)
		ck_assert_msg(misjudged((uint8_t)(i >> 8), (uint8_t)i) == 0, "%04x", i);
	ck_assert_uint_eq(ob_utf8_step("", 0), 0);
}
OB_TEST_END

OB_TEST(text_is_valid_only_when_all_of_it_is)
{
	static const char *const good[] = { "",
					    "a",
					    "plain ascii of many bytes",
					    "12345678\xC3\xA9",
					    "\xF0\x9F\x98\x80\xEF\xBF\xBF",
					    "1234567\xE2\x82\xAC|2345678" };
	static const char *const bad[] = {
		"\x80",     "12345678\xC3",         "1234567\xED\xA0\x80",
		"\xC0\x80", "12345678\xFFxxxxxxxx", "a\xF0\x9F\x98"
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(ob_utf8_valid(ob_str(good[i])), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!ob_utf8_valid(ob_str(bad[i])), "case %zu", i);
	ck_assert(ob_utf8_valid((struct ob_str){ "a\0b", 3 }));
	ck_assert(ob_utf8_valid(OB_STR_NULL));
}
OB_TEST_END

OB_TEST(characters_are_counted_not_bytes)
{
	ck_assert_uint_eq(ob_utf8_count(OB_STR("")), 0);
	ck_assert_uint_eq(ob_utf8_count(OB_STR_NULL), 0);
	ck_assert_uint_eq(ob_utf8_count(OB_STR("abc")), 3);
	ck_assert_uint_eq(ob_utf8_count(OB_STR("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")), 4);
}
OB_TEST_END

static void check_sanitized(struct ob_str s, size_t max_chars, const char *expected)
{
	struct ob_buf b = OB_BUF_INIT(10000);

	ob_utf8_sanitize(&b, s, max_chars);
	ck_assert_str_eq(ob_buf_str(&b), expected);
	ck_assert(!b.failed && ob_utf8_valid(ob_buf_view(&b)));
	ob_buf_done(&b);
}

OB_TEST(a_sanitized_text_is_one_line_of_valid_utf8)
{
	check_sanitized(OB_STR(""), 10, "");
	check_sanitized(OB_STR_NULL, 10, "");
	check_sanitized(OB_STR("all good: \xC3\xA9"), 100, "all good: \xC3\xA9");
	check_sanitized(OB_STR("a\0b\nc\r\td\x1B\x7F"), 100, "a b c  d  ");
	check_sanitized(OB_STR("x\xFF\xC3y\xE2\x82"), 100,
			"x\xEF\xBF\xBD\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBD");
	check_sanitized(OB_STR("a\xC2\x85"
			       "b\xC2\x9B"
			       "c\xE2\x80\xA8"
			       "d\xE2\x80\xA9"
			       "e\xC2\xA0"),
			100, "a b c d e\xC2\xA0");
}
OB_TEST_END

OB_TEST(a_sanitized_text_is_cut_between_characters)
{
	struct ob_buf in = OB_BUF_INIT(10000), out = OB_BUF_INIT(10000);

	check_sanitized(OB_STR("\xC3\xA9\xC3\xA9\xC3\xA9"), 2, "\xC3\xA9\xC3\xA9");
	check_sanitized(OB_STR("\xFF\xFF\xFF"), 2, "\xEF\xBF\xBD\xEF\xBF\xBD");
	check_sanitized(OB_STR("abc"), 0, "");
	for (int i = 0; i < 2000; i++)
		ob_buf_adds(&in, "\xE2\x82\xAC");
	ob_utf8_sanitize(&out, ob_buf_view(&in), 1024);
	ck_assert_uint_eq(out.len, (size_t)1024 * 3);
	ck_assert_uint_eq(ob_utf8_count(ob_buf_view(&out)), 1024);
	ob_buf_done(&in);
	ob_buf_done(&out);
}
OB_TEST_END

OB_SUITE("utf8", every_sequence_of_two_bytes_and_edges_of_longer_ones_is_judged_right,
	 text_is_valid_only_when_all_of_it_is, characters_are_counted_not_bytes,
	 a_sanitized_text_is_one_line_of_valid_utf8, a_sanitized_text_is_cut_between_characters)
