/* SPDX-License-Identifier: MIT */
/* The worker and the log: what it reads ahead, what it records, and who may say no. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;
static struct rig_node *node;
static uint32_t home; /* the partition of in_one_partition() */

/* ---- the box --------------------------------------------------------- */

/* One node that has its leases, and nothing to do. */
static void make_kind(uint32_t batch_size, enum ob_memdb_kind kind)
{
	rig_init_kind(&rig, kind);
	rig.relay.batch_size = batch_size;
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	/* All of them in one call. */
	ck_assert_uint_eq(node->take_overs, 1);
}

static void make(uint32_t batch_size)
{
	make_kind(batch_size, OB_MEMDB_SNAPSHOT);
}

/* Messages from..to, each with a key of its own, all in one partition. */
static void push_in_one_partition(int from, int to)
{
	static int next_key;
	char payload[16];

	home = rig_partition("k0");
	for (int i = from; i <= to; i++) {
		(void)snprintf(payload, sizeof(payload), "%d", i);
		rig_push(&rig, rig_key_in(home, "k", &next_key), payload);
	}
}

static void push_keys(int keys, int each)
{
	char key[16];

	for (int i = 0; i < each; i++) {
		for (int k = 0; k < keys; k++) {
			(void)snprintf(key, sizeof(key), "k%d", k);
			rig_push_many(&rig, key, i + 1, i + 1);
		}
	}
}

/* How often the sink stored this payload. */
static uint32_t copies(const char *payload)
{
	uint32_t n = 0;

	for (size_t i = 0; i < rig.log.count; i++)
		n += ob_str_eq(rig.log.entries[i].body, ob_str(payload));
	return n;
}

static void everything_went_out_once(uint32_t count)
{
	ck_assert_uint_eq(rig_delivered(&rig), count);
	ck_assert(rig_stored_once(&rig));
	ck_assert(rig_stored_in_order(&rig));
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), count);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
}

/* ---- reading and recording ------------------------------------------- */

OB_TEST(it_reads_ahead_of_what_is_confirmed)
{
	make(10);
	rig.plan.ack_delay_us = 500000;
	push_keys(40, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_ge(rig_metrics(node).in_flight, 35);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 0);
	/* No further than its memory goes. */
	push_keys(40, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_le(rig_metrics(node).fetched, 40);
	rig_run_ms(&rig, 2000);
	everything_went_out_once(80);
	rig_done(&rig);
}
OB_TEST_END

/* The position never passes a message without an outcome. */
OB_TEST(only_what_stands_before_an_open_message_is_recorded)
{
	make(2);
	rig.silent = "3";
	push_in_one_partition(1, 5);
	rig_run_ms(&rig, 500);
	ck_assert_uint_eq(rig_delivered(&rig), 5);
	ck_assert_int_eq(rig_position(&rig, home), 2);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 2);
	/* What is confirmed after it has left the memory all the same. */
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ck_assert_uint_eq(rig_metrics(node).unsettled, 0);
	ck_assert_uint_eq(rig_metrics(node).memory_bytes, 1);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	/* So who takes over begins there. */
	rig_kill(&rig, node);
	rig.silent = NULL;
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(copies("1"), 1);
	ck_assert_uint_eq(copies("2"), 1);
	for (int i = 3; i <= 5; i++)
		ck_assert_uint_eq(copies((char[]){ (char)('0' + i), '\0' }), 2);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 5);
	rig_done(&rig);
}
OB_TEST_END

/* A row for each partition that has something to say, and none for the others. */
OB_TEST(a_settle_writes_only_the_partitions_that_have_changed)
{
	uint32_t parts;

	make(50);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push(&rig, "bad", "1");
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(node->parts, 1);
	for (uint32_t i = 1; i <= 5; i++) {
		int n = 0;

		/* Not the one that had a failure. */
		rig_push(&rig, rig_key_in((rig_partition("bad") + 1) % RIG_PARTITIONS, "x", &n),
			 "1");
		rig_run_ms(&rig, 100);
		ck_assert_uint_eq(node->parts, 1 + i);
	}
	parts = node->parts;
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(node->parts, parts);
	rig_done(&rig);
}
OB_TEST_END

