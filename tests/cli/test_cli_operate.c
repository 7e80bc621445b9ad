/* SPDX-License-Identifier: MIT */
/* retry, skip and discard: by id, by filter, for a reader, asked about, and refused. */
#include "database.h"
#include "terminal.h"

#include <stdio.h>

#define REFUSED(line, ...) expect(2, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define FAILS(line, ...)   expect(1, "", "outbox: " line "\n", __VA_ARGS__, NULL)
#define SAYS(line, ...)    expect(0, line "\n", "", __VA_ARGS__, NULL)

/* ---- by id ----------------------------------------------------------- */

OB_TEST(retry_makes_failed_and_dead_messages_new_again)
{
	begin_database();
	row(1, "order", "1", FAILED);
	row(2, "order", "2", DEAD);
	row(3, "order", "3", DEAD_HOLD);
	sql("UPDATE outbox_exceptions SET attempts = 8, last_error = 'no', due = " NOW
	    " + 60 * " MINUTES);
	SAYS("retried " ID(1) " (was failed)\n"
	     "retried " ID(2) " (was dead)\n"
	     "retried " ID(3) " (was dead)",
	     "retry", ID(1), ID(2), ID(3));
	ASK("SELECT state, attempts, last_error FROM outbox_messages ORDER BY seq",
	    "pending,0,no pending,0,no pending,0,no");
	ASK("SELECT count(*) FROM outbox_exceptions WHERE due <= " NOW, "3");
	end();
}
OB_TEST_END

OB_TEST(skip_and_discard_say_what_they_did)
{
	begin_database();
	for (int n = 1; n <= 4; n++)
		row(n, "order", "1", n == 1 ? FAILED : PARKED);
	SAYS("skipped " ID(1) " (was failed)", "skip", ID(1));
	SAYS("discarded " ID(2) " (was pending)", "discard", ID(2));
	ASK(STATES, "dead discarded pending parked");
	/* the rows of the log are as they were: another reader may want them */
	ASK("SELECT count(*) FROM outbox", "4");
	end();
}
OB_TEST_END

OB_TEST(what_no_relay_has_read_yet_can_be_decided_too)
{
	begin_database();
	row(1, "order", "1", PENDING);
	row(2, "order", "2", PENDING);
	row(3, "order", "2", PENDING);
	SAYS("skipped " ID(1) " (was pending)", "skip", ID(1));
	SAYS("discarded " ID(2) " (was pending)", "discard", ID(2));
	ASK(STATES, "dead discarded pending");
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
		    "be skipped or discarded",
	      "retry", ID(1));
	FAILS(ID(2) ": it is published, and only pending, delayed, failed, parked and dead "
		    "messages can be discarded; nothing can be changed any more",
	      "discard", ID(2));
	FAILS(ID(3) ": it is dead already and holds nothing; it can be retried or discarded",
	      "skip", ID(3));
	ASK(STATES, "pending published dead");
	SAYS("discarded " ID(3) " (was dead)", "discard", ID(3));
	FAILS(ID(3) ": it is discarded, and only failed and dead messages can be retried; nothing "
		    "can be changed any more",
	      "retry", ID(3));
	end();
}
OB_TEST_END

OB_TEST(a_wrong_id_changes_nothing_and_a_missing_one_does_not_stop_the_rest)
{
	begin_database();
	row(1, "order", "1", DEAD);
	REFUSED("retry: 'x' is not a UUID", "retry", ID(1), "x");
	ASK(STATES, "dead");
	expect(1, "retried " ID(1) " (was dead)\n",
	       "outbox: no message " ID(9) " among those of reader default\n", "retry", ID(9),
	       ID(1), NULL);
	ASK(STATES, "pending");
	end();
}
OB_TEST_END

OB_TEST(a_verb_is_about_one_reader)
{
	begin_database();
	row(1, "order", "1", DEAD);
	add_reader("mail", "default");
	add_reader("other", "elsewhere");
	FAILS("several readers: default, mail, other; choose one with --reader", "retry", ID(1));
	FAILS("several readers: default, mail, other; choose one with --reader", "skip", "--all");
	FAILS("no reader 'mial'; did you mean 'mail'?", "skip", ID(1), "--reader", "mial");
	FAILS("no reader 'x'; there is default, mail, other", "skip", ID(1), "--reader", "x");
	FAILS("no message " ID(1) " among those of reader other", "skip", ID(1), "--reader",
	      "other");
	SAYS("skipped " ID(1) " (was pending)", "skip", ID(1), "--reader", "mail");
	SAYS("retried " ID(1) " (was dead)", "retry", ID(1), "--reader", "default");
	ASK("SELECT reader, state FROM outbox_messages ORDER BY reader",
	    "default,pending mail,dead");
	end();
}
OB_TEST_END

