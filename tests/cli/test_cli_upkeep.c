/* SPDX-License-Identifier: MIT */
/* cleanup, partitions and readers on a real database. */
#include "database.h"

#include <jansson.h>
#include <stdio.h>

#define REFUSED(line, ...) expect(2, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define SAYS(line, ...)    expect(0, line "\n", "", __VA_ARGS__, NULL)

#define WORKER "0196a1f0-0000-7000-8000-0000000000aa"

/* ---- status for cron ------------------------------------------------- */

OB_TEST(status_fails_when_a_message_waits_too_long_or_is_dead)
{
	begin_database();
	expect(0, "", "", "status", "--fail-if-older", "5m", "--fail-if-dead", NULL);
	row(1, "order", "1", PENDING);
	sql("UPDATE outbox SET created_at = " NOW " - 125.5 * " MINUTES);
	expect(1, "reader default: a message is due for 2h05m, longer than 5m00s\n", "", "status",
	       "--fail-if-older", "5m", NULL);
	expect(0, "", "", "status", "--fail-if-older", "3h", "--fail-if-dead", NULL);
	row(2, "order", "2", DEAD);
	expect(1, "reader default: 1 dead\n", "", "status", "--fail-if-dead", NULL);
	expect(0, "", "", "status", "--fail-if-dead-above", "1", NULL);
	expect(1, "reader default: 1 dead\n", "", "status", "--fail-if-dead-above", "0", NULL);
	expect(1,
	       "reader default: a message is due for 2h05m, longer than 1m00s; reader default: 1 "
	       "dead\n",
	       "", "status", "--fail-if-older", "1m", "--fail-if-dead", NULL);
	struct ob_run run = outbox(NULL, "status", "--fail-if-dead", "--json", NULL);
	ck_assert_int_eq(run.code, 1);
	ck_assert_int_eq(run.out[0], '{');
	ob_run_done(&run);
	end();
}
OB_TEST_END

/* ---- cleanup --------------------------------------------------------- */

/*
 * One key: rows 1..4 are published, the first three more than an hour ago; 5..7 are dead, two of
 * them for an hour; 8 is dead and holds the rest. Row 9, of another key, is pending.
 */
static void put_finished(void)
{
	static const enum state states[] = { PUBLISHED, PUBLISHED, PUBLISHED, PUBLISHED,
					     DEAD,      DEAD,      DEAD,      DEAD_HOLD };

	for (int n = 1; n <= 8; n++)
		row(n, "order", "1", states[n - 1]);
	row(9, "order", "2", PENDING);
	/* Everywhere else the reader is far ahead. */
	sql("UPDATE outbox_batches SET pos = 100, at = " NOW " - 120 * " MINUTES
	    " WHERE partition_no NOT IN (SELECT partition_no FROM outbox)");
	sql("UPDATE outbox_batches SET at = " NOW " - 61 * " MINUTES " WHERE pos <= 3");
	sql("UPDATE outbox_batches SET pos = 100 WHERE pos = 8");
	sql("UPDATE outbox SET created_at = 0");
	sql("UPDATE outbox_exceptions SET since = " NOW
	    " - CASE WHEN seq IN (5, 6, 8) THEN 60 "
	    "ELSE 1 END * " MINUTES);
}

/* And row 9 is out as well, since long: nothing holds the others. */
static void pass_last(void)
{
	sql("UPDATE outbox_batches SET pos = 100, at = " NOW " - 120 * " MINUTES
	    " WHERE partition_no = (SELECT partition_no FROM outbox WHERE seq = 9)");
}

OB_TEST(cleanup_removes_what_every_reader_has_passed_long_enough_ago)
{
	begin_database();
	put_finished();
	pass_last();
	SAYS("removed 3 rows", "cleanup", "--published", "30m");
	ASK("SELECT seq FROM outbox WHERE seq < 9", "4 5 6 7 8");
	SAYS("removed 0 rows", "cleanup", "--published", "30m");
	SAYS("removed 0 rows", "cleanup", "--published", "never");
	SAYS("removed 2 rows", "cleanup", "--published", "0");
	ASK("SELECT seq FROM outbox WHERE seq < 9", "5 6 7 8");
	end();
}
OB_TEST_END

