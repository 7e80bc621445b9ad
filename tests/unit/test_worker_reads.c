/* SPDX-License-Identifier: MIT */
/* What the worker reads of the log, and in which order: lanes, ends, filters, times, late rows. */
#include "relay_rig.h"
#include "suite.h"

static struct rig rig;
static struct rig_node *node;

static void make(void)
{
	rig_init(&rig);
	rig.relay.batch_size = 10;
	rig.relay.retry.base_delay_ms = 1000;
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 100);
}

static void everything_went_out_once(uint32_t count)
{
	ck_assert_uint_eq(rig_delivered(&rig), count);
	ck_assert(rig_stored_once(&rig));
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), count);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
}

/* ---- lanes ----------------------------------------------------------- */

static void push_lane(int32_t priority, const char *key, int from, int to)
{
	char payload[16];

	for (int i = from; i <= to; i++) {
		(void)snprintf(payload, sizeof(payload), "%d", i);
		rig_push_message(&rig, (struct outbox_message){ .partition_key = key,
								.payload = payload,
								.priority = priority });
	}
}

/* A thousand messages a second go out; this many of a lane wait. */
static void make_backlog(int32_t priority, int count)
{
	char key[16];

	make();
	rig.plan.window = 10;
	rig.plan.ack_delay_us = 10000;
	rig_kill(&rig, node);
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 1000);
	for (int i = 0; i < count; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		push_lane(priority, key, 1, 1);
	}
	rig_run_ms(&rig, 500);
	ck_assert_uint_gt(rig.log.count, 100);
	ck_assert_uint_lt(rig.log.count, 700);
}

static void read_slowly(struct rig_node *at, const struct ob_read *read)
{
	(void)at;
	(void)read;
	ob_clock_advance_us(&rig.clock, 5000);
}

/* The store is what takes the time: every read follows the one before it. */
static void make_store_backlog(int32_t priority, int count)
{
	char key[16];

	make();
	rig.on_read = read_slowly;
	for (int i = 0; i < count; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		push_lane(priority, key, 1, 1);
	}
	rig_run_ms(&rig, 100);
	ck_assert_uint_gt(rig.log.count, 50);
	ck_assert_uint_lt(rig.log.count, 500);
}

/* What is in memory already goes before it: four batches, and the lane is read every 20 ms. */
static void overtakes(int32_t priority, const char *key)
{
	size_t before = rig.log.count;

	push_lane(priority, key, 1, 3);
	rig_run_ms(&rig, 150);
	ck_assert_str_eq(rig_stored(&rig, key), "1 2 3");
	ck_assert_uint_lt(rig.log.count, before + 400);
}