OB_TEST(without_a_reader_there_is_nothing_to_decide)
{
	begin();
	set_env("OUTBOX_STORE=sqlite:test.db");
	expect(0, NULL, "", "setup", NULL);
	FAILS("no reader yet: 'outbox work' makes one when a relay first starts", "retry", "--all");
	end();
}
OB_TEST_END

OB_TEST(programs_read_what_happened_to_each_id)
{
	begin_database();
	row(1, "order", "1", DEAD_HOLD);
	row(2, "order", "2", PUBLISHED);
	expect(0,
	       "{\"verb\":\"retry\",\"id\":\"" ID(1) "\",\"reader\":\"default\",\"state\":\"dead\","
						     "\"done\":false,\"dry_run\":true,\"error\":null}\n",
	       "", "retry", "--dry-run", "--json", ID(1), NULL);
	ASK(STATES, "dead published");
	expect(1,
	       "{\"verb\":\"skip\",\"id\":\"" ID(2) "\",\"reader\":\"default\","
						    "\"state\":\"published\",\"done\":false,"
						    "\"dry_run\":false,\"error\":\"it is published, "
						    "and only pending, delayed, failed, parked and "
						    "dead messages can be skipped; nothing can be "
						    "changed any more\"}\n"
	       "{\"verb\":\"skip\",\"id\":\"" ID(9) "\",\"reader\":\"default\",\"state\":null,"
						    "\"done\":false,\"dry_run\":false,"
						    "\"error\":\"no such message\"}\n"
	       "{\"verb\":\"skip\",\"id\":\"" ID(1) "\",\"reader\":\"default\","
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
	/* The head is due; who follows goes with it. */
	static const char *const left[] = { "1,pending 2,parked 3,parked 4,parked",
					    "1,dead 2,pending 3,parked 4,parked",
					    "1,discarded 2,pending 3,parked 4,parked" };

	begin_database();
	for (int heads = 0; heads < 2; heads++) {
		for (size_t i = 0; i < 3; i++) {
			row(1, "order", "1", heads ? DEAD_HOLD : FAILED);
			row(2, "order", "1", PARKED);
			row(3, "order", "1", PARKED);
			row(5, "order", "2", FAILED);
			row(4, "order", "2", PARKED); /* of another key, held by row 5 */
			expect(0, NULL, "", verbs[i], ID(1), NULL);
			ASK("SELECT substr(hex(id), -1), state FROM outbox_messages "
			    "WHERE substr(hex(id), -1) <> '5' ORDER BY id",
			    left[i]);
			ASK("SELECT count(*) FROM outbox_exceptions WHERE state = 0 AND due "
			    "<= " NOW,
			    "1");
			sql("DELETE FROM outbox");
			sql("DELETE FROM outbox_exceptions");
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
	SAYS("skipped 1 message (state failed or dead, key order:1, reader default)", "skip",
	     "--key", "order:1");
	ASK(STATES, "dead pending failed");
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
	REFUSED("retry: would retry 2 messages (state dead, type order, reader default): stdin is "
		"no terminal to ask on, so say --yes",
		"retry", "--state", "dead", "--type", "order");
	REFUSED("discard: would discard 3 messages (state failed or dead, reader default): stdin "
		"is no terminal to ask on, so say --yes",
		"discard", "--all");
	ASK(STATES, "dead dead dead");
	SAYS("retried 2 messages (state dead, type order, reader default)", "retry", "--state",
	     "dead", "--type", "order", "--yes");
	ASK(STATES, "pending pending dead");
	SAYS("no messages (state dead, type order, reader default)", "retry", "--state", "dead",
	     "--type", "order");
	SAYS("{\"verb\":\"discard\",\"matched\":2,\"changed\":2}", "discard", "--state", "pending",
	     "--yes", "--json");
	SAYS("{\"verb\":\"retry\",\"matched\":0,\"changed\":0}", "retry", "--event", "None",
	     "--json");
	ASK(STATES, "discarded discarded dead");
	end();
}
OB_TEST_END

OB_TEST(one_message_by_filter_needs_no_question_but_all_does)
{
	begin_database();
	row(1, "order", "1", DEAD);
	REFUSED("retry: would retry 1 message (state failed or dead, reader default): stdin is no "
		"terminal to ask on, so say --yes",
		"retry", "--all");
	SAYS("retried 1 message (state failed or dead, aggregate 1, event Happened, reader "
	     "default)",
	     "retry", "--aggregate", "1", "--event", "Happened", "--reader", "default");
	end();
}
OB_TEST_END

OB_TEST(a_dead_message_that_holds_nothing_is_not_skipped_again)
{
	begin_database();
	row(1, "order", "1", DEAD);
	row(2, "order", "2", DEAD_HOLD);
	row(3, "order", "3", FAILED);
	SAYS("skipped 2 messages (state failed or dead, reader default)", "skip", "--all", "--yes");
	SAYS("no messages (state failed or dead, reader default)", "skip", "--all", "--yes");
	ASK(STATES, "dead dead dead");
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
		strstr(r.out,
		       "\nand 3 more\nwould discard 23 messages (state failed or dead, "
		       "reader default)\n"));
	ob_run_done(&r);
	SAYS("would retry " ID(2) " (is dead)", "retry", ID(2), "-n");
	ASK("SELECT count(*) FROM outbox_messages WHERE state = 'dead'", "23");
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
	REFUSED("retry: --state: no state 'gone'; it is one of pending, delayed, failed, parked, "
		"dead, discarded or published",
		"retry", "--state", "failed,gone");
	REFUSED("retry: --state: only failed and dead messages can be retried, not parked ones",
		"retry", "--state", "dead,parked");
	REFUSED("no command 'priority'; 'outbox help' lists them", "priority", "5", ID(1));
	end();
}
OB_TEST_END

/* ---- at a terminal --------------------------------------------------- */

#define QUESTION "retry 2 messages (state failed or dead, reader default)? [y/N] "

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
				     QUESTION "y\r\nretried 2 messages (state failed or dead, "
					      "reader default)\r\n"),
			 0);
	ASK(STATES, "pending pending");
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
	ASK(STATES, "dead dead");
	end();
}
OB_TEST_END

