/* SPDX-License-Identifier: MIT */
/* Who changed what; and what relays tell of their sinks, as status and why say it. */
#include "database.h"

#include <jansson.h>
#include <string.h>

OB_TEST(every_verb_leaves_an_entry)
{
	begin_database();
	add_reader("audit", "default");
	row(1, "order", "1", DEAD);
	row(2, "order", "2", DEAD);
	row(3, "order", "3", DEAD);
	row(4, "order", "4", DEAD);
	expect(0, NULL, "", "retry", ID(1), ID(2), "--reader", "default", "--reason", "fixed",
	       NULL);
	expect(0, NULL, "", "skip", "--all", "--yes", "--state", "dead", "--reader", "default",
	       NULL);
	expect(0, NULL, "", "discard", ID(4), "--reader", "default", NULL);
	expect(0, NULL, "", "readers", "seek", "audit", "end", "--yes", NULL);
	expect(0, NULL, "", "readers", "remove", "audit", "--yes", "--reason", "unused", NULL);
	expect(0, NULL, "", "partitions", "resize", "3", NULL);
	sql("INSERT INTO outbox_leases (reader, partition_no) VALUES ('default', 1)");
	expect(0, NULL, "", "partitions", "free", "p01", "--reason", "clock", NULL);
	expect(0, NULL, "", "cleanup", "--published", "0", NULL);
	ASK("SELECT group_concat(verb || '/' || reader || '/' || messages, ' ') FROM outbox_audit",
	    "retry/default/2 discard/default/1 readers seek/audit/0 readers remove/audit/0 "
	    "partitions resize//3 partitions free/default/1");
	ASK("SELECT DISTINCT origin FROM outbox_audit", "cli");
	ASK("SELECT count(DISTINCT plan) FROM outbox_audit", "6");
	ASK("SELECT count(*) FROM outbox_audit WHERE who LIKE '%@%'", "6");
	ASK("SELECT reason FROM outbox_audit WHERE reason <> '' ORDER BY number",
	    "fixed unused clock");
	ASK("SELECT filter FROM outbox_audit WHERE verb = 'partitions resize'", "to 3 partitions");
	ASK("SELECT filter FROM outbox_audit WHERE verb = 'retry'", "ids " ID(1) ", " ID(2));
	end();
}
OB_TEST_END

OB_TEST(a_verb_that_is_refused_or_only_tried_leaves_none)
{
	begin_database();
	row(1, "order", "1", PUBLISHED);
	row(2, "order", "2", DEAD);
	expect(1, "", NULL, "retry", ID(1), NULL);
	expect(0, NULL, "", "retry", "--all", "--dry-run", NULL);
	expect(0, NULL, "", "discard", "--key", "nobody", "--yes", NULL);
	expect(0, "nobody has changed anything\n", "", "audit", NULL);
	ASK("SELECT count(*) FROM outbox_audit", "0");
	end();
}
OB_TEST_END

OB_TEST(the_audit_is_listed_newest_first)
{
	begin_database();
	sql("INSERT INTO outbox_audit (at, who, origin, verb, reader, filter, messages, plan, "
	    "reason) VALUES (1700000000123456, 'anna@shop1', 'monitor', 'retry', 'mail', "
	    "'state dead', 1234, 'p1', ''), (1700000060000000, 'bert@shop2', 'cli', "
	    "'readers seek', 'audit', 'the end', 0, 'p2', 'moved' || char(27) || '[31m')");
	expect(0,
	       "NO  AT (UTC)             WHO         FROM     VERB          READER  COUNT  WHAT    "
	       "    REASON\n"
	       " 2  2023-11-14 22:14:20  bert@shop2  cli      readers seek  audit       0  the "
	       "end     moved [31m\n"
	       " 1  2023-11-14 22:13:20  anna@shop1  monitor  retry         mail    1,234  state "
	       "dead  \n",
	       "", "audit", NULL);
	expect(0,
	       "{\"number\":1,\"at\":\"2023-11-14T22:13:20.123456Z\",\"who\":\"anna@shop1\","
	       "\"origin\":\"monitor\",\"verb\":\"retry\",\"reader\":\"mail\",\"filter\":\"state "
	       "dead\",\"count\":1234,\"plan\":\"p1\",\"reason\":null}\n",
	       "", "audit", "--verb", "retry", "--json", NULL);
	expect(0, NULL, "", "audit", "--before", "2", "--json", NULL);
	expect(0, "nobody has changed anything\n", "", "audit", "--reader", "nobody", NULL);
	end();
}
OB_TEST_END

/* ---- what relays tell ------------------------------------------------ */

static void put_worker(const char *state)
{
	sql("DELETE FROM outbox_workers");
	sql("INSERT INTO outbox_workers (id, reader, hostname, pid, started_at, heartbeat_until, "
	    "state) VALUES (x'0196a1f00000700080000000000000aa', 'default', 'shop1', 4711, " NOW
	    ", " NOW " + 60 * " MINUTES ", %s)",
	    state);
	sql("DELETE FROM outbox_leases");
	sql("INSERT INTO outbox_leases (reader, partition_no, lease_owner, lease_until, "
	    "lease_epoch) VALUES ('default', 0, x'0196a1f00000700080000000000000aa', " NOW
	    " + 150 * " MINUTES ", 1)");
}

