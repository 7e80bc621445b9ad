/* SPDX-License-Identifier: MIT */
/* The worker with routes and rules on failures: what they may not break. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;

/* All keys of the outbox go out under one key: they still fail, and are charged, alone. */
OB_TEST(a_failure_holds_its_own_key_whatever_key_the_sink_gets)
{
	rig_init(&rig);
	rig.relay.route.key = "{aggregate_type}";
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_start(&rig, &ob_sink_memory_ordered);
	rig_push_many(&rig, "bad", 1, 5);
	rig_push_many(&rig, "good", 6, 9);
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "order"), "6 7 8 9");
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 10000);
	ck_assert_str_eq(rig_stored(&rig, "order"), "6 7 8 9 1 2 3 4 5");
	rig_done(&rig);
}
OB_TEST_END

/* A key for each message: nothing in the sink keeps their order, so the relay must. */
OB_TEST(a_key_that_goes_out_as_several_is_sent_one_by_one)
{
	rig_init(&rig);
	rig.relay.route.key = "{seq}";
	rig.plan.ack_delay_us = 3000;
	rig.plan.shuffle = 7;
	rig.plan.store_late = true;
	rig_start(&rig, &ob_sink_memory_ordered);
	rig_push_many(&rig, "k", 1, 5);
	rig_run_ms(&rig, 2);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).in_flight, 1);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig.log.count, 5);
	for (size_t i = 1; i < rig.log.count; i++)
		ck_assert_int_lt(rig.log.entries[i - 1].seq, rig.log.entries[i].seq);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_message_that_cannot_be_routed_is_dead_and_says_why)
{
	struct ob_metrics_data data;
	char key[16];

	rig_init(&rig);
	rig.relay.route.destination = "{partition_key}";
	rig_start(&rig, &ob_sink_memory);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push(&rig, key, "1");
	}
	rig_push(&rig, NULL, "2");
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 40);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	data = rig_metrics(&rig.nodes[0]);
	ck_assert_uint_eq(data.error_count, 1);
	ck_assert_ptr_nonnull(strstr(data.errors[0].text, "the message has no partition_key"));
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_rule_gives_up_what_would_be_tried_again)
{
	struct ob_config_failure rule = { NULL, "failed by*", OB_ERR_REJECT };
	char key[16];

	rig_init(&rig);
	rig.relay.failures = &rule;
	rig.relay.failure_count = 1;
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_start(&rig, &ob_sink_memory_ordered);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push(&rig, key, "1");
	}
	rig_push_many(&rig, "bad", 1, 3);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 40);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 3);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_FAILED), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_rule_waits_where_a_message_would_be_charged)
{
	struct ob_config_failure rule = { NULL, "*plan*", OB_ERR_DOWN };

	rig_init(&rig);
	rig.relay.failures = &rule;
	rig.relay.failure_count = 1;
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_start(&rig, &ob_sink_memory);
	rig_push_many(&rig, "bad", 1, 3);
	rig_run_ms(&rig, 60000);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PENDING), 3);
	rig.poison_count = 0;
	rig_run_ms(&rig, 60000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3");
	rig_done(&rig);
}
OB_TEST_END

/* The sink must be opened again after a DOWN, whatever a rule takes it for. */
OB_TEST(a_rule_does_not_keep_a_lost_connection_from_coming_back)
{
	struct ob_config_failure rule = { NULL, "*", OB_ERR_REJECT };

	rig_init(&rig);
	rig.relay.failures = &rule;
	rig.relay.failure_count = 1;
	rig.plan.ack_delay_us = 50000;
	rig_start(&rig, &ob_sink_memory);
	rig_push_many(&rig, "a", 1, 1);
	rig_run_ms(&rig, 10);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).in_flight, 1);
	rig.plan.down = true;
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	rig_push_many(&rig, "b", 1, 3);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	rig.plan.down = false;
	rig_run_ms(&rig, 60000);
	ck_assert_str_eq(rig_stored(&rig, "b"), "1 2 3");
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker route", a_failure_holds_its_own_key_whatever_key_the_sink_gets,
	 a_key_that_goes_out_as_several_is_sent_one_by_one,
	 a_message_that_cannot_be_routed_is_dead_and_says_why,
	 a_rule_gives_up_what_would_be_tried_again, a_rule_waits_where_a_message_would_be_charged,
	 a_rule_does_not_keep_a_lost_connection_from_coming_back)
