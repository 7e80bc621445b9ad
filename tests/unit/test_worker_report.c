/* SPDX-License-Identifier: MIT */
/* What a worker tells of itself: written, read back, and read whatever somebody else wrote. */
#include "base/json.h"
#include "base/worker_report.h"
#include "suite.h"

#include <string.h>

static const struct ob_worker_report full = {
	.version = "1.2.3",
	.sink_type = "http",
	.sink_name = "hook",
	.sink_text = "http https://example.com/...",
	.breaker = "open",
	.alarm = true,
	.breaker_since_us = 1700000000000001,
	.probe_us = 1700000001000001,
	.breaker_why = "connection \"refused\" \\ Grüße",
	.sink_error = { .at_us = 1700000000000001, .times = 7, .kind = "down", .text = "refused" },
	.store_error = { .at_us = 5, .times = 1, .kind = "fatal", .text = "no rights" },
	.rate = 1234.5,
	.in_flight = 3,
	.queued = 4,
	.unsettled = 5,
	.retained_us = 9,
	.retained_rows = 10,
	.retained_parts = 2,
	.retained_held = "mail",
};

OB_TEST(what_was_written_is_read_back)
{
	struct ob_buf text = OB_BUF_INIT(OB_WORKER_REPORT_BYTES + 1);
	struct ob_worker_report back;

	ob_worker_report_write(&full, &text);
	ck_assert(ob_json_valid_object(ob_buf_view(&text), NULL));
	ck_assert(ob_worker_report_read(&back, ob_buf_view(&text)));
	ck_assert_mem_eq(&back, &full, offsetof(struct ob_worker_report, breaker));
	ck_assert_str_eq(back.breaker, "open");
	ck_assert(back.alarm);
	ck_assert_int_eq(back.breaker_since_us, full.breaker_since_us);
	ck_assert_int_eq(back.probe_us, full.probe_us);
	ck_assert_str_eq(back.breaker_why, full.breaker_why);
	ck_assert_int_eq(back.sink_error.at_us, full.sink_error.at_us);
	ck_assert_uint_eq(back.sink_error.times, 7);
	ck_assert_str_eq(back.sink_error.kind, "down");
	ck_assert_str_eq(back.sink_error.text, "refused");
	ck_assert_str_eq(back.store_error.text, "no rights");
	ck_assert_double_eq_tol(back.rate, 1234.5, 0.001);
	ck_assert_uint_eq(back.in_flight, 3);
	ck_assert_uint_eq(back.queued, 4);
	ck_assert_uint_eq(back.unsettled, 5);
	ck_assert_int_eq(back.retained_us, 9);
	ck_assert_uint_eq(back.retained_rows, 10);
	ck_assert_uint_eq(back.retained_parts, 2);
	ck_assert_str_eq(back.retained_held, "mail");
	ck_assert(ob_worker_report_is_down(&back));
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(an_empty_one_is_short_and_says_nothing)
{
	struct ob_buf text = OB_BUF_INIT(OB_WORKER_REPORT_BYTES + 1);
	struct ob_worker_report back;

	ob_worker_report_write(&(struct ob_worker_report){ .breaker = "closed" }, &text);
	ck_assert_str_eq(ob_buf_str(&text), "{\"sink\":{},\"breaker\":{\"state\":\"closed\"}}");
	ck_assert(ob_worker_report_read(&back, ob_buf_view(&text)));
	ck_assert(!ob_worker_report_is_down(&back));
	ck_assert(ob_worker_report_read(&back, OB_STR("{}")));
	ck_assert(!ob_worker_report_is_down(&back));
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(what_does_not_fit_is_left_out_as_a_whole)
{
	struct ob_worker_report large = full;
	struct ob_buf text = OB_BUF_INIT(OB_WORKER_REPORT_BYTES + 1);

	/* Every character of every text doubles; that still fits. */
	memset(large.sink_text, '"', sizeof(large.sink_text) - 1);
	memset(large.breaker_why, '"', sizeof(large.breaker_why) - 1);
	memset(large.sink_error.text, '"', sizeof(large.sink_error.text) - 1);
	memset(large.store_error.text, '"', sizeof(large.store_error.text) - 1);
	ob_worker_report_write(&large, &text);
	ck_assert(ob_json_valid_object(ob_buf_view(&text), NULL));
	ck_assert_uint_le(text.len, OB_WORKER_REPORT_BYTES);
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(whatever_stands_there_is_read_without_harm)
{
	static const char *const none[] = { "", "x", "[]", "{", "\"a\"", "{\"a\":1}x" };
	static const char odd[] =
		"{\"sink\":7,\"breaker\":{\"state\":[\"open\"],\"since_us\":-5,\"why\":\"a\\u0000b"
		"\\u001b[31m\\nc\"},\"rate\":1e400,\"in_flight\":99999999999999999999999,"
		"\"sink_error\":{\"at_us\":1e3,\"text\":null},\"version\":{\"a\":\"b\"},"
		"\"later\":{\"x\":[1,2]},\"retention\":\"none\"}";
	struct ob_worker_report r;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		ck_assert_msg(!ob_worker_report_read(&r, ob_str(none[i])), "%s", none[i]);
		ck_assert(!ob_worker_report_is_down(&r));
	}
	ck_assert(!ob_worker_report_read(&r, OB_STR_NULL));
	ck_assert(ob_worker_report_read(&r, ob_str(odd)));
	ck_assert_str_eq(r.breaker, "");
	ck_assert_str_eq(r.breaker_why, "a b [31m c");
	ck_assert_int_eq(r.breaker_since_us, 0);
	ck_assert_double_eq_tol(r.rate, 0, 0.001);
	ck_assert_uint_eq(r.in_flight, 0);
	ck_assert_str_eq(r.version, "");
}
OB_TEST_END

OB_TEST(a_long_text_is_cut_between_two_characters)
{
	char out[10];

	ob_worker_text(out, sizeof(out), OB_STR("short"));
	ck_assert_str_eq(out, "short");
	ob_worker_text(out, sizeof(out), OB_STR("0123456789"));
	ck_assert_str_eq(out, "012345…");
	ob_worker_text(out, sizeof(out), OB_STR("01234ßßßß"));
	ck_assert_str_eq(out, "01234…");
	ob_worker_text(out, sizeof(out), OB_STR("a\nb"));
	ck_assert_str_eq(out, "a b");
}
OB_TEST_END

OB_SUITE("worker_report", what_was_written_is_read_back, an_empty_one_is_short_and_says_nothing,
	 what_does_not_fit_is_left_out_as_a_whole, whatever_stands_there_is_read_without_harm,
	 a_long_text_is_cut_between_two_characters)
