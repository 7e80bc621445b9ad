/* SPDX-License-Identifier: MIT */
/* What may be in flight together, what a failure parks, and what a sink that is away gives back. */
#include "flight_box.h"
#include "suite.h"

/* ---- sending --------------------------------------------------------- */

OB_TEST(one_message_of_a_key_is_sent_at_a_time)
{
	make(false, OB_ORDER_KEY);
	read_in("aabba--");
	ck_assert_str_eq(send_all(), "a1 b3 -6 -7");
	ok(1);
	ck_assert_str_eq(send_all(), "a2");
	ok(3);
	ok(2);
	ck_assert_str_eq(send_all(), "b4 a5");
	ok(4);
	ok(5);
	ok(6);
	ok(7);
	ck_assert_uint_eq(flight.unsettled, 7);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_sink_that_keeps_order_gets_all_of_a_key)
{
	make(true, OB_ORDER_KEY);
	read_in("aabba");
	ck_assert_str_eq(send_all(), "a1 a2 b3 b4 a5");
	for (int64_t seq = 1; seq <= 5; seq++)
		ok(seq);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(with_ordering_partition_a_partition_is_one_key)
{
	make(false, OB_ORDER_PARTITION);
	read_in("aebf-"); /* the last one in the partition of the first two */
	ck_assert_str_eq(send_all(), "a1 b3");
	retry(1);
	ck_assert_str_eq(outcomes(), "a1 retry, e2 park, -5 park");
	ok(3);
	ck_assert_str_eq(send_all(), "f4");
	ok(4);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_probe_never_passes_over_the_head_of_a_key)
{
	make(true, OB_ORDER_KEY);
	read_in("aaabb");
	ck_assert_ptr_eq(ob_flight_next(&flight, 2), at(1));
	ck_assert_ptr_eq(ob_flight_next(&flight, 3), at(4));
	ck_assert_ptr_eq(ob_flight_next(&flight, 4), at(4));
	/* Around, when there are not so many. */
	ck_assert_ptr_eq(ob_flight_next(&flight, 5), at(1));
	forget_all();
	ck_assert_ptr_null(ob_flight_next(&flight, 7));
	done();
}
OB_TEST_END

/* ---- failures -------------------------------------------------------- */

OB_TEST(a_failure_parks_what_follows_in_its_key_and_nothing_else)
{
	make(false, OB_ORDER_KEY);
	read_in("aaaab");
	ck_assert_str_eq(send_all(), "a1 b5");
	retry(1);
	ck_assert_str_eq(at(1)->error, "no");
	ck_assert_int_eq(at(1)->delay_ms, 1000);
	ck_assert_str_eq(outcomes(), "a1 retry, a2 park, a3 park, a4 park");
	ck_assert_uint_eq(flight.held_keys, 1);
	ck_assert_uint_eq(flight.forgotten, 0);
	ok(5);
	settle_all();
	ck_assert_uint_eq(flight.held_keys, 0);
	done();
}
OB_TEST_END

/* Only a read that began after the settle can say that the key is held. */
OB_TEST(rows_that_come_before_the_failure_is_settled_are_parked)
{
	make(false, OB_ORDER_KEY);
	read_in("a");
	(void)send_all();
	retry(1);
	read_in("ab");
	ck_assert_str_eq(outcomes(), "a1 retry, a2 park");
	settle_begin_all();
	read_in("ab");
	ck_assert_str_eq(outcomes(), "a4 park");
	ck_assert_str_eq(send_all(), "b3");
	ok(3);
	ck_assert_str_eq(send_all(), "b5");
	ok(5);
	settle_end_all();
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(what_was_parked_during_a_settle_holds_its_key_until_it_is_settled_too)
{
	make(false, OB_ORDER_KEY);
	read_in("a");
	(void)send_all();
	retry(1);
	settle_begin_all();
	read_in("a");
	for (uint32_t i = 0; i < MAX; i++) {
		if (flight.entries[i].state == OB_ENTRY_SETTLING)
			ob_flight_settled(&flight, &flight.entries[i]);
	}
	ck_assert_uint_eq(flight.held_keys, 1);
	read_in("a");
	ck_assert_str_eq(outcomes(), "a2 park, a3 park");
	settle_all();
	read_in("a");
	ck_assert_str_eq(send_all(), "a4");
	forget_all();
	done();
}
OB_TEST_END

OB_TEST(a_row_whose_key_has_an_exception_is_parked)
{
	make(false, OB_ORDER_KEY);
	read_in("a!ab");
	ck_assert_str_eq(outcomes(), "a1 park, a2 park");
	ck_assert_str_eq(send_all(), "b3");
	ok(3);
	settle_all();
	done();
}
OB_TEST_END

/* It is its key's head, or stands after it: the store has said so. */
OB_TEST(an_exception_is_sent_although_its_key_is_parked)
{
	make(false, OB_ORDER_KEY);
	read_in("a!");
	read_in("a*a*");
	ck_assert_str_eq(outcomes(), "a1 park");
	ck_assert_str_eq(send_all(), "a2");
	ok(2);
	ck_assert_str_eq(send_all(), "a3");
	retry(3);
	settle_all();
	done();
}
OB_TEST_END

/* They stand in their queue in the store already: to park them again would cost its length. */
OB_TEST(exceptions_after_one_that_fails_again_are_only_forgotten)
{
	make(true, OB_ORDER_KEY);
	read_in("a*a*a*a!");
	ck_assert_str_eq(send_all(), "a1 a2 a3");
	retry(1);
	refuse(2, OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_ptr_null(at(2));
	ok(3);
	ck_assert_str_eq(outcomes(), "a1 retry, a3 published, a4 park");
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_follower_that_fails_too_is_not_charged)
{
	make(true, OB_ORDER_KEY);
	read_in("aaaa");
	ck_assert_str_eq(send_all(), "a1 a2 a3 a4");
	refuse(1, OB_ERR_RETRY);
	refuse(2, OB_ERR_RETRY);
	ob_flight_decide(&flight, judged(1), OB_OUTCOME_RETRY, 1, 0);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	refuse(3, OB_ERR_REJECT);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_str_eq(outcomes(), "a1 retry, a2 park, a3 park");
	settle_all();
	/* The fourth is still out there: nothing of the key may go yet. */
	read_in("a");
	ck_assert_str_eq(send_all(), "");
	ok(4);
	ck_assert_str_eq(outcomes(), "a4 published");
	ck_assert_str_eq(send_all(), "a5");
	ok(5);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_failure_is_judged_when_all_before_it_are_known)
{
	make(true, OB_ORDER_KEY);
	read_in("aaa");
	(void)send_all();
	refuse(2, OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	refuse(3, OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ok(1);
	ob_flight_decide(&flight, judged(2), OB_OUTCOME_RETRY, 1, 0);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_str_eq(outcomes(), "a1 published, a2 retry, a3 park");
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_refusal_at_hand_over_stops_the_key_at_once)
{
	make(true, OB_ORDER_KEY);
	read_in("aaa");
	ob_flight_sent(&flight, ob_flight_next(&flight, 0), 0);
	ob_flight_sent(&flight, ob_flight_next(&flight, 0), 0);
	refuse(2, OB_ERR_RETRY);
	/* Nobody knows yet whom to blame, but nothing may follow. */
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_ptr_null(ob_flight_next(&flight, 0));
	read_in("a");
	ck_assert_ptr_null(ob_flight_next(&flight, 0));
	refuse(1, OB_ERR_RETRY);
	ob_flight_decide(&flight, judged(1), OB_OUTCOME_RETRY, 1, 0);
	ck_assert_str_eq(outcomes(), "a1 retry, a2 park, a3 park, a4 park");
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_failure_without_a_key_holds_nobody)
{
	make(true, OB_ORDER_KEY);
	read_in("--a");
	ck_assert_str_eq(send_all(), "-1 -2 a3");
	retry(1);
	ck_assert_str_eq(outcomes(), "-1 retry");
	ck_assert_uint_eq(flight.held_keys, 0);
	ok(2);
	ok(3);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(without_order_the_followers_of_a_failure_go_again_unjudged)
{
	make(true, OB_ORDER_NONE);
	read_in("aaab");
	ck_assert_str_eq(send_all(), "a1 a2 a3 b4");
	retry(1);
	/* Nothing is held, but the sink would refuse it until it has answered the others. */
	read_in("a");
	ck_assert_str_eq(send_all(), "");
	refuse(2, OB_ERR_RETRY);
	refuse(3, OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_str_eq(send_all(), "a2 a3 a5");
	for (int64_t seq = 2; seq <= 5; seq++)
		ok(seq);
	ck_assert_str_eq(outcomes(),
			 "a1 retry, a2 published, a3 published, b4 published, a5 published");
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(without_order_nothing_is_parked)
{
	make(false, OB_ORDER_NONE);
	read_in("aab");
	ck_assert_str_eq(send_all(), "a1 a2 b3");
	retry(1);
	die(3);
	read_in("a");
	ck_assert_str_eq(send_all(), "a4");
	ck_assert_str_eq(outcomes(), "a1 retry, b3 dead");
	settle_all();
	forget_all();
	done();
}
OB_TEST_END

/* A classifier may say that a failure is none. */
OB_TEST(a_failure_that_is_none_lets_its_key_go_on)
{
	make(true, OB_ORDER_KEY);
	read_in("aaa");
	(void)send_all();
	refuse(1, OB_ERR_REJECT);
	refuse(2, OB_ERR_REJECT);
	ob_flight_decide(&flight, judged(1), OB_OUTCOME_PUBLISHED, 0, 0);
	ok(3);
	ck_assert_str_eq(send_all(), "a2");
	ok(2);
	ck_assert_str_eq(outcomes(), "a1 published, a2 published, a3 published");
	settle_all();
	done();
}
OB_TEST_END

/* ---- delayed --------------------------------------------------------- */

OB_TEST(a_delayed_message_is_not_sent_and_holds_nobody)
{
	make(false, OB_ORDER_KEY);
	read_in("aa~a");
	ck_assert_str_eq(outcomes(), "a2 delay");
	ck_assert_str_eq(send_all(), "a1");
	ok(1);
	ck_assert_str_eq(send_all(), "a3");
	ok(3);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_delayed_message_that_holds_its_key_parks_what_follows)
{
	make_conf((struct ob_flight_conf){ .hold_delayed = true });
	read_in("aa~ab");
	ck_assert_str_eq(outcomes(), "a2 delay, a3 park");
	ck_assert_str_eq(send_all(), "a1 b4");
	ok(1);
	ok(4);
	settle_all();
	done();
}
OB_TEST_END

/* Its exception has come due: it is sent like any other. */
OB_TEST(an_exception_is_not_delayed_again)
{
	make_conf((struct ob_flight_conf){ .hold_delayed = true });
	read_in("a*~");
	ck_assert_str_eq(send_all(), "a1");
	ok(1);
	settle_all();
	done();
}
OB_TEST_END

/* ---- the sink is away ------------------------------------------------ */

static void down(int64_t seq)
{
	refuse(seq, OB_ERR_DOWN);
	for (struct ob_entry *entry; (entry = ob_flight_judge(&flight));)
		ob_flight_requeue(&flight, entry);
}

OB_TEST(what_a_sink_that_is_down_did_not_take_goes_again_in_order)
{
	make(true, OB_ORDER_KEY);
	read_in("aaaab");
	ck_assert_str_eq(send_all(), "a1 a2 a3 a4 b5");
	down(1);
	/* Before all have answered, one of them may still be stored. */
	ck_assert_str_eq(send_all(), "");
	down(2);
	down(5);
	ck_assert_str_eq(send_all(), "b5");
	down(4);
	down(3);
	ck_assert_str_eq(outcomes(), "");
	read_in("a");
	ck_assert_str_eq(send_all(), "a1 a2 a3 a4 a6");
	for (int64_t seq = 1; seq <= 6; seq++)
		ok(seq);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(one_by_one_the_same)
{
	make(false, OB_ORDER_KEY);
	read_in("aab");
	ck_assert_str_eq(send_all(), "a1 b3");
	down(1);
	ck_assert_str_eq(send_all(), "a1");
	down(1);
	down(3);
	ck_assert_str_eq(send_all(), "a1 b3");
	ok(1);
	ok(3);
	ck_assert_str_eq(send_all(), "a2");
	ok(2);
	settle_all();
	done();
}
OB_TEST_END

/* Slots in an order that is not that of arrival. */
static void shuffle_slots(void)
{
	read_in("abcdefgh");
	(void)send_all();
	for (int64_t seq = 1; seq <= 8; seq++)
		ok(seq * 3 % 8 + 1);
	settle_all();
	for (uint32_t i = 0; i < MAX - 8; i++)
		read_in("a");
	(void)send_all();
	forget_all();
	ck_assert_uint_eq(flight.count, 0);
}

static void a_reset_keeps_the_order(bool pipelined)
{
	make(pipelined, OB_ORDER_KEY);
	shuffle_slots();
	last_seq = 0;
	read_in("aabbaacb-");
	(void)send_all();
	/* One that failed, with one before it unconfirmed, was sent too. */
	if (pipelined)
		refuse(5, OB_ERR_RETRY);
	ob_flight_unsend(&flight);
	ck_assert_uint_eq(flight.in_flight, 0);
	ck_assert_uint_eq(flight.queued, 9);
	ck_assert_ptr_null(ob_flight_judge(&flight));

	int64_t last[256] = { 0 };

	for (int i = 0; i < 9; i++) {
		struct ob_entry *entry = ob_flight_next(&flight, 0);
		uint8_t key = entry->message->key.p ? (uint8_t)entry->message->key.p[0] : 0;

		ck_assert_int_gt(entry->message->seq, last[key]);
		last[key] = entry->message->seq;
		ob_flight_sent(&flight, entry, 0);
		if (!pipelined)
			ob_flight_ok(&flight, entry, 0);
	}
	ck_assert_ptr_null(ob_flight_next(&flight, 0));
	forget_all();
	done();
}

OB_TEST(what_was_sent_to_a_sink_that_was_reset_goes_again_in_order)
{
	a_reset_keeps_the_order(true);
}
OB_TEST_END

OB_TEST(so_it_does_one_by_one)
{
	a_reset_keeps_the_order(false);
}
OB_TEST_END

/* What was read later is behind it, what was read earlier before it. */
OB_TEST(after_a_reset_nothing_that_was_read_meanwhile_overtakes)
{
	make(false, OB_ORDER_KEY);
	read_in("aa");
	ck_assert_str_eq(send_all(), "a1");
	read_in("a");
	ob_flight_unsend(&flight);
	read_in("a");
	for (int64_t seq = 1; seq <= 4; seq++) {
		ck_assert_ptr_eq(ob_flight_next(&flight, 0), at(seq));
		ob_flight_sent(&flight, at(seq), 0);
		ok(seq);
	}
	settle_all();
	done();
}
OB_TEST_END

/* ---- tags ------------------------------------------------------------ */

OB_TEST(the_tag_of_a_slots_previous_life_is_not_found)
{
	uint64_t tags[MAX];

	make(false, OB_ORDER_KEY);
	for (int i = 0; i < MAX; i++)
		read_in("-");
	(void)send_all();
	for (int i = 0; i < MAX; i++) {
		tags[i] = ob_flight_tag(&flight, &flight.entries[i]);
		ck_assert_ptr_eq(ob_flight_find(&flight, tags[i]), &flight.entries[i]);
	}
	forget_all();
	for (int i = 0; i < MAX; i++)
		ck_assert_ptr_null(ob_flight_find(&flight, tags[i]));
	/* Every slot is in use again, and sent. */
	for (int i = 0; i < MAX; i++)
		read_in("-");
	(void)send_all();
	for (int i = 0; i < MAX; i++)
		ck_assert_ptr_null(ob_flight_find(&flight, tags[i]));
	ck_assert_ptr_null(ob_flight_find(&flight, UINT64_MAX));
	ck_assert_ptr_null(ob_flight_find(&flight, MAX));
	forget_all();
	done();
}
OB_TEST_END

/* The sink was told to forget the first send; should it answer all the same, that is no answer. */
OB_TEST(the_tag_of_an_earlier_send_is_not_found)
{
	uint64_t first, second;

	make(false, OB_ORDER_KEY);
	read_in("a");
	(void)send_all();
	first = ob_flight_tag(&flight, at(1));
	ob_flight_unsend(&flight);
	ck_assert_ptr_null(ob_flight_find(&flight, first));
	(void)send_all();
	second = ob_flight_tag(&flight, at(1));
	ck_assert_ptr_null(ob_flight_find(&flight, first));
	ck_assert_ptr_eq(ob_flight_find(&flight, second), at(1));
	ok(1);
	ck_assert_ptr_null(ob_flight_find(&flight, second));
	settle_all();
	done();
}
OB_TEST_END

/* ---- room ------------------------------------------------------------ */

OB_TEST(a_full_flight_takes_no_more)
{
	struct ob_flight_batch *batch;

	make(false, OB_ORDER_KEY);
	batch = ob_flight_read_begin(&flight);
	fill(&batch->batch, "abcdefghijabcdefghijabcdefghijabcdefghij");
	ck_assert_uint_eq(take_in(batch), MAX);
	ck_assert_uint_eq(flight.bytes, MAX * 5);
	forget_all();

	/* As many keys as messages. */
	batch = ob_flight_read_begin(&flight);
	fill(&batch->batch, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ");
	ck_assert_uint_eq(take_in(batch), MAX);
	forget_all();

	/* No partition of ours. */
	batch = ob_flight_read_begin(&flight);
	fill(&batch->batch, "a");
	batch->batch.messages[0].partition = OB_FLIGHT_PARTITIONS;
	ck_assert_uint_eq(take_in(batch), 0);
	done();
}
OB_TEST_END

OB_TEST(a_batch_is_free_when_its_last_message_has_left)
{
	make(false, OB_ORDER_KEY);
	read_in("aa");
	for (int i = 0; i < OB_FLIGHT_BATCHES - 1; i++)
		ck_assert_ptr_nonnull(ob_flight_read_begin(&flight));
	ck_assert_ptr_null(ob_flight_read_begin(&flight));
	for (int64_t seq = 1; seq <= 2; seq++) {
		ck_assert_ptr_null(ob_flight_read_begin(&flight));
		(void)send_all();
		ok(seq);
		settle_all();
	}
	ck_assert_ptr_nonnull(ob_flight_read_begin(&flight));
	ob_flight_done(&flight);
}
OB_TEST_END

OB_SUITE("flight", one_message_of_a_key_is_sent_at_a_time,
	 a_sink_that_keeps_order_gets_all_of_a_key, with_ordering_partition_a_partition_is_one_key,
	 a_probe_never_passes_over_the_head_of_a_key,
	 a_failure_parks_what_follows_in_its_key_and_nothing_else,
	 rows_that_come_before_the_failure_is_settled_are_parked,
	 what_was_parked_during_a_settle_holds_its_key_until_it_is_settled_too,
	 a_row_whose_key_has_an_exception_is_parked,
	 an_exception_is_sent_although_its_key_is_parked,
	 exceptions_after_one_that_fails_again_are_only_forgotten,
	 a_follower_that_fails_too_is_not_charged, a_failure_is_judged_when_all_before_it_are_known,
	 a_refusal_at_hand_over_stops_the_key_at_once, a_failure_without_a_key_holds_nobody,
	 without_order_the_followers_of_a_failure_go_again_unjudged,
	 without_order_nothing_is_parked, a_failure_that_is_none_lets_its_key_go_on,
	 a_delayed_message_is_not_sent_and_holds_nobody,
	 a_delayed_message_that_holds_its_key_parks_what_follows, an_exception_is_not_delayed_again,
	 what_a_sink_that_is_down_did_not_take_goes_again_in_order, one_by_one_the_same,
	 what_was_sent_to_a_sink_that_was_reset_goes_again_in_order, so_it_does_one_by_one,
	 after_a_reset_nothing_that_was_read_meanwhile_overtakes,
	 the_tag_of_a_slots_previous_life_is_not_found, the_tag_of_an_earlier_send_is_not_found,
	 a_full_flight_takes_no_more, a_batch_is_free_when_its_last_message_has_left)
