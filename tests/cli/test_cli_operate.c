/* SPDX-License-Identifier: MIT */
/* retry, skip, discard and priority: by id, by filter, asked about, and refused. */
#include "database.h"
#include "terminal.h"

#include <stdio.h>

#define REFUSED(line, ...) expect(2, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define FAILS(line, ...)   expect(1, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define SAYS(line, ...)    expect(0, line "\n", "", __VA_ARGS__, NULL)

#define STATES "SELECT status FROM outbox ORDER BY seq"

/* ---- by id ----------------------------------------------------------- */

OB_TEST(retry_makes_failed_and_dead_messages_new_again)
{
	begin_database();
	row(1, "order", "1", FAILED);
	row(2, "order", "2", DEAD);
	row(3, "order", "3", DEAD_HOLD);
	sql("UPDATE outbox SET attempts = 8, last_error = 'no', available_at = " NOW
	    " + 60 * " MINUTES);
	SAYS("retried " ID(1) " (was failed)\n"
	     "retried " ID(2) " (was dead)\n"
	     "retried " ID(3) " (was dead)",
	     "retry", ID(1), ID(2), ID(3));
	ASK("SELECT status, attempts, last_error FROM outbox", "0,0,no 0,0,no 0,0,no");
	ASK("SELECT count(*) FROM outbox WHERE available_at <= " NOW, "3");
	end();
}
OB_TEST_END

OB_TEST(skip_and_discard_and_priority_say_what_they_did)
{
	begin_database();
	for (int n = 1; n <= 4; n++)
		row(n, "order", "1", n == 1 ? FAILED : PARKED);
	SAYS("gave priority -7 to " ID(3) " (was parked)", "priority", "-7", ID(3));
	SAYS("skipped " ID(1) " (was failed)", "skip", ID(1));
	SAYS("discarded " ID(2) " (was pending)", "discard", ID(2));
	ASK("SELECT seq, status, priority FROM outbox ORDER BY seq", "1,-1,0 3,0,-7 4,0,0");
	end();
}
OB_TEST_END

OB_TEST(a_state_that_forbids_it_is_told_with_what_is_possible)
{
	begin_database();
	row(1, "order", "1", PENDING);
	row(2, "order", "2", PUBLISHED);
	row(3, "order", "3", DEAD);
	FAILS(ID(1) ": it is pending, and only failed and dead messages can be retried; it can "
		    "be skipped, discarded or given another priority",
	      "retry", ID(1));
	FAILS(ID(2) ": it is published, and only pending, delayed, failed, parked and dead "
		    "messages can be discarded; nothing can be changed any more",
	      "discard", ID(2));
	FAILS(ID(3) ": it is dead, and only pending, delayed, failed and parked messages can be "
		    "given another priority; it can be retried, skipped or discarded",
	      "priority", "1", ID(3));
	ASK(STATES, "0 1 -1");
	end();
}
OB_TEST_END

OB_TEST(a_claimed_message_is_left_to_its_worker)
{
	begin_database();
	row(1, "order", "1", PENDING);
	sql("UPDATE outbox SET locked_until = " NOW " + 120 * " MINUTES
	    ", claim_token = x'01', locked_by = 'w'");
	struct ob_run r = outbox(NULL, "discard", ID(1), NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.err,
			 "outbox: " ID(1) ": it is in a worker's hands for 1h59m more; wait, or "
					  "stop that worker\n");
	ob_run_done(&r);
	ASK(STATES, "0");
	end();
}
OB_TEST_END

OB_TEST(a_wrong_id_changes_nothing_and_a_missing_one_does_not_stop_the_rest)
{
	begin_database();
	row(1, "order", "1", DEAD);
	REFUSED("retry: 'x' is not a UUID", "retry", ID(1), "x");
	ASK(STATES, "-1");
	expect(1, "retried " ID(1) " (was dead)\n", "outbox: no message " ID(9) "\n", "retry",
	       ID(9), ID(1), NULL);
	ASK(STATES, "0");
	FAILS("no message " ID(1) " for target mail", "skip", ID(1), "--target", "mail");
	end();
}
OB_TEST_END

OB_TEST(a_message_for_two_targets_is_changed_for_the_one_named)
{
	begin_database();
	row(1, "order", "1", DEAD);
	sql("INSERT INTO outbox (id, aggregate_type, event_type, payload, status, target) "
	    "SELECT id, aggregate_type, event_type, payload, status, 'mail' FROM outbox");
	SAYS("retried " ID(1) " (was dead)", "retry", ID(1), "--target", "mail");
	ASK(STATES, "-1 0");
	expect(1, "retried " ID(1) " for target default (was dead)\n",
	       "outbox: " ID(1) " for target mail: it is pending, and only failed and dead "
				"messages can be retried; it can be skipped, discarded or given "
				"another priority\n",
	       "retry", ID(1), NULL);
	ASK(STATES, "0 0");
	end();
}
OB_TEST_END

