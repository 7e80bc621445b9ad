/* SPDX-License-Identifier: MIT */
/* doctor: a finding for each thing that is wrong with a database, a sink or the configuration. */
#include "database.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

static json_t *found;

/* Run it; what it found stays until the next call. */
static void examine(int code)
{
	struct ob_run run = outbox(NULL, "doctor", "--json", NULL);

	ck_assert_msg(run.code == code, "%d: %s%s", run.code, run.out, run.err);
	json_decref(found);
	found = json_loads(run.out, 0, NULL);
	ck_assert_msg(found != NULL, "%s", run.out);
	ob_run_done(&run);
}

/* Demand a finding of that code and level whose text holds this; NULL level: that there is none. */
static void expect_finding(const char *code, const char *level, const char *text)
{
	json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(found, "findings"), i, finding)
	{
		if (strcmp(json_string_value(json_object_get(finding, "code")), code) != 0)
			continue;
		ck_assert_msg(level != NULL, "%s", json_dumps(finding, 0));
		if (strcmp(json_string_value(json_object_get(finding, "level")), level) == 0 &&
		    strstr(json_string_value(json_object_get(finding, "text")), text)) {
			ck_assert_int_eq(strcmp(level, "ok") == 0,
					 json_is_null(json_object_get(finding, "advice")));
			return;
		}
	}
	ck_assert_msg(level == NULL, "no %s %s '%s' in %s", level, code, text,
		      json_dumps(found, 0));
}

/* A configuration with the relay default from main to that sink. */
static void configure(const char *stores, const char *sinks, const char *sink)
{
	char text[2000];

	(void)snprintf(text, sizeof(text),
		       "stores:\n  main: { url: \"sqlite:test.db\" }\n%s"
		       "sinks:\n%srelays:\n  - { name: default, store: main, sink: %s }\n",
		       stores, sinks, sink);
	put_file("outbox.yaml", text);
}

#define FILE_SINK "  out: { type: file, path: out.ndjson }\n"

static void begin_doctor(void)
{
	begin_database();
	set_env("OUTBOX_STORE=");
	set_env("OUTBOX_CONFIG=outbox.yaml");
}

OB_TEST(a_sound_configuration_has_no_finding_but_that_nobody_works)
{
	begin_doctor();
	configure("", FILE_SINK, "out");
	examine(0);
	expect_finding("config_rights", "ok", "holds no password");
	expect_finding("store_connect", "ok", "SQLite");
	expect_finding("store_schema", "ok", "schema version");
	expect_finding("clock_skew", "ok", "agree");
	expect_finding("target_unread", "ok", "");
	expect_finding("sink_connect", "ok", "file");
	expect_finding("relay_stopped", "warning", "no worker runs relay default");
	ck_assert_int_eq(json_integer_value(json_object_get(found, "errors")), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(found, "warnings")), 1);
	end();
}
OB_TEST_END

OB_TEST(readers_that_are_left_and_messages_that_are_dead_or_late_are_told)
{
	begin_doctor();
	configure("", FILE_SINK, "out");
	add_reader("mail", "default");
	row(1, "order", "1", DEAD);
	row(2, "order", "2", PENDING);
	sql("UPDATE outbox SET created_at = " NOW " - 10.5 * " MINUTES);
	sql("UPDATE outbox SET target = 'nobody' WHERE seq = 2");
	examine(0);
	expect_finding("reader_left", "warning", "nobody runs reader mail");
	expect_finding("dead_messages", "warning", "1 message(s) of reader default are dead");
	expect_finding("oldest_due", "warning", "a message of reader mail is due for 10m");
	expect_finding("target_unread", "warning", "nobody reads target 'nobody'");
	end();
}
OB_TEST_END

OB_TEST(more_workers_than_partitions_are_told)
{
	begin_doctor();
	configure("", FILE_SINK, "out");
	sql("INSERT INTO outbox_leases (reader, partition_no, lease_epoch, updated_at) "
	    "VALUES "
	    "('default', 0, 1, " NOW ")");
	sql("INSERT INTO outbox_workers (id, reader, hostname, pid, started_at, "
	    "heartbeat_until) "
	    "SELECT randomblob(16), 'default', 'h', 1, " NOW ", " NOW " + 5 * " MINUTES
	    " FROM outbox_batches LIMIT 2");
	examine(0);
	expect_finding("partitions", "warning", "reader default has 2 workers and 1 partitions");
	expect_finding("relay_stopped", "ok", "relay default has 2 worker(s)");
	end();
}
OB_TEST_END

OB_TEST(a_file_with_a_password_that_others_can_read_is_told)
{
	begin_doctor();
	configure("",
		  "  web: { type: http, url: \"http://127.0.0.1:1/\", allow_private: true, "
		  "authorization: hunter22 }\n",
		  "web");
	ck_assert_int_eq(chmod(path_of("outbox.yaml"), 0644), 0);
	examine(0);
	expect_finding("config_rights", "warning", "everybody on this machine can read it");
	ck_assert_int_eq(chmod(path_of("outbox.yaml"), 0640), 0);
	examine(0);
	expect_finding("config_rights", "warning", "its group can read it");
	ck_assert_int_eq(chmod(path_of("outbox.yaml"), 0600), 0);
	examine(0);
	expect_finding("config_rights", "ok", "only its owner can read it");
	struct ob_run run = outbox(NULL, "doctor", NULL);
	ck_assert_ptr_null(strstr(run.out, "hunter22"));
	ob_run_done(&run);
	end();
}
OB_TEST_END

OB_TEST(what_does_not_work_is_an_error_and_the_exit_code_is_one)
{
	begin_doctor();
	configure("  gone: { url: \"sqlite:none/x.db\" }\n  empty: { url: \"sqlite:empty.db\" }\n",
		  "  run: { type: exec, command: ./no-such-program }\n"
		  "  out: { type: file, path: none/out.ndjson }\n",
		  "run");
	examine(1);
	expect_finding("store_connect", "error", "none");
	expect_finding("store_schema", "error", "outbox setup");
	expect_finding("sink_options", "error", "there is no program './no-such-program'");
	expect_finding("sink_connect", "error", "none/out.ndjson");
	expect(1, NULL, "", "doctor", "--quiet", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_store_that_is_named_is_the_only_one)
{
	begin_doctor();
	configure("  gone: { url: \"sqlite:none/x.db\" }\n", FILE_SINK, "out");
	expect(1, NULL, "", "doctor", NULL);
	expect(0, NULL, "", "doctor", "--store", "main", NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_doctor", a_sound_configuration_has_no_finding_but_that_nobody_works,
	 readers_that_are_left_and_messages_that_are_dead_or_late_are_told,
	 more_workers_than_partitions_are_told, a_file_with_a_password_that_others_can_read_is_told,
	 what_does_not_work_is_an_error_and_the_exit_code_is_one,
	 a_store_that_is_named_is_the_only_one)