OB_TEST(a_message_of_the_high_lane_overtakes_a_backlog)
{
	make_backlog(0, 2000);
	for (int i = 0; i < 4; i++)
		overtakes(1, (char[]){ 'h', (char)('0' + i), '\0' });
	rig_run_ms(&rig, 10000);
	everything_went_out_once(2012);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_message_of_the_normal_lane_overtakes_a_backlog_of_the_low_one)
{
	make_backlog(-1, 2000);
	for (int i = 0; i < 4; i++)
		overtakes(0, (char[]){ 'n', (char)('0' + i), '\0' });
	overtakes(1, "h");
	rig_run_ms(&rig, 10000);
	everything_went_out_once(2015);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(so_they_do_where_the_store_is_slow)
{
	make_store_backlog(-1, 3000);
	for (int i = 0; i < 4; i++) {
		overtakes(0, (char[]){ 'n', (char)('0' + i), '\0' });
		overtakes(1, (char[]){ 'h', (char)('0' + i), '\0' });
	}
	rig_run_ms(&rig, 10000);
	everything_went_out_once(3024);
	rig_done(&rig);
}
OB_TEST_END

/* So does one that is due again. */
OB_TEST(a_retry_of_the_normal_lane_overtakes_a_backlog_of_the_low_one)
{
	make_backlog(-1, 3000);
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	push_lane(0, "bad", 1, 3);
	rig_run_ms(&rig, 500);
	ck_assert_uint_eq(rig_attempts(&rig), 1);
	rig.poison_count = 0;
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2 3");
	ck_assert_uint_lt(rig.log.count, 2500);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(of_what_waits_the_high_lane_goes_first_and_the_low_one_last)
{
	rig_init(&rig);
	rig.relay.batch_size = 4;
	push_lane(-1, "low", 1, 30);
	push_lane(0, "normal", 1, 30);
	push_lane(1, "high", 1, 30);
	node = rig_start(&rig, &ob_sink_memory_ordered);
	rig.plan.ack_delay_us = 5000;
	rig_run_ms(&rig, 10000);
	everything_went_out_once(90);
	ck_assert(rig_stored_in_order(&rig));

	size_t last[3] = { 0 };

	for (size_t i = 0; i < rig.log.count; i++) {
		char lane = rig.log.entries[i].key.p[0];

		last[lane == 'h' ? 0 : lane == 'n' ? 1 : 2] = i;
	}
	ck_assert_uint_lt(last[0], last[1]);
	ck_assert_uint_lt(last[1], last[2]);
	rig_done(&rig);
}
OB_TEST_END

/* ---- an end ---------------------------------------------------------- */

static void push_keys(int keys, int from, int to)
{
	char key[16];

	for (int i = from; i <= to; i++) {
		for (int k = 0; k < keys; k++) {
			(void)snprintf(key, sizeof(key), "k%d", k);
			rig_push_many(&rig, key, i, i);
		}
	}
}

OB_TEST(a_reader_with_an_end_delivers_what_stands_before_it_and_has_ended)
{
	rig_init(&rig);
	rig.relay.batch_size = 5;
	push_keys(10, 1, 3);
	rig.end_seq = 20;
	rig.plan.ack_delay_us = 100000;
	node = rig_start(&rig, &ob_sink_memory);
	ck_assert_uint_eq(ob_worker_ended(node->worker), 0);
	rig_run_ms(&rig, 50);
	ck_assert_uint_eq(ob_worker_ended(node->worker), 0);
	rig_run_ms(&rig, 3000);
	ck_assert_uint_eq(ob_worker_ended(node->worker), RIG_PARTITIONS);
	ck_assert_uint_eq(rig.log.count, 20);
	ck_assert_str_eq(rig_stored(&rig, "k7"), "1 2");
	/* Nothing more, whatever comes. */
	push_keys(10, 4, 4);
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig.log.count, 20);
	ck_assert_uint_eq(ob_worker_ended(node->worker), RIG_PARTITIONS);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 20);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_reader_with_an_end_has_not_ended_while_a_message_is_unconfirmed)
{
	rig_init(&rig);
	push_keys(10, 1, 1);
	rig.end_seq = 10;
	rig.silent = "1";
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig.log.count, 10);
	ck_assert_uint_eq(ob_worker_ended(node->worker), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_reader_without_an_end_never_ends)
{
	make();
	push_keys(10, 1, 1);
	rig_run_ms(&rig, 20000);
	ck_assert(ob_worker_is_idle(node->worker));
	ck_assert_uint_eq(ob_worker_ended(node->worker), 0);
	rig_done(&rig);
}
OB_TEST_END

/* ---- filters --------------------------------------------------------- */

static void push_event(const char *aggregate, const char *event)
{
	rig_push_message(&rig, (struct outbox_message){ .aggregate_type = aggregate,
							.event_type = event,
							.partition_key = aggregate,
							.payload = "1" });
}

static const char *stored_destinations(void)
{
	static char text[256];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < rig.log.count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", at ? " " : "",
				       (int)rig.log.entries[i].destination.n,
				       rig.log.entries[i].destination.p);
	return text;
}

static void filter(const char **types, size_t type_count, const char **aggregates,
		   size_t aggregate_count)
{
	rig_init(&rig);
	rig.relay.route.destination = "{event_type}";
	rig.relay.types = types;
	rig.relay.type_count = type_count;
	rig.relay.aggregates = aggregates;
	rig.relay.aggregate_count = aggregate_count;
	node = rig_start(&rig, &ob_sink_memory_ordered);
	push_event("order", "OrderPlaced");
	push_event("order", "OrderPaid");
	push_event("order", "Reminder");
	push_event("user", "UserPaid");
	push_event("user", "UserMoved");
	rig_run_ms(&rig, 1000);
}

