/* SPDX-License-Identifier: MIT */
/* setup, list, show and status on a real database, good and bad. */
#include "outbox.h"

#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0196a1f0-3c5b-7000-8000-00c0ffee0001"

static void begin_store(void)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(0, "created version 1 with 16 partitions\n", "", "setup", NULL);
}

/* Run SQL on the test's database, as an application would. */
static void run_sql(const char *sql)
{
	sqlite3 *db;
	char *error = NULL;

	ck_assert_int_eq(sqlite3_open(path_of("test.db"), &db), SQLITE_OK);
	int r = sqlite3_exec(db, sql, NULL, NULL, &error);
	ck_assert_msg(r == SQLITE_OK, "%s: %s", sql, error);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void push(const char *type, const char *id, const char *event)
{
	expect(0, NULL, "", "push", "--type", type, "--aggregate", id, "--event", event,
	       "--payload", "{\"n\":[1,{}]}", NULL);
}

/* ---- setup ----------------------------------------------------------- */

OB_TEST(setup_says_what_it_did)
{
	begin();
	expect(0, NULL, "", "init", NULL);
	expect(0, "created version 1 with 16 partitions\n", "", "setup", NULL);
	expect(0, "already at version 1\n", "", "setup", NULL);
	expect(0, "already at version 1\n", "", "setup", "--partitions", "4", NULL);
	expect(0, "{\"from_version\":1,\"to_version\":1}\n", "", "setup", "--json", NULL);
	expect(0, "{\"from_version\":0,\"to_version\":1,\"partitions\":4}\n", "", "--store",
	       "sqlite:other.db", "setup", "--partitions", "4", "--json", NULL);
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
	run_sql(r.out);
	ob_run_done(&r);
	expect(0, "already at version 1\n", "", "setup", NULL);
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
	run_sql("CREATE TABLE mine (x)");
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
	       "outbox: beginning a transaction: test.db: database is locked; another writer kept "
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
	begin_store();
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
	       "outbox: setting up the connection: test.db: file is not a database; give the path "
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
	begin_store();
	push("order", "1", "Placed");
	run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
	FILE *f = fopen(path_of("test.db"), "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, 100, SEEK_SET), 0);
	for (int i = 0; i < 3996; i++)
		ck_assert_int_ne(fputc(0xff, f), EOF);
	ck_assert_int_eq(fclose(f), 0);
	expect(1, "",
	       "outbox: setting up the connection: test.db: database disk image is malformed; "
	       "restore "
	       "a backup, or save what is left with the .recover command of sqlite3\n",
	       "list", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_newer_schema_is_left_alone)
{
	begin_store();
	run_sql("UPDATE outbox_meta SET value = 99 WHERE name = 'schema_version'");
	const char *line =
		"outbox: test.db: the tables have schema version 99, made by a newer "
		"outbox; upgrade this program (it knows 1)\n";
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
	begin_store();
	push("order", "1", "A");
	push("order", "2", "B");
	push("user", "1", "C");
	expect(0, NULL, "", "push", "--type", "order", "--event", "D", "--payload", "1", "--target",
	       "audit", "--delay", "1h", NULL);
	run_sql("UPDATE outbox SET status = 1, published_at = created_at WHERE event_type = 'B'");
	check_events("A C D ", NULL, NULL, NULL);
	check_events("A B C D ", "all", NULL, NULL);
	check_events("B ", "published", NULL, NULL);
	check_events("B D ", "published", "delayed", NULL);
	check_events("D C A ", "--newest", NULL, NULL);
	check_events("A ", "--key", "order:1", NULL);
	check_events("A D ", "--type", "order", NULL);
	check_events("C ", "--event", "C", NULL);
	check_events("D ", "--target", "audit", NULL);
	check_events("A C ", "--limit", "2", NULL);
	check_events("C D ", "--after", "1", NULL);
	check_events("", "dead", NULL, NULL);
	expect(0, "no messages\n", "", "list", "dead", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_long_list_comes_in_pages_without_a_gap)
{
	begin_store();
	run_sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 350) "
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
	begin_store();
	run_sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
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
	begin_store();
	push("order", "1", "Placed");
	struct ob_run bare = outbox(NULL, "list", NULL);
	ck_assert_ptr_null(strstr(bare.out, "LAST ERROR")); /* there is none to show */
	ck_assert_ptr_null(strstr(bare.out, " \n"));
	ob_run_done(&bare);
	run_sql("UPDATE outbox SET status = 2, attempts = 3, available_at = created_at, last_error "
		"= "
		"'the broker said that it cannot do this now and maybe never will, who knows'");
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
	begin_store();
	run_sql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, "
		"target, "
		"last_error) VALUES (x'0196a1f03c5b7000800000c0ffee0001', 'a' || char(27) || "
		"'[2J', "
		"char(7), 'e' || char(155) || char(10) || 'x', "
		"'{\"k\":\"' || char(127) || char(155) || '\"}', 't' || char(27), "
		"char(27) || ']0;pwned' || char(7))");
	static const char *const words[][2] = { { "list", NULL },
						{ "show", ID },
						{ "status", NULL } };
	for (size_t i = 0; i < 3; i++) {
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
	begin_store();
	expect(0, NULL, "", "push", "--type", "order", "--aggregate", "1", "--event", "Placed",
	       "--payload", "{\"b\":[1,{},[]],\"a\":\"x, {y}\"}", "--id", ID, NULL);
	struct ob_run r = outbox(NULL, "show", ID, NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "id               " ID "\n"
					    "seq              1\n"
					    "state            pending\n"
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
	expect(0, NULL, "", "push", "--type", "order", "--event", "Placed", "--payload", "1",
	       "--id", ID, "--target", "audit", NULL);
	r = outbox(NULL, "show", ID, "--json", NULL);
	ck_assert_ptr_nonnull(strstr(r.out, "}\n{"));
	ob_run_done(&r);
	expect(1, "", "outbox: no message 0196a1f0-3c5b-7000-8000-00c0ffee0002\n", "show",
	       "0196a1f0-3c5b-7000-8000-00c0ffee0002", NULL);
	expect(1, "", "outbox: no message " ID " for target nobody\n", "show", ID, "--target",
	       "nobody", NULL);
	end();
}
OB_TEST_END

OB_TEST(the_status_counts_by_target_and_state)
{
	begin_store();
	expect_in_output("SQLite ", "status", NULL);
	expect_in_output(", test.db\nno messages, no workers\n", "status", NULL);
	push("order", "1", "A");
	push("order", "2", "B");
	expect(0, NULL, "", "push", "--type", "order", "--event", "C", "--payload", "1", "--target",
	       "audit", "--delay", "1h", NULL);
	run_sql("UPDATE outbox SET status = 2 WHERE event_type = 'B'");
	expect_in_output(
		"\nTARGET   PENDING  DELAYED  PROCESSING  FAILED  PARKED  DEAD  PUBLISHED\n"
		"audit          0        1           0       0       0     0          0\n"
		"default        1        0           0       1       0     0          0\n",
		"status", NULL);
	struct ob_run r = outbox(NULL, "status", "--json", "--target", "default", NULL);
	json_t *all = json_loads(r.out, 0, NULL);
	json_t *targets = json_object_get(all, "targets");
	ck_assert_uint_eq(json_array_size(targets), 1);
	json_t *t = json_array_get(targets, 0);
	ck_assert_str_eq(field(t, "target"), "default");
	ck_assert_int_eq(json_integer_value(json_object_get(t, "pending")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "failed")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(t, "held_keys")), 1);
	ck_assert(json_is_string(json_object_get(t, "oldest_due")));
	ck_assert_uint_eq(json_array_size(json_object_get(all, "workers")), 0);
	json_decref(all);
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
	run_sql("SELECT kind FROM events_out");
	expect_in_output("\"event_type\":\"e\"", "-c", "l.yaml", "--store", "sqlite:test.db",
			 "list", "--json", NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_store", setup_says_what_it_did, the_sql_that_setup_prints_makes_the_same_tables,
	 a_database_without_tables_says_what_to_do, a_directory_that_does_not_exist_is_named,
	 a_locked_database_is_told, a_read_only_database_is_told,
	 a_file_that_is_no_database_is_told, a_corrupt_database_is_told,
	 a_newer_schema_is_left_alone, a_list_is_narrowed_by_state_and_filter,
	 a_long_list_comes_in_pages_without_a_gap, a_reader_that_leaves_early_is_no_failure,
	 the_table_fits_the_terminal, nothing_of_a_message_reaches_the_terminal_raw,
	 a_message_is_shown_whole, the_status_counts_by_target_and_state,
	 the_layout_of_a_configuration_holds_for_a_url_too)