OB_TEST(programs_read_what_happened_to_each_id)
{
	begin_database();
	row(1, "order", "1", DEAD);
	row(2, "order", "1", PUBLISHED);
	expect(0,
	       "{\"verb\":\"retry\",\"id\":\"" ID(1) "\",\"target\":\"default\",\"state\":\"dead\","
						     "\"done\":false,\"dry_run\":true,\"error\":null}\n",
	       "", "retry", "--dry-run", "--json", ID(1), NULL);
	ASK(STATES, "-1 1");
	expect(1,
	       "{\"verb\":\"skip\",\"id\":\"" ID(2) "\",\"target\":\"default\","
						    "\"state\":\"published\",\"done\":false,"
						    "\"dry_run\":false,\"error\":\"it is published, "
						    "and only pending, delayed, failed, parked and "
						    "dead messages can be skipped; nothing can be "
						    "changed any more\"}\n"
	       "{\"verb\":\"skip\",\"id\":\"" ID(9) "\",\"target\":null,\"state\":null,"
						    "\"done\":false,\"dry_run\":false,"
						    "\"error\":\"no such message\"}\n"
	       "{\"verb\":\"skip\",\"id\":\"" ID(1) "\",\"target\":\"default\","
						    "\"state\":\"dead\",\"done\":true,"
						    "\"dry_run\":false,\"error\":null}\n",
	       NULL, "skip", "--json", ID(2), ID(9), ID(1), NULL);
	end();
}
OB_TEST_END

/* ---- keys ------------------------------------------------------------ */

OB_TEST(the_followers_of_a_held_key_go_on_in_order)
{
	static const char *const verbs[] = { "retry", "skip", "discard" };
	static const char *const left[] = { "1,0 2,0 3,0 4,3", "1,-1 2,0 3,0 4,3", "2,0 3,0 4,3" };

	begin_database();
	for (int heads = 0; heads < 2; heads++) {
		for (size_t i = 0; i < 3; i++) {
			row(1, "order", "1", heads ? DEAD_HOLD : FAILED);
			row(2, "order", "1", PARKED);
			row(3, "order", "1", PARKED);
			row(4, "order", "2", PARKED); /* of another key, held by row 5 */
			row(5, "order", "2", FAILED);
			expect(0, NULL, "", verbs[i], ID(1), NULL);
			ASK("SELECT substr(hex(id), -1), status FROM outbox "
			    "WHERE status <> 2 ORDER BY seq",
			    left[i]);
			sql("DELETE FROM outbox");
		}
	}
	end();
}
OB_TEST_END

OB_TEST(a_key_means_its_stuck_message_not_those_behind_it)
{
	begin_database();
	row(1, "order", "1", FAILED);
	row(2, "order", "1", PARKED);
	row(3, "order", "2", FAILED);
	SAYS("skipped 1 message (state failed or dead, key order:1)", "skip", "--key", "order:1");
	ASK(STATES, "-1 0 2");
	end();
}
OB_TEST_END

/* ---- by filter ------------------------------------------------------- */

OB_TEST(many_messages_are_not_changed_without_a_yes)
{
	begin_database();
	row(1, "order", "1", DEAD);
	row(2, "order", "2", DEAD);
	row(3, "mail", "3", DEAD);
	REFUSED("retry: would retry 2 messages (state dead, type order): stdin is no terminal to "
		"ask on, so say --yes",
		"retry", "--state", "dead", "--type", "order");
	REFUSED("discard: would discard 3 messages (state failed or dead): stdin is no terminal "
		"to ask on, so say --yes",
		"discard", "--all");
	ASK(STATES, "-1 -1 -1");
	SAYS("retried 2 messages (state dead, type order)", "retry", "--state", "dead", "--type",
	     "order", "--yes");
	ASK(STATES, "0 0 -1");
	SAYS("no messages (state dead, type order)", "retry", "--state", "dead", "--type", "order");
	SAYS("{\"verb\":\"priority\",\"matched\":2,\"changed\":2}", "priority", "5", "--all",
	     "--yes", "--json");
	SAYS("{\"verb\":\"retry\",\"matched\":0,\"changed\":0}", "retry", "--event", "None",
	     "--json");
	ASK("SELECT priority FROM outbox ORDER BY seq", "5 5 0");
	end();
}
OB_TEST_END

OB_TEST(one_message_by_filter_needs_no_question_but_all_does)
{
	begin_database();
	row(1, "order", "1", DEAD);
	REFUSED("retry: would retry 1 message (state failed or dead): stdin is no terminal to ask "
		"on, so say --yes",
		"retry", "--all");
	SAYS("retried 1 message (state failed or dead, aggregate 1, event Happened, target "
	     "default)",
	     "retry", "--aggregate", "1", "--event", "Happened", "--target", "default");
	end();
}
OB_TEST_END