OB_TEST(cleanup_forgets_the_dead_but_not_what_holds_a_key)
{
	begin_database();
	put_finished();
	pass_last();
	SAYS("removed 7 rows and forgot 2 dead messages", "cleanup", "--published", "0", "--dead",
	     "30m");
	ASK("SELECT seq FROM outbox WHERE seq < 9", "7 8");
	ASK("SELECT seq FROM outbox_exceptions", "7 8");
	end();
}
OB_TEST_END

OB_TEST(cleanup_keeps_what_a_reader_has_not_delivered_and_names_the_reader)
{
	begin_database();
	put_finished();
	pass_last();
	add_reader("mail", "default");
	sql("UPDATE outbox_batches SET at = 1767225600000000 WHERE reader = 'mail'");
	SAYS("removed 0 rows; reader mail holds what is left: it stands still since "
	     "2026-01-01T00:00:00.000000Z, start it or forget it with 'outbox readers remove mail'",
	     "cleanup", "--published", "30m");
	SAYS("{\"rows\":0,\"dead\":0,\"batches\":0,\"archived\":0,\"partitions_made\":0,"
	     "\"partitions_dropped\":0,"
	     "\"held_by\":\"mail\","
	     "\"held_since\":\"2026-01-01T00:00:00.000000Z\"}",
	     "cleanup", "--published", "30m", "--json");
	ASK("SELECT count(*) FROM outbox", "9");
	SAYS("removed reader mail", "readers", "remove", "mail", "--yes");
	SAYS("removed 3 rows", "cleanup", "--published", "30m");
	end();
}
OB_TEST_END

OB_TEST(cleanup_runs_batches_until_nothing_is_left)
{
	begin_database();
	put_finished();
	pass_last();
	SAYS("{\"rows\":5,\"dead\":0,\"batches\":3,\"archived\":0,\"partitions_made\":0,"
	     "\"partitions_dropped\":0,"
	     "\"held_by\":null,\"held_since\":null}",
	     "cleanup", "--published", "0", "--batch", "2", "--json");
	ASK("SELECT seq FROM outbox WHERE seq < 9", "5 6 7 8");
	end();
}
OB_TEST_END

OB_TEST(cleanup_does_what_the_store_says)
{
	begin_database();
	set_env("OUTBOX_STORE=");
	put_file("outbox.yaml",
		 "stores: { main: { url: \"sqlite:test.db\", retention: { published: 30m } } }\n");
	put_finished();
	pass_last();
	SAYS("removed 3 rows", "cleanup");
	put_file(
		"outbox.yaml",
		"stores: { main: { url: \"sqlite:test.db\", retention: { published: never } } }\n");
	SAYS("removed 0 rows", "cleanup");
	ASK("SELECT seq FROM outbox WHERE seq < 9", "4 5 6 7 8");
	end();
}
OB_TEST_END

OB_TEST(a_wrong_cleanup_is_refused)
{
	begin_database();
	REFUSED("cleanup: --published: 'soon' is not a duration (such as 15s) from 0ms to 3650d, "
		"or never",
		"cleanup", "--published", "soon");
	REFUSED("cleanup: --dead: '-1s' is not a duration (such as 15s) from 0ms to 3650d, or "
		"never",
		"cleanup", "--dead", "-1s");
	REFUSED("cleanup: --batch: '0' is not a number from 1 to 1000000", "cleanup", "--batch",
		"0");
	end();
}
OB_TEST_END

/* ---- partitions ------------------------------------------------------ */

/* Three lease rows of a worker, of which one is over, and a free one. */
static void put_leases(void)
{
	sql("INSERT INTO outbox_workers (id, reader, hostname, pid, started_at, heartbeat_until) "
	    "VALUES (x'0196a1f00000700080000000000000aa', 'default', 'shop1', 4711, 1, " NOW
	    " + 60 * " MINUTES ")");
	for (int n = 0; n < 4; n++)
		sql("INSERT INTO outbox_leases (reader, partition_no, lease_owner, "
		    "lease_until, lease_epoch) VALUES ('default', %d, "
		    "%s, CASE %d WHEN 3 THEN 0 WHEN 2 THEN " NOW " - 61 * " MINUTES " ELSE " NOW
		    " + 90 * " MINUTES " END, %d)",
		    n, n == 3 ? "NULL" : "x'0196a1f00000700080000000000000aa'", n, n + 1);
}

