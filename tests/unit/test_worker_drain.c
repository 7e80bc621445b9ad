/* SPDX-License-Identifier: MIT */
/* A worker that leaves, and a partition that changes hands: nothing is lost, little is repeated. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;

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

/* Three are at the sink, confirmed half a second later; the others are queued. */
static struct rig_node *make_busy(int keys, int each)
{
	rig_init(&rig);
	rig.plan.window = 3;
	rig.plan.ack_delay_us = 500000;
	rig_start(&rig, &ob_sink_memory);
	push_keys(keys, each);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).in_flight, 3);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).queued, keys * each - 3);
	return &rig.nodes[0];
}

/* It is gone; the next one delivers the rest. */
static void replace(struct rig_node *node)
{
	rig_kill(&rig, node);
	rig.plan.ack_delay_us = 0;
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 5000);
}

static void everything_is_out(uint32_t count)
{
	ck_assert_uint_eq(rig_delivered(&rig), count);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), count);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert(rig_stored_in_order(&rig));
}

/* ---- the worker stops ------------------------------------------------ */

OB_TEST(a_drain_leaves_what_is_queued_to_the_next_without_a_repeat)
{
	struct rig_node *node = make_busy(20, 2);

	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 300);
	ck_assert_int_eq(node->state, OB_WORKER_RUNNING);
	rig_run_ms(&rig, 300);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig.log.count, 3);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3);
	/* Only where something was sent must the others become exceptions. */
	ck_assert_uint_gt(rig_all_exceptions(&rig), 0);
	ck_assert_uint_lt(rig_all_exceptions(&rig), 30);
	ck_assert_uint_eq(rig_metrics(node).memory_bytes, 0);
	replace(node);
	everything_is_out(40);
	ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_drain_with_nothing_sent_only_forgets)
{
	struct rig_node *node;

	rig_init(&rig);
	rig.plan.down = true;
	node = rig_start(&rig, &ob_sink_memory);
	push_keys(20, 2);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_gt(rig_metrics(node).queued, 20);
	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 10);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(node->changes[OB_CHANGE_ADD], 0);
	ck_assert_uint_eq(rig_metrics(node).forgotten, 40);
	for (uint32_t p = 0; p < RIG_PARTITIONS; p++)
		ck_assert_int_eq(rig_position(&rig, p), 0);
	rig.plan.down = false;
	replace(node);
	everything_is_out(40);
	ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_drain_records_failures_of_what_was_sent)
{
	struct rig_node *node;

	rig_init(&rig);
	rig.plan.ack_delay_us = 500000;
	rig.poison[0] = "k3";
	rig.poison_count = 1;
	node = rig_start(&rig, &ob_sink_memory);
	push_keys(10, 2);
	rig_run_ms(&rig, 100);
	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 600);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.poison_count = 0;
	replace(node);
	rig_run_ms(&rig, 1000);
	everything_is_out(20);
	ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}
OB_TEST_END

/* The sink goes away while its answers are awaited: no message pays, and it ends all the same. */
OB_TEST(a_drain_ends_when_the_sink_goes_down)
{
	struct rig_node *node = make_busy(20, 2);

	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 100);
	rig.plan.down = true;
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig.plan.down = false;
	replace(node);
	everything_is_out(40);
	rig_done(&rig);
}
OB_TEST_END

/* What was confirmed before is recorded; what is unconfirmed goes again. */
OB_TEST(a_stop_at_once_repeats_only_what_was_unconfirmed)
{
	struct rig_node *node = make_busy(20, 2);

	rig_run_ms(&rig, 600);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 3);
	ob_worker_stop(node->worker, OB_STOP_NOW);
	rig_run_ms(&rig, 1);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3);
	ck_assert_uint_eq(rig.log.count, 6);
	replace(node);
	everything_is_out(40);
	ck_assert_uint_eq(rig.log.count, 43);
	rig_done(&rig);
}
OB_TEST_END

/* It has tried: the rest is the next owner's. */
OB_TEST(a_stop_at_once_does_not_wait_for_a_store_that_is_away)
{
	struct rig_node *node = make_busy(20, 2);

	rig_run_ms(&rig, 450);
	ob_store_fault_arm(node->store,
			   &(struct ob_store_fault_plan){
				   .nth = 1, .only = UINT64_C(1) << OB_STORE_FAULT_settle });
	ob_worker_stop(node->worker, OB_STOP_NOW);
	rig_run_ms(&rig, 1);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	replace(node);
	everything_is_out(40);
	rig_done(&rig);
}
OB_TEST_END

/* A drain has time: it tries until the store is back, or it is told to leave. */
OB_TEST(a_drain_waits_for_a_store_that_is_away)
{
	struct rig_node *node = make_busy(20, 2);

	ob_store_fault_arm(node->store,
			   &(struct ob_store_fault_plan){
				   .nth = 1, .only = UINT64_C(1) << OB_STORE_FAULT_settle });
	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 1000);
	ck_assert(ob_store_fault_counted(node->store).fired);
	ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3);
	replace(node);
	everything_is_out(40);
	ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}
OB_TEST_END

