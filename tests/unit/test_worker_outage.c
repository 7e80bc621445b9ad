/* SPDX-License-Identifier: MIT */
/* What is an outage, and what is about one message: with few keys, with little traffic, and when we
 * refuse a message ourselves. */
#include "relay_rig.h"
#include "suite.h"

#include <stdatomic.h>

static struct rig rig;

enum { HOUR_MS = 3600 * 1000 };

static void push_with_tenant(const char *key, const char *payload)
{
	rig_push_message(&rig, (struct outbox_message){ .partition_key = key,
							.payload = payload,
							.headers = "{\"tenant\":\"acme\"}" });
}

static void push_keys(int count)
{
	char key[16];

	for (int i = 0; i < count; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		rig_push(&rig, key, "1");
	}
}

OB_TEST(what_we_refuse_ourselves_is_dead_at_once_and_stops_nobody)
{
	char key[16];

	rig_init(&rig);
	rig.relay.route.destination = "{headers.tenant}";
	rig_start(&rig, &ob_sink_memory);
	push_keys(12);
	rig_run_ms(&rig, 100);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 12);
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).alarms, 0);
	for (int i = 1; i <= 5; i++) {
		(void)snprintf(key, sizeof(key), "good%d", i);
		push_with_tenant(key, "1");
		rig_run_ms(&rig, 1000);
		ck_assert_uint_eq(rig.log.count, (size_t)i);
		ck_assert_int_eq((int)rig_metrics(&rig.nodes[0]).breaker, OB_BREAKER_CLOSED);
	}
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(what_we_refuse_ourselves_is_dead_during_an_outage_and_no_probe_of_it)
{
	rig_init(&rig);
	rig.relay.route.destination = "{headers.tenant}";
	rig_start(&rig, &ob_sink_memory);
	rig.all_fail = true;
	for (int i = 0; i < 12; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "good%d", i);
		push_with_tenant(key, "1");
	}
	rig_run_ms(&rig, 5000);
	ck_assert(rig_metrics(&rig.nodes[0]).alarm);
	push_keys(3);
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 3);
	ck_assert(rig_metrics(&rig.nodes[0]).alarm);
	rig.all_fail = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig.log.count, 12);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(everything_fails_is_an_outage_with_five_keys_too)
{
	rig_init(&rig);
	rig.relay.retry.max_attempts = 8;
	rig_start(&rig, &ob_sink_memory);
	rig.all_fail = true;
	push_keys(5);
	rig_run_ms(&rig, 3 * HOUR_MS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 0);
	ck_assert_uint_le(rig_attempts(&rig), 5 * 3);
	ck_assert(rig_metrics(&rig.nodes[0]).alarm);
	ck_assert(rig_said(&rig, "nothing passes: taken as an outage"));
	rig.all_fail = false;
	rig_run_ms(&rig, 2000);
	ck_assert_uint_eq(rig.log.count, 5);
	ck_assert(!rig_metrics(&rig.nodes[0]).alarm);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(one_key_of_which_nothing_passes_is_an_outage_however_short_its_patience)
{
	rig_init(&rig);
	rig.relay.retry.max_attempts = 2;
	rig.relay.retry.base_delay_ms = 10;
	rig_start(&rig, &ob_sink_memory_ordered);
	rig.all_fail = true;
	rig_push_many(&rig, "k", 1, 3);
	rig_run_ms(&rig, HOUR_MS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 0);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.all_fail = false;
	rig_run_ms(&rig, 2000);
	ck_assert_str_eq(rig_stored(&rig, "k"), "1 2 3");
	rig_done(&rig);
}
OB_TEST_END

/* One message a minute passes: within two seconds, whatever the poison does. */
OB_TEST(a_poison_dies_by_its_attempts_where_others_pass_now_and_then)
{
	rig_init(&rig);
	rig.relay.retry.max_attempts = 8;
	rig_start(&rig, &ob_sink_memory);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push_many(&rig, "bad", 1, 1);
	for (int i = 1; i <= 30; i++) {
		char key[16];

		rig_run_ms(&rig, 58000);
		(void)snprintf(key, sizeof(key), "good%d", i);
		rig_push(&rig, key, "1");
		rig_run_ms(&rig, 2000);
		ck_assert_uint_eq(rig.log.count, (size_t)i);
	}
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	ck_assert_uint_eq(rig_attempts(&rig), 8);
	ck_assert_uint_le(rig_metrics(&rig.nodes[0]).alarms, 4);
	rig_done(&rig);
}
OB_TEST_END

/* The partitions of this worker hold nothing but the poison; those of another one go on. */
OB_TEST(what_passes_in_another_worker_of_the_relay_counts)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push_many(&rig, "bad", 1, 1);
	rig_run_ms(&rig, 60000);
	ck_assert(rig_metrics(&rig.nodes[0]).alarm);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 0);
	for (int i = 0; i < 60; i++) {
		atomic_store(&rig.passed_us, ob_clock_boot_us(&rig.clock.clock));
		rig_run_ms(&rig, 1000);
	}
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DEAD), 1);
	ck_assert(!rig_metrics(&rig.nodes[0]).alarm);
	rig_done(&rig);
}
OB_TEST_END

/* All that is in memory is refused; what would pass has not been read yet. */
OB_TEST(during_an_alarm_new_messages_are_read_and_end_it)
{
	rig_init(&rig);
	rig_start(&rig, &ob_sink_memory);
	for (int i = 0; i < 12; i++) {
		static char keys[12][16];

		(void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		rig.poison[i] = keys[i];
	}
	rig.poison_count = 12;
	rig.poison_kind = OB_ERR_REJECT;
	push_keys(12);
	rig_run_ms(&rig, 10000);
	ck_assert(rig_metrics(&rig.nodes[0]).alarm);
	rig_push(&rig, "good", "1");
	rig_run_ms(&rig, 3000);
	ck_assert_str_eq(rig_stored(&rig, "good"), "1");
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker outage", what_we_refuse_ourselves_is_dead_at_once_and_stops_nobody,
	 what_we_refuse_ourselves_is_dead_during_an_outage_and_no_probe_of_it,
	 everything_fails_is_an_outage_with_five_keys_too,
	 one_key_of_which_nothing_passes_is_an_outage_however_short_its_patience,
	 a_poison_dies_by_its_attempts_where_others_pass_now_and_then,
	 what_passes_in_another_worker_of_the_relay_counts,
	 during_an_alarm_new_messages_are_read_and_end_it)
