/* SPDX-License-Identifier: MIT */
/* One line of JSON becomes one message, and nothing is lost or changed on the way. */
#include "cli/push/ndjson.h"
#include "suite.h"

#include <stdlib.h>

static struct ob_arena arena = { .max = 256 << 20 };
static struct outbox_message msg;
static struct ob_err err;

static int read_line(const char *line)
{
	msg = (struct outbox_message){ 0 };
	err = OB_ERR_INIT;
	return ob_ndjson_read(ob_str(line), &arena, &msg, &err);
}

/* The rest of a message around what is tested. */
#define LINE(rest) "{\"aggregate_type\":\"order\",\"event_type\":\"Placed\"," rest "}"
#define WITH(rest) LINE("\"payload\":1," rest)

static void check_fault(const char *line, const char *message)
{
	ck_assert_int_lt(read_line(line), 0);
	ck_assert_str_eq(err.msg, message);
}

static void check_payload(const char *json)
{
	char line[1000];

	(void)snprintf(line, sizeof(line), LINE("\"payload\" : %s "), json);
	ck_assert_msg(read_line(line) == 0, "%s: %s", line, err.msg);
	ck_assert_uint_eq(msg.payload_size, strlen(json));
	ck_assert_mem_eq(msg.payload, json, strlen(json) + 1);
}