/* A settle may be of any size: a partition is recorded when its own messages are through. */
OB_TEST(an_open_message_holds_its_own_partition_only)
{
	make(50);
	rig.silent = "999";
	rig_push(&rig, "slow", "999");
	push_keys(40, 1);
	rig_run_ms(&rig, 300);

	uint32_t slow = rig_partition("slow");

	for (uint32_t p = 0; p < RIG_PARTITIONS; p++)
		ck_assert_int_eq(rig_position(&rig, p), p == slow ? 0 : 41);
	rig_done(&rig);
}
OB_TEST_END

/* ---- stragglers ------------------------------------------------------ */

/* One that is confirmed (or refused) only two seconds from now. */
static void send_slow_one(void)
{
	rig.plan.ack_delay_us = 2000000;
	push_in_one_partition(1, 1);
	rig_run_ms(&rig, 20);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	rig.plan.ack_delay_us = 0;
}

static void the_slow_one_is_an_exception(int64_t position)
{
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_WAITING), 1);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 1);
	ck_assert_int_eq(rig_position(&rig, home), position);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), position - 1);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
}

OB_TEST(a_straggler_does_not_hold_the_position_when_two_reads_have_overtaken_it)
{
	make(50);
	send_slow_one();
	push_in_one_partition(2, 2);
	rig_run_ms(&rig, 20);
	ck_assert_int_eq(rig_position(&rig, home), 0);
	push_in_one_partition(3, 3);
	rig_run_ms(&rig, 50);
	the_slow_one_is_an_exception(3);
	/* Its confirmation comes after all, and it is not sent again. */
	rig_run_ms(&rig, 3000);
	everything_went_out_once(3);
	ck_assert_uint_eq(node->changes[OB_CHANGE_ADD], 1);
	ck_assert_uint_eq(node->changes[OB_CHANGE_REMOVE], 1);
	ck_assert_uint_eq(rig_metrics(node).published, 3);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(what_was_confirmed_waits_a_second_for_a_straggler)
{
	make(50);
	send_slow_one();
	push_in_one_partition(2, 2);
	rig_run_ms(&rig, 900);
	ck_assert_int_eq(rig_position(&rig, home), 0);
	rig_run_ms(&rig, 200);
	the_slow_one_is_an_exception(2);
	rig_run_ms(&rig, 3000);
	everything_went_out_once(2);
	rig_done(&rig);
}
OB_TEST_END

/* Nothing that is confirmed waits for it: to spill it would be for nothing. */
OB_TEST(a_straggler_that_holds_nothing_up_is_no_exception)
{
	make(50);
	send_slow_one();
	rig_run_ms(&rig, 1500);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	rig_run_ms(&rig, 2000);
	everything_went_out_once(1);
	ck_assert_uint_eq(node->changes[OB_CHANGE_ADD], 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_straggler_that_fails_after_all_is_charged_once_and_tried_again)
{
	make(50);
	rig.poison[0] = "slow";
	rig.poison_count = 1;
	rig.plan.ack_delay_us = 2000000;
	rig_push_many(&rig, "slow", 1, 2);
	rig_run_ms(&rig, 20);
	rig.plan.ack_delay_us = 0;
	push_keys(40, 1);
	rig_run_ms(&rig, 1500);
	/* The second waits for the first, and must not overtake it whoever comes. */
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_WAITING), 2);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_FAILED), 1);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_WAITING), 1);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 6000);
	ck_assert_str_eq(rig_stored(&rig, "slow"), "1 2");
	everything_went_out_once(42);
	rig_done(&rig);
}
OB_TEST_END

