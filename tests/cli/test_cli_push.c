/* SPDX-License-Identifier: MIT */
/* push: one message or many, all of them or none. */
#include "outbox.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "0196a1f0-3c5b-7000-8000-00c0ffee0001"

/* A database of its own for each test. */
static void begin_store(void)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(0, "created version 2 with 16 partitions\n", "", "setup", NULL);
}

static json_t *show(const char *id)
{
	struct ob_run r = outbox(NULL, "show", id, "--json", NULL);

	ck_assert_msg(r.code == 0, "%s", r.err);
	json_t *m = json_loads(r.out, 0, NULL);
	ck_assert_ptr_nonnull(m);
	ob_run_done(&r);
	return m;
}

static void check_text(const json_t *m, const char *key, const char *want)
{
	const char *have = json_string_value(json_object_get(m, key));

	ck_assert_msg(have != NULL, "%s is not a text", key);
	ck_assert_str_eq(have, want);
}

static void check_int(const json_t *m, const char *key, int64_t want)
{
	ck_assert_int_eq(json_integer_value(json_object_get(m, key)), want);
}

static size_t count_all(void)
{
	struct ob_run r = outbox(NULL, "list", "all", "--limit", "1000000", "--json", NULL);
	size_t lines = 0;

	ck_assert_msg(r.code == 0, "%s", r.err);
	for (const char *p = r.out; *p; p++)
		lines += *p == '\n';
	ob_run_done(&r);
	return lines;
}

