/* SPDX-License-Identifier: MIT */
/* why: each reason a message can have, in words and for programs. */
#include "database.h"

#include <jansson.h>
#include <string.h>

#define ME "Message " ID(1) " "

/* The sentence without its instants: "in 4m59s (2026-...Z)" becomes "@". */
static void cut_times(char *text)
{
	for (char *z; (z = strstr(text, "Z)")) != NULL;) {
		char *start = z;

		while (*start != '(')
			start--;
		*start = '@';
		memmove(start + 1, z + 2, strlen(z + 2) + 1);
	}
}

/* Row n's reason, and its text with the ages and instants left out from `before` to `after`. */
static void check_why(const char *id, const char *reason, const char *want)
{
	struct ob_run text = outbox(NULL, "why", id, NULL);
	struct ob_run r = outbox(NULL, "why", id, "--json", NULL);
	json_t *why = json_loads(r.out, 0, NULL);

	ck_assert_str_eq(text.err, "");
	ck_assert_int_eq(text.code, 0);
	ck_assert_int_eq(r.code, 0);
	cut_times(text.out);
	ck_assert_str_eq(text.out, want);
	ck_assert_str_eq(json_string_value(json_object_get(why, "reason")), reason);
	ck_assert_str_eq(json_string_value(json_object_get(why, "id")), id);
	json_decref(why);
	ob_run_done(&r);
	ob_run_done(&text);
}

OB_TEST(an_unknown_message_may_not_have_committed)
{
	begin_database();
	expect(1, "",
	       "outbox: no message " ID(1) ": its transaction has not committed or was rolled back, "
					   "or the message was removed since\n",
	       "why", ID(1), NULL);
	expect(2, "",
	       "outbox: why: 'x' is not a UUID, nor the beginning of one (4 characters at least), "
	       "nor a number of the log\n",
	       "why", "x", NULL);
	end();
}
OB_TEST_END

OB_TEST(what_is_out_or_not_due_says_when)
{
	begin_database();
	row(1, "order", "1", PUBLISHED);
	sql("UPDATE outbox_batches SET at = " NOW " - 150 * " MINUTES);
	check_why(ID(1), "published", ME "is out: it was published 2h30m ago @.\n");
	sql("DELETE FROM outbox_batches WHERE pos > 0");
	sql("UPDATE outbox SET available_at = " NOW " + 150 * " MINUTES);
	check_why(ID(1), "delayed", ME "is not due yet: it becomes due in 2h29m @.\n");
	row(2, "order", "2", DELAYED);
	struct ob_run r = outbox(NULL, "why", ID(2), NULL);
	ck_assert_ptr_nonnull(strstr(r.out, "is not due yet: it becomes due in 1h29m ("));
	ob_run_done(&r);
	expect(0, NULL, "", "discard", ID(1), NULL);
	sql("UPDATE outbox_exceptions SET since = " NOW " - 150 * " MINUTES);
	check_why(ID(1), "discarded",
		  ME "was discarded 2h30m ago @: somebody decided that it is not delivered.\n");
	end();
}
OB_TEST_END

OB_TEST(a_failed_message_says_its_error_and_its_next_attempt)
{
	begin_database();
	row(1, "order", "1", FAILED);
	sql("UPDATE outbox_exceptions SET attempts = 3, "
	    "last_error = 'no route' || char(27) || '[2J', due = " NOW " + 150 * " MINUTES);
	check_why(ID(1), "retry_waits",
		  ME
		  "failed and waits for its next attempt, which is due in 2h29m @, after 3 "
		  "attempts. The last error: no route [2J. 'outbox retry' makes it due now.\n");
	sql("UPDATE outbox_exceptions SET due = 0");
	check_why(ID(1), "no_worker",
		  ME
		  "failed, and its next attempt is due, but no worker is alive for reader "
		  "default: start one with 'outbox work'. The last error: no route [2J.\n");
	end();
}
OB_TEST_END

#define DECIDE(n) \
	"'outbox retry " ID(n) "' tries that one again, 'outbox skip " ID(n) "' gives it up.\n"

