/* SPDX-License-Identifier: MIT */
/* Contract: lists of messages as a reader sees them. */
#include "store_harness.h"

static void expect_list(struct ob_filter filter, const char *labels)
{
	int64_t now = 0;

	filter.reader = !filter.reader ? "main" : strcmp(filter.reader, "-") ? filter.reader : NULL;
	store_ok(ob_store_list(fx.store, &filter, &fx.look, &now, &fx.err));
	ck_assert_str_eq(store_labels(&fx.look), labels);
	ck_assert_int_eq(now, ob_clock_real_us(&fx.clock.clock));
}

OB_TEST(a_list_goes_both_ways_and_by_pages)
{
	store_begin(4);
	store_put_all("a b c d");
	expect_list((struct ob_filter){ 0 }, "a b c d");
	expect_list((struct ob_filter){ .newest_first = true }, "d c b a");
	expect_list((struct ob_filter){ .newest_first = true, .limit = 3 }, "d c b");
	expect_list((struct ob_filter){ .limit = 2 }, "a b");
	int64_t after = fx.look.messages[1].seq;
	expect_list((struct ob_filter){ .limit = 2, .after_seq = after }, "c d");
	expect_list((struct ob_filter){ .newest_first = true, .after_seq = after }, "a");
	expect_list((struct ob_filter){ .after_seq = fx.look.messages[0].seq, .limit = 1 }, "b");
}
OB_TEST_END

OB_TEST(every_member_of_a_filter_narrows)
{
	store_begin(1);
	store_put((struct outbox_message){
		.event_type = "a", .aggregate_type = "order", .aggregate_id = "1" });
	store_put((struct outbox_message){
		.event_type = "b", .aggregate_type = "order", .aggregate_id = "2" });
	store_put((struct outbox_message){
		.event_type = "c", .aggregate_type = "user", .aggregate_id = "1" });
	store_put((struct outbox_message){
		.event_type = "d", .aggregate_type = "note", .delay_ms = 9 });
	store_put((struct outbox_message){ .event_type = "x", .target = "audit" });
	expect_list((struct ob_filter){ .aggregate_type = "order" }, "a b");
	expect_list((struct ob_filter){ .aggregate_id = "1" }, "a c");
	expect_list((struct ob_filter){ .aggregate_id = "1", .aggregate_type = "user" }, "c");
	expect_list((struct ob_filter){ .key = "order:2" }, "b");
	expect_list((struct ob_filter){ .event_type = "c" }, "c");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DELAYED }, "d");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING }, "a b c");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING | 1U << OB_VIEW_DELAYED },
		    "a b c d");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, "");
	struct ob_uuid id = store_row("b")->id;
	expect_list((struct ob_filter){ .id = &id }, "b");
	expect_list((struct ob_filter){ .id = &id, .event_type = "a" }, "");
	expect_list((struct ob_filter){ .key = "order:%" }, "");
}
OB_TEST_END

OB_TEST(the_events_of_a_stream_are_listed_by_their_versions)
{
	struct ob_filter filter = { .stream = "default",
				    .aggregate_type = "account",
				    .aggregate_id = "7",
				    .newest_first = true };

	store_begin(1);
	store_hold_all(60000);
	for (int64_t i = 0; i < 4; i++)
		store_put((struct outbox_message){ .event_type = &"a\0b\0c\0d"[i * 2],
						   .aggregate_type = "account",
						   .aggregate_id = "7",
						   .sequence_number = i + 1 });
	store_put((struct outbox_message){
		.event_type = "x", .aggregate_type = "account", .aggregate_id = "7" });
	store_put((struct outbox_message){ .event_type = "y",
					   .aggregate_type = "account",
					   .aggregate_id = "8",
					   .sequence_number = 1 });
	store_put((struct outbox_message){ .event_type = "z",
					   .aggregate_type = "account",
					   .aggregate_id = "7",
					   .sequence_number = 1,
					   .target = "audit" });
	expect_list(filter, "d c b a");
	filter.limit = 2;
	expect_list(filter, "d c");
	filter.before_version = fx.look.messages[1].sequence_number;
	expect_list(filter, "b a");
	filter.before_version = 1;
	expect_list(filter, "");
	/* As its reader sees them, and as nobody does. */
	store_settle("a", OB_OUTCOME_RETRY);
	filter.before_version = 2;
	expect_list(filter, "a");
	ck_assert_int_eq(fx.look.messages[0].view, OB_VIEW_FAILED);
	filter.reader = "-";
	expect_list(filter, "a");
	ck_assert_int_eq(fx.look.messages[0].view, OB_VIEW_PENDING);
}
OB_TEST_END