/* Who takes over sends it again: nobody knows what became of it. */
OB_TEST(a_straggler_is_left_to_the_next_owner)
{
	make(50);
	send_slow_one();
	push_in_one_partition(2, 2);
	rig_run_ms(&rig, 1500);
	the_slow_one_is_an_exception(2);
	rig_kill(&rig, node);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(copies("1"), 2);
	ck_assert_uint_eq(copies("2"), 1);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

/* ---- an operator steps in -------------------------------------------- */

static uint32_t moves; /* how often an operator is to step in before a settle */

/* A verb on a message of the same partition takes the number that the settle wants. */
static void operate_before_settle(struct rig_node *at, const struct ob_settle *settle)
{
	(void)at;
	(void)settle;
	if (moves == 0)
		return;
	moves--;
	/* Both ways, so that there is always something to change. */
	ck_assert_uint_eq(rig_operate(&rig, moves % 2 ? OB_VERB_SKIP : OB_VERB_RETRY, "victim"), 1);
}

/* A dead message in the partition of the others, for the operator to play with. */
static void make_victim(void)
{
	rig.poison[0] = "victim";
	rig.poison_count = 1;
	rig.poison_kind = OB_ERR_REJECT;
	rig_push(&rig, "victim", "0");
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_DEAD), 1);
	rig.on_settle = operate_before_settle;
}

/* Another key in the partition of the victim. */
static const char *neighbour(void)
{
	int n = 0;

	return rig_key_in(rig_partition("victim"), "n", &n);
}

OB_TEST(a_settle_that_an_operator_overtook_is_made_again_with_the_next_number)
{
	uint32_t settles, published;

	make(50);
	make_victim();
	settles = node->settles;
	published = (uint32_t)rig_metrics(node).published;
	/* Skipped, due again, and so on: the victim stays poisoned. */
	moves = 3;
	rig_push_many(&rig, neighbour(), 1, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(moves, 0);
	ck_assert_uint_ge(node->settles, settles + 4);
	ck_assert_str_eq(rig_stored(&rig, neighbour()), "1");
	ck_assert_uint_eq(rig_metrics(node).published, published + 1);
	ck_assert_uint_eq(rig_metrics(node).lost, 0);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 1);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_failure_that_an_operator_overtook_is_charged_once)
{
	const char *key;

	make(50);
	make_victim();
	key = neighbour();
	rig.poison[0] = key;
	rig.poison_kind = OB_ERR_RETRY;
	moves = 1;
	rig_push_many(&rig, key, 1, 3);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(moves, 0);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 2);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 6000);
	ck_assert_str_eq(rig_stored(&rig, key), "1 2 3");
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_spill_that_an_operator_overtook_is_made_again)
{
	int n = 0;

	make(50);
	make_victim();
	rig.plan.ack_delay_us = 2000000;
	rig_push(&rig, neighbour(), "1");
	rig_run_ms(&rig, 20);
	rig.plan.ack_delay_us = 0;
	(void)rig_key_in(rig_partition("victim"), "n", &n);
	rig_push(&rig, rig_key_in(rig_partition("victim"), "n", &n), "2");
	rig_run_ms(&rig, 900);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_WAITING), 0);
	rig.poison_count = 0; /* the victim passes when it is tried again */
	moves = 1;
	rig_run_ms(&rig, 200);
	ck_assert_uint_eq(moves, 0);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_WAITING), 1);
	rig_run_ms(&rig, 3000);
	ck_assert_uint_eq(copies("1"), 1);
	ck_assert_uint_eq(copies("2"), 1);
	everything_went_out_once(3);
	rig_done(&rig);
}
OB_TEST_END

/* It is at the sink when a person decides that it shall not go out: too late, and no harm. */
OB_TEST(a_message_that_is_discarded_while_it_is_sent_stays_discarded)
{
	make(50);
	rig.plan.ack_delay_us = 500000;
	rig_push_many(&rig, "a", 1, 2);
	rig_run_ms(&rig, 50);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ck_assert_uint_eq(rig_operate(&rig, OB_VERB_DISCARD, "a"), 2);
	rig_run_ms(&rig, 3000);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_DISCARDED), 2);
	ck_assert_uint_eq(rig_metrics(node).lost, 0);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	rig_push_many(&rig, "a", 3, 3);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(copies("3"), 1);
	rig_done(&rig);
}
OB_TEST_END