OB_TEST(every_key_reaches_its_member)
{
	ck_assert_int_eq(
		read_line(
			"{\"aggregate_type\":\"order\",\"aggregate_id\":\"1042\","
			"\"event_type\":\"Placed\",\"payload\":{\"a\":1},\"headers\":{\"h\":\"x\"},"
			"\"id\":\"0196a1f0-3c5b-7000-8000-00c0ffee0001\",\"partition_key\":\"k\","
			"\"target\":\"t\",\"correlation_id\":\"co\",\"causation_id\":\"ca\","
			"\"sequence_number\":9223372036854775807,\"priority\":-32768,"
			"\"delay\":\"5s\",\"revision\":2,\"occurred_at\":1700000000000001,"
			"\"snapshot\":[1],\"tombstone\":false}"),
		0);
	ck_assert_str_eq(msg.aggregate_type, "order");
	ck_assert_str_eq(msg.aggregate_id, "1042");
	ck_assert_str_eq(msg.event_type, "Placed");
	ck_assert_str_eq(msg.payload, "{\"a\":1}");
	ck_assert_str_eq(msg.headers, "{\"h\":\"x\"}");
	ck_assert_uint_eq(msg.headers_size, 9);
	ck_assert_str_eq(msg.id, "0196a1f0-3c5b-7000-8000-00c0ffee0001");
	ck_assert_str_eq(msg.partition_key, "k");
	ck_assert_str_eq(msg.target, "t");
	ck_assert_str_eq(msg.correlation_id, "co");
	ck_assert_str_eq(msg.causation_id, "ca");
	ck_assert_int_eq(msg.sequence_number, INT64_MAX);
	ck_assert_int_eq(msg.priority, -32768);
	ck_assert_uint_eq(msg.delay_ms, 5000);
	ck_assert_int_eq(msg.revision, 2);
	ck_assert_int_eq(msg.occurred_at_us, 1700000000000001);
	ck_assert_str_eq(msg.snapshot, "[1]");
	ck_assert_uint_eq(msg.snapshot_size, 3);
	ck_assert_uint_eq(msg.flags, 0);
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(a_payload_is_kept_byte_for_byte)
{
	check_payload("null");
	check_payload("0");
	check_payload("-0.10e+0300");
	check_payload("123456789012345678901234567890");
	check_payload("\"a \\u00e9 \\\\ \\\" } ] , b\"");
	check_payload("{ \"b\" : 1 , \"a\" : [ 1 , { } , \"}\\\"{\" ] , \"a\" : 2 }");
	check_payload("[]");
	check_payload("[[[\"]\"]],\t{\"x\":\"{\"}]");
	check_payload("true");
	check_payload("\"\xC3\xA9\"");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(texts_are_decoded)
{
	ck_assert_int_eq(
		read_line(WITH("\"aggregate_id\":\"\\u00e9\\ud83d\\ude00\\n\\/\\\"\\\\\"")), 0);
	ck_assert_str_eq(msg.aggregate_id, "\xC3\xA9\xF0\x9F\x98\x80\n/\"\\");
	ck_assert_int_eq(read_line(WITH("\"aggr\\u0065gate_id\":\"x\\b\\f\\r\\t\\u20ac\"")), 0);
	ck_assert_str_eq(msg.aggregate_id, "x\b\f\r\t\xE2\x82\xAC");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(a_text_with_a_nul_is_refused)
{
	check_fault(WITH("\"aggregate_id\":\"a\\u0000b\""),
		    "aggregate_id: the text contains a NUL");
	ck_assert_int_lt(
		ob_ndjson_read((struct ob_str){ "{\"id\":\"\0\"}", 10 }, &arena, &msg, &err), 0);
	ck_assert_str_eq(err.msg, "column 8: a control character in a string must be escaped");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(null_leaves_a_field_out)
{
	ck_assert_int_eq(
		read_line(WITH("\"aggregate_id\":null,\"headers\":null,\"delay\":null,"
			       "\"priority\":null,\"occurred_at\":null,\"tombstone\":null")),
		0);
	ck_assert_ptr_null(msg.aggregate_id);
	ck_assert_ptr_null(msg.headers);
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(base64_becomes_bytes)
{
	ck_assert_int_eq(read_line(LINE("\"payload_base64\":\"AAEC/w==\"")), 0);
	ck_assert_uint_eq(msg.payload_size, 4);
	ck_assert_mem_eq(msg.payload, "\0\1\2\377", 4);
	ck_assert_int_eq(read_line(LINE("\"payload_base64\":\"YWI=\"")), 0);
	ck_assert_str_eq(msg.payload, "ab");
	ck_assert_int_eq(read_line(LINE("\"payload_base64\":\"\"")), 0);
	ck_assert_ptr_nonnull(msg.payload);
	ck_assert_uint_eq(msg.payload_size, 0);
	check_fault(LINE("\"payload_base64\":\"YWI\""), "payload_base64: it is not Base64");
	check_fault(LINE("\"payload_base64\":\"Y===\""), "payload_base64: it is not Base64");
	check_fault(LINE("\"payload_base64\":\"YWJ=\""), "payload_base64: it is not Base64");
	check_fault(LINE("\"payload_base64\":\"YW==YWI=\""), "payload_base64: it is not Base64");
	check_fault(LINE("\"payload_base64\":\"YW J\""), "payload_base64: it is not Base64");
	check_fault(LINE("\"payload_base64\":1"), "payload_base64: it is not a string");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(times_are_rfc_3339_or_microseconds)
{
	ck_assert_int_eq(read_line(WITH("\"occurred_at\":\"2026-05-01T12:00:00.123456Z\"")), 0);
	ck_assert_int_eq(msg.occurred_at_us, 1777636800123456);
	ck_assert_int_eq(read_line(WITH("\"occurred_at\":\"2026-05-01t14:00:00+02:00\"")), 0);
	ck_assert_int_eq(msg.occurred_at_us, 1777636800000000);
	ck_assert_int_eq(read_line(WITH("\"occurred_at\":\"2024-02-29T00:00:00.000000999Z\"")), 0);
	ck_assert_int_eq(msg.occurred_at_us, 1709164800000000);
	/* An event may be older than the clock of computers. */
	ck_assert_int_eq(read_line(WITH("\"occurred_at\":\"1969-12-31T23:59:59Z\"")), 0);
	ck_assert_int_eq(msg.occurred_at_us, -1000000);
	ck_assert_int_eq(read_line(WITH("\"occurred_at\":\"1000-01-01T00:00:00Z\"")), 0);
	static const char *const bad[] = {
		"2026-05-01",
		"2026-05-01T12:00:00",
		"2025-02-29T00:00:00Z",
		"2026-13-01T00:00:00Z",
		"2026-05-01T24:00:00Z",
		"2026-05-01T12:60:00Z",
		"2026-05-01T12:00:61Z",
		"0999-12-31T23:59:59Z",
		"2026-05-01T12:00:00.Z",
		"2026-05-01T12:00:00Zx",
		"2026-05-01T12:00:00+2",
		"",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char line[200];

		(void)snprintf(line, sizeof(line), WITH("\"occurred_at\":\"%s\""), bad[i]);
		check_fault(line, "occurred_at: it is not a time such as 2026-05-01T12:00:00Z");
	}
	check_fault(WITH("\"occurred_at\":1.5"),
		    "occurred_at: 1.5 is not a number from 1 to 9223372036854775807");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(a_tombstone_has_no_payload)
{
	ck_assert_int_eq(read_line(LINE("\"tombstone\":true")), 0);
	ck_assert_ptr_null(msg.payload);
	ck_assert_uint_eq(msg.flags, OUTBOX_TOMBSTONE);
	check_fault(WITH("\"tombstone\":true"), "tombstone: there is a payload");
	check_fault(LINE("\"tombstone\":1"), "tombstone: it is not true or false");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(what_is_missing_is_named)
{
	check_fault("{\"event_type\":\"x\",\"payload\":1}", "aggregate_type is missing");
	check_fault("{\"aggregate_type\":\"x\",\"payload\":1}", "event_type is missing");
	check_fault("{\"aggregate_type\":\"x\",\"event_type\":\"x\"}",
		    "payload is missing; \"tombstone\": true says there is none");
	check_fault("{}", "aggregate_type is missing");
}
OB_TEST_END

OB_TEST(a_wrong_key_is_named_with_the_right_one)
{
	check_fault(WITH("\"agregate_id\":\"1\""),
		    "unknown key 'agregate_id'; did you mean 'aggregate_id'?");
	check_fault(WITH("\"colour\":\"1\""), "unknown key 'colour'");
	check_fault(WITH("\"payload\":2"), "payload: it is given twice");
	check_fault(WITH("\"payload_base64\":\"YWI=\""),
		    "payload_base64: there is a payload already");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(a_wrong_type_is_named)
{
	check_fault(WITH("\"aggregate_id\":42"), "aggregate_id: it is not a string");
	check_fault(WITH("\"headers\":[]"), "headers: it is not an object");
	check_fault(WITH("\"priority\":40000"),
		    "priority: 40000 is not a number from -32768 to 32767");
	check_fault(WITH("\"priority\":\"1\""),
		    "priority: \"1\" is not a number from -32768 to 32767");
	check_fault(WITH("\"sequence_number\":0"),
		    "sequence_number: 0 is not a number from 1 to 9223372036854775807");
	check_fault(WITH("\"sequence_number\":9223372036854775808"),
		    "sequence_number: 9223372036854775808 is not a number from 1 to "
		    "9223372036854775807");
	check_fault(WITH("\"delay\":\"soon\""),
		    "delay: 'soon' is not a duration (such as 15s) from 0ms to 3650d");
	check_fault(WITH("\"delay\":-1"),
		    "delay: '-1' is not a duration (such as 15s) from 0ms to 3650d");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(broken_json_is_told_with_its_column)
{
	check_fault("{\"payload\":}", "column 12: expected a value, not a closing bracket");
	check_fault("[]", "column 1: expected an object");
	check_fault("{\"a\":1", "column 7: the text ends inside an object");
	check_fault("{\"a\":\"\xff\"}", "column 7: invalid UTF-8 in a string");
}
OB_TEST_END

OB_TEST(running_out_of_memory_is_an_error)
{
	struct ob_arena small = OB_ARENA_INIT(64);

	err = OB_ERR_INIT;
	ck_assert_int_eq(ob_ndjson_read(ob_str(WITH("\"aggregate_id\":\"12345678901234567890\"")),
					&small, &msg, &err),
			 OUTBOX_ENOMEM);
	ob_arena_done(&small);
}
OB_TEST_END

OB_SUITE("ndjson", every_key_reaches_its_member, a_payload_is_kept_byte_for_byte, texts_are_decoded,
	 a_text_with_a_nul_is_refused, null_leaves_a_field_out, base64_becomes_bytes,
	 times_are_rfc_3339_or_microseconds, a_tombstone_has_no_payload, what_is_missing_is_named,
	 a_wrong_key_is_named_with_the_right_one, a_wrong_type_is_named,
	 broken_json_is_told_with_its_column, running_out_of_memory_is_an_error)
