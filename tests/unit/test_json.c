/* SPDX-License-Identifier: MIT */
/* The JSON validator against the grammar, against jansson, and against cut and broken text. */
#include "base/json.h"
#include "base/rng.h"
#include "json_oracle.h"
#include "suite.h"

#include <stdlib.h>

#define BYTES(literal) OB_STR(literal) /* with NULs inside */

static void check_valid(struct ob_str text)
{
	struct ob_json_fault fault = { 0 };

	ck_assert_msg(ob_json_valid(text, &fault), "refused: %.*s: %s at %zu", (int)text.n, text.p,
		      fault.what, fault.offset);
	ck_assert(json_oracle_agrees(text));
	ck_assert(ob_json_valid(text, NULL));
}

OB_TEST(every_kind_of_value_is_accepted)
{
	static const struct ob_str texts[] = {
		BYTES("{}"),
		BYTES("[]"),
		BYTES("null"),
		BYTES("true"),
		BYTES("false"),
		BYTES("\"\""),
		BYTES("0"),
		BYTES(" \t\r\n0 \t\r\n"),
		BYTES("[[],{},[{}]]"),
		BYTES("[1,\"a\",null,true,false,{\"k\":[]}]"),
		BYTES("{\"a\":1,\"a\":2}"), /* keys may repeat */
		BYTES("{\"\":{\"\":[]}}"),
		BYTES("{ \"a\" : [ 1 , 2 ] , \"b\" : { } }"),
		BYTES("\"a string that is longer than sixteen bytes\""),
		BYTES("\"\x7F\""), /* DEL needs no escape */
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_valid(texts[i]);
}
OB_TEST_END

OB_TEST(numbers_follow_the_grammar)
{
	static const char *const good[] = {
		"0",    "-0",   "1",       "-1",       "10",    "1234567890",
		"0.5",  "-0.0", "1.25",    "1e5",      "1E5",   "1e+5",
		"1e-5", "0e0",  "0.0e-00", "12.5E+10", "1e400", "123456789012345678901234567890"
	};
	static const char *const bad[] = {
		"01",  "-01", "00",  "-",     "+1",    "1.",   "1.e5",  ".5",       "-.5",
		"1e",  "1e+", "1e-", "1e5.",  "1.5.5", "0x10", "1_000", "Infinity", "-Infinity",
		"NaN", "1-",  "--1", "1,000", "1 000", "- 1",  "1e 5",  "1f",       "٣"
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check_valid(ob_str(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(!ob_json_valid(ob_str(bad[i]), NULL), "accepted: %s", bad[i]);
		ck_assert(json_oracle_agrees(ob_str(bad[i])));
	}
}
OB_TEST_END

OB_TEST(escapes_and_utf8_are_accepted_when_right)
{
	static const char *const texts[] = {
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
		"\"\\u0000\"",
		"\"\\u00e9\\u00E9\\uABCD\\uabcd\"",
		"\"\\uD83D\\uDE00\"",
		"\"\\ud800\\udc00\\udbff\\udfff\"",
		"\"\\ue000\\ud7ff\"",
		"\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"",
		"\"\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\"",
		"\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"",
		"{\"\xC3\xA9\\n\":1}",
		"\"\xE2\x80\xA8\"",
		"\"\\u2028\\\"\"",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_valid(ob_str(texts[i]));
}
OB_TEST_END

/* One of each violation, and what is said where. */
static const struct {
	struct ob_str text;
	size_t offset;
	const char *what;
} refused[] = {
	{ BYTES(""), 0, "the text ends where a value should be" },
	{ BYTES("  "), 2, "the text ends where a value should be" },
	{ BYTES("["), 1, "the text ends inside an array" },
	{ BYTES("[1"), 2, "the text ends inside an array" },
	{ BYTES("[1,"), 3, "the text ends where a value should be" },
	{ BYTES("{"), 1, "the text ends inside an object" },
	{ BYTES("{\"a\""), 4, "the text ends after a key" },
	{ BYTES("{\"a\":"), 5, "the text ends where a value should be" },
	{ BYTES("{\"a\":1"), 6, "the text ends inside an object" },
	{ BYTES("{\"a\":1,"), 7, "the text ends where a key should be" },
	{ BYTES("\"abc"), 4, "the text ends inside a string" },
	{ BYTES("\"abc\\"), 5, "the text ends inside a string" },
	{ BYTES("\"abcdefghijkl\\\""), 15, "the text ends inside a string" },
	{ BYTES("-"), 1, "the text ends inside a number" },
	{ BYTES("[1.]"), 3, "expected a digit in a number" },
	{ BYTES("[1ex]"), 3, "expected a digit in a number" },
	{ BYTES("[-a]"), 2, "expected a digit in a number" },
	{ BYTES("[012]"), 1, "a number must not begin with 0" },
	{ BYTES("tru"), 3, "the text ends inside true, false or null" },
	{ BYTES("trux"), 0, "expected a value" },
	{ BYTES("True"), 0, "expected a value" },
	{ BYTES("nil "), 0, "expected a value" },
	{ BYTES("truee"), 4, "unexpected text after the value" },
	{ BYTES("1 2"), 2, "unexpected text after the value" },
	{ BYTES("{}{}"), 2, "unexpected text after the value" },
	{ BYTES("[]]"), 2, "unexpected text after the value" },
	{ BYTES("{},"), 2, "unexpected text after the value" },
	{ BYTES("[1,]"), 3, "expected a value, not a closing bracket" },
	{ BYTES("[,1]"), 1, "expected a value" },
	{ BYTES("]"), 0, "expected a value, not a closing bracket" },
	{ BYTES("{\"a\":}"), 5, "expected a value, not a closing bracket" },
	{ BYTES("{\"a\":1,}"), 7, "expected a key after ','" },
	{ BYTES("{,}"), 1, "expected a key in quotes" },
	{ BYTES("{a:1}"), 1, "expected a key in quotes" },
	{ BYTES("{1:1}"), 1, "expected a key in quotes" },
	{ BYTES("{\"a\" 1}"), 5, "expected ':' after the key" },
	{ BYTES("{\"a\",1}"), 4, "expected ':' after the key" },
	{ BYTES("{\"a\"::1}"), 5, "expected a value" },
	{ BYTES("{\"a\":1 \"b\":2}"), 7, "expected ',' or '}' in an object" },
	{ BYTES("{\"a\":1]"), 6, "expected ',' or '}' in an object" },
	{ BYTES("[1 2]"), 3, "expected ',' or ']' in an array" },
	{ BYTES("[1}"), 2, "expected ',' or ']' in an array" },
	{ BYTES("[\"a\":1]"), 4, "expected ',' or ']' in an array" },
	{ BYTES("{'a':1}"), 1, "expected a key in quotes" },
	{ BYTES("['a']"), 1, "strings are written in double quotes" },
	{ BYTES("[1]// x"), 3, "unexpected text after the value" },
	{ BYTES("/* x */1"), 0, "expected a value" },
	{ BYTES("\xEF\xBB\xBF{}"), 0, "a byte order mark is not allowed" },
	{ BYTES("\v1"), 0, "expected a value" },
	{ BYTES("\f1"), 0, "expected a value" },
	{ BYTES("\xC2\xA0"
		"1"),
	  0, "expected a value" },
	{ BYTES("1\0"), 1, "unexpected text after the value" },
	{ BYTES("\0"), 0, "expected a value" },
	{ BYTES("\"a\0b\""), 2, "a control character in a string must be escaped" },
	{ BYTES("\"a\tb\""), 2, "a control character in a string must be escaped" },
	{ BYTES("\"a\nb\""), 2, "a control character in a string must be escaped" },
	{ BYTES("\"abcdefgh\x1F\""), 9, "a control character in a string must be escaped" },
	{ BYTES("{\"a\nb\":1}"), 3, "a control character in a string must be escaped" },
	{ BYTES("\"\\x41\""), 1, "unknown escape in a string" },
	{ BYTES("\"\\'\""), 1, "unknown escape in a string" },
	{ BYTES("\"\\0\""), 1, "unknown escape in a string" },
	{ BYTES("\"\\U0041\""), 1, "unknown escape in a string" },
	{ BYTES("\"\\u12\""), 1, "expected four hex digits after \\u" },
	{ BYTES("\"\\u12g4\""), 1, "expected four hex digits after \\u" },
	{ BYTES("\"\\u"), 1, "expected four hex digits after \\u" },
	{ BYTES("\"\\ud800\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\\udc00\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\\ud800\\ud800\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\\ud800\\u0041\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\\udc00\\ud800\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\\ud800xudc00\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\\ud800\\n\""), 1, "half of a surrogate pair in \\u escapes" },
	{ BYTES("\"\x80\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xC0\xAF\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xC1\xBF\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xC3\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xE0\x9F\xBF\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xED\xA0\x80\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xF0\x8F\xBF\xBF\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xF4\x90\x80\x80\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xF5\x80\x80\x80\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"\xFF\xFE\""), 1, "invalid UTF-8 in a string" },
	{ BYTES("\"abcdefghij\xE2\x82"), 11, "invalid UTF-8 in a string" },
};

OB_TEST(every_violation_is_refused_where_it_stands)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct ob_str text = refused[i].text;
		struct ob_json_fault fault = { 0 };

		ck_assert_msg(!ob_json_valid(text, &fault), "accepted: %s", text.p);
		ck_assert_msg(strcmp(fault.what, refused[i].what) == 0 &&
				      fault.offset == refused[i].offset,
			      "%s: %s at %zu, expected %s at %zu", text.p, fault.what, fault.offset,
			      refused[i].what, refused[i].offset);
		ck_assert_msg(json_oracle_agrees(text), "jansson accepts: %s", text.p);
		ck_assert(!ob_json_valid(text, NULL));
	}
	ck_assert(!ob_json_valid(OB_STR_NULL, NULL));
}
OB_TEST_END

/* `depth` times `open`, then `middle`, then `depth` times `close`. */
static bool valid_nested(int depth, const char *open, const char *middle, const char *close)
{
	struct ob_buf b = OB_BUF_INIT(1 << 20);

	for (int i = 0; i < depth; i++)
		ob_buf_adds(&b, open);
	ob_buf_adds(&b, middle);
	for (int i = 0; i < depth; i++)
		ob_buf_adds(&b, close);
	ck_assert(!b.failed);
	bool ok = ob_json_valid(ob_buf_view(&b), NULL);
	ob_buf_done(&b);
	return ok;
}

OB_TEST(depth_512_is_accepted_and_513_refused)
{
	struct ob_json_fault fault;
	char open[513];

	ck_assert(valid_nested(512, "[", "", "]"));
	ck_assert(!valid_nested(513, "[", "", "]"));
	ck_assert(valid_nested(512, "{\"a\":", "1", "}"));
	ck_assert(!valid_nested(513, "{\"a\":", "1", "}"));
	ck_assert(valid_nested(256, "[1,{\"a\":", "[]", "}]") == false);
	ck_assert(valid_nested(255, "[1,{\"a\":", "[[]]", "},2]"));
	ck_assert(!valid_nested(256, "[{\"a\":", "1", "]}"));

	memset(open, '[', sizeof(open));
	ck_assert(!ob_json_valid((struct ob_str){ open, sizeof(open) }, &fault));
	ck_assert_str_eq(fault.what, "nested too deeply");
	ck_assert_uint_eq(fault.offset, 512);
}
OB_TEST_END

OB_TEST(siblings_do_not_add_to_the_depth)
{
	struct ob_buf b = OB_BUF_INIT(1 << 16);

	ob_buf_adds(&b, "[0");
	for (int i = 0; i < 2000; i++)
		ob_buf_adds(&b, i % 2 ? ",[]" : ",{\"a\":[1]}");
	ob_buf_adds(&b, "]");
	check_valid(ob_buf_view(&b));
	ob_buf_done(&b);
}
OB_TEST_END

static const char sample[] =
	"{\"id\":\"0192f3a1\",\"n\":[0,-1.5e+10,12],\"t\":true,\"f\":false,\"z\":null,"
	"\"s\":\"plain ascii, \\\"quoted\\\", \\u00e9 \\ud83d\\ude00 \xC3\xA9 \xF0\x9F\x98\x80\","
	"\"deep\":{\"a\":[[],{},[{\"k\":\"v\"}]]}} ";

OB_TEST(text_cut_at_any_byte_is_refused)
{
	size_t whole = sizeof(sample) - 2; /* without the last space */

	check_valid(OB_STR(sample));
	check_valid((struct ob_str){ sample, whole });
	for (size_t n = 0; n < whole; n++) {
		/* A copy of just that size: reading past it is seen by the sanitizer. */
		char *cut = malloc(n ? n : 1);
		struct ob_json_fault fault = { 0 };

		ck_assert_ptr_nonnull(cut);
		memcpy(cut, sample, n);
		ck_assert_msg(!ob_json_valid((struct ob_str){ cut, n }, &fault), "at %zu", n);
		ck_assert_uint_le(fault.offset, n);
		ck_assert(json_oracle_agrees((struct ob_str){ cut, n }));
		free(cut);
	}
}
OB_TEST_END

OB_TEST(a_mark_is_found_at_every_place_of_eight_bytes)
{
	static const char bad[] = { '\0', '\x01', '\x1F', '\x80', '\xFF', '\xC3' };
	char text[64];

	for (size_t n = 1; n < 40; n++) {
		for (size_t at = 1; at <= n; at++) {
			for (size_t i = 0; i < sizeof(bad); i++) {
				memset(text, '!', sizeof(text));
				text[0] = text[n + 1] = '"';
				ck_assert(ob_json_valid((struct ob_str){ text, n + 2 }, NULL));
				text[at] = bad[i];
				ck_assert(!ob_json_valid((struct ob_str){ text, n + 2 }, NULL));
				text[at] = '"';
				ck_assert(!ob_json_valid((struct ob_str){ text, n + 2 }, NULL));
			}
		}
	}
}
OB_TEST_END

/* Change, drop, double or insert a byte or two, mostly bytes that mean something. */
static size_t mutate(struct ob_rng *rng, char *text, size_t n, size_t max)
{
	static const char alphabet[] =
		"{}[]:,\"\\0123456789.eE+-tfnul \n\t\x01\x7F\x80\xC3\xA9\xED"
		"\xF0\x9F\xFF/bdaAud";

	for (uint64_t times = 1 + ob_rng_below(rng, 3); times && n; times--) {
		size_t at = ob_rng_below(rng, n);
		char c = alphabet[ob_rng_below(rng, sizeof(alphabet))]; /* its NUL too */

		switch (ob_rng_below(rng, 4)) {
		case 0:
			text[at] = c;
			break;
		case 1:
			memmove(text + at, text + at + 1, n - at - 1);
			n--;
			break;
		case 2:
			if (n < max) {
				memmove(text + at + 1, text + at, n - at);
				text[at] = c;
				n++;
			}
			break;
		default:
			text[at] = text[ob_rng_below(rng, n)];
		}
	}
	return n;
}

OB_TEST(on_mutated_documents_we_and_jansson_agree)
{
	static const struct ob_str seeds[] = {
		BYTES(sample),
		BYTES("[1,2.5,-3e10,[],{},\"a\",null]"),
		BYTES("{\"a\":{\"b\":[true,false]},\"c\":\"\\u00e9\\n\\ud83d\\ude00\"}"),
		BYTES("\"\\ud83d\\ude00\xF0\x9F\x98\x80\xE2\x82\xAC\""),
		BYTES("-12.5e+3"),
	};
	int accepted = 0, rounds = 60000;
	struct ob_rng rng;

	ob_rng_init(&rng, 20240611);
	for (int i = 0; i < rounds; i++) {
		char text[sizeof(sample) + 8];
		struct ob_str seed = seeds[ob_rng_below(&rng, sizeof(seeds) / sizeof(seeds[0]))];

		memcpy(text, seed.p, seed.n);
		size_t n = mutate(&rng, text, seed.n, sizeof(text));
		ck_assert_msg(json_oracle_agrees((struct ob_str){ text, n }), "round %d: %.*s", i,
			      (int)n, text);
		accepted += ob_json_valid((struct ob_str){ text, n }, NULL);
	}
	/* Both verdicts must be common, else this compares nothing. */
	ck_assert_int_gt(accepted, rounds / 20);
	ck_assert_int_lt(accepted, rounds - rounds / 20);
}
OB_TEST_END

OB_TEST(only_an_object_passes_as_an_object)
{
	static const char *const others[] = { "[]", " 1", "\"{}\"", "null", "true" };
	struct ob_json_fault fault = { 0 };

	ck_assert(ob_json_valid_object(OB_STR("{}"), &fault));
	ck_assert(ob_json_valid_object(OB_STR(" \n{\"a\":[]} "), NULL));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		ck_assert(!ob_json_valid_object(ob_str(others[i]), &fault));
		ck_assert_str_eq(fault.what, "expected an object");
	}
	ck_assert(!ob_json_valid_object(OB_STR(" 1"), &fault));
	ck_assert_uint_eq(fault.offset, 1);
	ck_assert(!ob_json_valid_object(OB_STR("{\"a\":}"), &fault));
	ck_assert_uint_eq(fault.offset, 5);
	ck_assert(!ob_json_valid_object(OB_STR_NULL, &fault));
	ck_assert(!ob_json_valid_object(OB_STR(""), NULL));
}
OB_TEST_END

static void check_written(struct ob_str s, const char *expected)
{
	struct ob_buf b = OB_BUF_INIT(1000);

	ob_json_add_string(&b, s);
	ck_assert_str_eq(ob_buf_str(&b), expected);
	ck_assert(ob_json_valid(ob_buf_view(&b), NULL));
	ob_buf_done(&b);
}

OB_TEST(a_written_string_is_escaped_and_valid)
{
	check_written(OB_STR(""), "\"\"");
	check_written(OB_STR_NULL, "null");
	check_written(OB_STR("plain and longer than eight"), "\"plain and longer than eight\"");
	check_written(OB_STR("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
	check_written(OB_STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
	check_written(BYTES("\0\x01\x1F\x7F"), "\"\\u0000\\u0001\\u001f\\u007f\"");
	check_written(OB_STR("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
		      "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
	check_written(OB_STR("a\xFF\xC3z"), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
	check_written(OB_STR("\xC2\x85\xC2\x9B\xC2\xA0\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA"),
		      "\"\\u0085\\u009b\xC2\xA0\\u2028\\u2029\xE2\x80\xAA\"");
}
OB_TEST_END

OB_TEST(a_written_string_reads_back_as_the_same_text)
{
	struct ob_rng rng;

	ob_rng_init(&rng, 5);
	for (int i = 0; i < 2000; i++) {
		struct ob_buf b = OB_BUF_INIT(1000);
		char text[40];
		size_t n = ob_rng_below(&rng, sizeof(text));

		for (size_t c = 0; c < n; c++)
			text[c] = (char)ob_rng_below(&rng, 128);
		ob_json_add_string(&b, (struct ob_str){ text, n });
		json_t *doc = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		ck_assert_ptr_nonnull(doc);
		ck_assert_uint_eq(json_string_length(doc), n);
		ck_assert(memcmp(json_string_value(doc), text, n) == 0);
		json_decref(doc);
		ob_buf_done(&b);
	}
}
OB_TEST_END

OB_SUITE("json", every_kind_of_value_is_accepted, numbers_follow_the_grammar,
	 escapes_and_utf8_are_accepted_when_right, every_violation_is_refused_where_it_stands,
	 depth_512_is_accepted_and_513_refused, siblings_do_not_add_to_the_depth,
	 text_cut_at_any_byte_is_refused, a_mark_is_found_at_every_place_of_eight_bytes,
	 on_mutated_documents_we_and_jansson_agree, only_an_object_passes_as_an_object,
	 a_written_string_is_escaped_and_valid, a_written_string_reads_back_as_the_same_text)