/* ---- another worker --------------------------------------------------- */

static bool steal;

static void steal_before_settle(struct rig_node *at, const struct ob_settle *settle)
{
	(void)at;
	(void)settle;
	if (steal)
		rig_steal(&rig, false);
	steal = false;
}

OB_TEST(a_settle_that_is_refused_costs_the_partitions_and_says_so)
{
	make(50);
	rig.on_settle = steal_before_settle;
	steal = true;
	rig.poison[0] = "k3";
	rig.poison_count = 1;
	push_keys(16, 2);
	rig_run_ms(&rig, 300);
	/* Nothing of it was written, neither progress nor exceptions. */
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 0);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	ck_assert_uint_eq(rig_metrics(node).published, 0);
	ck_assert_uint_gt(rig_metrics(node).lost, 0);
	ck_assert_uint_eq(rig_metrics(node).memory_bytes, 0);
	ck_assert(rig_said(&rig, "partition was taken over by another worker"));
	/* What was not in that settle is lost at its own, or with the lease at the next renewal. */
	rig_run_ms(&rig, 6000);
	ck_assert_uint_eq(rig_metrics(node).partitions, 0);
	size_t stored = rig.log.count;
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(rig.log.count, stored);

	rig_give_back(&rig);
	rig.poison_count = 0;
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 32);
	ck_assert_uint_eq(rig_delivered(&rig), 32);
	ck_assert(rig_stored_in_order(&rig));
	rig_done(&rig);
}
OB_TEST_END

static void steal_before_take_over(struct rig_node *at)
{
	(void)at;
	if (steal)
		rig_steal(&rig, false);
	steal = false;
}

static void nothing_is_read(struct rig_node *at, const struct ob_read *read)
{
	(void)at;
	(void)read;
	ck_abort_msg("it reads what is not its own");
}

/* Its lease was gone before it got to the journal. */
OB_TEST(a_takeover_that_comes_too_late_reads_nothing)
{
	rig_init(&rig);
	rig.on_take_over = steal_before_take_over;
	rig.on_read = nothing_is_read;
	steal = true;
	push_keys(16, 2);
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	ck_assert(!steal);
	ck_assert_uint_ge(node->take_overs, 1);
	ck_assert_uint_eq(rig_metrics(node).partitions, 0);
	rig_run_ms(&rig, 30000);
	ck_assert_uint_eq(rig.log.count, 0);
	rig.on_read = NULL;
	rig_give_back(&rig);
	rig_run_ms(&rig, 2000);
	everything_went_out_once(32);
	rig_done(&rig);
}
OB_TEST_END

static void a_takeover_that_fails_is_made_again(enum ob_store_fault_mode mode)
{
	size_t journal;

	rig_init(&rig);
	push_keys(16, 2);
	journal = ob_memdb_journal_count(rig.db);
	node = rig_start(&rig, &ob_sink_memory);
	ob_store_fault_arm(
		node->store,
		&(struct ob_store_fault_plan){
			.nth = 1, .mode = mode, .only = UINT64_C(1) << OB_STORE_FAULT_take_over });
	rig.silent = "1"; /* so that nothing is recorded */
	rig_run_ms(&rig, 500);
	ck_assert(ob_store_fault_counted(node->store).fired);
	ck_assert_uint_eq(rig_metrics(node).store_errors, 1);
	/* One row for each partition in each lane, also if the first reply was lost. */
	ck_assert_uint_eq(ob_memdb_journal_count(rig.db), journal + OB_LANES * RIG_PARTITIONS);
	rig_kill(&rig, node);
	rig.silent = NULL;
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 32);
	rig_done(&rig);
}

