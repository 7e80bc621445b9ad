/* SPDX-License-Identifier: MIT */
/* What may be in flight together, what is held, and what is forgotten. */
#include "relay/flight.h"
#include "suite.h"

static struct ob_flight flight;

static void make(bool pipelined, enum ob_ordering ordering, bool claims)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_flight_conf conf = { 32, 1 << 20, ordering, pipelined, claims };

	ck_assert_int_eq(ob_flight_init(&flight, &conf, &err), 0);
}

static void fill(struct ob_flight_batch *batch, const char *keys)
{
	static int64_t seq;

	ob_batch_reset(&batch->batch);
	for (size_t i = 0; keys[i]; i++) {
		struct ob_message *message = ob_batch_add(&batch->batch);

		message->seq = ++seq;
		message->partition = (uint32_t)(keys[i] - 'a') % 4;
		message->payload = OB_STR("12345");
		message->key = keys[i] == '-' ? OB_STR_NULL : (struct ob_str){ &keys[i], 1 };
	}
}

/* Fetch one message for each letter, which is its key ('-': none). */
static uint32_t fetch(const char *keys)
{
	struct ob_flight_batch *batch = ob_flight_fetch_begin(&flight);

	ck_assert_ptr_nonnull(batch);
	fill(batch, keys);
	return ob_flight_fetch_end(&flight, batch);
}

/* Send all that may go; returns their keys in order, and them in `sent`. */
static const char *send_all(struct ob_entry **sent)
{
	static char keys[64];
	size_t n = 0;

	for (struct ob_entry *entry; (entry = ob_flight_next(&flight, 0));) {
		ob_flight_sent(&flight, entry, 0);
		keys[n] = '-';
		if (entry->message->key.p)
			keys[n] = entry->message->key.p[0];
		sent[n++] = entry;
	}
	keys[n] = '\0';
	return keys;
}

static void settle_all(void)
{
	for (struct ob_entry *entry; (entry = ob_flight_outcome(&flight));)
		ob_flight_settled(&flight, entry);
}

static void refuse(struct ob_entry *entry, enum ob_err_kind kind)
{
	ob_flight_fail(&flight, entry, kind, "no");
}

/* Everything is back where it was. */
static void done(void)
{
	ck_assert_uint_eq(flight.count, 0);
	ck_assert_uint_eq(flight.bytes, 0);
	ck_assert_uint_eq(flight.held_keys, 0);
	ck_assert_uint_eq(flight.queued + flight.in_flight + flight.unsettled, 0);
	for (size_t i = 0; i < OB_FLIGHT_BATCHES; i++)
		ck_assert_uint_eq(flight.batches[i].refs, 0);
	ob_flight_done(&flight);
}

OB_TEST(one_message_of_a_key_is_sent_at_a_time)
{
	struct ob_entry *sent[32];

	make(false, OB_ORDER_KEY, false);
	ck_assert_uint_eq(fetch("aabba--"), 7);
	ck_assert_str_eq(send_all(sent), "ab--");
	ob_flight_ok(&flight, sent[0], 0);
	ck_assert_str_eq(send_all(sent), "a");
	ob_flight_drop_sent(&flight, 0);
	ob_flight_drop_queued(&flight, -1, 0);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_sink_that_keeps_order_gets_all_of_a_key)
{
	struct ob_entry *sent[32];

	make(true, OB_ORDER_KEY, false);
	(void)fetch("aabba");
	ck_assert_str_eq(send_all(sent), "aabba");
	for (int i = 0; i < 5; i++)
		ob_flight_ok(&flight, sent[i], 0);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_failure_drops_the_queue_and_holds_until_it_is_settled)
{
	struct ob_entry *sent[32], *own;

	make(false, OB_ORDER_KEY, false);
	(void)fetch("aaab");
	ck_assert_str_eq(send_all(sent), "ab");
	refuse(sent[0], OB_ERR_RETRY);
	own = ob_flight_judge(&flight);
	ck_assert_ptr_eq(own, sent[0]);
	ck_assert_str_eq(own->error, "no");
	ck_assert_uint_eq(flight.queued, 0);
	ck_assert_uint_eq(flight.forgotten, 2);
	ck_assert_uint_eq(fetch("ac"), 1);
	ob_flight_decide(&flight, own, OB_OUTCOME_RETRY, 1000, 0);
	ck_assert_uint_eq(fetch("a"), 0);
	ck_assert_uint_eq(flight.held_keys, 1);
	ob_flight_settled(&flight, own);
	ck_assert_uint_eq(flight.held_keys, 0);
	ck_assert_uint_eq(fetch("a"), 1);
	ob_flight_ok(&flight, sent[1], 0);
	ob_flight_drop_queued(&flight, -1, 0);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_fetch_that_began_before_the_release_brings_nothing_of_the_key)
{
	struct ob_entry *sent[32];
	struct ob_flight_batch *batch;

	make(false, OB_ORDER_KEY, false);
	(void)fetch("a");
	(void)send_all(sent);
	batch = ob_flight_fetch_begin(&flight);
	refuse(sent[0], OB_ERR_DOWN);
	ob_flight_drop(&flight, ob_flight_judge(&flight), 0);
	ck_assert_uint_eq(flight.held_keys, 0);
	fill(batch, "ab");
	ck_assert_uint_eq(ob_flight_fetch_end(&flight, batch), 1);
	ck_assert_uint_eq(fetch("a"), 1);
	ob_flight_drop_queued(&flight, -1, 0);
	done();
}
OB_TEST_END