OB_TEST(a_follower_names_the_message_it_waits_for)
{
	begin_database();
	row(2, "order", "1", FAILED);
	row(3, "order", "2", DEAD_HOLD);
	row(1, "order", "1", PARKED);
	sql("UPDATE outbox_exceptions SET last_error = 'boom' WHERE seq = 1");
	check_why(ID(1), "held",
		  ME "waits for message " ID(2) " of the same key order:1, which failed; its next "
						"attempt is due now. The last error: boom. " DECIDE(2));
	/* one that the reader has not come to is held all the same */
	sql("DELETE FROM outbox_exceptions WHERE seq = 3");
	sql("DELETE FROM outbox_batches WHERE pos = 3");
	check_why(ID(1), "held",
		  ME "waits for message " ID(2) " of the same key order:1, which failed; its next "
						"attempt is due now. The last error: boom. " DECIDE(2));
	sql("UPDATE outbox_exceptions SET state = 4, due = NULL, last_error = NULL WHERE seq = 1");
	check_why(ID(1), "held",
		  ME "waits for message " ID(2) " of the same key order:1, which is dead and holds "
						"what comes after it. " DECIDE(2));
	sql("UPDATE outbox_exceptions SET state = 2, due = " NOW " + 150 * " MINUTES
	    " WHERE seq = 1");
	check_why(ID(1), "held",
		  ME "waits for message " ID(2) " of the same key order:1, which is delayed; it "
						"becomes due in 2h29m @. 'outbox skip " ID(2) "' gives it "
											      "up.\n");
	/* a head that is sent at this moment */
	sql("UPDATE outbox_exceptions SET state = 0, due = 0 WHERE seq = 1");
	check_why(ID(1), "parked",
		  ME
		  "is parked, but no failed, dead or delayed message was found that holds it: it "
		  "may have been let go in this moment. Ask again.\n");
	end();
}
OB_TEST_END

OB_TEST(a_partition_can_be_what_holds)
{
	begin_database();
	expect(0, "resized to 1 partition\n", "", "partitions", "resize", "1", NULL);
	row(2, "order", "2", DEAD_HOLD);
	row(1, "order", "1", PARKED);
	sql("UPDATE outbox_exceptions SET queue = ''");
	check_why(ID(1), "held",
		  ME "waits for message " ID(2) " of the same partition, which is dead and holds "
						"what comes after it. " DECIDE(2));
	end();
}
OB_TEST_END

OB_TEST(a_dead_message_says_what_can_be_decided)
{
	begin_database();
	row(1, "order", "1", DEAD);
	sql("UPDATE outbox_exceptions SET attempts = 8, last_error = 'too big', since = " NOW
	    " - 150 * " MINUTES);
	check_why(ID(1), "dead",
		  ME
		  "is dead: it was given up 2h30m ago @ after 8 attempts. The last error: too "
		  "big. Its key goes on without it. 'outbox retry' sends it again, 'outbox "
		  "discard' settles that it is never sent.\n");
	sql("UPDATE outbox_exceptions SET state = 4, attempts = 1, last_error = NULL");
	check_why(ID(1), "dead_hold",
		  ME
		  "is dead: it was given up 2h30m ago @ after 1 attempt. The messages of its key "
		  "wait until you decide: 'outbox retry' sends it again, 'outbox skip' or "
		  "'outbox discard' lets them go on without it.\n");
	end();
}
OB_TEST_END

static void put_worker(void)
{
	sql("INSERT INTO outbox_workers (id, reader, hostname, pid, started_at, heartbeat_until) "
	    "VALUES (x'0196a1f00000700080000000000000aa', 'default', 'shop1', 4711, 1, " NOW
	    " + 60 * " MINUTES ")");
}

OB_TEST(a_due_message_says_who_should_send_it)
{
	begin_database();
	expect(0, "resized to 1 partition\n", "", "partitions", "resize", "1", NULL);
	row(2, "order", "2", PUBLISHED);
	row(3, "order", "2", PUBLISHED);
	row(1, "order", "1", PENDING);
	check_why(ID(1), "no_worker",
		  ME
		  "is due, but no worker is alive for reader default: start one with 'outbox "
		  "work'.\n");
	put_worker();
	check_why(ID(1), "no_lease",
		  ME
		  "is due, but no worker holds a lease on its partition p00. 1 worker of its "
		  "reader is alive and should take the partition within seconds; 'outbox "
		  "partitions free' takes it from a worker that cannot be asked.\n");
	sql("INSERT INTO outbox_leases (reader, partition_no, lease_owner, lease_until, "
	    "lease_epoch) VALUES ('default', 0, x'0196a1f00000700080000000000000aa', " NOW
	    " + 150 * " MINUTES ", 1)");
	check_why(ID(1), "leased",
		  ME
		  "is due, and worker 0000000000aa (shop1, pid 4711) holds its partition p00 "
		  "for 2h29m more: it should go out in a moment. If it does not, the sink may "
		  "be down: that worker's output says so. Its number 3 is 1 after the reader's "
		  "position 2.\n");
	sql("UPDATE outbox_workers SET state = "
	    "'{\"breaker\":{\"state\":\"closed\"},\"waits\":\"sink_full\"}'");
	check_why(ID(1), "sink_full",
		  ME
		  "is due, and worker 0000000000aa (shop1, pid 4711) holds its partition p00 "
		  "for 2h29m more, but the sink takes no more until it has answered some. Its "
		  "number 3 is 1 after the reader's position 2.\n");
	end();
}
OB_TEST_END