OB_TEST(a_filter_by_type_passes_over_what_it_does_not_name)
{
	const char *types[] = { "Order*", "*Moved" };

	filter(types, 2, NULL, 0);
	ck_assert_str_eq(stored_destinations(), "OrderPlaced OrderPaid UserMoved");
	/* What it does not want is behind it, at the latest when idle progress is recorded. */
	rig_run_ms(&rig, 11000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 5);
	ck_assert_uint_eq(rig_metrics(node).published, 3);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_filter_by_aggregate_passes_over_the_others)
{
	const char *aggregates[] = { "us*" };

	filter(NULL, 0, aggregates, 1);
	ck_assert_str_eq(stored_destinations(), "UserPaid UserMoved");
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(both_filters_must_match)
{
	const char *types[] = { "*Paid" }, *aggregates[] = { "order", "ship*" };

	filter(types, 1, aggregates, 2);
	ck_assert_str_eq(stored_destinations(), "OrderPaid");
	rig_done(&rig);
}
OB_TEST_END

/* It was wanted when it failed: an exception is delivered whatever the filter says by now. */
OB_TEST(a_filter_does_not_strand_exceptions)
{
	const char *types[] = { "None" };

	make();
	rig.poison[0] = "bad";
	rig.poison_count = 1;
	rig_push_many(&rig, "bad", 1, 2);
	rig_run_ms(&rig, 1000);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 2);
	rig_kill(&rig, node);
	rig.poison_count = 0;
	rig.relay.types = types;
	rig.relay.type_count = 1;
	node = rig_start(&rig, &ob_sink_memory);
	rig_push(&rig, "good", "1");
	rig_run_ms(&rig, 10000);
	ck_assert_str_eq(rig_stored(&rig, "bad"), "1 2");
	ck_assert_str_eq(rig_stored(&rig, "good"), "");
	rig_done(&rig);
}
OB_TEST_END

/* ---- messages with a time -------------------------------------------- */

static void push_delayed(const char *key, const char *payload, uint64_t delay_ms)
{
	rig_push_message(&rig, (struct outbox_message){ .partition_key = key,
							.payload = payload,
							.delay_ms = delay_ms });
}

OB_TEST(a_delayed_message_goes_out_when_it_is_due_and_holds_nobody)
{
	make();
	rig_push(&rig, "a", "1");
	push_delayed("a", "2", 5000);
	rig_push(&rig, "a", "3");
	push_delayed(NULL, "9", 5000);
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 3");
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_DELAYED), 2);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DELAYED), 2);
	rig_run_ms(&rig, 3900);
	ck_assert_uint_eq(rig.log.count, 2);
	/* The idle backoff is the most that it is late. */
	rig_run_ms(&rig, 1200);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 3 2");
	everything_went_out_once(4);
	ck_assert_uint_eq(rig_attempts(&rig), 0);
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(a_delayed_message_that_holds_its_key_is_waited_for)
{
	make();
	rig.relay.hold_delayed = true;
	rig_kill(&rig, node);
	node = rig_start(&rig, &ob_sink_memory);
	rig_push(&rig, "a", "1");
	push_delayed("a", "2", 5000);
	rig_push(&rig, "a", "3");
	rig_push(&rig, "b", "1");
	rig_run_ms(&rig, 2000);
	rig_push(&rig, "a", "4");
	rig_run_ms(&rig, 1000);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1");
	ck_assert_str_eq(rig_stored(&rig, "b"), "1");
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_DELAYED), 1);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PARKED), 2);
	rig_run_ms(&rig, 4000);
	ck_assert_str_eq(rig_stored(&rig, "a"), "1 2 3 4");
	everything_went_out_once(5);
	rig_done(&rig);
}
OB_TEST_END

/* It holds nobody while it waits; but when it is due and its key is held, it waits its turn. */
OB_TEST(a_delayed_message_whose_key_fails_waits_for_it)
{
	make();
	push_delayed("a", "1", 2000);
	rig_run_ms(&rig, 1000);
	rig.poison[0] = "a";
	rig.poison_count = 1;
	rig_push_many(&rig, "a", 2, 3);
	rig_run_ms(&rig, 500);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_FAILED), 1);
	rig_run_ms(&rig, 1500);
	rig.poison_count = 0;
	rig_run_ms(&rig, 20000);
	ck_assert_uint_eq(rig_count(&rig, OB_VIEW_PUBLISHED), 3);
	ck_assert_uint_eq(rig_all_exceptions(&rig), 0);
	ck_assert(rig_stored_once(&rig));
	rig_done(&rig);
}
OB_TEST_END