OB_TEST(a_takeover_that_did_not_happen_is_made_again)
{
	a_takeover_that_fails_is_made_again(OB_FAULT_BEFORE);
}
OB_TEST_END

OB_TEST(a_takeover_whose_reply_was_lost_is_taken_as_it_is)
{
	a_takeover_that_fails_is_made_again(OB_FAULT_AFTER);
}
OB_TEST_END

/* ---- a settle that fails --------------------------------------------- */

struct seen_settle {
	uint64_t batch;
	int64_t pos;
	size_t parts, changes, promotes;
	uint32_t published, failed;
};

static struct seen_settle seen[8];
static uint32_t seen_count;

static void see_settle(struct rig_node *at, const struct ob_settle *settle)
{
	(void)at;
	if (seen_count == 8)
		return;
	seen[seen_count++] = (struct seen_settle){ .batch = settle->parts[0].batch,
						   .pos = settle->parts[0].progress.pos,
						   .parts = settle->part_count,
						   .changes = settle->change_count,
						   .promotes = settle->promote_count,
						   .published = settle->parts[0].published,
						   .failed = settle->parts[0].failed };
}

static void a_settle_that_fails_is_repeated(enum ob_store_fault_mode mode)
{
	make(50);
	rig.on_settle = see_settle;
	push_in_one_partition(1, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(seen_count, 1);

	/* Confirmed (or refused) at once, and while the store is away. */
	ob_store_fault_arm(
		node->store,
		&(struct ob_store_fault_plan){
			.nth = 1, .mode = mode, .only = UINT64_C(1) << OB_STORE_FAULT_settle });
	rig.plan.judge = NULL;
	rig.plan.ack_delay_us = 30000;
	push_in_one_partition(2, 2);
	rig_run_ms(&rig, 20);
	rig.plan.ack_delay_us = 0;
	push_in_one_partition(3, 3);
	rig_run_ms(&rig, 6);
	/* The third was recorded, or is about to be: no, the second holds the position. */
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 1);
	rig.plan.ack_delay_us = 20000;
	push_in_one_partition(4, 4);
	rig_run_ms(&rig, 1000);
	ck_assert(ob_store_fault_counted(node->store).fired);
	ck_assert_uint_eq(rig_metrics(node).store_errors, 1);

	uint32_t repeat = mode == OB_FAULT_AFTER ? 2 : 1;

	ck_assert_uint_ge(seen_count, repeat + 1);
	if (mode == OB_FAULT_AFTER)
		ck_assert_mem_eq(&seen[1], &seen[2], sizeof(seen[1]));
	ck_assert_uint_eq(seen[repeat].batch, seen[0].batch + 1);
	everything_went_out_once(4);
	ck_assert_uint_eq(rig_metrics(node).published, 4);
	ck_assert_uint_eq(rig_metrics(node).lost, 0);
	rig_done(&rig);
}

OB_TEST(a_settle_that_did_not_happen_is_repeated)
{
	a_settle_that_fails_is_repeated(OB_FAULT_BEFORE);
}
OB_TEST_END

OB_TEST(a_settle_whose_reply_was_lost_is_repeated_as_it_is)
{
	a_settle_that_fails_is_repeated(OB_FAULT_AFTER);
}
OB_TEST_END

OB_TEST(a_failure_whose_settle_lost_its_reply_is_charged_once)
{
	make(50);
	rig.on_settle = see_settle;
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	ob_store_fault_arm(node->store, &(struct ob_store_fault_plan){
						.nth = 1,
						.mode = OB_FAULT_AFTER,
						.only = UINT64_C(1) << OB_STORE_FAULT_settle });
	rig_push_many(&rig, "bad", 1, 3);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(seen_count, 2);
	ck_assert_mem_eq(&seen[0], &seen[1], sizeof(seen[0]));
	ck_assert_uint_eq(seen[0].changes, 3);
	ck_assert_uint_eq(seen[0].promotes, 1);
	ck_assert_uint_eq(seen[0].failed, 1);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 2);
	rig.poison_count = 0;
	rig_run_ms(&rig, 6000);
	everything_went_out_once(3);
	rig_done(&rig);
}
OB_TEST_END

