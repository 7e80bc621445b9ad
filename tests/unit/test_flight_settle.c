/* SPDX-License-Identifier: MIT */
/* From outcome to settled: outages, spills, what is lost meanwhile, and what a read leaves out. */
#include "flight_box.h"
#include "suite.h"

/* ---- outages --------------------------------------------------------- */

OB_TEST(a_key_waits_until_its_dead_message_is_settled)
{
	make(true, OB_ORDER_KEY);
	read_in("aa");
	ob_flight_sent(&flight, ob_flight_next(&flight, 0), 0);
	die(1);
	ck_assert_str_eq(outcomes(), "a1 dead");
	read_in("ab");
	ck_assert_str_eq(send_all(), "b4");
	settle_begin_all();
	read_in("a");
	ck_assert_str_eq(send_all(), "");
	settle_end_all();
	ck_assert_str_eq(send_all(), "a2 a3 a5");
	forget_all();
	done();
}
OB_TEST_END

OB_TEST(a_dead_message_that_holds_its_key_parks_what_follows)
{
	make_conf((struct ob_flight_conf){ .hold_dead = true });
	read_in("aab");
	(void)send_all();
	die(1);
	read_in("a");
	ck_assert_str_eq(outcomes(), "a1 dead, a2 park, a4 park");
	ok(3);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(an_outage_gives_its_failures_back_in_order_and_keeps_the_successes)
{
	make(false, OB_ORDER_KEY);
	read_in("aabc");
	(void)send_all();
	die(1);
	ok(3);
	refuse(4, OB_ERR_RETRY);
	read_in("a");
	ck_assert_str_eq(send_all(), "");
	ob_flight_undo_failures(&flight);
	ck_assert_str_eq(outcomes(), "b3 published");
	ck_assert_uint_eq(flight.held_keys, 0);
	ck_assert_str_eq(send_all(), "a1 c4");
	ok(1);
	ck_assert_str_eq(send_all(), "a2");
	ok(2);
	ck_assert_str_eq(send_all(), "a5");
	ok(5);
	ok(4);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(what_is_being_settled_or_was_collected_once_stays_a_failure)
{
	make(false, OB_ORDER_KEY);
	read_in("abc");
	(void)send_all();
	die(1);
	settle_begin_all();
	retry(2);
	at(2)->counted = true;
	die(3);
	ob_flight_undo_failures(&flight);
	ck_assert_str_eq(outcomes(), "b2 retry");
	ck_assert_int_eq(at(1)->state, OB_ENTRY_SETTLING);
	ck_assert_str_eq(send_all(), "c3");
	ok(3);
	settle_all();
	done();
}
OB_TEST_END

/* ---- spilling -------------------------------------------------------- */

OB_TEST(a_spilled_message_that_is_sent_is_confirmed_as_an_exception)
{
	make(false, OB_ORDER_KEY);
	read_in("aa");
	(void)send_all();
	ob_flight_spill(&flight, at(1));
	ob_flight_spill(&flight, at(1));
	ck_assert_uint_eq(flight.spills, 1);
	ck_assert_uint_eq(settle_spills(), 1);
	ck_assert_uint_eq(flight.spills, 0);
	ck_assert_int_eq(at(1)->state, OB_ENTRY_SENT);
	ck_assert(at(1)->message->excepted);
	ck_assert_uint_eq(at(1)->span, 0);
	/* It holds no span any more: nothing to spill. */
	ob_flight_spill(&flight, at(1));
	ck_assert_uint_eq(flight.spills, 0);
	ck_assert_str_eq(send_all(), "");
	ok(1);
	ck_assert_str_eq(outcomes(), "a1 published");
	ck_assert_int_eq(change_of(1), OB_CHANGE_REMOVE);
	settle_all();
	ck_assert_str_eq(send_all(), "a2");
	forget_all();
	done();
}
OB_TEST_END

OB_TEST(a_spilled_message_that_fails_is_charged_as_an_exception)
{
	make(false, OB_ORDER_KEY);
	read_in("aa");
	(void)send_all();
	ob_flight_spill(&flight, at(1));
	ck_assert_uint_eq(settle_spills(), 1);
	retry(1);
	ck_assert_int_eq(change_of(1), OB_CHANGE_SET);
	ck_assert_str_eq(outcomes(), "a1 retry, a2 park");
	settle_all();
	done();
}
OB_TEST_END

/* Confirmed before the spill was collected: there is nothing to spill any more. */
OB_TEST(a_message_with_an_outcome_of_its_own_is_not_spilled)
{
	make(false, OB_ORDER_KEY);
	read_in("ab");
	(void)send_all();
	ob_flight_spill(&flight, at(1));
	ob_flight_spill(&flight, at(2));
	ok(1);
	ob_flight_unspill(&flight, at(1));
	ck_assert_uint_eq(flight.spills, 1);
	settle_all();
	ck_assert_ptr_null(at(1));
	/* One that is lost with its partition is not spilled either. */
	forget_all();
	ck_assert_uint_eq(flight.spills, 0);
	done();
}
OB_TEST_END

/* Whoever takes over would send the exception first. */
OB_TEST(what_stands_before_an_exception_of_its_key_is_spilled_with_it)
{
	make(true, OB_ORDER_KEY);
	read_in("aab");
	ob_flight_sent(&flight, ob_flight_next(&flight, 0), 0);
	read_in("a*a!aab!");
	ck_assert_str_eq(outcomes(), "a5 park, a6 park, a7 park, b8 park");
	/* Sent or queued, but not what is an exception already, nor what comes after it. */
	ck_assert_str_eq(spilled(), "a1 a2 b3");
	ck_assert_uint_eq(flight.spills, 3);
	forget_all();
	done();
}
OB_TEST_END

OB_TEST(without_a_key_nothing_stands_before_a_message)
{
	make(true, OB_ORDER_KEY);
	read_in("a--");
	(void)send_all();
	retry(3);
	ck_assert_str_eq(spilled(), "");
	forget_all();
	done();
}
OB_TEST_END

OB_TEST(what_is_given_up_leaves_as_an_exception_and_takes_along_what_was_sent_before)
{
	make(false, OB_ORDER_KEY);
	read_in("aaab");
	ck_assert_str_eq(send_all(), "a1 b4");
	ob_flight_give_up(&flight, at(3), 0);
	ck_assert_str_eq(outcomes(), "a3 spill");
	ck_assert_str_eq(spilled(), "a1 a2");
	ob_flight_give_up(&flight, at(2), 0);
	ck_assert_str_eq(outcomes(), "a2 spill, a3 spill");
	ck_assert_uint_eq(flight.queued, 0);
	ck_assert_int_eq(change_of(2), OB_CHANGE_ADD);
	/* As the worker does when it collects: what has an outcome is not spilled besides. */
	ob_flight_unspill(&flight, at(2));
	ck_assert_str_eq(spilled(), "a1");
	/* The partition may be kept after all: what it reads then comes after them. */
	ck_assert_uint_eq(flight.held_keys, 1);
	read_in("a");
	ck_assert_str_eq(outcomes(), "a2 spill, a3 spill, a5 park");
	ok(1);
	ob_flight_unspill(&flight, at(1));
	ok(4);
	settle_all();
	done();
}
OB_TEST_END

/* ---- settling -------------------------------------------------------- */

OB_TEST(a_settle_that_did_not_happen_comes_first_in_the_next)
{
	make(false, OB_ORDER_KEY);
	read_in("abc");
	(void)send_all();
	ok(1);
	ok(2);
	settle_begin_all();
	ck_assert_ptr_eq(ob_flight_settling(&flight), at(1));
	ok(3);
	ob_flight_settle_failed(&flight, at(2));
	ob_flight_settle_failed(&flight, at(1));
	ck_assert_ptr_null(ob_flight_settling(&flight));
	ck_assert_ptr_eq(ob_flight_outcome(&flight), at(1));
	ck_assert_ptr_eq(ob_flight_outcome_next(&flight, at(1)), at(2));
	ck_assert_ptr_eq(ob_flight_outcome_next(&flight, at(2)), at(3));
	ck_assert_ptr_null(ob_flight_outcome_next(&flight, at(3)));
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_lost_partition_takes_only_its_own_messages)
{
	make(false, OB_ORDER_KEY);
	read_in("aabbcc");
	(void)send_all();
	ok(1);
	ob_flight_drop_partition(&flight, 0);
	ck_assert_uint_eq(flight.of_partition[0], 0);
	ck_assert_uint_eq(flight.sent_of_partition[0], 0);
	ck_assert_uint_eq(flight.count, 4);
	ck_assert_uint_eq(flight.forgotten, 2);
	ck_assert_ptr_null(ob_flight_outcome(&flight));
	ok(3);
	ck_assert_str_eq(send_all(), "b4");
	forget_all();
	done();
}
OB_TEST_END

/* The settler reads it. */
OB_TEST(what_is_being_settled_stays_when_its_partition_is_lost)
{
	make(false, OB_ORDER_KEY);
	read_in("aaa");
	(void)send_all();
	retry(1);
	settle_begin_all();
	read_in("a");
	ob_flight_drop_partition(&flight, 0);
	ck_assert_uint_eq(flight.count, 3);
	ck_assert_uint_eq(flight.unsettled, 3);
	/* The same partition, taken anew: the key waits for the end. */
	read_in("a");
	ck_assert_str_eq(send_all(), "");
	ck_assert_str_eq(outcomes(), "a5 park");
	settle_end_all();
	settle_all();
	done();
}
OB_TEST_END

/* ---- what a read leaves out ------------------------------------------ */

static const char *excluded(void)
{
	static char text[256];
	const int64_t *seqs;
	size_t n = ob_flight_exceptions(&flight, &seqs), at_text = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at_text += (size_t)snprintf(text + at_text, sizeof(text) - at_text, "%s%d",
					    i > 0 ? " " : "", (int)seqs[i]);
	return text;
}

OB_TEST(a_read_leaves_out_what_is_or_may_already_be_an_exception)
{
	make(false, OB_ORDER_KEY);
	ck_assert_str_eq(excluded(), "");
	read_in("abcd*a");
	/* From the log: its position tells. */
	ck_assert_str_eq(excluded(), "4");
	(void)send_all();
	ck_assert_str_eq(excluded(), "4");
	ob_flight_spill(&flight, at(3));
	retry(1);
	ck_assert_str_eq(excluded(), "1 3 4 5");
	settle_begin_all();
	ck_assert_uint_eq(settle_spills(), 1);
	ck_assert_str_eq(excluded(), "1 3 4 5");
	settle_end_all();
	/* The spilled one is an exception now, and in memory. */
	ck_assert_str_eq(excluded(), "3 4");
	forget_all();
	ck_assert_str_eq(excluded(), "");
	done();
}
OB_TEST_END

OB_SUITE("flight settle", a_key_waits_until_its_dead_message_is_settled,
	 a_dead_message_that_holds_its_key_parks_what_follows,
	 an_outage_gives_its_failures_back_in_order_and_keeps_the_successes,
	 what_is_being_settled_or_was_collected_once_stays_a_failure,
	 a_spilled_message_that_is_sent_is_confirmed_as_an_exception,
	 a_spilled_message_that_fails_is_charged_as_an_exception,
	 a_message_with_an_outcome_of_its_own_is_not_spilled,
	 what_stands_before_an_exception_of_its_key_is_spilled_with_it,
	 without_a_key_nothing_stands_before_a_message,
	 what_is_given_up_leaves_as_an_exception_and_takes_along_what_was_sent_before,
	 a_settle_that_did_not_happen_comes_first_in_the_next,
	 a_lost_partition_takes_only_its_own_messages,
	 what_is_being_settled_stays_when_its_partition_is_lost,
	 a_read_leaves_out_what_is_or_may_already_be_an_exception)