#define DOWN \
	"'{\"version\":\"1\",\"sink\":{\"type\":\"http\",\"name\":\"hook\"},\"breaker\":{" \
	"\"state\":\"open\",\"since_us\":' || (" NOW " - 90 * " MINUTES \
	") || ',\"why\":" \
	"\"refused\"},\"sink_error\":{\"at_us\":' || (" NOW " - 90 * " MINUTES \
	") || " \
	"',\"times\":3,\"kind\":\"down\",\"text\":\"refused\"},\"rate\":2.5,\"in_flight\":4}'"
#define UP \
	"'{\"sink\":{\"type\":\"http\",\"name\":\"hook\"},\"breaker\":{\"state\":\"closed\"}," \
	"\"rate\":120.0}'"

static char *status(void)
{
	struct ob_run run = outbox(NULL, "status", NULL);
	char *out = strdup(run.out);

	ck_assert_int_eq(run.code, 0);
	ob_run_done(&run);
	return out;
}

OB_TEST(status_says_how_the_sinks_are)
{
	begin_database();
	put_worker("''");
	char *out = status();
	ck_assert_ptr_null(strstr(out, "SINK"));
	free(out);
	put_worker(DOWN);
	out = status();
	ck_assert_msg(strstr(out,
			     "READER   SINK  STATE  SINCE   RATE  IN FLIGHT  LAST ERROR\n"
			     "default  hook  down   1h30m  2.5/s          4  1h30m ago: "
			     "refused\n") != NULL,
		      "%s", out);
	free(out);
	put_worker(UP);
	out = status();
	ck_assert_msg(strstr(out, "default  hook  ok         -  120/s          0  -\n") != NULL,
		      "%s", out);
	free(out);
	end();
}
OB_TEST_END

OB_TEST(programs_read_how_the_sinks_are)
{
	begin_database();
	put_worker(DOWN);
	struct ob_run run = outbox(NULL, "status", "--json", NULL);
	json_t *s = json_loads(run.out, 0, NULL);
	json_t *sink = json_object_get(json_array_get(json_object_get(s, "readers"), 0), "sink");
	json_t *state = json_object_get(json_array_get(json_object_get(s, "workers"), 0), "state");

	ck_assert_str_eq(json_string_value(json_object_get(sink, "name")), "hook");
	ck_assert(json_is_true(json_object_get(sink, "down")));
	ck_assert_str_eq(json_string_value(json_object_get(sink, "why")), "refused");
	ck_assert_str_eq(json_string_value(json_object_get(state, "breaker")), "open");
	ck_assert_int_eq(json_integer_value(json_object_get(state, "in_flight")), 4);
	json_decref(s);
	ob_run_done(&run);
	end();
}
OB_TEST_END

OB_TEST(status_fails_when_a_sink_is_down_or_nobody_works)
{
	begin_database();
	expect(1, "reader default: no worker runs it\n", "", "status", "--fail-if-down", NULL);
	put_worker(UP);
	expect(0, "", "", "status", "--fail-if-down", NULL);
	put_worker(DOWN);
	expect(1, "reader default: sink hook is down since 1h30m: refused\n", "", "status",
	       "--fail-if-down", NULL);
	put_worker("'{\"breaker\":7'");
	expect(0, "", "", "status", "--fail-if-down", NULL);
	end();
}
OB_TEST_END

OB_TEST(why_says_that_the_sink_is_down)
{
	begin_database();
	expect(0, "resized to 1 partition\n", "", "partitions", "resize", "1", NULL);
	row(1, "order", "1", PENDING);
	put_worker(DOWN);
	expect(0,
	       "Message " ID(1) " is due, and worker 0000000000aa (shop1, pid 4711) holds its "
	       "partition p00 for 2h29m more, but sink hook is down since 1h30m: refused. It costs "
	       "no message an attempt: delivery goes on by itself when the sink is back. Its number "
	       "1 is 1 after the reader's position 0.\n",
	       "", "why", ID(1), NULL);
	put_worker(UP);
	expect(0,
	       "Message " ID(1) " is due, and worker 0000000000aa (shop1, pid 4711) holds its "
	       "partition p00 for 2h29m more: it should go out in a moment. Its sink is up. Its "
	       "number 1 is 1 after the reader's position 0.\n",
	       "", "why", ID(1), NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_audit", every_verb_leaves_an_entry, a_verb_that_is_refused_or_only_tried_leaves_none,
	 the_audit_is_listed_newest_first, status_says_how_the_sinks_are,
	 programs_read_how_the_sinks_are, status_fails_when_a_sink_is_down_or_nobody_works,
	 why_says_that_the_sink_is_down)
