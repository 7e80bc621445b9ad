/* SPDX-License-Identifier: MIT */
/* setup, list, show and status on a real database, good and bad. */
#include "database.h"

#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THE_ID "0196a1f0-3c5b-7000-8000-00c0ffee0001"

static void push(const char *type, const char *id, const char *event)
{
	expect(0, NULL, NULL, "push", "--type", type, "--aggregate", id, "--event", event,
	       "--payload", "{\"n\":[1,{}]}", NULL);
}

/* ---- setup ----------------------------------------------------------- */

OB_TEST(setup_says_what_it_did)
{
	begin();
	expect(0, NULL, "", "init", NULL);
	expect(0, "created version 2 with 16 partitions\n", "", "setup", NULL);
	expect(0, "already at version 2\n", "", "setup", NULL);
	expect(0, "already at version 2\n", "", "setup", "--partitions", "4", NULL);
	expect(0, "{\"from_version\":2,\"to_version\":2}\n", "", "setup", "--json", NULL);
	expect(0, "{\"from_version\":0,\"to_version\":2,\"partitions\":4}\n", "", "--store",
	       "sqlite:other.db", "setup", "--partitions", "4", "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_partitioned_log_needs_a_database_that_has_them)
{
	begin();
	expect(1, "", "outbox: SQLite has no partitioned tables: set it up without\n", "--store",
	       "sqlite:test.db", "setup", "--partitioned", NULL);
	end();
}
OB_TEST_END

OB_TEST(the_sql_that_setup_prints_makes_the_same_tables)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	struct ob_run r = outbox(NULL, "setup", "--print", "--partitions", "8", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_msg(access(path_of("test.db"), F_OK) != 0, "--print made a database");
	sql("%s", r.out);
	ob_run_done(&r);
	expect(0, "already at version 2\n", "", "setup", NULL);
	push("order", "1", "Placed");
	end();
}
OB_TEST_END

/* ---- databases that are not well ------------------------------------- */

OB_TEST(a_database_without_tables_says_what_to_do)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(1, "", "outbox: test.db: no such database; run `outbox setup`\n", "list", NULL);
	expect(1, "", "outbox: test.db: no such database; run `outbox setup`\n", "push", "--type",
	       "t", "--event", "e", "--payload", "1", NULL);
	ck_assert_msg(access(path_of("test.db"), F_OK) != 0, "it made a database");
	sql("CREATE TABLE mine (x)");
	expect(1, "", "outbox: test.db: table 'outbox' is missing; run `outbox setup`\n", "list",
	       NULL);
	end();
}
OB_TEST_END

OB_TEST(a_directory_that_does_not_exist_is_named)
{
	begin();
	expect(1, "",
	       "outbox: no/where/x.db: cannot use the directory 'no/where'; make it first: No such "
	       "file or directory\n",
	       "--store", "sqlite:no/where/x.db", "setup", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_locked_database_is_told)
{
	begin();
	put_file("outbox.yaml",
		 "stores: { main: { url: \"sqlite:test.db\", busy_timeout: 20ms } }\n");
	expect(0, NULL, "", "setup", NULL);
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open(path_of("test.db"), &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	expect(1, "",
	       "outbox: pushing: test.db: database is locked; another writer kept "
	       "it longer than "
	       "busy_timeout\n",
	       "push", "--type", "t", "--event", "e", "--payload", "1", NULL);
	expect(0, "no messages\n", "", "list", NULL); /* readers are not locked out */
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	expect(0, NULL, "", "push", "--type", "t", "--event", "e", "--payload", "1", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_read_only_database_is_told)
{
	begin_database();
	ck_assert_int_eq(chmod(path_of("test.db"), 0444), 0);
	expect(1, "",
	       "outbox: test.db: is read-only; make the file and its directory writable for this "
	       "user\n",
	       "push", "--type", "t", "--event", "e", "--payload", "1", NULL);
	ck_assert_int_eq(chmod(path_of("test.db"), 0), 0);
	expect(1, "",
	       "outbox: opening: test.db: unable to open database file (Permission denied); this "
	       "user "
	       "must be able to read and write the file and its directory\n",
	       "list", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_file_that_is_no_database_is_told)
{
	begin();
	put_file("test.db", "This is a text of some length, and it was never a database.\n");
	expect(1, "",
	       "outbox: opening: test.db: file is not a database; give the path "
	       "of "
	       "an SQLite database\n",
	       "--store", "sqlite:test.db", "list", NULL);
	expect(1, "", "outbox: .: is a directory; give the path of a file in it\n", "--store",
	       "sqlite:.", "list", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_corrupt_database_is_told)
{
	begin_database();
	push("order", "1", "Placed");
	sql("PRAGMA wal_checkpoint(TRUNCATE)");
	FILE *f = fopen(path_of("test.db"), "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, 100, SEEK_SET), 0);
	for (int i = 0; i < 3996; i++)
		ck_assert_int_ne(fputc(0xff, f), EOF);
	ck_assert_int_eq(fclose(f), 0);
	expect(1, "",
	       "outbox: opening: test.db: database disk image is malformed; "
	       "restore "
	       "a backup, or save what is left with the .recover command of sqlite3\n",
	       "list", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_newer_schema_is_left_alone)
{
	begin_database();
	sql("UPDATE outbox_meta SET value = 99 WHERE name = 'schema_version'");
	const char *line =
		"outbox: test.db: the tables have schema version 99, made by a newer "
		"outbox; upgrade this program (it knows 2)\n";
	expect(1, "", line, "setup", NULL);
	expect(1, "", line, "list", NULL);
	expect(1, "", line, "push", "--type", "t", "--event", "e", "--payload", "1", NULL);
	end();
}
OB_TEST_END

/* ---- looking --------------------------------------------------------- */

static const char *field(const json_t *m, const char *key)
{
	return json_string_value(json_object_get(m, key));
}

/* The event types of a listing, in order, with a space behind each. */
static void check_events(const char *want, const char *a, const char *b, const char *c)
{
	struct ob_run r = outbox(NULL, "list", "--json", a, b, c, NULL);
	char have[200] = "";
	size_t n = 0;

	ck_assert_msg(r.code == 0, "%s", r.err);
	for (char *line = r.out; *line;) {
		size_t size = strcspn(line, "\n");
		json_t *m = json_loadb(line, size, 0, NULL);

		ck_assert_ptr_nonnull(m);
		n += (size_t)snprintf(have + n, sizeof(have) - n, "%s ", field(m, "event_type"));
		json_decref(m);
		line += size + 1;
	}
	ck_assert_str_eq(have, want);
	ob_run_done(&r);
}

OB_TEST(a_list_is_narrowed_by_state_and_filter)
{
	begin_database();
	push("order", "1", "A");
	row(2, "order", "2", PUBLISHED);
	push("user", "1", "C");
	expect(0, NULL, NULL, "push", "--type", "order", "--event", "D", "--payload", "1",
	       "--delay", "1h", NULL);
	expect(0, NULL, NULL, "push", "--type", "order", "--event", "E", "--payload", "1",
	       "--target", "audit", NULL);
	check_events("A C D ", NULL, NULL, NULL);
	check_events("A Happened C D ", "all", NULL, NULL);
	check_events("Happened ", "published", NULL, NULL);
	check_events("Happened D ", "published", "delayed", NULL);
	check_events("D C A ", "--newest", NULL, NULL);
	check_events("A ", "--key", "order:1", NULL);
	check_events("A D ", "--type", "order", NULL);
	check_events("C ", "--event", "C", NULL);
	check_events("A C ", "--limit", "2", NULL);
	check_events("C D ", "--after", "1", NULL);
	check_events("", "dead", NULL, NULL);
	expect(0, "no messages\n", "", "list", "dead", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_list_is_about_one_reader)
{
	begin_database();
	push("order", "1", "A");
	row(2, "order", "1", PUBLISHED);
	expect(0, NULL, NULL, "push", "--type", "order", "--event", "C", "--payload", "1",
	       "--target", "audit", NULL);
	add_reader("audit", "audit");
	add_reader("mail", "default");
	expect(1, "", "outbox: several readers: audit, default, mail; choose one with --reader\n",
	       "list", NULL);
	check_events("", "--reader", "default", NULL);
	check_events("A Happened ", "--reader", "mail", NULL);
	check_events("C ", "--reader", "audit", NULL);
	expect(1, "", "outbox: no reader 'mial'; did you mean 'mail'?\n", "list", "--reader",
	       "mial", NULL);
	/* a replay that runs is nobody's default */
	sql("UPDATE outbox_readers SET temporary = 1 WHERE name <> 'mail'");
	check_events("A Happened ", NULL, NULL, NULL);
	end();
}
OB_TEST_END

OB_TEST(a_log_that_nobody_has_read_is_listed_and_shown)
{
	begin_database();
	sql("DELETE FROM outbox_readers");
	push("order", "1", "A");
	expect(0, NULL, NULL, "push", "--type", "order", "--event", "B", "--payload", "1",
	       "--target", "audit", "--delay", "1h", NULL);
	check_events("A B ", NULL, NULL, NULL);
	check_events("B ", "delayed", NULL, NULL);
	expect_in_output("\"reader\":null,\"state\":\"pending\"", "list", "pending", "--json",
			 NULL);
	row(1, "order", "2", PENDING);
	expect_in_output("\nstate            pending\npayload (2 bytes)\n", "show",
			 "0196a1f0-3c5b-7000-8000-000000000001", NULL);
	expect(1, "", "outbox: no reader yet: 'outbox work' makes one when a relay first starts\n",
	       "list", "--reader", "x", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_long_list_comes_in_pages_without_a_gap)
{
	begin_database();
	sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 350) "
	    "INSERT INTO outbox (id, aggregate_type, event_type, payload) "
	    "SELECT randomblob(16), 't', 'e' || i, '{}' FROM n");
	struct ob_run r = outbox(NULL, "list", "--json", "--limit", "250", NULL);
	char *line = r.out;
	for (int i = 1; i <= 250; i++) {
		json_t *m = json_loadb(line, strcspn(line, "\n"), 0, NULL);

		ck_assert_int_eq(json_integer_value(json_object_get(m, "seq")), i);
		json_decref(m);
		line += strcspn(line, "\n") + 1;
	}
	ck_assert_int_eq(*line, '\0');
	ob_run_done(&r);
	expect_in_output("\nmore: --after 250\n", "list", "--limit", "250", NULL);
	expect_in_output("\nmore: --after 101\n", "list", "--limit", "250", "--newest", NULL);
	r = outbox(NULL, "list", "--limit", "350", NULL);
	ck_assert_ptr_null(strstr(r.out, "more:"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_reader_that_leaves_early_is_no_failure)
{
	begin_database();
	sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
	    "INSERT INTO outbox (id, aggregate_type, event_type, payload) "
	    "SELECT randomblob(16), 't', 'e' || i, '{}' FROM n");
	const char *const argv[] = {
		getenv("OUTBOX_BIN"), "list", "--json", "--limit", "1000", "--store",
		"sqlite:test.db",     NULL
	};
	struct ob_run r = { .argv = argv, .dir = dir, .out_limit = 10 };
	ob_run(&r);
	ck_assert_str_eq(r.err, "");
	ck_assert_int_eq(r.code, 0);
	ob_run_done(&r);
	r = (struct ob_run){ .argv = argv, .dir = dir, .out_path = "/dev/full" };
	ob_run(&r);
	ck_assert_str_eq(r.err, "outbox: writing the output: No space left on device\n");
	ck_assert_int_eq(r.code, 1);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(the_table_fits_the_terminal)
{
	begin_database();
	push("order", "1", "Placed");
	struct ob_run bare = outbox(NULL, "list", NULL);
	ck_assert_ptr_null(strstr(bare.out, "LAST ERROR")); /* there is none to show */
	ck_assert_ptr_null(strstr(bare.out, " \n"));
	ob_run_done(&bare);
	sql("DELETE FROM outbox");
	row(1, "order", "1", FAILED);
	sql("UPDATE outbox SET event_type = 'Placed'");
	sql("UPDATE outbox_exceptions SET attempts = 3, last_error = 'the broker said that it "
	    "cannot do this now and maybe never will, who knows'");
	set_env("COLUMNS=100");
	struct ob_run r = outbox(NULL, "list", NULL);
	ck_assert_int_eq(strncmp(r.out, "SEQ  ID                                    STATE   ", 51),
			 0);
	for (const char *line = r.out; *line; line += strcspn(line, "\n") + 1)
		ck_assert_uint_le(strcspn(line, "\n"), 100);
	ck_assert_ptr_nonnull(strstr(r.out, "  failed  "));
	ck_assert_ptr_nonnull(strstr(r.out, "  order:1  Placed      3  the b"));
	ck_assert_ptr_nonnull(strstr(r.out, "...\n"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(nothing_of_a_message_reaches_the_terminal_raw)
{
	begin_database();
	row(1, "order", "1", FAILED);
	sql("UPDATE outbox SET id = x'0196a1f03c5b7000800000c0ffee0001', aggregate_type = 'a' || "
	    "char(27) || '[2J', aggregate_id = char(7), event_type = 'e' || char(155) || char(10) "
	    "|| 'x', payload = '{\"k\":\"' || char(127) || char(155) || '\"}'");
	sql("UPDATE outbox_exceptions SET partition_no = (SELECT partition_no FROM outbox), "
	    "last_error = char(27) || ']0;pwned' || char(7)");
	sql("UPDATE outbox_readers SET filter = char(155), name = 'default' || char(27)");
	sql("UPDATE outbox_batches SET reader = 'default' || char(27)");
	sql("UPDATE outbox_exceptions SET reader = 'default' || char(27)");
	static const char *const words[][2] = { { "list", NULL },      { "show", THE_ID },
						{ "status", NULL },    { "why", THE_ID },
						{ "readers", "list" }, { "readers", "show" } };
	for (size_t i = 0; i < 6; i++) {
		struct ob_run r = outbox(NULL, words[i][0], words[i][1], NULL);

		ck_assert_msg(r.code == 0, "%s", r.err);
		for (const char *p = r.out; *p; p++)
			ck_assert_msg(*p == '\n' || ((unsigned char)*p >= 0x20 && *p != 0x7f),
				      "%s: \\x%02x", words[i][0], (unsigned char)*p);
		ck_assert_ptr_null(strstr(r.out, "\xC2\x9B"));
		ob_run_done(&r);
		r = outbox(NULL, words[i][0], "--json", words[i][1], NULL);
		ck_assert_ptr_null(strchr(r.out, '\033'));
		ck_assert_ptr_eq(strchr(r.out, '\n'), r.out + r.out_size - 1);
		ob_run_done(&r);
	}
	end();
}
OB_TEST_END

OB_TEST(a_message_is_shown_whole)
{
	begin_database();
	expect(0, NULL, "", "push", "--type", "order", "--aggregate", "1", "--event", "Placed",
	       "--payload", "{\"b\":[1,{},[]],\"a\":\"x, {y}\"}", "--id", THE_ID, NULL);
	struct ob_run r = outbox(NULL, "show", THE_ID, NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "id               " THE_ID "\n"
					    "seq              1\n"
					    "target           default\n"
					    "aggregate_type   order\n"
					    "aggregate_id     1\n"
					    "event_type       Placed\n"
					    "revision         1\n"
					    "key              order:1\n"));
	ck_assert_ptr_nonnull(strstr(r.out,
				     "payload (28 bytes)\n"
				     "  {\n"
				     "    \"b\": [\n"
				     "      1,\n"
				     "      {},\n"
				     "      []\n"
				     "    ],\n"
				     "    \"a\": \"x, {y}\"\n"
				     "  }\n"));
	ob_run_done(&r);
	expect(0, NULL, NULL, "push", "--type", "order", "--event", "Placed", "--payload", "1",
	       "--id", THE_ID, "--target", "audit", NULL);
	r = outbox(NULL, "show", THE_ID, "--json", NULL);
	ck_assert_ptr_nonnull(strstr(r.out, "}\n{"));
	ob_run_done(&r);
	expect(1, "", "outbox: no message 0196a1f0-3c5b-7000-8000-00c0ffee0002\n", "show",
	       "0196a1f0-3c5b-7000-8000-00c0ffee0002", NULL);
	add_reader("mail", "other");
	expect(1, "", "outbox: no message " THE_ID " among those of reader mail\n", "show", THE_ID,
	       "--reader", "mail", NULL);
	expect(1, "", "outbox: no reader 'nobody'; there is default, mail\n", "show", THE_ID,
	       "--reader", "nobody", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_message_is_shown_with_what_each_reader_says)
{
	begin_database();
	row(1, "order", "1", FAILED);
	sql("UPDATE outbox_exceptions SET attempts = 3, last_error = 'no'");
	add_reader("mail", "default");
	struct ob_run r = outbox(NULL, "show", "0196a1f0-3c5b-7000-8000-000000000001", NULL);
	ck_assert_ptr_nonnull(strstr(r.out,
				     "\nreader           default\n"
				     "state            failed\n"
				     "attempts         3\n"));
	ck_assert_ptr_nonnull(strstr(r.out,
				     "\nlast_error       no\n"
				     "reader           mail\n"
				     "state            pending\n"
				     "payload (2 bytes)\n"));
	ob_run_done(&r);
	r = outbox(NULL, "show", "0196a1f0-3c5b-7000-8000-000000000001", "--json", NULL);
	json_t *m = json_loads(r.out, 0, NULL);
	json_t *list = json_object_get(m, "readers");
	ck_assert_uint_eq(json_array_size(list), 2);
	ck_assert_str_eq(field(json_array_get(list, 0), "reader"), "default");
	ck_assert_str_eq(field(json_array_get(list, 0), "state"), "failed");
	ck_assert_str_eq(field(json_array_get(list, 0), "last_error"), "no");
	ck_assert_str_eq(field(json_array_get(list, 1), "state"), "pending");
	json_decref(m);
	ob_run_done(&r);
	end();
}
OB_TEST_END

/* ---- status ---------------------------------------------------------- */

OB_TEST(the_status_is_told_reader_by_reader)
{
	begin_database();
	sql("DELETE FROM outbox_readers");
	expect_in_output("SQLite ", "status", NULL);
	expect_in_output(
		", test.db\nno reader yet: 'outbox work' makes one when a relay first "
		"starts\n",
		"status", NULL);
	sql("INSERT INTO outbox_readers (name, target, created_at) VALUES ('default', 'default', "
	    "1)");
	row(1, "order", "1", PUBLISHED);
	row(2, "order", "1", FAILED);
	row(3, "order", "1", PARKED);
	row(4, "order", "2", DEAD);
	push("order", "3", "A");
	expect(0, NULL, NULL, "push", "--type", "order", "--event", "C", "--payload", "1",
	       "--delay", "1h", NULL);
	add_reader("mail", "elsewhere");
	expect_in_output(
		"\nREADER   READS      PENDING  DELAYED  FAILED  PARKED  DEAD  HELD KEYS\n"
		"default  default          1        1       1       1     1          1\n"
		"mail     elsewhere        0        0       0       0     0          0\n",
		"status", NULL);
	sql("UPDATE outbox_batches SET at = " NOW " - 90 * " MINUTES);
	sql("UPDATE outbox SET created_at = " NOW " - 150 * " MINUTES);
	expect_in_output(
		"\nREADER   POSITION  LAG  OLDEST DUE  MOVED  LEASED  PARTITIONS  WORKERS\n"
		"default         4    2       2h30m  1h30m       0           0        0\n",
		"status", "--reader", "default", NULL);
	struct ob_run r = outbox(NULL, "status", "--json", "--reader", "default", NULL);
	json_t *all = json_loads(r.out, 0, NULL);
	json_t *readers = json_object_get(all, "readers");
	ck_assert_uint_eq(json_array_size(readers), 1);
	json_t *t = json_array_get(readers, 0);
	ck_assert_str_eq(field(t, "reader"), "default");
	ck_assert_int_eq(json_integer_value(json_object_get(t, "pending")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "failed")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "held_keys")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "position")), 4);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "end")), 6);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "lag")), 2);
	ck_assert(json_is_string(json_object_get(t, "oldest_due")));
	ck_assert_uint_eq(json_array_size(json_object_get(t, "capped")), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(all, "workers")), 0);
	json_decref(all);
	ob_run_done(&r);
	expect(1, "", "outbox: no reader 'x'; there is default, mail\n", "status", "--reader", "x",
	       NULL);
	end();
}
OB_TEST_END

OB_TEST(counting_stops_at_ten_thousand)
{
	begin_database();
	sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10500) "
	    "INSERT INTO outbox (id, aggregate_type, event_type, payload) "
	    "SELECT randomblob(16), 't', 'e', '{}' FROM n");
	expect_in_output("\ndefault  default  10,000+        0 ", "status", NULL);
	expect_in_output("\"pending\":10000,", "status", "--json", NULL);
	expect_in_output("\"capped\":[\"pending\"]", "status", "--json", NULL);
	sql("DELETE FROM outbox WHERE seq > 10000");
	expect_in_output("\ndefault  default   10,000        0 ", "status", NULL);
	expect_in_output("\"capped\":[]", "status", "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_reader_that_nobody_runs_is_told_with_what_it_keeps)
{
	begin_database();
	row(1, "order", "1", PENDING);
	add_reader("mail", "elsewhere");
	sql("UPDATE outbox_batches SET at = " NOW " - 90 * " MINUTES);
	struct ob_run r = outbox(NULL, "status", NULL);
	ck_assert_ptr_nonnull(
		strstr(r.out,
		       "\n\nnobody runs reader default: it stands still since 1h30m, and "
		       "retention keeps everything from number 1 on for it; start it with "
		       "'outbox work', or forget it with 'outbox readers remove default'\n"));
	/* this one keeps nothing */
	ck_assert_ptr_null(strstr(r.out, "nobody runs reader mail"));
	ob_run_done(&r);
	expect_in_output("\"holds_retention\":true", "status", "--json", "--reader", "default",
			 NULL);
	sql("INSERT INTO outbox_workers (id, reader, hostname, pid, started_at, heartbeat_until) "
	    "VALUES (x'0196a1f00000700080000000000000aa', 'default', 'shop1', 4711, 1, " NOW
	    " + 60 * " MINUTES ")");
	r = outbox(NULL, "status", NULL);
	ck_assert_ptr_null(strstr(r.out, "nobody runs"));
	ck_assert_ptr_nonnull(
		strstr(r.out, "\n0196a1f0-0000-7000-8000-0000000000aa  default  shop1 "));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(the_layout_of_a_configuration_holds_for_a_url_too)
{
	begin();
	put_file("l.yaml",
		 "stores: { main: { url: \"sqlite:test.db\" } }\n"
		 "layout: { table: events_out, columns: { event_type: kind } }\n");
	expect(0, NULL, "", "-c", "l.yaml", "setup", NULL);
	expect(0, NULL, "", "-c", "l.yaml", "push", "--type", "t", "--event", "e", "--payload", "1",
	       NULL);
	sql("SELECT kind FROM events_out");
	expect_in_output("\"event_type\":\"e\"", "-c", "l.yaml", "--store", "sqlite:test.db",
			 "list", "--json", NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_store", setup_says_what_it_did, a_partitioned_log_needs_a_database_that_has_them,
	 the_sql_that_setup_prints_makes_the_same_tables, a_database_without_tables_says_what_to_do,
	 a_directory_that_does_not_exist_is_named, a_locked_database_is_told,
	 a_read_only_database_is_told, a_file_that_is_no_database_is_told,
	 a_corrupt_database_is_told, a_newer_schema_is_left_alone,
	 a_list_is_narrowed_by_state_and_filter, a_list_is_about_one_reader,
	 a_log_that_nobody_has_read_is_listed_and_shown, a_long_list_comes_in_pages_without_a_gap,
	 a_reader_that_leaves_early_is_no_failure, the_table_fits_the_terminal,
	 nothing_of_a_message_reaches_the_terminal_raw, a_message_is_shown_whole,
	 a_message_is_shown_with_what_each_reader_says, the_status_is_told_reader_by_reader,
	 counting_stops_at_ten_thousand, a_reader_that_nobody_runs_is_told_with_what_it_keeps,
	 the_layout_of_a_configuration_holds_for_a_url_too)