OB_TEST(a_dry_run_shows_what_it_would_be)
{
	begin_database();
	for (int n = 1; n <= 23; n++)
		row(n, "order", "1", DEAD);
	struct ob_run r = outbox(NULL, "discard", "--all", "--dry-run", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_nonnull(strstr(r.out, ID(1) "  dead"));
	ck_assert_ptr_nonnull(strstr(r.out, "8000-000000000020  dead"));
	ck_assert_ptr_null(strstr(r.out, "8000-000000000021"));
	ck_assert_ptr_nonnull(
		strstr(r.out, "\nand 3 more\nwould discard 23 messages (state failed or dead)\n"));
	ob_run_done(&r);
	SAYS("would retry " ID(2) " (is dead)", "retry", ID(2), "-n");
	ASK("SELECT count(*) FROM outbox WHERE status = -1", "23");
	end();
}
OB_TEST_END

OB_TEST(a_dry_run_for_programs_names_every_message)
{
	begin_database();
	for (int n = 1; n <= 103; n++)
		row(n, "order", "1", DEAD);
	struct ob_run r = outbox(NULL, "retry", "--type", "order", "--dry-run", "--json", NULL);
	size_t lines = 0;
	for (const char *p = r.out; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, 103);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_command_line_that_says_nothing_clear_is_refused)
{
	begin_database();
	REFUSED("retry: say which messages: their ids, a filter such as --key, or --all", "retry");
	REFUSED("skip: give ids or filters, not both", "skip", ID(1), "--key", "k");
	REFUSED("discard: give ids or filters, not both", "discard", ID(1), "--all");
	REFUSED("retry: --state: no state 'ded'; did you mean 'dead'?", "retry", "--state", "ded");
	REFUSED("retry: --state: no state 'gone'; it is one of pending, delayed, processing, "
		"failed, parked, dead or published",
		"retry", "--state", "failed,gone");
	REFUSED("retry: --state: only failed and dead messages can be retried, not parked ones",
		"retry", "--state", "dead,parked");
	REFUSED("priority: N is missing", "priority");
	REFUSED("priority: 'high' is not a priority: a number from -32768 to 32767", "priority",
		"high", ID(1));
	REFUSED("priority: '-32769' is not a priority: a number from -32768 to 32767", "priority",
		"-32769", ID(1));
	end();
}
OB_TEST_END

/* ---- at a terminal --------------------------------------------------- */

#define QUESTION "retry 2 messages (state failed or dead)? [y/N] "

static const char *const retry_all[] = { "--store", "sqlite:test.db", "retry", "--all", NULL };

static void two_dead(void)
{
	begin_database();
	row(1, "order", "1", DEAD);
	row(2, "order", "2", DEAD);
}

OB_TEST(a_yes_at_the_terminal_does_it)
{
	two_dead();
	ck_assert_int_eq(at_terminal(retry_all, "[y/N] ", "y\n",
				     QUESTION "y\r\nretried 2 messages (state failed or dead)\r\n"),
			 0);
	ASK(STATES, "0 0");
	end();
}
OB_TEST_END

OB_TEST(anything_else_at_the_terminal_changes_nothing)
{
	two_dead();
	ck_assert_int_eq(at_terminal(retry_all, "[y/N] ", "\n",
				     QUESTION "\r\noutbox: nothing was changed\r\n"),
			 1);
	ck_assert_int_eq(at_terminal(retry_all, "[y/N] ", "no\n",
				     QUESTION "no\r\noutbox: nothing was changed\r\n"),
			 1);
	ck_assert_int_eq(at_terminal(retry_all, "[y/N] ", "\004",
				     QUESTION "\r\noutbox: nothing was changed\r\n"),
			 1);
	ASK(STATES, "-1 -1");
	end();
}
OB_TEST_END

OB_TEST(a_hostile_filter_cannot_write_on_the_terminal)
{
	static const char *const words[] = { "--store", "sqlite:test.db", "skip",
					     "--type",  "a\033[2Jb",      NULL };

	begin_database();
	row(1, "a\033[2Jb", "1", DEAD);
	row(2, "a\033[2Jb", "2", DEAD);
	ck_assert_int_eq(at_terminal(words, "[y/N] ", "y\n",
				     "skip 2 messages (state failed or dead, type a [2Jb)? [y/N] "
				     "y\r\nskipped 2 messages (state failed or dead, type "
				     "a [2Jb)\r\n"),
			 0);
	end();
}
OB_TEST_END

OB_SUITE("cli_operate", retry_makes_failed_and_dead_messages_new_again,
	 skip_and_discard_and_priority_say_what_they_did,
	 a_state_that_forbids_it_is_told_with_what_is_possible,
	 a_claimed_message_is_left_to_its_worker,
	 a_wrong_id_changes_nothing_and_a_missing_one_does_not_stop_the_rest,
	 a_message_for_two_targets_is_changed_for_the_one_named,
	 programs_read_what_happened_to_each_id, the_followers_of_a_held_key_go_on_in_order,
	 a_key_means_its_stuck_message_not_those_behind_it,
	 many_messages_are_not_changed_without_a_yes,
	 one_message_by_filter_needs_no_question_but_all_does, a_dry_run_shows_what_it_would_be,
	 a_dry_run_for_programs_names_every_message,
	 a_command_line_that_says_nothing_clear_is_refused, a_yes_at_the_terminal_does_it,
	 anything_else_at_the_terminal_changes_nothing,
	 a_hostile_filter_cannot_write_on_the_terminal)