OB_TEST(a_search_by_correlation_or_error_is_bounded_below)
{
	static const char *const cases[] = { "why", "%", "Why", NULL };

	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "a", .correlation_id = "c1" });
	store_put((struct outbox_message){ .event_type = "b", .correlation_id = "c2" });
	store_put((struct outbox_message){ .event_type = "c", .correlation_id = "c1" });
	int64_t second = store_row("b")->seq;

	expect_list((struct ob_filter){ .correlation_id = "c1" }, "a c");
	expect_list((struct ob_filter){ .correlation_id = "c1", .from_seq = second }, "c");
	expect_list((struct ob_filter){ .from_seq = second, .newest_first = true }, "c b");
	expect_list((struct ob_filter){ .from_seq = second, .after_seq = second }, "c");
	expect_list((struct ob_filter){ .error = "why" }, "");
	store_settle("b", OB_OUTCOME_RETRY);
	for (size_t i = 0; cases[i]; i++)
		expect_list((struct ob_filter){ .error = cases[i] }, i == 0 ? "b" : "");
	expect_list((struct ob_filter){ .error = "h", .views = 1U << OB_VIEW_FAILED }, "b");
	expect_list((struct ob_filter){ .error = "why", .from_seq = second + 1 }, "");
}
OB_TEST_END

OB_TEST(a_brief_list_tells_how_large_a_payload_is)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a",
					   .payload = "{\"n\":1}",
					   .payload_size = 7,
					   .headers = "{\"h\":\"1\"}",
					   .headers_size = 9 });
	expect_list((struct ob_filter){ .brief = true }, "a");
	ck_assert_ptr_null(fx.look.messages[0].payload.p);
	ck_assert_ptr_null(fx.look.messages[0].headers.p);
	ck_assert_int_eq(fx.look.messages[0].payload_bytes, 7);
	expect_list((struct ob_filter){ 0 }, "a");
	ck_assert_str_eq(fx.look.messages[0].payload.p, "{\"n\":1}");
	ck_assert_int_eq(fx.look.messages[0].payload_bytes, 7);
}
OB_TEST_END

OB_TEST(only_rows_of_the_readers_target_are_listed)
{
	store_begin(1);
	ck_assert(store_make_reader("log", "audit", (struct ob_place){ 0 }));
	store_put_all("a1");
	store_put((struct outbox_message){ .event_type = "x", .target = "audit" });
	expect_list((struct ob_filter){ 0 }, "a1");
	expect_list((struct ob_filter){ .reader = "log" }, "x");
}
OB_TEST_END

OB_TEST(without_a_reader_every_target_is_listed_as_if_nothing_was_read)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 b1");
	store_put((struct outbox_message){ .event_type = "x", .target = "audit", .delay_ms = 9 });
	store_settle("a1", OB_OUTCOME_DEAD);
	expect_list((struct ob_filter){ .reader = "-" }, "a1 b1 x");
	ck_assert_int_eq(fx.look.messages[0].view, OB_VIEW_PENDING);
	ck_assert(!fx.look.messages[0].excepted);
	ck_assert_int_eq(fx.look.messages[0].published_at_us, 0);
	ck_assert_int_eq(fx.look.messages[2].view, OB_VIEW_DELAYED);
	expect_list((struct ob_filter){ .reader = "-", .event_type = "x" }, "x");
	expect_list((struct ob_filter){ .reader = "-", .views = 1U << OB_VIEW_PENDING }, "a1 b1");
	expect_list((struct ob_filter){ .reader = "-", .views = 1U << OB_VIEW_DEAD }, "");
	expect_list((struct ob_filter){ .reader = "-", .limit = 1, .newest_first = true }, "x");
}
OB_TEST_END

OB_TEST(an_unknown_reader_cannot_be_listed)
{
	const struct ob_filter filter = { .reader = "nobody" };
	int64_t now;

	store_begin(1);
	ck_assert_int_eq(ob_store_list(fx.store, &filter, &fx.look, &now, &fx.err), OUTBOX_EINVAL);
	ck_assert_int_eq(fx.err.kind, OB_ERR_FATAL);
}
OB_TEST_END

/* ---- views ----------------------------------------------------------- */

/* One row of every view: see expect_views(). */
static void begin_with_all(void)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	store_put_all("a1 a2 b1 c1 c2 d1 e1");
	store_put((struct outbox_message){
		.event_type = "f1", .partition_key = "f", .delay_ms = 60000 });
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_outcome("f1", OB_OUTCOME_DELAY);
	fx.decide.hold_dead = true;
	store_outcome("c1", OB_OUTCOME_DEAD);
	store_outcome("c2", OB_OUTCOME_PARK);
	store_record();
	store_operate(OB_VERB_DISCARD, "e1", 0, 1);
	store_put_all("g1 a3 h1");
	store_put((struct outbox_message){
		.event_type = "i1", .partition_key = "i", .delay_ms = 60000 });
	store_operate(OB_VERB_DISCARD, "h1", 1, 0);
}

OB_TEST(a_message_is_listed_by_its_exception_or_the_progress)
{
	begin_with_all();
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING }, "g1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DELAYED }, "f1 i1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_FAILED }, "a1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PARKED }, "a2 c2 a3");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, "b1 c1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DISCARDED }, "h1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PUBLISHED }, "d1 e1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PUBLISHED, .limit = 1 }, "d1");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PUBLISHED,
					.limit = 1,
					.newest_first = true },
		    "e1");
	for (uint32_t i = 0; i < fx.look.count; i++)
		ck_assert_int_eq(fx.look.messages[i].view, OB_VIEW_PUBLISHED);
	expect_list((struct ob_filter){ 0 }, "a1 a2 b1 c1 c2 d1 e1 f1 g1 a3 h1 i1");
}
OB_TEST_END

