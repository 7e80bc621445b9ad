/* SPDX-License-Identifier: MIT */
/* What a worker says of itself: gauges, times, the lines of its log. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;

OB_TEST(the_gauges_say_what_is_in_memory)
{
	rig_init(&rig);
	rig.silent = "1000";
	rig_start(&rig, &ob_sink_memory);
	rig_push(&rig, "a", "1000");
	rig_push(&rig, "a", "12345");
	rig_push(&rig, "a", "67");
	rig_push(&rig, "b", "2");
	rig_run_ms(&rig, 100);

	struct ob_metrics_data data = rig_metrics(&rig.nodes[0]);

	ck_assert_uint_eq(data.fetched, 4);
	ck_assert_uint_eq(data.sent, 2);
	ck_assert_uint_eq(data.published, 1);
	ck_assert_uint_eq(data.in_flight, 1);
	ck_assert_uint_eq(data.queued, 2);
	ck_assert_uint_eq(data.waits[OB_WHY_KEY_BUSY], 2);
	ck_assert_uint_eq(data.unsettled, 0);
	ck_assert_uint_eq(data.memory_bytes, strlen("1000") + strlen("12345") + strlen("67"));
	ck_assert_uint_eq(data.partitions, RIG_PARTITIONS);
	ck_assert_uint_eq(data.share, RIG_PARTITIONS);
	rig_done(&rig);
}
OB_TEST_END

static void read_slowly(struct rig_node *node, const struct ob_read *read)
{
	(void)node;
	ob_clock_advance_us(&rig.clock, read->part_count > 0 ? 3000 : 0);
}

static void settle_slowly(struct rig_node *node, const struct ob_settle *settle)
{
	(void)node;
	ob_clock_advance_us(&rig.clock, settle->part_count > 0 ? 7000 : 0);
}

OB_TEST(the_times_of_the_stores_calls_are_measured)
{
	rig_init(&rig);
	rig.on_read = read_slowly;
	rig.on_settle = settle_slowly;
	rig_start(&rig, &ob_sink_memory);
	rig_push_many(&rig, "a", 1, 3);
	rig_run_ms(&rig, 500);

	struct ob_metrics_data data = rig_metrics(&rig.nodes[0]);

	ck_assert_uint_eq(data.published, 3);
	ck_assert_int_eq(data.last_fetch_us, 3000);
	ck_assert_uint_eq(data.fetch_us, data.fetches * 3000);
	ck_assert_int_eq(data.last_settle_us, 7000);
	ck_assert_uint_eq(data.settle_us, data.settles * 7000);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_failure_says_which_attempt_it_was_and_when_it_is_tried_again)
{
	rig_init(&rig);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_start(&rig, &ob_sink_memory);
	rig_push(&rig, "bad", "1");
	rig_run_ms(&rig, 1000);
	ck_assert(rig_said(&rig, "trying again later"));
	ck_assert(rig_said(&rig, "attempt=1 delay_ms=5000"));
	ck_assert(!rig_said(&rig, "attempt=2"));
	ck_assert(!rig_said(&rig, "giving the message up"));
	rig_run_ms(&rig, 9000);
	rig_push(&rig, "good", "1"); /* or it would be an outage */
	rig_run_ms(&rig, 20000);
	ck_assert(rig_said(&rig, "attempt=2 delay_ms=10000"));
	ck_assert(rig_said(&rig, "giving the message up"));
	ck_assert(rig_said(&rig, "attempt=3"));
	ck_assert_uint_eq(rig_metrics(&rig.nodes[0]).error_count,
			  1); /* the same one, three times */
	rig_done(&rig);
}
OB_TEST_END

OB_SUITE("worker metrics", the_gauges_say_what_is_in_memory,
	 the_times_of_the_stores_calls_are_measured,
	 a_failure_says_which_attempt_it_was_and_when_it_is_tried_again)