OB_TEST(a_follower_that_fails_too_is_forgotten_and_one_that_got_through_is_settled)
{
	struct ob_entry *sent[32], *own;

	make(true, OB_ORDER_KEY, false);
	(void)fetch("aaa");
	(void)send_all(sent);
	refuse(sent[0], OB_ERR_RETRY);
	own = ob_flight_judge(&flight);
	ob_flight_decide(&flight, own, OB_OUTCOME_RETRY, 1, 0);
	refuse(sent[1], OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ob_flight_settled(&flight, own);
	/* The third is still out there: nothing of the key may go yet. */
	ck_assert_uint_eq(flight.held_keys, 1);
	ck_assert_uint_eq(fetch("a"), 0);
	ob_flight_ok(&flight, sent[2], 0);
	ck_assert_int_eq(ob_flight_outcome(&flight)->outcome, OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(flight.held_keys, 0);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_failure_is_judged_when_all_before_it_are_known)
{
	struct ob_entry *sent[32];

	make(true, OB_ORDER_KEY, false);
	(void)fetch("aaa");
	(void)send_all(sent);
	refuse(sent[1], OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ob_flight_ok(&flight, sent[0], 0);
	ck_assert_ptr_eq(ob_flight_judge(&flight), sent[1]);
	ob_flight_drop(&flight, sent[1], 0);
	refuse(sent[2], OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(a_refusal_at_hand_over_stops_the_key_at_once)
{
	struct ob_entry *first, *second;

	make(true, OB_ORDER_KEY, false);
	(void)fetch("aaa");
	first = ob_flight_next(&flight, 0);
	ob_flight_sent(&flight, first, 0);
	second = ob_flight_next(&flight, 0);
	ob_flight_sent(&flight, second, 0);
	refuse(second, OB_ERR_RETRY);
	/* Nobody knows yet whom to blame, but nothing may follow. */
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_ptr_null(ob_flight_next(&flight, 0));
	ck_assert_uint_eq(fetch("a"), 0);
	refuse(first, OB_ERR_RETRY);
	ck_assert_ptr_eq(ob_flight_judge(&flight), first);
	ob_flight_drop(&flight, first, 0);
	done();
}
OB_TEST_END

OB_TEST(a_late_outcome_of_a_forgotten_message_finds_nothing)
{
	struct ob_entry *sent[32];
	uint64_t tag;

	make(false, OB_ORDER_KEY, false);
	(void)fetch("a");
	(void)send_all(sent);
	tag = ob_flight_tag(&flight, sent[0]);
	ck_assert_ptr_eq(ob_flight_find(&flight, tag), sent[0]);
	ob_flight_drop_sent(&flight, 0);
	(void)fetch("a");
	(void)send_all(sent);
	ck_assert_ptr_null(ob_flight_find(&flight, tag));
	ob_flight_drop_sent(&flight, 0);
	done();
}
OB_TEST_END

OB_TEST(a_lost_partition_takes_only_its_own_messages)
{
	struct ob_entry *sent[32];

	make(false, OB_ORDER_KEY, false);
	(void)fetch("aabbcc");
	(void)send_all(sent);
	ob_flight_ok(&flight, sent[0], 0);
	ob_flight_drop_partition(&flight, 0, 0);
	ck_assert_uint_eq(flight.of_partition[0], 0);
	ck_assert_uint_eq(flight.count, 4);
	ck_assert_ptr_null(ob_flight_outcome(&flight));
	ob_flight_drop_sent(&flight, 0);
	done();
}
OB_TEST_END

OB_TEST(what_a_row_claim_does_not_send_it_gives_back)
{
	struct ob_entry *sent[32];

	make(false, OB_ORDER_NONE, true);
	(void)fetch("aab");
	ck_assert_str_eq(send_all(sent), "aab");
	refuse(sent[0], OB_ERR_DOWN);
	ob_flight_drop(&flight, ob_flight_judge(&flight), 0);
	ck_assert_int_eq(ob_flight_outcome(&flight)->outcome, OB_OUTCOME_RELEASE);
	ob_flight_drop_sent(&flight, 0);
	ck_assert_uint_eq(flight.unsettled, 3);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(failures_of_an_outage_are_forgotten_and_successes_kept)
{
	struct ob_entry *sent[32];

	make(false, OB_ORDER_KEY, false);
	(void)fetch("abc");
	(void)send_all(sent);
	refuse(sent[0], OB_ERR_REJECT);
	ob_flight_decide(&flight, ob_flight_judge(&flight), OB_OUTCOME_DEAD, 0, 0);
	ob_flight_ok(&flight, sent[1], 0);
	refuse(sent[2], OB_ERR_RETRY);
	ob_flight_drop_failures(&flight, 0);
	ck_assert_uint_eq(flight.unsettled, 1);
	ck_assert_uint_eq(flight.held_keys, 0);
	settle_all();
	done();
}
OB_TEST_END

OB_TEST(with_ordering_partition_a_partition_is_one_key)
{
	struct ob_entry *sent[32];

	make(false, OB_ORDER_PARTITION, false);
	(void)fetch("aebf");
	ck_assert_str_eq(send_all(sent), "ab");
	ob_flight_drop_sent(&flight, 0);
	done();
}
OB_TEST_END

OB_TEST(the_numbers_in_memory_come_in_order)
{
	const int64_t *seqs;
	size_t n;

	make(false, OB_ORDER_KEY, false);
	(void)fetch("abcabc");
	n = ob_flight_seqs(&flight, &seqs);
	ck_assert_uint_eq(n, 6);
	for (size_t i = 1; i < n; i++)
		ck_assert_int_lt(seqs[i - 1], seqs[i]);
	ob_flight_drop_queued(&flight, -1, 0);
	done();
}
OB_TEST_END

OB_TEST(a_full_flight_takes_no_more)
{
	make(false, OB_ORDER_KEY, false);
	ck_assert_uint_eq(fetch("abcdefghijabcdefghijabcdefghijabcdefghij"), 32);
	for (int i = 0; i < OB_FLIGHT_BATCHES - 1; i++)
		ck_assert_ptr_nonnull(ob_flight_fetch_begin(&flight));
	ck_assert_ptr_null(ob_flight_fetch_begin(&flight));
	ob_flight_done(&flight);
}
OB_TEST_END

OB_TEST(without_order_the_followers_of_a_failure_are_given_back_unjudged)
{
	struct ob_entry *sent[8] = { NULL }, *later[8] = { NULL };
	uint32_t outcomes[OB_OUTCOME_RELEASE + 1] = { 0 };

	make(true, OB_ORDER_NONE, true);
	fetch("aaab");
	ck_assert_str_eq(send_all(sent), "aaab");
	refuse(sent[0], OB_ERR_RETRY);
	ck_assert_ptr_eq(ob_flight_judge(&flight), sent[0]);
	ob_flight_decide(&flight, sent[0], OB_OUTCOME_RETRY, 10, 0);

	/* Nothing is held, but the sink would refuse it until it has answered the others. */
	ck_assert_uint_eq(fetch("a"), 1);
	ck_assert_str_eq(send_all(later), "");
	refuse(sent[1], OB_ERR_RETRY);
	refuse(sent[2], OB_ERR_RETRY);
	ck_assert_ptr_null(ob_flight_judge(&flight));
	ck_assert_str_eq(send_all(later), "a");
	ob_flight_ok(&flight, later[0], 0);
	ob_flight_ok(&flight, sent[3], 0);

	for (struct ob_entry *e = ob_flight_outcome(&flight); e;
	     e = ob_flight_outcome_next(&flight, e))
		outcomes[e->outcome]++;
	ck_assert_uint_eq(outcomes[OB_OUTCOME_RETRY], 1);
	ck_assert_uint_eq(outcomes[OB_OUTCOME_RELEASE], 2);
	ck_assert_uint_eq(outcomes[OB_OUTCOME_PUBLISHED], 2);
	settle_all();
	done();
}
OB_TEST_END

OB_SUITE("flight", one_message_of_a_key_is_sent_at_a_time,
	 a_sink_that_keeps_order_gets_all_of_a_key,
	 a_failure_drops_the_queue_and_holds_until_it_is_settled,
	 a_fetch_that_began_before_the_release_brings_nothing_of_the_key,
	 a_follower_that_fails_too_is_forgotten_and_one_that_got_through_is_settled,
	 a_failure_is_judged_when_all_before_it_are_known,
	 a_refusal_at_hand_over_stops_the_key_at_once,
	 a_late_outcome_of_a_forgotten_message_finds_nothing,
	 a_lost_partition_takes_only_its_own_messages, what_a_row_claim_does_not_send_it_gives_back,
	 failures_of_an_outage_are_forgotten_and_successes_kept,
	 with_ordering_partition_a_partition_is_one_key, the_numbers_in_memory_come_in_order,
	 a_full_flight_takes_no_more,
	 without_order_the_followers_of_a_failure_are_given_back_unjudged)