OB_TEST(partitions_are_listed_with_who_works_on_them)
{
	begin_database();
	SAYS("no partitions: a worker makes them when it first starts", "partitions");
	put_leases();
	sql("UPDATE outbox_batches SET pos = 42 WHERE partition_no = 1");
	SAYS("PARTITION  READER   WORKER        HOST    PID  EPOCH  POSITION       LEASE\n"
	     "p00        default  0000000000aa  shop1  4711      1         0       1h29m\n"
	     "p01        default  0000000000aa  shop1  4711      2        42       1h29m\n"
	     "p02        default  0000000000aa  shop1  4711      3         0  over 1h01m\n"
	     "p03        default  -             -         -      4         0        free",
	     "partitions");
	SAYS("no partitions: a worker makes them when it first starts", "partitions", "list",
	     "--reader", "mail");
	end();
}
OB_TEST_END

OB_TEST(programs_read_the_partitions)
{
	begin_database();
	put_leases();
	struct ob_run r = outbox(NULL, "partitions", "--json", NULL);
	json_t *all = json_loads(r.out, 0, NULL);
	json_t *list = json_object_get(all, "partitions");
	ck_assert_uint_eq(json_array_size(list), 4);
	json_t *first = json_array_get(list, 0), *last = json_array_get(list, 3);
	ck_assert_str_eq(json_string_value(json_object_get(first, "owner")), WORKER);
	ck_assert_str_eq(json_string_value(json_object_get(first, "hostname")), "shop1");
	ck_assert(json_is_true(json_object_get(first, "leased")));
	ck_assert(json_is_null(json_object_get(last, "owner")));
	ck_assert(json_is_null(json_object_get(last, "until")));
	ck_assert_int_eq(json_integer_value(json_object_get(first, "position")), 0);
	ck_assert_str_eq(json_string_value(json_object_get(first, "reader")), "default");
	json_decref(all);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(resize_is_refused_while_leases_last_and_names_their_owners)
{
	begin_database();
	put_leases();
	expect(1, "",
	       "waiting for workers to let go: worker 0000000000aa (shop1, pid 4711) holds 2\n"
	       "outbox: still busy: worker 0000000000aa (shop1, pid 4711) holds 2; give them "
	       "longer "
	       "with --wait, or stop them\n",
	       "partitions", "resize", "4", "--wait", "50ms", NULL);
	/* those who asked are gone again */
	ASK("SELECT count(*) FROM outbox_workers", "1");
	end();
}
OB_TEST_END

OB_TEST(resize_waits_for_the_last_lease)
{
	begin_database();
	put_leases();
	sql("UPDATE outbox_leases SET lease_until = " NOW " + 500000 WHERE lease_until > 0");
	expect(0, "resized from 16 to 4 partitions\n", NULL, "partitions", "resize", "4", "--wait",
	       "30s", NULL);
	ASK("SELECT count(*), count(lease_owner) FROM outbox_leases", "4,0");
	end();
}
OB_TEST_END

OB_TEST(resize_strands_nothing_and_says_both_numbers)
{
	begin_database();
	for (int n = 1; n <= 60; n++) {
		char aggregate[8];

		(void)snprintf(aggregate, sizeof(aggregate), "%d", n);
		row(n, "order", aggregate, n % 3 ? PENDING : FAILED);
	}
	add_reader("mail", "default");
	SAYS("resized to 8 partitions", "partitions", "resize", "8");
	sql("INSERT INTO outbox_leases (reader, partition_no) VALUES ('default', 0), "
	    "('mail', 0)");
	SAYS("already 8 partitions", "partitions", "resize", "8");
	SAYS("{\"from\":8,\"to\":3}", "partitions", "resize", "3", "--json");
	ASK("SELECT max(partition_no), count(DISTINCT partition_no), count(*) FROM outbox",
	    "2,3,60");
	ASK("SELECT reader, count(*) FROM outbox_leases GROUP BY reader", "default,3 mail,3");
	ASK("SELECT count(*) FROM outbox_messages WHERE reader = 'default' AND state = 'failed'",
	    "20");
	ASK("SELECT state, count(*) FROM outbox_messages WHERE reader = 'mail' GROUP BY state",
	    "pending,60");
	end();
}
OB_TEST_END

OB_TEST(a_wrong_resize_is_refused)
{
	begin_database();
	REFUSED("partitions: resize needs a number: N", "partitions", "resize");
	REFUSED("partitions: '0' is not a number from 1 to 1024", "partitions", "resize", "0");
	REFUSED("partitions: '-4' is not a number from 1 to 1024", "partitions", "resize", "-4");
	REFUSED("partitions: '1025' is not a number from 1 to 1024", "partitions", "resize",
		"1025");
	REFUSED("partitions: no action 'resise'; did you mean 'resize'?", "partitions", "resise",
		"4");
	REFUSED("partitions: --wait belongs to resize", "partitions", "--wait", "1s");
	REFUSED("partitions: resize is for all readers: --reader has no meaning here", "partitions",
		"resize", "4", "--reader", "x");
	REFUSED("partitions: one word too many: '5'", "partitions", "resize", "4", "5");
	end();
}
OB_TEST_END

OB_TEST(leases_are_taken_from_whoever_holds_them)
{
	begin_database();
	put_leases();
	expect(1, "", "outbox: reader default has no partition 9\n", "partitions", "free", "p01",
	       "p09", NULL);
	SAYS("freed p01 of reader default", "partitions", "free", "p01");
	ASK("SELECT count(lease_owner) FROM outbox_leases WHERE lease_until > 0", "2");
	ASK("SELECT lease_epoch FROM outbox_leases WHERE partition_no = 1", "3");
	REFUSED("partitions: would free 2 partitions of reader default, whoever holds them: stdin "
		"is no terminal to ask on, so say --yes",
		"partitions", "free", "0", "p02");
	SAYS("{\"reader\":\"default\",\"freed\":[0,2],\"all\":false}", "partitions", "free", "0",
	     "p02", "--yes", "--json");
	ASK("SELECT count(lease_owner) FROM outbox_leases", "0");
	SAYS("freed all partitions of reader default", "partitions", "free", "--all", "--yes",
	     "--reader", "default");
	ASK("SELECT lease_epoch FROM outbox_leases", "3 4 5 5");
	end();
}
OB_TEST_END

OB_TEST(a_wrong_free_is_refused)
{
	begin_database();
	REFUSED("partitions: free needs partitions such as p07, or --all", "partitions", "free");
	REFUSED("partitions: give partitions or --all, not both", "partitions", "free", "p1",
		"--all");
	REFUSED("partitions: 'x' is not a partition such as p07", "partitions", "free", "x");
	REFUSED("partitions: 'p1024' is not a partition such as p07", "partitions", "free",
		"p1024");
	REFUSED("partitions: --all belongs to free", "partitions", "--all");
	end();
}
OB_TEST_END

/* ---- readers --------------------------------------------------------- */

OB_TEST(readers_are_listed_and_shown)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(0, NULL, "", "setup", NULL);
	SAYS("no reader yet: 'outbox work' makes one when a relay first starts", "readers", "list");
	add_reader("default", "default");
	row(1, "order", "1", PUBLISHED);
	row(2, "order", "1", FAILED);
	row(3, "order", "9", PENDING);
	sql("UPDATE outbox_readers SET filter = 'types Order*', created_at = " NOW
	    " - 150 * " MINUTES);
	sql("UPDATE outbox_batches SET at = " NOW " - 90 * " MINUTES);
	SAYS("READER   READS    POSITION  LAG  EXCEPTIONS  MOVED  WORKERS  FILTER\n"
	     "default  default         2    1           1  1h30m        0  types Order*",
	     "readers", "list");
	expect_in_output("\nposition         0 to 2\n", "readers", "show", NULL);
	expect_in_output("\nlag              1 of 3 numbers\n", "readers", "show", "default", NULL);
	expect_in_output(
		"nobody runs reader default: it stands still since 1h30m, and retention "
		"keeps everything from number ",
		"readers", "show", NULL);
	expect(1, "", "outbox: no reader 'x'; there is default\n", "readers", "show", "x", NULL);
	REFUSED("'readers' alone is no command; did you mean 'readers list'?", "readers");
	end();
}
OB_TEST_END

