/* SPDX-License-Identifier: MIT */
/* What a consumer tells of itself: written, read back, and read whatever somebody else wrote. */
#include "base/consumer_report.h"
#include "base/json.h"
#include "suite.h"

#include <string.h>

static const struct ob_consumer_report full = {
	.version = "1.2.3",
	.source = "redis stream orders",
	.handler = "http https://example.com/...",
	.dedup = "ids",
	.ordering = "key",
	.owner = true,
	.rate = 1234.5,
	.handled = 7,
	.errors = 9,
	.lag = 0,
	.oldest_us = -1,
	.parked_now = 3,
	.full = true,
	.breaker = "open",
	.breaker_since_us = 1700000000000001,
	.handler_state = "down",
	.handler_why = "connection \"refused\" \\ Grüße",
	.last_error = "why",
	.last_error_us = 5,
};

OB_TEST(what_was_written_is_read_back)
{
	struct ob_buf text = OB_BUF_INIT(OB_CONSUMER_REPORT_BYTES + 1);
	struct ob_consumer_report back;

	ob_consumer_report_write(&full, &text);
	ck_assert(ob_json_valid_object(ob_buf_view(&text), NULL));
	memset(&back, 0x55, sizeof(back));
	ck_assert(ob_consumer_report_read(&back, ob_buf_view(&text)));
	ck_assert_str_eq(back.version, "1.2.3");
	ck_assert_str_eq(back.source, full.source);
	ck_assert_str_eq(back.ordering, "key");
	ck_assert(back.owner);
	ck_assert(back.full);
	ck_assert(!back.alarm);
	ck_assert_double_eq_tol(back.rate, 1234.5, 0.001);
	ck_assert_uint_eq(back.handled, 7);
	ck_assert_uint_eq(back.read, 0);
	ck_assert_uint_eq(back.errors, 9);
	ck_assert_int_eq(back.lag, 0);
	ck_assert_int_eq(back.oldest_us, -1);
	ck_assert_int_eq(back.breaker_since_us, full.breaker_since_us);
	ck_assert_str_eq(back.handler_why, full.handler_why);
	ck_assert_str_eq(back.source_state, "");
	ck_assert_int_eq(back.last_error_us, 5);
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(the_largest_one_fits)
{
	struct ob_consumer_report large = full;
	struct ob_buf text = OB_BUF_INIT(OB_CONSUMER_REPORT_BYTES + 1);

	/* Every character of every text doubles. */
	memset(large.source, '"', sizeof(large.source) - 1);
	memset(large.handler, '"', sizeof(large.handler) - 1);
	memset(large.breaker_why, '"', sizeof(large.breaker_why) - 1);
	memset(large.source_why, '"', sizeof(large.source_why) - 1);
	memset(large.handler_why, '"', sizeof(large.handler_why) - 1);
	memset(large.last_error, '"', sizeof(large.last_error) - 1);
#define X(name, help) large.name = INT64_MAX;
	OB_CONSUME_COUNTER_MAP(X)
#undef X
	ob_consumer_report_write(&large, &text);
	ck_assert_uint_gt(text.len, 0);
	ck_assert_uint_le(text.len, OB_CONSUMER_REPORT_BYTES);
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(whatever_stands_there_is_read_without_harm)
{
	static const char *const none[] = { "", "x", "[]", "{", "\"a\"", "{\"a\":1}x" };
	static const char odd[] =
		"{\"owner\":[],\"handler_why\":\"a\\u0000b\\u001b[31m\\nc\","
		"\"rate\":1e400,\"handled\":99999999999999999999999,\"lag\":-7,"
		"\"version\":{\"a\":\"b\"},\"later\":{\"x\":[1,2]}}";
	struct ob_consumer_report r;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!ob_consumer_report_read(&r, ob_str(none[i])), "%s", none[i]);
	ck_assert(!ob_consumer_report_read(&r, OB_STR_NULL));
	ck_assert_int_eq(r.lag, -1);
	ck_assert(ob_consumer_report_read(&r, ob_str(odd)));
	ck_assert(!r.owner);
	ck_assert_str_eq(r.handler_why, "a b [31m c");
	ck_assert_double_eq_tol(r.rate, 0, 0.001);
	ck_assert_uint_eq(r.handled, 0);
	ck_assert_int_eq(r.lag, 0);
	ck_assert_str_eq(r.version, "");
}
OB_TEST_END

OB_TEST(programs_get_every_member)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_consumer_report_json(&j, &full);
	ob_jout_end(&j, '}');
	const char *text = ob_buf_str(&j.b);
	ck_assert(ob_json_valid_object(ob_buf_view(&j.b), NULL));
	ck_assert_ptr_nonnull(strstr(text, "\"owner\":true"));
	ck_assert_ptr_nonnull(strstr(text, "\"rate\":1234.5"));
	ck_assert_ptr_nonnull(strstr(text, "\"oldest_us\":-1"));
	ck_assert_ptr_nonnull(strstr(text, "\"breaker_since\":\"2023-11-14T22:13:20.000001Z\""));
	ck_assert_ptr_nonnull(strstr(text, "\"source_state\":null"));
	ob_jout_done(&j);
}
OB_TEST_END

OB_SUITE("consumer_report", what_was_written_is_read_back, the_largest_one_fits,
	 whatever_stands_there_is_read_without_harm, programs_get_every_member)
