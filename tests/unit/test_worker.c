/* SPDX-License-Identifier: MIT */
/* The worker and its leaser together, over memory store and memory sink. */
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

static struct ob_memsink_verdict refuse_twos(void *arg, const struct ob_delivery *delivery)
{
	(void)arg;
	return (struct ob_memsink_verdict){ .kind = ob_str_eq(delivery->body, OB_STR("2"))
							    ? OB_ERR_RETRY
							    : OB_ERR_NONE };
}

static void everything_is_delivered_in_order(const struct ob_sink_ops *ops)
{
	char key[16];

	rig_init(&rig);
	rig_start(&rig, ops);
	push_keys(40, 10);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 400);
	ck_assert_uint_eq(rig.log.count, 400);
	for (int k = 0; k < 40; k++) {
		(void)snprintf(key, sizeof(key), "k%d", k);
		ck_assert_str_eq(rig_stored(&rig, key), "1 2 3 4 5 6 7 8 9 10");
	}
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).published, 400);
	/* The straight way costs no exception. */
	ck_assert_uint_eq(rig.nodes[0].changes[OB_CHANGE_ADD], 0);
	rig_done(&rig);
}

OB_TEST(a_plain_sink_gets_everything_in_order)
{
	everything_is_delivered_in_order(&ob_sink_memory);
}
OB_TEST_END

OB_TEST(an_ordered_sink_gets_everything_in_order)
{
	everything_is_delivered_in_order(&ob_sink_memory_ordered);
}
OB_TEST_END

/* A judge that counts unconfirmed messages would need the sink's inside; the log's order tells. */
OB_TEST(a_late_and_shuffled_sink_keeps_the_order_of_a_key)
{
	rig_init(&rig);
	rig.plan.ack_delay_us = 3000;
	rig.plan.shuffle = 7;
	rig.plan.store_late = true;
	rig_start(&rig, &ob_sink_memory);
	push_keys(5, 20);
	rig_run_ms(&rig, 3000);
	ck_assert_str_eq(rig_stored(&rig, "k3"),
			 "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
	ck_assert_uint_eq(rig.log.count, 100);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(messages_without_a_key_need_no_order)
{
	rig_init(&rig);
	rig.relay.batch_size = 10;
	rig_start(&rig, &ob_sink_memory);
	rig_push_many(&rig, NULL, 1, 100);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 100);
	rig_done(&rig);
}
OB_TEST_END

static void a_retry_comes_back_in_order(const struct ob_sink_ops *ops)
{
	rig_init(&rig);
	rig_start(&rig, ops);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push_many(&rig, "bad", 1, 5);
	rig_push_many(&rig, "good", 1, 5);
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "good"), "1 2 3 4 5");
	ck_assert_str_eq(rig_stored(&rig, "bad"), "");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 4);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	/* Not before the base delay. */
	rig_run_ms(&rig, 3900);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 2000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3 4 5");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 10);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	rig_done(&rig);
}

OB_TEST(a_failed_message_parks_its_key_and_releases_it_in_order)
{
	a_retry_comes_back_in_order(&ob_sink_memory);
}
OB_TEST_END

OB_TEST(a_failed_message_on_an_ordered_sink_costs_its_followers_nothing)
{
	a_retry_comes_back_in_order(&ob_sink_memory_ordered);
}
OB_TEST_END

