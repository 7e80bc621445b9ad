/* SPDX-License-Identifier: MIT */
/* Stored headers one by one. */
#include "base/headers.h"
#include "suite.h"

enum { MAX = 8 };

static struct ob_header found[MAX];
static size_t count;
static struct ob_arena arena = OB_ARENA_INIT(1 << 20);

static int read_all(const char *json, struct ob_err *err)
{
	return ob_headers_read(ob_str(json), &arena, found, MAX, &count, err);
}

static void good(const char *json, size_t expected)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(read_all(json, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(count, expected);
}

static void is(size_t i, struct ob_str name, struct ob_str value)
{
	ck_assert(ob_str_eq(found[i].name, name));
	ck_assert_msg(ob_str_eq(found[i].value, value), "%.*s", (int)found[i].value.n,
		      found[i].value.p);
}

OB_TEST(values_of_every_kind_become_text)
{
	good(" { \"a\" : \"x\", \"b\":-1.50e3 ,\"c\":true,\"d\":[1, {\"e\":\"}\"}] ,\"f\":{}}\n",
	     5);
	is(0, OB_STR("a"), OB_STR("x"));
	is(1, OB_STR("b"), OB_STR("-1.50e3"));
	is(2, OB_STR("c"), OB_STR("true"));
	is(3, OB_STR("d"), OB_STR("[1, {\"e\":\"}\"}]"));
	is(4, OB_STR("f"), OB_STR("{}"));
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(escapes_are_decoded)
{
	good("{\"q\\\"\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"u\":\"\\u00e9\\u20AC\\ud83d\\ude00\"}",
	     2);
	is(0, OB_STR("q\""), OB_STR("\"\\/\b\f\n\r\t"));
	is(1, OB_STR("u"), OB_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
	good("{\"n\":\"a\\u0000b\"}", 1);
	is(0, OB_STR("n"), OB_STR("a\0b"));
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(null_is_no_header_and_of_equal_names_the_last_counts)
{
	good("{\"a\":null,\"b\":\"1\",\"c\":\"\",\"B\":\"2\"}", 2);
	is(0, OB_STR("B"), OB_STR("2"));
	is(1, OB_STR("c"), OB_STR(""));
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(without_headers_there_are_none)
{
	good(NULL, 0);
	good("{}", 0);
	good(" {\t} ", 0);
}
OB_TEST_END

OB_TEST(what_is_no_object_is_refused)
{
	static const char *const bad[] = { "",         "[]",       "\"x\"",
					   "{\"a\":}", "{\"a\":1", "{\"a\":\"\xff\"}" };
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(read_all(bad[i], &err), OUTBOX_EINVAL);
		ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	}
	(void)read_all("[]", &err);
	ck_assert_str_eq(err.msg,
			 "the headers of the message are no JSON object: expected an object at "
			 "byte 0");
}
OB_TEST_END

OB_TEST(too_many_are_refused)
{
	struct ob_err err = OB_ERR_INIT;

	good("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"1\":2}", MAX);
	ck_assert_int_eq(
		read_all("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,"
			 "\"9\":1}",
			 &err),
		OUTBOX_EINVAL);
	ck_assert_str_eq(err.msg, "the message has more than 8 headers");
}
OB_TEST_END

OB_SUITE("headers", values_of_every_kind_become_text, escapes_are_decoded,
	 null_is_no_header_and_of_equal_names_the_last_counts, without_headers_there_are_none,
	 what_is_no_object_is_refused, too_many_are_refused)
