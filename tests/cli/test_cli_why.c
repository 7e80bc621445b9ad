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
					   "or the message was deleted since\n",
	       "why", ID(1), NULL);
	expect(2, "", "outbox: why: 'x' is not a UUID\n", "why", "x", NULL);
	end();
}
OB_TEST_END

OB_TEST(what_is_out_or_not_due_says_when)
{
	begin_database();
	row(1, "order", "1", PUBLISHED);
	sql("UPDATE outbox SET published_at = " NOW " - 150 * " MINUTES);
	check_why(ID(1), "published", ME "is out: it was published 2h30m ago @.\n");
	sql("UPDATE outbox SET status = 0, published_at = NULL, available_at = " NOW
	    " + 150 * " MINUTES);
	check_why(ID(1), "delayed", ME "is not due yet: it becomes due in 2h29m @.\n");
	sql("UPDATE outbox SET locked_by = 'shop1/3', claim_token = x'01', available_at = 0, "
	    "locked_until = " NOW " + 150 * " MINUTES);
	check_why(ID(1), "claimed",
		  ME
		  "is in the hands of shop1/3. If that worker is gone, the message is free "
		  "again in 2h29m @.\n");
	end();
}
OB_TEST_END

OB_TEST(a_failed_message_says_its_error_and_its_next_attempt)
{
	begin_database();
	row(1, "order", "1", FAILED);
	sql("UPDATE outbox SET attempts = 3, last_error = 'no route' || char(27) || '[2J', "
	    "available_at = " NOW " + 150 * " MINUTES);
	check_why(ID(1), "retry_waits",
		  ME
		  "failed and waits for its next attempt, which is due in 2h29m @, after 3 "
		  "attempts. The last error: no route [2J. 'outbox retry' makes it due now.\n");
	sql("UPDATE outbox SET available_at = 0");
	check_why(ID(1), "no_worker",
		  ME
		  "failed, and its next attempt is due, but no worker is alive for target "
		  "default: start one with 'outbox work'. The last error: no route [2J.\n");
	end();
}
OB_TEST_END

OB_TEST(a_follower_names_the_message_it_waits_behind)
{
	begin_database();
	row(2, "order", "1", FAILED);
	row(3, "order", "2", DEAD_HOLD);
	row(1, "order", "1", PARKED);
	sql("UPDATE outbox SET last_error = 'boom' WHERE status = 2");
	for (int status = PENDING; status <= PARKED; status += PARKED) {
		sql("UPDATE outbox SET status = %d WHERE seq = 3", status);
		check_why(ID(1), "held",
			  ME "waits behind message " ID(2) " of the same key order:1, which "
							   "failed; its next attempt is due now. The last error: boom. "
							   "'outbox retry " ID(2) "' tries that one again, 'outbox skip " ID(2) "' gives it up.\n");
	}
	sql("UPDATE outbox SET status = -2, last_error = NULL WHERE seq = 1");
	check_why(ID(1), "held",
		  ME "waits behind message " ID(2) " of the same key order:1, which is dead and "
						   "holds what is behind it. 'outbox retry " ID(2) "' tries that one again, "
												   "'outbox skip " ID(2) "' gives it up.\n");
	sql("UPDATE outbox SET status = -1 WHERE seq = 1");
	check_why(ID(1), "parked",
		  ME
		  "is parked, but no failed or dead message was found that it waits behind: it "
		  "may have been let go in this moment. Ask again.\n");
	end();
}
OB_TEST_END

OB_TEST(a_partition_can_be_what_holds)
{
	begin_database();
	row(1, "order", "1", PARKED);
	row(2, "order", "1", DEAD_HOLD);
	sql("UPDATE outbox SET partition_key = 'one' WHERE seq = 1");
	expect(0, "resized to 1 partition\n", "", "partitions", "resize", "1", NULL);
	sql("UPDATE outbox SET status = 3 WHERE seq = 1");
	check_why(ID(1), "held",
		  ME "waits behind message " ID(2) " of the same partition, which is dead and holds "
						   "what is behind it. 'outbox retry " ID(2) "' tries that one again, "
											     "'outbox skip " ID(2) "' gives it up.\n");
	end();
}
OB_TEST_END

OB_TEST(a_dead_message_says_what_can_be_decided)
{
	begin_database();
	row(1, "order", "1", DEAD);
	sql("UPDATE outbox SET attempts = 8, last_error = 'too big', published_at = " NOW
	    " - 150 * " MINUTES);
	check_why(ID(1), "dead",
		  ME
		  "is dead: it was given up 2h30m ago @ after 8 attempts. The last error: too "
		  "big. The messages behind it go on without it. 'outbox retry' sends it again, "
		  "'outbox discard' deletes it.\n");
	sql("UPDATE outbox SET status = -2, attempts = 1, last_error = NULL");
	check_why(ID(1), "dead_hold",
		  ME
		  "is dead: it was given up 2h30m ago @ after 1 attempt. The messages behind it "
		  "wait until you decide: 'outbox retry' sends it again, 'outbox skip' or "
		  "'outbox discard' lets them go on without it.\n");
	end();
}
OB_TEST_END

static void put_worker(void)
{
	sql("INSERT INTO outbox_workers (id, target, hostname, pid, started_at, heartbeat_until) "
	    "VALUES (x'0196a1f00000700080000000000000aa', 'default', 'shop1', 4711, 1, " NOW
	    " + 60 * " MINUTES ")");
}

OB_TEST(a_due_message_says_who_should_send_it)
{
	begin_database();
	expect(0, "resized to 1 partition\n", "", "partitions", "resize", "1", NULL);
	row(1, "order", "1", PENDING);
	check_why(ID(1), "no_worker",
		  ME
		  "is due, but no worker is alive for target default: start one with 'outbox "
		  "work'.\n");
	put_worker();
	check_why(ID(1), "no_lease",
		  ME
		  "is due, but no worker holds a lease on its partition p00. 1 worker of its "
		  "target is alive and should take the partition within seconds, unless "
		  "leasing is off.\n");
	sql("INSERT INTO outbox_partitions (target, partition_no, lease_owner, lease_until, "
	    "lease_epoch) VALUES ('default', 0, x'0196a1f00000700080000000000000aa', " NOW
	    " + 150 * " MINUTES ", 1)");
	check_why(ID(1), "leased",
		  ME
		  "is due, and worker 0000000000aa (shop1, pid 4711) holds its partition p00 "
		  "for 2h29m more: it should go out in a moment. If it does not, the sink may "
		  "be down: that worker's output says so.\n");
	end();
}
OB_TEST_END

OB_TEST(a_target_without_a_relay_is_told)
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
		  "is due, but no worker is alive for target default, and the configuration has "
		  "no relay of that name: add one, then start it with 'outbox work'.\n");
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
	       "due, but no worker is alive for target default:\n"
	       "start one with 'outbox work'.\n",
	       "", "why", ID(1), NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_why", an_unknown_message_may_not_have_committed, what_is_out_or_not_due_says_when,
	 a_failed_message_says_its_error_and_its_next_attempt,
	 a_follower_names_the_message_it_waits_behind, a_partition_can_be_what_holds,
	 a_dead_message_says_what_can_be_decided, a_due_message_says_who_should_send_it,
	 a_target_without_a_relay_is_told, the_paragraph_fits_the_terminal)