OB_TEST(a_reader_is_moved_when_somebody_says_yes)
{
	begin_database();
	for (int n = 1; n <= 4; n++)
		row(n, "order", "1", n == 2 ? FAILED : PUBLISHED);
	REFUSED("readers seek: would move reader default from 4 to number 3: what comes after that "
		"place is delivered, again where it was before, and what comes before it is not: "
		"stdin is no terminal to ask on, so say --yes",
		"readers", "seek", "default", "3");
	ASK(STATES, "published failed published published");
	SAYS("reader default goes on at number 3", "readers", "seek", "default", "3", "--yes");
	ASK("SELECT state FROM outbox_messages WHERE seq <> 2 ORDER BY seq",
	    "published parked parked");
	SAYS("reader default goes on at the beginning", "readers", "seek", "default", "beginning",
	     "-y");
	ASK(STATES, "pending pending pending pending");
	SAYS("{\"reader\":\"default\",\"place\":\"end\"}", "readers", "seek", "default", "end",
	     "-y", "--json");
	ASK(STATES, "published published published published");
	sql("UPDATE outbox SET created_at = 1767225600000000 + seq");
	SAYS("reader default goes on at 2026-01-01T00:00:00.000003Z", "readers", "seek", "default",
	     "2026-01-01T01:00:00.000003+01:00", "-y");
	ASK(STATES, "published published pending pending");
	REFUSED("readers seek: 'soon' is no place: write beginning, end, a time such as "
		"2026-05-01T00:00:00Z, or a number of the log",
		"readers", "seek", "default", "soon");
	expect(1, "", "outbox: no reader 'defualt'; did you mean 'default'?\n", "readers", "seek",
	       "defualt", "end", "-y", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_reader_is_forgotten_unless_somebody_runs_it)
{
	begin_database();
	row(1, "order", "1", FAILED);
	add_reader("mail", "default");
	put_leases();
	REFUSED("readers remove: would forget reader default and its position 1 with 1 message "
		"that failed, wait or were given up: stdin is no terminal to ask on, so say --yes",
		"readers", "remove", "default");
	expect(1, "", "outbox: reader default is being run (shop1 pid 4711): stop that first\n",
	       "readers", "remove", "default", "--yes", NULL);
	sql("UPDATE outbox_workers SET heartbeat_until = 0");
	SAYS("removed reader default", "readers", "remove", "default", "--yes");
	SAYS("{\"reader\":\"mail\",\"removed\":true}", "readers", "remove", "mail", "--yes",
	     "--json");
	ASK("SELECT (SELECT count(*) FROM outbox_readers), (SELECT count(*) FROM outbox_batches), "
	    "(SELECT count(*) FROM outbox_exceptions), (SELECT count(*) FROM outbox_leases), "
	    "(SELECT count(*) FROM outbox)",
	    "0,0,0,0,1");
	end();
}
OB_TEST_END

OB_TEST(only_a_restore_elsewhere_needs_to_be_adopted)
{
	begin_database();
	expect(1, "", "outbox: nothing to adopt: sqlite needs it after no restore\n", "adopt",
	       NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_upkeep", status_fails_when_a_message_waits_too_long_or_is_dead,
	 cleanup_removes_what_every_reader_has_passed_long_enough_ago,
	 cleanup_forgets_the_dead_but_not_what_holds_a_key,
	 cleanup_keeps_what_a_reader_has_not_delivered_and_names_the_reader,
	 cleanup_runs_batches_until_nothing_is_left, cleanup_does_what_the_store_says,
	 a_wrong_cleanup_is_refused, partitions_are_listed_with_who_works_on_them,
	 programs_read_the_partitions, resize_is_refused_while_leases_last_and_names_their_owners,
	 resize_waits_for_the_last_lease, resize_strands_nothing_and_says_both_numbers,
	 a_wrong_resize_is_refused, leases_are_taken_from_whoever_holds_them,
	 a_wrong_free_is_refused, readers_are_listed_and_shown,
	 a_reader_is_moved_when_somebody_says_yes, a_reader_is_forgotten_unless_somebody_runs_it,
	 only_a_restore_elsewhere_needs_to_be_adopted)