OB_TEST(a_refusal_at_hand_over_lets_nothing_overtake)
{
	rig_init(&rig);
	rig.plan.ack_delay_us = 2000;
	rig.at_send = true;
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_start(&rig, &ob_sink_memory_ordered);
	rig_push_many(&rig, "bad", 1, 5);
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig_run_ms(&rig, 6000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3 4 5");
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).failed, 1);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(attempts_end_in_death_and_the_key_goes_on)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push_many(&rig, "bad", 1, 1);
	rig_run_ms(&rig, 10000);
	rig_push_many(&rig, "good", 1, 1); /* or it would be an outage */
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	ck_assert_uint_eq(rig_attempts(&rig), 3);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).dead, 1);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).retries, 2);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).failed, 3);
	rig.poison_count = 0;
	rig_push_many(&rig, "bad", 2, 3);
	rig_run_ms(&rig, 2000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "2 3");
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(on_dead_hold_keeps_the_followers_back)
{
	rig_init(&rig);
	rig.relay.on_dead = OB_ON_DEAD_HOLD;
	rig_start(&rig, &ob_sink_memory_ordered);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig.poison_kind = OB_ERR_REJECT;
	rig_push_many(&rig, "bad", 1, 4);
	rig_push_many(&rig, "good", 1, 4);
	rig_run_ms(&rig, 5000);
	ck_assert_str_eq(rig_stored(&rig, "good"), "1 2 3 4");
	ck_assert_str_eq(rig_stored(&rig, "bad"), "");
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_DEAD_HOLD), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 3);
	rig.poison_count = 0;
	ck_assert_uint_eq(rig_operate(&rig, OB_VERB_RETRY, "bad"), 1);
	rig_run_ms(&rig, 2000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3 4");
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(one_poisoned_key_among_a_thousand_holds_nobody_else)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig.poison[0] = "k500";
	rig.poison_count = 1;
	push_keys(1000, 2);
	rig_run_ms(&rig, 3000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 1998);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 5000);
	ck_assert_str_eq(rig_stored(&rig, "k500"), "1 2");
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_sink_that_is_down_costs_no_attempt)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	push_keys(20, 5);
	rig.plan.down = true;
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PENDING), 100);
	ck_assert_int_ne(rig_metrics(&rig.nodes[0]).breaker, OB_BREAKER_CLOSED);
	rig.plan.down = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 100);
	ck_assert_str_eq(rig_stored(&rig, "k7"), "1 2 3 4 5");
	ck_assert_uint_eq(rig.log.count, 100);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(most_keys_failing_at_once_is_an_outage)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig.all_fail = true;
	rig.poison_kind = OB_ERR_REJECT;
	push_keys(100, 3);
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 0);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert(rig_metrics(&rig.nodes[0]).alarm);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).alarms, 1);
	rig.all_fail = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 300);
	ck_assert(!rig_metrics(&rig.nodes[0]).alarm);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_drain_waits_for_confirmations_and_sends_nothing_more)
{
	rig_init(&rig);
	rig.plan.ack_delay_us = 500000;
	rig.plan.window = 10;
	rig_start(&rig, &ob_sink_memory);
	push_keys(40, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).in_flight, 10);
	ob_worker_stop(rig.nodes[0].worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(rig.nodes[0].state, OB_WORKER_RUNNING);
	rig_run_ms(&rig, 1000);
	ck_assert_int_eq(rig.nodes[0].state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 10);
	ck_assert_uint_eq(rig.log.count, 10);
	rig_kill(&rig, &rig.nodes[0]);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig.log.count, 40);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 40);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_stop_at_once_forgets_what_is_in_flight)
{
	rig_init(&rig);
	rig.plan.ack_delay_us = 500000;
	rig_start(&rig, &ob_sink_memory);
	push_keys(5, 1);
	rig_run_ms(&rig, 100);
	ob_worker_stop(rig.nodes[0].worker, OB_STOP_NOW);
	rig_run_ms(&rig, 1);
	ck_assert_int_eq(rig.nodes[0].state, OB_WORKER_STOPPED);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PENDING), 5);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_second_node_gets_its_share_and_nothing_is_sent_twice)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	push_keys(50, 4);
	rig_run_ms(&rig, 1000);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).partitions, 4);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 4);
	push_keys(50, 4);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig.log.count, 400);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 400);
	ck_assert_uint_gt(rig_metrics(&rig.nodes[1]).published, 0);
	rig_done(&rig);
}
OB_TEST_END

/* Its connections are gone: nobody waits for its leases. */
OB_TEST(a_killed_node_is_replaced_within_a_second)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 4);
	rig_kill(&rig, &rig.nodes[0]);
	push_keys(50, 1);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 8);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 50);
	rig_done(&rig);
}
OB_TEST_END

