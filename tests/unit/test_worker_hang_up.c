/* SPDX-License-Identifier: MIT */
/* A message over which the receiver ends the connection, every time. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;

static void start(const struct ob_sink_ops *ops)
{
	rig_init(&rig);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig.poison_kind = OB_ERR_DOWN;
	rig.hangs_up = true;
	rig.plan.ack_delay_us = 2000;
	rig_start(&rig, ops);
}

static void push_good(int keys)
{
	char key[16];

	for (int k = 0; k < keys; k++) {
		(void)snprintf(key, sizeof(key), "k%d", k);
		rig_push_many(&rig, key, 1, 3);
	}
}

/* The others are out long before the poison is dead, and what is behind it follows. */
static void it_ends_dead_and_the_others_go_on(const struct ob_sink_ops *ops)
{
	start(ops);
	rig_push(&rig, "bad", "1");
	push_good(60);
	rig_run_ms(&rig, 4000);
	ck_assert_uint_eq(rig_delivered(&rig), 180);
	for (int i = 0; i < 200; i++) {
		rig_push(&rig, "traffic", "0");
		rig_run_ms(&rig, 200);
	}
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 380);
	ck_assert_uint_eq(rig_attempts(&rig), 3);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "");
	rig.poison_count = 0;
	rig_push(&rig, "bad", "2");
	rig_run_ms(&rig, 2000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "2");
	rig_done(&rig);
}

OB_TEST(on_a_plain_sink_it_ends_dead_and_the_others_go_on)
{
	it_ends_dead_and_the_others_go_on(&ob_sink_memory);
}
OB_TEST_END

OB_TEST(on_an_ordered_sink_it_ends_dead_and_the_others_go_on)
{
	it_ends_dead_and_the_others_go_on(&ob_sink_memory_ordered);
}
OB_TEST_END

OB_TEST(without_order_two_of_them_end_dead_and_the_others_go_on)
{
	rig_init(&rig);
	rig.relay.ordering = OB_ORDER_NONE;
	rig.poison[0] = "bad";
	rig.poison[1] = "worse";
	rig.poison_count = 2;
	rig.poison_kind = OB_ERR_DOWN;
	rig.hangs_up = true;
	rig_start(&rig, &ob_sink_memory);
	rig_push(&rig, "bad", "1");
	rig_push(&rig, "worse", "1");
	for (int i = 0; i < 400; i++) {
		rig_push(&rig, "traffic", "0");
		rig_run_ms(&rig, 200);
	}
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 2);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 400);
	rig_done(&rig);
}
OB_TEST_END

/* Nobody can tell, and nobody waits for it. */
OB_TEST(as_long_as_nothing_else_is_there_it_is_an_outage)
{
	start(&ob_sink_memory);
	rig_push(&rig, "bad", "1");
	rig_run_ms(&rig, 600000);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PENDING), 1);
	ck_assert_int_eq((int)rig_metrics(&rig.nodes[0]).breaker, OB_BREAKER_OPEN);
	/* What comes then is out within the breaker's longest waits. */
	rig_push(&rig, "good", "1");
	rig_run_ms(&rig, 8000);
	ck_assert_str_eq(rig_stored(&rig, "good"), "1");
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(when_the_receiver_hangs_up_on_everyone_nobody_pays)
{
	start(&ob_sink_memory);
	push_good(60);
	rig.all_fail = true;
	rig_run_ms(&rig, 600000);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert_uint_eq(rig.log.count, 0);
	rig.all_fail = false;
	rig_run_ms(&rig, 5000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 180);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

/* Twenty short outages, each with much under way. */
OB_TEST(a_receiver_that_comes_and_goes_costs_no_attempt)
{
	start(&ob_sink_memory_ordered);
	rig.poison_count = 0;
	for (int i = 0; i < 20; i++) {
		push_good(60);
		rig_run_ms(&rig, 3);
		rig.plan.down = true;
		rig_run_ms(&rig, 500);
		rig.plan.down = false;
	}
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3600);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(an_error_that_is_no_lost_connection_stays_an_outage)
{
	start(&ob_sink_memory);
	rig.hangs_up = false;
	rig_push(&rig, "bad", "1");
	for (int i = 0; i < 200; i++) {
		rig_push(&rig, "traffic", "0");
		rig_run_ms(&rig, 200);
	}
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker_hang_up", on_a_plain_sink_it_ends_dead_and_the_others_go_on,
	 on_an_ordered_sink_it_ends_dead_and_the_others_go_on,
	 without_order_two_of_them_end_dead_and_the_others_go_on,
	 as_long_as_nothing_else_is_there_it_is_an_outage,
	 when_the_receiver_hangs_up_on_everyone_nobody_pays,
	 a_receiver_that_comes_and_goes_costs_no_attempt,
	 an_error_that_is_no_lost_connection_stays_an_outage)
