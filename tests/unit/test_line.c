/* SPDX-License-Identifier: MIT */
/* Lines of NDJSON, byte by byte. */
#include "sink/line.h"
#include "suite.h"

#include <stdlib.h>

static struct ob_message message(void)
{
	struct ob_message m = { .seq = 5,
				.aggregate_type = OB_STR("order"),
				.event_type = OB_STR("OrderPlaced"),
				.revision = 1 };

	for (uint8_t i = 0; i < 16; i++)
		m.id.b[i] = i;
	return m;
}

static void check_line(const struct ob_delivery *delivery, const char *expected)
{
	struct ob_buf out = OB_BUF_INIT(OB_LINE_BUF_MAX);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_line_add(&out, delivery, &err), 0);
	ck_assert_str_eq(ob_buf_str(&out), expected);
	ob_buf_done(&out);
}

#define HEAD "{\"id\":\"00010203-0405-0607-0809-0a0b0c0d0e0f\",\"destination\":\"orders\","

OB_TEST(absent_fields_are_left_out)
{
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m,
				 .destination = OB_STR("orders"),
				 .body = OB_STR("{\"a\":1}") };

	check_line(&d, HEAD
		   "\"aggregate_type\":\"order\",\"event_type\":\"OrderPlaced\","
		   "\"revision\":1,\"payload\":{\"a\":1}}\n");
}
OB_TEST_END

OB_TEST(all_fields_stand_in_a_fixed_order)
{
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m,
				 .destination = OB_STR("orders"),
				 .key = OB_STR("order:1"),
				 .content_type = OB_STR("application/json; charset=utf-8"),
				 .body = OB_STR("1") };

	m.aggregate_id = OB_STR("1");
	m.revision = 3;
	m.sequence_number = 9223372036854775807;
	m.correlation_id = OB_STR("c");
	m.causation_id = OB_STR("d");
	m.occurred_at_us = 1700000000000001;
	m.priority = -5;
	m.headers = OB_STR("{\n\"h\": 1}");
	check_line(&d, HEAD
		   "\"key\":\"order:1\",\"aggregate_type\":\"order\",\"aggregate_id\":\"1\","
		   "\"event_type\":\"OrderPlaced\",\"revision\":3,"
		   "\"sequence_number\":9223372036854775807,\"correlation_id\":\"c\","
		   "\"causation_id\":\"d\",\"occurred_at\":\"2023-11-14T22:13:20.000001Z\","
		   "\"priority\":-5,\"headers\":{ \"h\": 1},"
		   "\"content_type\":\"application/json; charset=utf-8\",\"payload\":1}\n");
}
OB_TEST_END

#define PLAIN HEAD "\"aggregate_type\":\"order\",\"event_type\":\"OrderPlaced\",\"revision\":1,"

OB_TEST(a_body_that_is_not_json_or_not_called_json_is_base64)
{
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m,
				 .destination = OB_STR("orders"),
				 .body = OB_STR("{\"a\":") };

	check_line(&d, PLAIN "\"payload_base64\":\"eyJhIjo=\"}\n");
	d.body = OB_STR("");
	check_line(&d, PLAIN "\"payload_base64\":\"\"}\n");
	d.body = OB_STR("123");
	d.content_type = OB_STR("text/plain");
	check_line(&d, PLAIN "\"content_type\":\"text/plain\",\"payload_base64\":\"MTIz\"}\n");
	d.content_type = OB_STR("application/cloudevents+JSON");
	check_line(&d,
		   PLAIN "\"content_type\":\"application/cloudevents+JSON\",\"payload\":123}\n");
}
OB_TEST_END

OB_TEST(a_tombstone_says_so)
{
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m, .destination = OB_STR("orders") };

	check_line(&d, PLAIN "\"payload\":null,\"tombstone\":true}\n");
}
OB_TEST_END

OB_TEST(stored_headers_that_are_no_object_become_a_string)
{
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m,
				 .destination = OB_STR("orders"),
				 .body = OB_STR("0") };

	m.headers = OB_STR("a\nb\"");
	check_line(&d, PLAIN "\"headers\":\"a\\nb\\\"\",\"payload\":0}\n");
}
OB_TEST_END

OB_TEST(times_before_1970_and_far_away_are_right_or_left_out)
{
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m,
				 .destination = OB_STR("orders"),
				 .body = OB_STR("0") };

	m.occurred_at_us = -1;
	check_line(&d, PLAIN "\"occurred_at\":\"1969-12-31T23:59:59.999999Z\",\"payload\":0}\n");
	m.occurred_at_us = INT64_MAX;
	check_line(&d, PLAIN "\"payload\":0}\n");
	m.occurred_at_us = INT64_MIN;
	check_line(&d, PLAIN "\"payload\":0}\n");
}
OB_TEST_END

OB_TEST(a_failure_leaves_the_buffer_as_it_was)
{
	struct ob_buf out = OB_BUF_INIT(100);
	struct ob_err err = OB_ERR_INIT;
	struct ob_message m = message();
	struct ob_delivery d = { .message = &m,
				 .destination = OB_STR("orders"),
				 .body = OB_STR("0") };

	ob_buf_adds(&out, "before");
	ck_assert_int_eq(ob_line_add(&out, &d, &err), OUTBOX_ENOMEM);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(ob_buf_str(&out), "before");
	ck_assert(!out.failed);
	char *big = calloc(1, OB_LINE_INPUT_MAX + 1);
	ck_assert_ptr_nonnull(big);
	d.body = (struct ob_str){ big, OB_LINE_INPUT_MAX + 1 };
	ck_assert_int_lt(ob_line_add(&out, &d, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	ck_assert_str_eq(ob_buf_str(&out), "before");
	free(big);
	ob_buf_done(&out);
}
OB_TEST_END

OB_SUITE("line", absent_fields_are_left_out, all_fields_stand_in_a_fixed_order,
	 a_body_that_is_not_json_or_not_called_json_is_base64, a_tombstone_says_so,
	 stored_headers_that_are_no_object_become_a_string,
	 times_before_1970_and_far_away_are_right_or_left_out,
	 a_failure_leaves_the_buffer_as_it_was)