OB_TEST(a_hostile_filter_cannot_write_on_the_terminal)
{
	static const char *const words[] = { "--store", "sqlite:test.db", "skip",
					     "--type",  "a\033[2Jb",      NULL };

	begin_database();
	row(1, "a\033[2Jb", "1", FAILED);
	row(2, "a\033[2Jb", "2", FAILED);
	ck_assert_int_eq(at_terminal(words, "[y/N] ", "y\n",
				     "skip 2 messages (state failed or dead, type a [2Jb, reader "
				     "default)? [y/N] y\r\nskipped 2 messages (state failed or "
				     "dead, type a [2Jb, reader default)\r\n"),
			 0);
	end();
}
OB_TEST_END

OB_SUITE("cli_operate", retry_makes_failed_and_dead_messages_new_again,
	 skip_and_discard_say_what_they_did, what_no_relay_has_read_yet_can_be_decided_too,
	 a_state_that_forbids_it_is_told_with_what_is_possible,
	 a_wrong_id_changes_nothing_and_a_missing_one_does_not_stop_the_rest,
	 a_verb_is_about_one_reader, without_a_reader_there_is_nothing_to_decide,
	 programs_read_what_happened_to_each_id, the_followers_of_a_held_key_go_on_in_order,
	 a_key_means_its_stuck_message_not_those_behind_it,
	 many_messages_are_not_changed_without_a_yes,
	 one_message_by_filter_needs_no_question_but_all_does,
	 a_dead_message_that_holds_nothing_is_not_skipped_again, a_dry_run_shows_what_it_would_be,
	 a_dry_run_for_programs_names_every_message,
	 a_command_line_that_says_nothing_clear_is_refused, a_yes_at_the_terminal_does_it,
	 anything_else_at_the_terminal_changes_nothing,
	 a_hostile_filter_cannot_write_on_the_terminal)