/* Its connections stay, as those of a host without power do. */
OB_TEST(a_node_that_vanished_is_replaced_within_the_lease_and_a_second)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 20000);
	rig.nodes[0].paused = true;
	push_keys(50, 1);
	rig_run_ms(&rig, 8000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 4);
	rig_run_ms(&rig, 8000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[1]).partitions, 8);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 50);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_paused_node_changes_nothing_when_it_resumes)
{
	rig_init(&rig);
	rig.plan.ack_delay_us = 100000;
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	push_keys(50, 1);
	rig_run_ms(&rig, 50);
	ck_assert_uint_gt(rig_metrics(&rig.nodes[0]).in_flight, 0);
	rig.nodes[0].paused = true;
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 50);
	rig.nodes[0].paused = false;
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).published, 0);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).partitions, 4);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(without_order_everything_is_delivered_once)
{
	rig_init(&rig);
	rig.relay.ordering = OB_ORDER_NONE;
	rig_start(&rig, &ob_sink_memory);
	rig_start(&rig, &ob_sink_memory);
	push_keys(50, 8);
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 400);
	ck_assert_uint_eq(rig.log.count, 400);
	ck_assert_uint_gt(rig_metrics(&rig.nodes[1]).published, 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(without_order_a_failure_holds_nothing)
{
	rig_init(&rig);
	rig.relay.ordering = OB_ORDER_NONE;
	rig.plan.judge = refuse_twos;
	rig_start(&rig, &ob_sink_memory_ordered);
	push_keys(5, 4);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 15);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 5);
	ck_assert_uint_eq(rig_attempts(&rig), 5);
	rig.plan.judge = NULL;
	rig_run_ms(&rig, 6000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 20);
	ck_assert_str_eq(rig_stored(&rig, "k3"), "1 3 4 2");
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(what_a_sink_that_was_down_did_not_get_the_next_worker_delivers)
{
	rig_init(&rig);
	rig.plan.down = true;
	rig_start(&rig, &ob_sink_memory);
	push_keys(50, 1);
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ob_worker_stop(rig.nodes[0].worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(rig.nodes[0].state, OB_WORKER_STOPPED);
	rig_kill(&rig, &rig.nodes[0]);
	rig.plan.down = false;
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 50);
	ck_assert_uint_eq(rig.log.count, 50);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(ordering_by_partition_holds_the_whole_partition)
{
	rig_init(&rig);
	rig.relay.ordering = OB_ORDER_PARTITION;
	rig_start(&rig, &ob_sink_memory);
	rig.poison[0] = "k0";
	rig.poison_count = 1;
	push_keys(40, 2);
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 1);
	ck_assert_uint_gt(rig_count(&rig, OB_VIEW_PARKED), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 10000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 80);
	ck_assert_uint_eq(rig.log.count, 80);
	rig_done(&rig);
}
OB_TEST_END

enum { SINK_FD = 78 };

static int sink_fd(struct ob_sink *sink)
{
	(void)sink;
	return SINK_FD;
}

/* What the driver would poll when there is nothing to do. */
static int waits_on(const struct rig_node *node)
{
	struct ob_step step;

	do {
		ob_worker_step(node->worker, &step);
	} while (step.worked);
	return step.sink_fd;
}

/* Else a confirmation would be noticed only when the driver wakes for something else. */
OB_TEST(while_a_message_is_at_the_sink_the_driver_waits_for_the_sink)
{
	rig_init(&rig);
	rig.silent = "1";
	struct rig_node *node = rig_start(&rig, &ob_sink_memory);
	struct ob_sink_ops ops = *node->sink->ops;

	ops.fd = sink_fd;
	node->sink->ops = &ops;
	rig_run_ms(&rig, 100);
	ck_assert_int_eq(waits_on(node), -1);
	rig_push(&rig, "a", "1");
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ck_assert_int_eq(waits_on(node), SINK_FD);
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker", a_plain_sink_gets_everything_in_order, an_ordered_sink_gets_everything_in_order,
	 a_late_and_shuffled_sink_keeps_the_order_of_a_key, messages_without_a_key_need_no_order,
	 a_failed_message_parks_its_key_and_releases_it_in_order,
	 a_failed_message_on_an_ordered_sink_costs_its_followers_nothing,
	 a_refusal_at_hand_over_lets_nothing_overtake, attempts_end_in_death_and_the_key_goes_on,
	 on_dead_hold_keeps_the_followers_back, one_poisoned_key_among_a_thousand_holds_nobody_else,
	 a_sink_that_is_down_costs_no_attempt, most_keys_failing_at_once_is_an_outage,
	 a_drain_waits_for_confirmations_and_sends_nothing_more,
	 a_stop_at_once_forgets_what_is_in_flight,
	 a_second_node_gets_its_share_and_nothing_is_sent_twice,
	 a_killed_node_is_replaced_within_a_second,
	 a_node_that_vanished_is_replaced_within_the_lease_and_a_second,
	 a_paused_node_changes_nothing_when_it_resumes, without_order_everything_is_delivered_once,
	 without_order_a_failure_holds_nothing,
	 what_a_sink_that_was_down_did_not_get_the_next_worker_delivers,
	 ordering_by_partition_holds_the_whole_partition,
	 while_a_message_is_at_the_sink_the_driver_waits_for_the_sink)