/* What cannot be recorded would be sent again by who comes next. */
OB_TEST(while_a_settle_has_no_answer_nothing_more_is_sent)
{
	struct ob_store_fault_plan plan = { .nth = 1,
					    .only = UINT64_C(1) << OB_STORE_FAULT_settle };

	make(50);
	ob_store_fault_arm(node->store, &plan);
	rig_push(&rig, "a", "1");
	rig_run_ms(&rig, 20);
	ck_assert_uint_eq(rig.log.count, 1);
	/* Before the wait is over. */
	for (int i = 1; i <= 4; i++) {
		rig_push_many(&rig, "b", i, i);
		rig_run_ms(&rig, 5);
		ck_assert_uint_eq(rig.log.count, 1);
	}
	rig_run_ms(&rig, 1000);
	everything_went_out_once(5);
	rig_done(&rig);
}
OB_TEST_END

static void a_read_that_fails_loses_nothing(enum ob_store_fault_mode mode)
{
	for (uint64_t nth = 1; nth <= 4; nth++) {
		make(10);
		ob_store_fault_arm(node->store,
				   &(struct ob_store_fault_plan){ .nth = nth,
								  .mode = mode,
								  .only = UINT64_C(1)
									  << OB_STORE_FAULT_read });
		push_keys(20, 3);
		rig_run_ms(&rig, 3000);
		ck_assert(ob_store_fault_counted(node->store).fired);
		everything_went_out_once(60);
		rig_done(&rig);
	}
}

OB_TEST(a_read_that_did_not_happen_loses_nothing)
{
	a_read_that_fails_loses_nothing(OB_FAULT_BEFORE);
}
OB_TEST_END

OB_TEST(a_read_whose_reply_was_lost_loses_nothing)
{
	a_read_that_fails_loses_nothing(OB_FAULT_AFTER);
}
OB_TEST_END

/* ---- idle progress --------------------------------------------------- */

/* Rows of others are walked over too: a reader with nothing to do must not fall behind. */
OB_TEST(progress_over_rows_of_others_is_recorded_every_ten_seconds)
{
	size_t journal;

	/* Where every transaction makes a new snapshot there would always be something. */
	make_kind(50, OB_MEMDB_PLAIN);
	rig_run_ms(&rig, 1000);
	journal = ob_memdb_journal_count(rig.db);
	for (int i = 0; i < 20; i++)
		rig_push_message(&rig,
				 (struct outbox_message){ .payload = "1", .target = "elsewhere" });
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(ob_memdb_journal_count(rig.db), journal);
	rig_run_ms(&rig, 6000);
	for (uint32_t p = 0; p < RIG_PARTITIONS; p++)
		ck_assert_int_eq(rig_position(&rig, p), 20);
	journal = ob_memdb_journal_count(rig.db);
	/* Nothing new: nothing to record. */
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(ob_memdb_journal_count(rig.db), journal);
	ck_assert_uint_eq(rig.log.count, 0);
	rig_done(&rig);
}
OB_TEST_END

/* Or the next one would walk over all of it again. */
OB_TEST(a_drain_records_progress_over_rows_of_others)
{
	make(50);
	for (int i = 0; i < 20; i++)
		rig_push_message(&rig,
				 (struct outbox_message){ .payload = "1", .target = "elsewhere" });
	rig_run_ms(&rig, 1500);
	ck_assert_int_eq(rig_position(&rig, 0), 0);
	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 10);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	for (uint32_t p = 0; p < RIG_PARTITIONS; p++)
		ck_assert_int_eq(rig_position(&rig, p), 20);
	rig_done(&rig);
}
OB_TEST_END

/* ---- trust ------------------------------------------------------------ */