OB_TEST(a_reader_without_a_relay_is_told)
{
	begin_database();
	set_env("OUTBOX_STORE=");
	put_file("outbox.yaml",
		 "stores: { main: { url: \"sqlite:test.db\" } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays: [ { name: mail, store: main, sink: out } ]\n");
	row(1, "order", "1", PENDING);
	check_why(ID(1), "no_worker",
		  ME
		  "is due, but no worker is alive for reader default, and the configuration has "
		  "no relay of that name: add one, then start it with 'outbox work'.\n");
	end();
}
OB_TEST_END

OB_TEST(a_target_that_nobody_reads_is_told)
{
	begin_database();
	row(1, "order", "1", PENDING);
	sql("UPDATE outbox_readers SET target = 'other'");
	check_why(ID(1), "no_reader",
		  ME
		  "waits, and nobody has ever read its target default: start a relay with 'outbox "
		  "work'.\n");
	set_env("OUTBOX_STORE=");
	put_file("outbox.yaml",
		 "stores: { main: { url: \"sqlite:test.db\" } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays: [ { reads: other } ]\n");
	check_why(ID(1), "no_reader",
		  ME
		  "waits, and nobody has ever read its target default: add a relay with 'reads: "
		  "default' to the configuration, then start it with 'outbox work'.\n");
	end();
}
OB_TEST_END

OB_TEST(each_reader_has_its_own_reason)
{
	begin_database();
	row(1, "order", "1", DEAD);
	add_reader("mail", "default");
	struct ob_run r = outbox(NULL, "why", ID(1), NULL);
	ck_assert_ptr_nonnull(
		strstr(r.out, "For reader default, message " ID(1) " is dead: it was given up "));
	ck_assert_ptr_nonnull(
		strstr(r.out, "\nFor reader mail, message " ID(
				      1) " is due, but no worker is alive for reader mail: "));
	ob_run_done(&r);
	expect(0,
	       ME "is due, but no worker is alive for reader mail: start one with 'outbox work'.\n",
	       "", "why", ID(1), "--reader", "mail", NULL);
	expect(1, "", "outbox: no reader 'post'; there is default, mail\n", "why", ID(1),
	       "--reader", "post", NULL);
	end();
}
OB_TEST_END

OB_TEST(what_a_relay_leaves_out_is_told)
{
	begin_database();
	set_env("OUTBOX_STORE=");
	put_file("outbox.yaml",
		 "stores: { main: { url: \"sqlite:test.db\" } }\n"
		 "sinks: { out: { type: stdout } }\n"
		 "relays: [ { types: [ \"Order*\", \"Paid\" ] } ]\n");
	row(1, "order", "1", PUBLISHED);
	check_why(ID(1), "filtered",
		  ME
		  "is not for reader default: it matches none of the patterns in 'types' and "
		  "'aggregates' of that relay, which passes it over.\n");
	end();
}
OB_TEST_END

OB_TEST(the_paragraph_fits_the_terminal)
{
	begin_database();
	set_env("COLUMNS=50");
	row(1, "order", "1", PENDING);
	expect(0,
	       "Message " ID(1) " is\n"
	       "due, but no worker is alive for reader default:\n"
	       "start one with 'outbox work'.\n",
	       "", "why", ID(1), NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_why", an_unknown_message_may_not_have_committed, what_is_out_or_not_due_says_when,
	 a_failed_message_says_its_error_and_its_next_attempt,
	 a_follower_names_the_message_it_waits_for, a_partition_can_be_what_holds,
	 a_dead_message_says_what_can_be_decided, a_due_message_says_who_should_send_it,
	 a_reader_without_a_relay_is_told, a_target_that_nobody_reads_is_told,
	 each_reader_has_its_own_reason, what_a_relay_leaves_out_is_told,
	 the_paragraph_fits_the_terminal)
