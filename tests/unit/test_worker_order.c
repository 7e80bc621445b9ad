/* SPDX-License-Identifier: MIT */
/*
 * Order when a worker dies at a bad moment. What the next one finds is the position and the
 * exceptions; it sends exceptions before it reads the log. So nothing of a key may be an exception
 * while something before it is neither delivered nor one.
 */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;
static struct rig_node *node;

/* The sink stores what it confirms, and what it confirms only when the test wants it. */
static void make(const struct ob_sink_ops *sink)
{
	rig_init(&rig);
	rig.plan.store_late = true;
	node = rig_start(&rig, sink);
	rig_run_ms(&rig, 100);
}

/* It dies; much later another one takes over, and the sink is well. */
static void die_and_go_on(uint32_t count)
{
	rig_kill(&rig, node);
	rig.on_settle = NULL;
	ob_clock_advance_us(&rig.clock, INT64_C(60000000));
	rig.poison_count = 0;
	rig.all_fail = false;
	rig.plan.ack_delay_us = 0;
	rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 30000);
	ck_assert_uint_eq(rig_delivered(&rig), count);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), count);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	ck_assert(rig_stored_in_order(&rig));
	rig_done(&rig);
}

enum { HOUR_US = 2000000000 };

/* What is sent from now on is never answered. */
static void hang(void)
{
	rig.plan.ack_delay_us = HOUR_US;
}

/* Failures that turned out to be an outage go back to the queue, what they parked does not. */
OB_TEST(after_an_outage_nothing_that_was_parked_overtakes)
{
	char key[16];

	make(&ob_sink_memory);
	rig.all_fail = true;
	for (int i = 1; i <= 3; i++) {
		for (int k = 0; k < 12; k++) {
			(void)snprintf(key, sizeof(key), "k%d", k);
			rig_push_many(&rig, key, i, i);
		}
	}
	rig_run_ms(&rig, 50);
	ck_assert(rig_metrics(node).alarm);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	die_and_go_on(36);
}
OB_TEST_END

/* The first is at the sink when the partition drains, the second is only queued. */
OB_TEST(what_a_draining_worker_gives_up_does_not_overtake_what_it_has_sent)
{
	make(&ob_sink_memory);
	hang();
	rig_push_many(&rig, "a", 1, 3);
	rig_run_ms(&rig, 50);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ob_worker_stop(node->worker, OB_STOP_DRAIN);
	rig_run_ms(&rig, 500);
	ck_assert_int_eq(node->state, OB_WORKER_RUNNING);
	die_and_go_on(3);
}
OB_TEST_END

/* A message with a time holds its key; the one before it is still at the sink. */
OB_TEST(a_delayed_message_does_not_overtake_what_was_sent_before_it)
{
	rig_init(&rig);
	rig.plan.store_late = true;
	rig.relay.hold_delayed = true;
	node = rig_start(&rig, &ob_sink_memory);
	hang();
	rig_push(&rig, "a", "1");
	rig_push_message(&rig, (struct outbox_message){
				       .partition_key = "a", .payload = "2", .delay_ms = 1000 });
	rig_push(&rig, "a", "3");
	rig_run_ms(&rig, 500);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_DELAYED), 1);
	die_and_go_on(3);
}
OB_TEST_END

/* This settle is its last deed. */
static void freeze(struct rig_node *at, const struct ob_settle *settle)
{
	at->paused = settle->change_count > 0;
}

/*
 * The first hangs and is spilled, while the second, from a later read, waits for it in memory.
 * Then a third comes, whose key has an exception by now.
 */
OB_TEST(what_is_parked_after_a_spilled_message_does_not_overtake_what_waits_in_memory)
{
	uint32_t home = rig_partition("a");
	int n = 0;

	make(&ob_sink_memory);
	hang();
	rig_push(&rig, "a", "1");
	rig_run_ms(&rig, 50);
	rig.plan.ack_delay_us = 0;
	rig_push(&rig, rig_key_in(home, "x", &n), "1");
	rig_run_ms(&rig, 50);
	rig_push(&rig, "a", "2");
	rig_run_ms(&rig, 50);
	ck_assert_uint_eq(rig_metrics(node).queued, 1);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	rig_push(&rig, rig_key_in(home, "x", &n), "1");
	rig_run_ms(&rig, 50);
	ck_assert_uint_ge(rig_exceptions(&rig, OB_STATE_WAITING), 1);
	rig.on_settle = freeze;
	rig_push(&rig, "a", "3");
	rig_run_ms(&rig, 50);
	ck_assert(node->paused);
	ck_assert_str_eq(rig_stored(&rig, "a"), "");
	die_and_go_on(5);
}
OB_TEST_END

/* The first has failed and the third is parked after it; the second is not answered yet. */
OB_TEST(what_a_failure_parks_does_not_overtake_what_was_sent_before_it)
{
	rig_init(&rig);
	rig.plan.store_late = true;
	rig.plan.window = 2;
	rig.poison[0] = "a";
	rig.poison_count = 1;
	node = rig_start(&rig, &ob_sink_memory_ordered);
	rig_run_ms(&rig, 100);
	rig.plan.ack_delay_us = 50000;
	rig_push(&rig, "a", "1");
	rig_run_ms(&rig, 10);
	hang();
	rig_push_many(&rig, "a", 2, 3);
	rig_run_ms(&rig, 10);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 2);
	ck_assert_uint_eq(rig_metrics(node).queued, 1);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_FAILED), 1);
	ck_assert_uint_eq(rig_metrics(node).in_flight, 1);
	die_and_go_on(3);
}
OB_TEST_END

OB_SUITE("worker order", after_an_outage_nothing_that_was_parked_overtakes,
	 what_a_draining_worker_gives_up_does_not_overtake_what_it_has_sent,
	 a_delayed_message_does_not_overtake_what_was_sent_before_it,
	 what_is_parked_after_a_spilled_message_does_not_overtake_what_waits_in_memory,
	 what_a_failure_parks_does_not_overtake_what_was_sent_before_it)