/* The leaser cannot reach the store: others may think that we are gone, and send the same. */
OB_TEST(nothing_is_sent_while_the_leaser_is_cut_off)
{
	make(50);
	atomic_store(&node->view.cut, true);
	node->leaser_hangs = true;
	push_keys(10, 1);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig.log.count, 0);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	atomic_store(&node->view.cut, false);
	rig_run_ms(&rig, 100);
	everything_went_out_once(10);
	rig_done(&rig);
}
OB_TEST_END

/* What is at the sink may be confirmed and recorded: the journal says whether it is still ours. */
OB_TEST(what_was_sent_before_the_cut_is_recorded)
{
	make(50);
	rig.plan.ack_delay_us = 100000;
	push_keys(10, 2);
	rig_run_ms(&rig, 10);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 10);
	atomic_store(&node->view.cut, true);
	node->leaser_hangs = true;
	rig_run_ms(&rig, 3000);
	ck_assert_uint_eq(rig.log.count, 10);
	ck_assert_uint_eq(rig_metrics(node).published, 10);
	atomic_store(&node->view.cut, false);
	rig_run_ms(&rig, 1000);
	everything_went_out_once(20);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(past_its_deadline_a_partition_waits_and_is_lost_with_its_lease)
{
	make(50);
	rig.plan.window = 1;
	rig_kill(&rig, node);
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	rig.plan.ack_delay_us = 14000000;
	push_keys(10, 2);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ck_assert_uint_eq(rig_metrics(node).queued, 19);
	/* Twelve seconds after the renewal the trust is over, after fifteen the lease. */
	node->leaser_hangs = true;
	rig_run_ms(&rig, 14500);
	ck_assert_uint_le(rig.log.count, 1);
	ck_assert_uint_eq(rig_metrics(node).forgotten, 0);
	rig_run_ms(&rig, 3000);
	ck_assert_uint_le(rig.log.count, 1);
	rig.plan.ack_delay_us = 0;
	node->leaser_hangs = false;
	rig_run_ms(&rig, 3000);
	ck_assert(rig_said(&rig, "leases lost"));
	ck_assert_uint_gt(rig_metrics(node).forgotten, 0);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 20);
	ck_assert(rig_stored_in_order(&rig));
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker log", it_reads_ahead_of_what_is_confirmed,
	 only_what_stands_before_an_open_message_is_recorded,
	 a_settle_writes_only_the_partitions_that_have_changed,
	 an_open_message_holds_its_own_partition_only,
	 a_straggler_does_not_hold_the_position_when_two_reads_have_overtaken_it,
	 what_was_confirmed_waits_a_second_for_a_straggler,
	 a_straggler_that_holds_nothing_up_is_no_exception,
	 a_straggler_that_fails_after_all_is_charged_once_and_tried_again,
	 a_straggler_is_left_to_the_next_owner,
	 a_settle_that_an_operator_overtook_is_made_again_with_the_next_number,
	 a_failure_that_an_operator_overtook_is_charged_once,
	 a_spill_that_an_operator_overtook_is_made_again,
	 a_message_that_is_discarded_while_it_is_sent_stays_discarded,
	 a_settle_that_is_refused_costs_the_partitions_and_says_so,
	 a_takeover_that_comes_too_late_reads_nothing, a_takeover_that_did_not_happen_is_made_again,
	 a_takeover_whose_reply_was_lost_is_taken_as_it_is,
	 a_settle_that_did_not_happen_is_repeated,
	 a_settle_whose_reply_was_lost_is_repeated_as_it_is,
	 a_failure_whose_settle_lost_its_reply_is_charged_once,
	 while_a_settle_has_no_answer_nothing_more_is_sent,
	 a_read_that_did_not_happen_loses_nothing, a_read_whose_reply_was_lost_loses_nothing,
	 progress_over_rows_of_others_is_recorded_every_ten_seconds,
	 a_drain_records_progress_over_rows_of_others, nothing_is_sent_while_the_leaser_is_cut_off,
	 what_was_sent_before_the_cut_is_recorded,
	 past_its_deadline_a_partition_waits_and_is_lost_with_its_lease)