OB_TEST(one_message_from_options_has_every_field)
{
	begin_store();
	expect(0, ID "\n", "", "push", "--type", "order", "--aggregate", "1042", "--event",
	       "Placed", "--payload", "{\"a\": 1.0}", "--headers", "{\"h\":1}", "--id", ID, "--key",
	       "k", "--target", "t", "--correlation", "co", "--causation", "ca", "--sequence", "7",
	       "--priority", "-3", "--revision", "2", "--delay", "1h", NULL);
	json_t *m = show(ID);
	check_text(m, "id", ID);
	check_text(json_array_get(json_object_get(m, "readers"), 0), "state", "delayed");
	check_text(m, "target", "t");
	check_text(m, "aggregate_type", "order");
	check_text(m, "aggregate_id", "1042");
	check_text(m, "event_type", "Placed");
	check_text(m, "key", "k");
	check_text(m, "partition_key", "k");
	check_text(m, "correlation_id", "co");
	check_text(m, "causation_id", "ca");
	check_int(m, "sequence_number", 7);
	check_int(m, "priority", -3);
	check_int(m, "revision", 2);
	json_t *state = json_array_get(json_object_get(m, "readers"), 0);
	check_int(state, "attempts", 0);
	ck_assert(json_is_object(json_object_get(m, "headers")));
	ck_assert(json_is_null(json_object_get(state, "published_at")));
	ck_assert(json_is_null(json_object_get(state, "reader")));
	json_decref(m);
	expect_in_output("\"payload\":{\"a\": 1.0}}", "show", ID, "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_new_id_is_made_and_printed)
{
	begin_store();
	struct ob_run r = outbox(NULL, "push", "--type", "order", "--event", "Placed", "--payload",
				 "1", "--json", NULL);
	ck_assert_int_eq(r.code, 0);
	json_t *line = json_loads(r.out, 0, NULL);
	json_t *m = show(json_string_value(json_object_get(line, "id")));
	check_text(m, "target", "default");
	check_text(json_array_get(json_object_get(m, "readers"), 0), "state", "pending");
	ck_assert(json_is_null(json_object_get(m, "key")));
	json_decref(m);
	json_decref(line);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_payload_comes_from_a_file_or_from_stdin)
{
	begin_store();
	put_file("body.json", "{\n  \"a\": 1\n}\n");
	expect(0, ID "\n", "", "push", "--type", "t", "--event", "e", "--id", ID, "--payload-file",
	       "body.json", NULL);
	expect_in_output("\"payload\":{   \"a\": 1 } }", "show", ID, "--json", NULL);
	expect_in("[2]", 0, ID "\n", "", "push", "--type", "t", "--event", "e", "--id", ID,
		  "--target", "two", "--payload-file", "-", NULL);
	expect_in("[3]", 0, ID "\n", "", "push", "--type", "t", "--event", "e", "--id", ID,
		  "--target", "three", "--payload", "-", NULL);
	expect_in_output("\"payload\":[3]}", "show", ID, "--json", NULL);
	expect(1, "", "outbox: nope.json: No such file or directory\n", "push", "--type", "t",
	       "--event", "e", "--payload-file", "nope.json", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_tombstone_has_no_payload)
{
	begin_store();
	expect(0, ID "\n", "", "push", "--type", "t", "--event", "e", "--id", ID, "--tombstone",
	       NULL);
	json_t *m = show(ID);
	ck_assert(json_is_true(json_object_get(m, "tombstone")));
	ck_assert(json_is_null(json_object_get(m, "payload")));
	json_decref(m);
	expect_in_output("payload          none: a tombstone\n", "show", ID, NULL);
	end();
}
OB_TEST_END

OB_TEST(what_the_store_refuses_is_one_line)
{
	begin_store();
	expect(1, "", "outbox: payload is not valid JSON: expected a key in quotes at byte 1\n",
	       "push", "--type", "t", "--event", "e", "--payload", "{x}", NULL);
	expect(1, "", "outbox: headers are not a valid JSON object: expected an object at byte 0\n",
	       "push", "--type", "t", "--event", "e", "--payload", "1", "--headers", "[]", NULL);
	expect(1, "", "outbox: id 'x' is not a UUID\n", "push", "--type", "t", "--event", "e",
	       "--payload", "1", "--id", "x", NULL);
	expect(1, "", "outbox: aggregate_type is not valid UTF-8\n", "push", "--type", "\xff",
	       "--event", "e", "--payload", "1", NULL);
	expect(0, NULL, "", "push", "--type", "t", "--event", "e", "--payload", "1", "--id", ID,
	       NULL);
	expect(1, "", "outbox: id " ID " is already stored for target 'default'\n", "push",
	       "--type", "t", "--event", "e", "--payload", "1", "--id", ID, NULL);
	ck_assert_uint_eq(count_all(), 1);
	end();
}
OB_TEST_END

#define LINE(id) "{\"aggregate_type\":\"t\",\"event_type\":\"e\",\"payload\":" id "}\n"

OB_TEST(many_lines_are_stored_in_their_order)
{
	begin_store();
	expect_in(LINE("1") "\n  \r\n" LINE("{\"b\" : 2}") LINE("\"three\""), 0,
		  "3 messages pushed\n", "", "push", NULL);
	struct ob_run r = outbox(NULL, "list", "--json", NULL);
	const char *one = strstr(r.out, "\"payload\":1}"),
		   *two = strstr(r.out, "\"payload\":{\"b\" : 2}}"),
		   *three = strstr(r.out, "\"payload\":\"three\"}");
	ck_assert(one && two && three && one < two && two < three);
	ob_run_done(&r);
	expect_in(LINE("1"), 0, "1 message pushed\n", "", "push", NULL);
	expect_in("", 0, "0 messages pushed\n", "", "push", NULL);
	expect(0, "0 messages pushed\n", "", "push", NULL);
	end();
}
OB_TEST_END

OB_TEST(the_ids_of_many_are_printed_in_their_order)
{
	begin_store();
	struct ob_run r = outbox(LINE("1") LINE("2"), "push", "--json", NULL);
	char first[37], second[37];

	ck_assert_int_eq(r.code, 0);
	ck_assert_int_eq(sscanf(r.out, "{\"id\":\"%36[0-9a-f-]\"}\n{\"id\":\"%36[0-9a-f-]\"}\n",
				first, second),
			 2);
	expect_in_output("\"payload\":2}", "show", second, "--json", NULL);
	expect_in_output("\"payload\":1}", "show", first, "--json", NULL);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_broken_line_7_of_10_stores_nothing)
{
	begin_store();
	char in[2000] = "";
	size_t n = 0;

	for (int i = 1; i <= 10; i++)
		n += (size_t)snprintf(in + n, sizeof(in) - n, "%s",
				      i == 7 ? "{\"aggregate_type\":\"t\",}\n" : LINE("1"));
	expect_in(in, 1, "", "outbox: stdin:7: column 23: expected a key after ','\n", "push",
		  NULL);
	ck_assert_uint_eq(count_all(), 0);
	end();
}
OB_TEST_END

OB_TEST(every_fault_of_a_line_is_told_with_its_number)
{
	begin_store();
	expect_in(LINE("1") "{\"agregate_type\":\"t\"}\n", 1, "",
		  "outbox: stdin:2: unknown key 'agregate_type'; did you mean 'aggregate_type'?\n",
		  "push", NULL);
	expect_in(LINE("1") "{\"aggregate_type\":\"\\u0000\"}\n", 1, "",
		  "outbox: stdin:2: aggregate_type: the text contains a NUL\n", "push", NULL);
	expect_in(LINE("1") "\n\n{\"aggregate_type\":\"\xff\"}\n", 1, "",
		  "outbox: stdin:4: column 20: invalid UTF-8 in a string\n", "push", NULL);
	expect_in(LINE("1") LINE("2,\"id\":\"x\""), 1, "",
		  "outbox: stdin:2: id 'x' is not a UUID\n", "push", NULL);
	expect_in(LINE("1") LINE("2,\"id\":\"" ID "\"") "\n" LINE("3,\"id\":\"" ID "\""), 1, "",
		  "outbox: stdin:4: id " ID " is already stored for target 'default'\n", "push",
		  NULL);
	expect_in("\"text\"\n", 1, "", "outbox: stdin:1: column 1: expected an object\n", "push",
		  NULL);
	ck_assert_uint_eq(count_all(), 0);
	end();
}
OB_TEST_END

OB_TEST(a_fault_in_a_late_chunk_undoes_the_early_ones)
{
	enum { LINES = 2500 };
	begin_store();
	char *in = malloc(LINES * sizeof(LINE("1")) + 100);
	size_t n = 0;

	for (int i = 0; i < LINES; i++)
		n += (size_t)snprintf(in + n, sizeof(LINE("1")), "%s", LINE("1"));
	(void)snprintf(in + n, 100, "{}\n");
	expect_in(in, 1, "", "outbox: stdin:2501: aggregate_type is missing\n", "push", NULL);
	ck_assert_uint_eq(count_all(), 0);
	in[n] = '\0';
	expect_in(in, 0, "2500 messages pushed\n", "", "push", NULL);
	ck_assert_uint_eq(count_all(), LINES);
	free(in);
	end();
}
OB_TEST_END

/* A line whose payload is a string of `size` bytes. */
static char *line_of(size_t size)
{
	static const char head[] = "{\"aggregate_type\":\"t\",\"event_type\":\"e\",\"payload\":\"";
	char *line = malloc(size + sizeof(head) + 10);

	memcpy(line, head, sizeof(head) - 1);
	memset(line + sizeof(head) - 1, 'x', size - 2);
	(void)snprintf(line + sizeof(head) - 1 + size - 2, 10, "\"}\n");
	return line;
}

OB_TEST(a_payload_of_64_mb_is_refused)
{
	enum { MB = 1 << 20 };
	begin_store();
	char *line = line_of((size_t)64 * MB);
	expect_in(line, 1, "", "outbox: stdin:1: the line is longer than 48 MB\n", "push", NULL);
	expect_in(line, 1, "", "outbox: stdin: a payload may have at most 32 MB\n", "push",
		  "--type", "t", "--event", "e", "--payload-file", "-", NULL);
	free(line);
	line = line_of((size_t)32 * MB + 1);
	expect_in(line, 1, "", "outbox: stdin:1: payload is longer than 33554432 bytes\n", "push",
		  NULL);
	free(line);
	ck_assert_uint_eq(count_all(), 0);
	line = line_of((size_t)32 * MB);
	expect_in(line, 0, "1 message pushed\n", "", "push", NULL);
	free(line);
	end();
}
OB_TEST_END

OB_TEST(a_dash_reads_standard_input_too)
{
	begin_store();
	expect_in("{\"aggregate_type\":\"t\",\"event_type\":\"e\",\"payload\":1}\n", 0,
		  "1 message pushed\n", "", "push", "-", NULL);
	expect(2, "", "outbox: push: one word too many: 'x'\n", "push", "x", NULL);
	expect(2, "",
	       "outbox: push: - reads messages from standard input: leave the options out, or the "
	       "-\n",
	       "push", "-", "--type", "t", NULL);
	end();
}
OB_TEST_END

static void push_many(int count)
{
	char *lines = malloc((size_t)count * 64 + 1), *at = lines;

	ck_assert_ptr_nonnull(lines);
	for (int i = 0; i < count; i++)
		at += snprintf(at, 64, "%s",
			       "{\"aggregate_type\":\"t\",\"event_type\":\"e\",\"payload\":1}\n");
	expect_in(lines, 0, NULL, "", "push", NULL);
	free(lines);
}

OB_TEST(a_list_for_programs_is_whole)
{
	begin_store();
	push_many(120);
	struct ob_run r = outbox(NULL, "list", "--json", NULL);
	size_t lines = 0;

	for (const char *p = r.out; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, 120);
	ob_run_done(&r);
	expect_in_output("more: --after 50\n", "list", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_log_whose_messages_are_out_is_not_empty)
{
	begin_store();
	expect(0, "no messages\n", "", "list", NULL);
	push_many(1);
	expect(0, NULL, NULL, "work", "--once", "--sink", "stdout", NULL);
	expect(0, "no message is waiting: 'outbox list all' shows those that are out\n", "", "list",
	       NULL);
	expect(0, "no messages\n", "", "list", "dead", NULL);
	expect_in_output("\"oldest_due_ms\":null", "status", "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_message_is_found_by_its_number_or_the_beginning_of_its_id)
{
	begin_store();
	expect(0, ID "\n", "", "push", "--type", "t", "--event", "e", "--payload", "1", "--id", ID,
	       NULL);
	push_many(1);
	expect_in_output("\"id\":\"" ID "\"", "show", "1", "--json", NULL);
	expect_in_output("\"id\":\"" ID "\"", "show", "0196a1f0-3c", "--json", NULL);
	expect_in_output("\"id\":\"" ID "\"", "why", "1", "--json", NULL);
	expect(1, "", "outbox: no message has the number 7\n", "show", "7", NULL);
	expect(1, "",
	       "outbox: no id begins with ffff among the newest 10000 messages; give the whole "
	       "id\n",
	       "show", "ffff", NULL);
	expect(0, NULL, "", "push", "--type", "t", "--event", "e", "--payload", "1", "--id",
	       "0196a1f0-3c5b-7000-8000-00c0ffee0002", NULL);
	expect(1, "", "outbox: 2 ids begin with 0196a1f0: give more of it\n", "show", "0196a1f0",
	       NULL);
	expect(2, "",
	       "outbox: show: 'x' is not a UUID, nor the beginning of one (4 characters at least), "
	       "nor a number of the log\n",
	       "show", "x", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_target_that_nobody_reads_is_told)
{
	begin();
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:test.db' } }\n"
		 "sinks: { out: { type: file, path: out.ndjson } }\n"
		 "relays: [ { name: mail, reads: mail } ]\n");
	expect(0, NULL, "", "setup", NULL);
	expect(0, NULL, "outbox: warning: no relay reads target 'default': its messages wait\n",
	       "push", "--type", "t", "--event", "e", "--payload", "1", NULL);
	expect(0, NULL, "", "push", "--type", "t", "--event", "e", "--payload", "1", "--target",
	       "mail", NULL);
	expect_in(
		"{\"aggregate_type\":\"t\",\"event_type\":\"e\",\"payload\":1,\"target\":\"x\"}\n",
		0, "1 message pushed\n",
		"outbox: warning: no relay reads target 'x': its messages wait\n", "push", NULL);
	expect(0, NULL,
	       "outbox: warning: outbox.yaml: no relay reads target 'default', where messages go "
	       "that name none\n",
	       "config", "check", NULL);
	struct ob_run r = outbox(NULL, "work", "--once", NULL);
	ck_assert_ptr_nonnull(strstr(r.err,
				     "no relay reads this target, its messages wait\" "
				     "target=x store=main"));
	ck_assert_ptr_nonnull(strstr(r.out, "mail: 1 published"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_password_on_the_command_line_is_warned_of)
{
	begin();
	struct ob_run r =
		outbox(NULL, "--store", "mysql://u:s3cr3t@127.0.0.1:1/shop", "list", NULL);

	ck_assert_ptr_nonnull(strstr(r.err, "outbox: warning: --store holds a password"));
	ck_assert_ptr_null(strstr(r.err, "s3cr3t"));
	ob_run_done(&r);
	r = outbox(NULL, "--store", "mysql://sp:p@ss/w:rd#1@host/db", "list", NULL);
	ck_assert_int_ne(r.code, 0);
	ck_assert_ptr_null(strstr(r.err, "w:rd"));
	ck_assert_ptr_null(strstr(r.err, "ss/"));
	ob_run_done(&r);
	r = outbox(NULL, "--store", "postgresql://sp:p@ss/w:rd#1@host/db", "list", NULL);
	ck_assert_int_ne(r.code, 0);
	ck_assert_ptr_null(strstr(r.err, "w:rd"));
	ck_assert_ptr_null(strstr(r.err, "ss/"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_SUITE("cli_push", one_message_from_options_has_every_field, a_new_id_is_made_and_printed,
	 a_payload_comes_from_a_file_or_from_stdin, a_tombstone_has_no_payload,
	 what_the_store_refuses_is_one_line, many_lines_are_stored_in_their_order,
	 the_ids_of_many_are_printed_in_their_order, a_broken_line_7_of_10_stores_nothing,
	 every_fault_of_a_line_is_told_with_its_number,
	 a_fault_in_a_late_chunk_undoes_the_early_ones, a_payload_of_64_mb_is_refused,
	 a_dash_reads_standard_input_too, a_list_for_programs_is_whole,
	 a_log_whose_messages_are_out_is_not_empty,
	 a_message_is_found_by_its_number_or_the_beginning_of_its_id,
	 a_target_that_nobody_reads_is_told, a_password_on_the_command_line_is_warned_of)
