/* SPDX-License-Identifier: MIT */
/* cleanup and partitions on a real database. */
#include "database.h"

#include <jansson.h>
#include <stdio.h>

#define REFUSED(line, ...) expect(2, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define SAYS(line, ...)    expect(0, line "\n", "", __VA_ARGS__, NULL)

#define WORKER "0196a1f0-0000-7000-8000-0000000000aa"

/* ---- cleanup --------------------------------------------------------- */

/* Rows 1..4 published, 5..7 dead, 8 dead and holding: half of each kind an hour old. */
static void put_finished(void)
{
	static const int states[] = { PUBLISHED, PUBLISHED, PUBLISHED, PUBLISHED,
				      DEAD,      DEAD,      DEAD,      DEAD_HOLD };

	for (int n = 1; n <= 8; n++)
		row(n, "order", "1", states[n - 1]);
	row(9, "order", "2", PENDING);
	sql("UPDATE outbox SET published_at = " NOW
	    " - CASE WHEN seq IN (1, 2, 3, 5, 6, 8) "
	    "THEN 60 ELSE 1 END * " MINUTES " WHERE seq < 9");
	sql("UPDATE outbox SET created_at = 0");
}

OB_TEST(cleanup_deletes_what_the_options_name_and_nothing_else)
{
	begin_database();
	put_finished();
	SAYS("would delete 3 published and 0 dead messages", "cleanup", "--published-after", "30m",
	     "--dry-run");
	ASK("SELECT count(*) FROM outbox", "9");
	SAYS("deleted 3 published and 0 dead messages in 1 batch", "cleanup", "--published-after",
	     "30m");
	ASK("SELECT seq FROM outbox", "4 5 6 7 8 9");
	SAYS("deleted 0 published and 2 dead messages in 1 batch", "cleanup", "--dead-after",
	     "30m");
	ASK("SELECT seq FROM outbox", "4 7 8 9");
	SAYS("deleted 0 published and 0 dead messages in 0 batches", "cleanup", "--dead-after",
	     "30m", "--published-after", "30m");
	end();
}
OB_TEST_END

OB_TEST(cleanup_runs_batches_until_nothing_is_left)
{
	begin_database();
	put_finished();
	SAYS("{\"target\":null,\"published\":3,\"dead\":2,\"batches\":3,\"dry_run\":false}",
	     "cleanup", "--published-after", "30m", "--dead-after", "30m", "--batch", "2",
	     "--json");
	ASK("SELECT seq FROM outbox", "4 7 8 9");
	end();
}
OB_TEST_END

OB_TEST(cleanup_does_what_the_relays_say)
{
	begin_database();
	set_env("OUTBOX_STORE=");
	put_file("outbox.yaml",
		 "stores: { main: { url: \"sqlite:test.db\" } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays:\n"
		 "  - { name: default, store: main, sink: out,\n"
		 "      cleanup: { published_after: 30m, dead_after: never } }\n"
		 "  - { name: mail, store: main, sink: out,\n"
		 "      cleanup: { published_after: never, dead_after: 30m } }\n");
	put_finished();
	sql("UPDATE outbox SET target = 'mail' WHERE seq IN (1, 5)");
	SAYS("default: deleted 2 published and 0 dead messages in 1 batch", "cleanup", "--target",
	     "default");
	SAYS("default: deleted 0 published and 0 dead messages in 0 batches\n"
	     "mail: deleted 0 published and 1 dead messages in 1 batch",
	     "cleanup");
	ASK("SELECT seq FROM outbox", "1 4 6 7 8 9");
	REFUSED("cleanup: say what to delete, such as --published-after 7d or --dead-after 30d: no "
		"relay of the configuration says it for target none",
		"cleanup", "--target", "none");
	end();
}
OB_TEST_END

OB_TEST(cleanup_without_any_retention_is_refused)
{
	begin_database();
	REFUSED("cleanup: say what to delete, such as --published-after 7d or --dead-after 30d: no "
		"relay of the configuration says it",
		"cleanup");
	REFUSED("cleanup: --published-after: '0s' is not a duration (such as 15s) from 1ms to "
		"3650d",
		"cleanup", "--published-after", "0s");
	REFUSED("cleanup: --batch: '0' is not a number from 1 to 1000000", "cleanup", "--batch",
		"0");
	end();
}
OB_TEST_END

/* ---- partitions ------------------------------------------------------ */

/* Three lease rows of a worker, of which one is over, and a free one. */
static void put_leases(void)
{
	sql("INSERT INTO outbox_workers (id, target, hostname, pid, started_at, heartbeat_until) "
	    "VALUES (x'0196a1f00000700080000000000000aa', 'default', 'shop1', 4711, 1, " NOW
	    " + 60 * " MINUTES ")");
	for (int n = 0; n < 4; n++)
		sql("INSERT INTO outbox_partitions (target, partition_no, lease_owner, "
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
	SAYS("PARTITION  TARGET   WORKER        HOST    PID  EPOCH       LEASE\n"
	     "p00        default  0000000000aa  shop1  4711      1       1h29m\n"
	     "p01        default  0000000000aa  shop1  4711      2       1h29m\n"
	     "p02        default  0000000000aa  shop1  4711      3  over 1h01m\n"
	     "p03        default  -             -         -      4        free",
	     "partitions");
	SAYS("no partitions: a worker makes them when it first starts", "partitions", "--target",
	     "mail");
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
	sql("UPDATE outbox_partitions SET lease_until = " NOW " + 500000 WHERE lease_until > 0");
	expect(0, "resized from 16 to 4 partitions\n", NULL, "partitions", "resize", "4", "--wait",
	       "30s", NULL);
	ASK("SELECT count(*), count(lease_owner) FROM outbox_partitions", "4,0");
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
	SAYS("resized to 8 partitions", "partitions", "resize", "8");
	sql("INSERT INTO outbox_partitions (target, partition_no) VALUES ('default', 0), "
	    "('mail', 0)");
	SAYS("already 8 partitions", "partitions", "resize", "8");
	SAYS("{\"from\":8,\"to\":3}", "partitions", "resize", "3", "--json");
	ASK("SELECT max(partition_no), count(DISTINCT partition_no), count(*) FROM outbox",
	    "2,3,60");
	ASK("SELECT target, count(*) FROM outbox_partitions GROUP BY target", "default,3 mail,3");
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
	REFUSED("partitions: resize is for all targets: --target has no meaning here", "partitions",
		"resize", "4", "--target", "x");
	end();
}
OB_TEST_END

OB_SUITE("cli_upkeep", cleanup_deletes_what_the_options_name_and_nothing_else,
	 cleanup_runs_batches_until_nothing_is_left, cleanup_does_what_the_relays_say,
	 cleanup_without_any_retention_is_refused, partitions_are_listed_with_who_works_on_them,
	 programs_read_the_partitions, resize_is_refused_while_leases_last_and_names_their_owners,
	 resize_waits_for_the_last_lease, resize_strands_nothing_and_says_both_numbers,
	 a_wrong_resize_is_refused)