/* g1, a3 and i1 wait in the log alone: a long backlog is not read for the others. */
OB_TEST(only_exceptions_can_be_listed)
{
	begin_with_all();
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PARKED, .excepted = true }, "a2 c2");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_PENDING, .excepted = true }, "");
	expect_list((struct ob_filter){ .views = 1U << OB_VIEW_DELAYED | 1U << OB_VIEW_FAILED |
						 1U << OB_VIEW_DEAD,
					.excepted = true },
		    "a1 b1 c1 f1");
	expect_list((struct ob_filter){ .excepted = true, .newest_first = true, .limit = 3 },
		    "h1 f1 c2");
}
OB_TEST_END

/* h1 lies after the position and has an exception: it is found in both places. */
OB_TEST(what_is_not_published_is_listed_once)
{
	const uint32_t open = 1U << OB_VIEW_PENDING | 1U << OB_VIEW_DELAYED | 1U << OB_VIEW_FAILED |
			      1U << OB_VIEW_PARKED | 1U << OB_VIEW_DEAD | 1U << OB_VIEW_DISCARDED;

	begin_with_all();
	expect_list((struct ob_filter){ .views = open }, "a1 a2 b1 c1 c2 f1 g1 a3 h1 i1");
	expect_list((struct ob_filter){ .views = open, .newest_first = true, .limit = 4 },
		    "i1 h1 a3 g1");
	expect_list((struct ob_filter){ .views = open, .after_seq = store_row("c1")->seq },
		    "c2 f1 g1 a3 h1 i1");
}
OB_TEST_END

OB_TEST(a_row_in_the_log_is_not_parked_by_another_partitions_queue)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.ordering = OB_ORDER_PARTITION;
	store_put_all("a1");
	store_settle("a1", OB_OUTCOME_RETRY);
	store_put_all("b1");
	store_put((struct outbox_message){
		.event_type = "high", .partition_key = "b", .priority = 1 });
	store_expect_view("b1", OB_VIEW_PARKED);
	store_expect_view("high", OB_VIEW_PENDING);
}
OB_TEST_END

OB_TEST(a_late_row_is_pending_though_its_number_is_passed)
{
	store_begin(1);
	store_hold_all(60000);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_open_with(slow, "a1");
	store_put_all("b1");
	store_read(9, 0);
	store_record();
	store_commit(slow);
	store_expect_view("a1", OB_VIEW_PENDING);
	ck_assert_int_eq(store_row("a1")->published_at_us, 0);
	store_expect_view("b1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(a_listed_row_has_all_its_fields)
{
	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "a1",
					   .partition_key = "tenant",
					   .snapshot = "{\"s\":1}",
					   .headers = "{\"h\":1}" });
	fx.delay_ms = 500;
	store_settle("a1", OB_OUTCOME_RETRY);
	const struct ob_message *row = store_row("a1");
	ck_assert_str_eq(row->partition_key.p, "tenant");
	ck_assert_str_eq(row->key.p, "tenant");
	ck_assert_str_eq(row->snapshot.p, "{\"s\":1}");
	ck_assert_str_eq(row->headers.p, "{\"h\":1}");
	ck_assert_str_eq(row->payload.p, "{}");
	ck_assert_str_eq(row->target.p, "default");
	ck_assert_str_eq(row->last_error.p, "why");
	ck_assert(row->excepted);
	ck_assert_int_eq(row->state, OB_STATE_FAILED);
	ck_assert_uint_eq(row->attempts, 1);
	ck_assert_int_eq(row->due_us, fx.start_us + 500000);
	ck_assert_int_eq(row->since_us, fx.start_us);
	ck_assert_int_eq(row->published_at_us, 0);
	ck_assert_int_eq(row->created_at_us, fx.start_us);
	ck_assert_int_eq(row->occurred_at_us, fx.start_us);
}
OB_TEST_END

STORE_CASES(list, a_list_goes_both_ways_and_by_pages, every_member_of_a_filter_narrows,
	    the_events_of_a_stream_are_listed_by_their_versions,
	    a_search_by_correlation_or_error_is_bounded_below,
	    a_brief_list_tells_how_large_a_payload_is, only_rows_of_the_readers_target_are_listed,
	    without_a_reader_every_target_is_listed_as_if_nothing_was_read,
	    an_unknown_reader_cannot_be_listed,
	    a_message_is_listed_by_its_exception_or_the_progress,
	    what_is_not_published_is_listed_once, only_exceptions_can_be_listed,
	    a_row_in_the_log_is_not_parked_by_another_partitions_queue,
	    a_late_row_is_pending_though_its_number_is_passed, a_listed_row_has_all_its_fields)