/* ---- a partition changes hands --------------------------------------- */

OB_TEST(a_partition_is_handed_over_without_a_repeat)
{
	struct rig_node *node = make_busy(20, 3);

	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).partitions, 4);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 4);
	ck_assert_uint_eq(rig_metrics(node).lost, 0);
	rig.plan.ack_delay_us = 1000;
	rig_run_ms(&rig, 10000);
	everything_is_out(60);
	ck_assert(rig_stored_once(&rig));
	ck_assert_uint_gt(rig_metrics(&rig.nodes[1]).published, 0);
	rig_done(&rig);
}
OB_TEST_END

/* What drains is not sent, and the others go on meanwhile. */
OB_TEST(while_some_partitions_drain_the_others_are_served)
{
	struct rig_node *node;

	rig_init(&rig);
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 100);
	rig.plan.ack_delay_us = 5000000;
	push_keys(40, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 40);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	/* All of its partitions have something at the sink. */
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 0);
	rig.plan.ack_delay_us = 0;
	for (int i = 0; i < 40; i++)
		rig_push(&rig, rig_key_in((uint32_t)i % RIG_PARTITIONS, "x", &(int){ i * 100 }),
			 "1");
	rig_run_ms(&rig, 1000);
	/* Of the four partitions that it keeps. */
	ck_assert_uint_eq(rig.log.count, 40 + 20);
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 4);
	everything_is_out(80);
	ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}
OB_TEST_END

/* Who was to get them is gone before they were given up. */
static void taken_back(bool pipelined, int keys, int each)
{
	struct rig_node *node;
	uint32_t count = (uint32_t)(keys * each);

	rig_init(&rig);
	rig.plan.window = 3;
	rig.plan.ack_delay_us = 2500000;
	node = rig_start(&rig, pipelined ? &ob_sink_memory_ordered : &ob_sink_memory);
	push_keys(keys, each);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).in_flight, pipelined || keys > 3 ? 3 : keys);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1500);

	uint64_t others = rig_metrics(&rig.nodes[1]).partitions;

	rig_kill(&rig, &rig.nodes[1]);
	rig_run_ms(&rig, 600);
	ck_assert_uint_eq(rig_metrics(node).share, RIG_PARTITIONS);
	rig.plan.ack_delay_us = 1000;
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_metrics(node).partitions, RIG_PARTITIONS);
	everything_is_out(count);
	/* What the other one had sent is repeated. */
	if (others == 0)
		ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}

OB_TEST(a_partition_that_is_taken_back_while_it_drains_is_served_again)
{
	for (int keys = 1; keys <= 24; keys++)
		taken_back(false, keys, 6);
}
OB_TEST_END

OB_TEST(so_it_is_where_the_sink_keeps_order)
{
	for (int keys = 1; keys <= 24; keys++)
		taken_back(true, keys, 6);
}
OB_TEST_END

/* The leaser wants them back, or not; itself it does nothing. */
static void set_draining(struct rig_node *node, bool draining)
{
	node->leaser_hangs = true;
	for (size_t i = 0; i < node->view.count; i++) {
		if (!node->view.leases[i].drained)
			node->view.leases[i].draining = draining;
	}
	atomic_fetch_add(&node->view.version, 1);
}

/*
 * In one lane of the partition a message is at the sink, in another some are only queued. These are
 * forgotten, since nothing was sent there; the partition drains until the first is confirmed.
 */
OB_TEST(what_a_partition_forgot_while_it_drained_is_read_again_when_it_is_taken_back)
{
	struct rig_node *node;

	rig_init(&rig);
	rig.plan.window = 1;
	rig.plan.ack_delay_us = 1000000;
	node = rig_start(&rig, &ob_sink_memory);
	rig_push_message(&rig, (struct outbox_message){
				       .partition_key = "a", .payload = "0", .priority = 1 });
	rig_push_many(&rig, "a", 1, 5);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ck_assert_uint_eq(rig_metrics(node).queued, 5);
	set_draining(node, true);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(node).forgotten, 5);
	ck_assert(!node->view.leases[rig_partition("a")].drained);
	set_draining(node, false);
	rig.plan.ack_delay_us = 0;
	rig_run_ms(&rig, 2000);
	ck_assert_str_eq(rig_stored(&rig, "a"), "0 1 2 3 4 5");
	everything_is_out(6);
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker drain", a_drain_leaves_what_is_queued_to_the_next_without_a_repeat,
	 a_drain_with_nothing_sent_only_forgets, a_drain_records_failures_of_what_was_sent,
	 a_drain_ends_when_the_sink_goes_down, a_stop_at_once_repeats_only_what_was_unconfirmed,
	 a_stop_at_once_does_not_wait_for_a_store_that_is_away,
	 a_drain_waits_for_a_store_that_is_away, a_partition_is_handed_over_without_a_repeat,
	 while_some_partitions_drain_the_others_are_served,
	 a_partition_that_is_taken_back_while_it_drains_is_served_again,
	 so_it_is_where_the_sink_keeps_order,
	 what_a_partition_forgot_while_it_drained_is_read_again_when_it_is_taken_back)