OB_TEST(many_delayed_messages_go_out_batch_by_batch)
{
	char key[16];

	make();
	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		push_delayed(key, "1", 3000);
	}
	rig_run_ms(&rig, 2500);
	ck_assert_uint_eq(rig_exceptions(&rig, OB_STATE_DELAYED), 300);
	/* They are behind the position: the log is not walked again for them. */
	for (uint32_t p = 0; p < RIG_PARTITIONS; p++)
		ck_assert_int_gt(rig_position(&rig, p), 200);
	for (int i = 0; i < 2000 && rig.log.count == 0; i++)
		rig_run_ms(&rig, 1);
	/* One read follows the other while more are due. */
	rig_run_ms(&rig, 5);
	ck_assert_uint_eq(rig.log.count, 300);
	rig_run_ms(&rig, 100);
	everything_went_out_once(300);
	rig_done(&rig);
}
OB_TEST_END

/* ---- rows that commit late ------------------------------------------- */

/* Numbers drawn early, committed when others have long been passed. */
static void late_rows_are_delivered(enum ob_memdb_kind kind, int late)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *slow;
	struct outbox_id id;
	char payload[16];
	size_t index;

	rig_init_kind(&rig, kind);
	rig.relay.batch_size = 10;
	node = rig_start(&rig, &ob_sink_memory);
	ck_assert_int_ge(ob_store_memory_open(rig.db, &slow, &err), 0);
	ck_assert_int_ge(ob_store_tx_begin(slow, &err), 0);
	for (int i = 1; i <= late; i++) {
		(void)snprintf(payload, sizeof(payload), "%d", i);

		struct outbox_message message = { .aggregate_type = "order",
						  .event_type = "OrderPlaced",
						  .partition_key = "late",
						  .payload = payload };

		ck_assert_int_ge(ob_store_tx_push(slow, &message, 1, &id, &index, &err), 0);
		push_keys(4, i, i);
	}
	rig_run_ms(&rig, 12000);
	ck_assert_uint_eq(rig.log.count, 4 * late);
	ck_assert_str_eq(rig_stored(&rig, "late"), "");
	/* Someone else takes over in between. */
	rig_kill(&rig, node);
	node = rig_start(&rig, &ob_sink_memory);
	rig_run_ms(&rig, 2000);
	ck_assert_int_ge(ob_store_tx_end(slow, true, &err), 0);
	rig_run_ms(&rig, 3000);
	ck_assert_uint_eq(rig.log.count, 5 * late);
	everything_went_out_once((uint32_t)(5 * late));
	ck_assert(rig_stored_in_order(&rig));
	ob_store_free(slow);
	rig_done(&rig);
}

OB_TEST(rows_that_commit_late_are_delivered_by_snapshots)
{
	late_rows_are_delivered(OB_MEMDB_SNAPSHOT, 5);
}
OB_TEST_END

OB_TEST(more_late_rows_than_a_batch_are_delivered_by_snapshots)
{
	late_rows_are_delivered(OB_MEMDB_SNAPSHOT, 45);
}
OB_TEST_END

OB_TEST(rows_that_commit_late_are_delivered_by_gaps)
{
	late_rows_are_delivered(OB_MEMDB_GAPS, 5);
}
OB_TEST_END

OB_TEST(more_late_rows_than_a_batch_are_delivered_by_gaps)
{
	late_rows_are_delivered(OB_MEMDB_GAPS, 45);
}
OB_TEST_END

OB_SUITE("worker reads", a_message_of_the_high_lane_overtakes_a_backlog,
	 a_message_of_the_normal_lane_overtakes_a_backlog_of_the_low_one,
	 so_they_do_where_the_store_is_slow,
	 a_retry_of_the_normal_lane_overtakes_a_backlog_of_the_low_one,
	 of_what_waits_the_high_lane_goes_first_and_the_low_one_last,
	 a_reader_with_an_end_delivers_what_stands_before_it_and_has_ended,
	 a_reader_with_an_end_has_not_ended_while_a_message_is_unconfirmed,
	 a_reader_without_an_end_never_ends, a_filter_by_type_passes_over_what_it_does_not_name,
	 a_filter_by_aggregate_passes_over_the_others, both_filters_must_match,
	 a_filter_does_not_strand_exceptions,
	 a_delayed_message_goes_out_when_it_is_due_and_holds_nobody,
	 a_delayed_message_that_holds_its_key_is_waited_for,
	 a_delayed_message_whose_key_fails_waits_for_it,
	 many_delayed_messages_go_out_batch_by_batch,
	 rows_that_commit_late_are_delivered_by_snapshots,
	 more_late_rows_than_a_batch_are_delivered_by_snapshots,
	 rows_that_commit_late_are_delivered_by_gaps,
	 more_late_rows_than_a_batch_are_delivered_by_gaps)
