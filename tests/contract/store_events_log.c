/* SPDX-License-Identifier: MIT */
/* Contract: reading events of a category, of a correlation, of all streams, by position. */
#include "events_cases.h"

#include <inttypes.h>

static const struct outbox_stream order = { .type = "order", .id = "1" };

/* All events that match, "Opened:1 Paid:2". */
#define READ(...) \
	ev_read((struct outbox_event_query){ .size = sizeof(struct outbox_event_query), \
					     __VA_ARGS__ })

static void fill(void)
{
	ev_begin();
	ev_append(&ev_ann, 0, "a b");
	ev_append(&order, 0, "x");
	ev_append(&ev_bob, 0, "a");
	ev_append(&ev_ann, 2, "c");
	ev_append(&order, 1, "y a");
	store_put_all("m1"); /* a message of no stream is no event */
}

static int64_t position_of(const struct outbox_stream *stream, int64_t version)
{
	const struct outbox_event_query query = { .stream = *stream,
						  .after_version = version - 1,
						  .to_version = version };
	const struct outbox_event *event = NULL;
	outbox_event_reader *reader = NULL;
	outbox *ob = ev_open_on(fx.store);
	int64_t position = 0;

	ck_assert_int_eq(outbox_events_open(ob, &query, &reader, &ev_fault), 0);
	if (outbox_events_next(reader, &event, &ev_fault) == 1)
		position = event->position;
	outbox_events_close(reader);
	ev_end_on(fx.store, false);
	return position;
}

OB_TEST(a_category_is_read_by_position)
{
	fill();
	ck_assert_str_eq(READ(.stream = { .type = "account" }), "a:1 b:2 a:1 c:3");
	ck_assert_str_eq(READ(.stream = { .type = "order" }), "x:1 y:2 a:3");
	ck_assert_str_eq(READ(.stream = { .type = "account" }, .flags = OUTBOX_BACKWARD),
			 "c:3 a:1 b:2 a:1");
	ck_assert_str_eq(READ(.stream = { .type = "nothing" }), "");
}
OB_TEST_END

OB_TEST(all_events_are_read_by_position)
{
	fill();
	ck_assert_str_eq(READ(.limit = 0), "a:1 b:2 x:1 a:1 c:3 y:2 a:3");
	ck_assert_str_eq(READ(.flags = OUTBOX_BACKWARD), "a:3 y:2 c:3 a:1 x:1 b:2 a:1");
	ck_assert_str_eq(READ(.limit = 3), "a:1 b:2 x:1");
	ck_assert_str_eq(READ(.stream = { .target = "elsewhere" }), "");
	for (uint32_t chunk = 1; chunk < 9; chunk++) {
		ck_assert_str_eq(READ(.chunk = chunk), "a:1 b:2 x:1 a:1 c:3 y:2 a:3");
		ck_assert_str_eq(READ(.chunk = chunk, .flags = OUTBOX_BACKWARD),
				 "a:3 y:2 c:3 a:1 x:1 b:2 a:1");
	}
}
OB_TEST_END

OB_TEST(windows_and_types_narrow_a_pass)
{
	fill();
	int64_t from = position_of(&order, 1), to = position_of(&ev_ann, 3);

	ck_assert_str_eq(READ(.after_position = from), "a:1 c:3 y:2 a:3");
	ck_assert_str_eq(READ(.to_position = to), "a:1 b:2 x:1 a:1 c:3");
	ck_assert_str_eq(READ(.after_position = from, .to_position = to), "a:1 c:3");
	ck_assert_str_eq(READ(.event_type = "a"), "a:1 a:1 a:3");
	ck_assert_str_eq(READ(.event_type = "a", .stream = { .type = "account" }), "a:1 a:1");
	ck_assert_str_eq(READ(.to_us = 1), "");
	ck_assert_str_eq(READ(.after_us = 1, .event_type = "y"), "y:2");
	/* The versions of a stream bound no category. */
	ck_assert_str_eq(READ(.after_version = 2, .to_version = 2, .event_type = "x"), "x:1");
}
OB_TEST_END

OB_TEST(a_correlation_is_read_over_all_streams)
{
	const struct outbox_message tied = { .event_type = "tied",
					     .payload = "{}",
					     .correlation_id = "c-1" };
	const struct outbox_stream *const streams[] = { &ev_ann, &order };

	fill();
	for (int i = 0; i < 2; i++) {
		outbox *ob = ev_open_on(fx.store);
		ck_assert_int_eq(
			outbox_append(ob, streams[i], OUTBOX_ANY, &tied, 1, NULL, NULL, &ev_fault),
			0);
		ev_end_on(fx.store, true);
	}
	ck_assert_str_eq(READ(.correlation_id = "c-1"), "tied:4 tied:4");
	ck_assert_str_eq(READ(.correlation_id = "c-1", .stream = { .type = "order" }), "tied:4");
	ck_assert_str_eq(READ(.correlation_id = "c-2"), "");
	/* A program that was built with the first header has no such member. */
	ck_assert_str_eq(
		ev_read((struct outbox_event_query){ .correlation_id = "c-2", .limit = 1 }), "a:1");
}
OB_TEST_END

OB_TEST(streams_that_ended_are_left_out_of_a_category)
{
	fill();
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_bob, OUTBOX_STREAM_ARCHIVED, &ev_fault), 0);
	ck_assert_int_eq(outbox_stream_truncate(ob, &ev_ann, 3, &ev_fault), 0);
	ev_end_on(fx.store, true);
	ck_assert_str_eq(READ(.stream = { .type = "account" }), "c:3");
	ck_assert_str_eq(READ(.stream = { .type = "account" }, .flags = OUTBOX_WITH_ENDED),
			 "a:1 b:2 a:1 c:3");
}
OB_TEST_END

/* Read all, event by event; `late` commits after the first. */
static void expect_pass(outbox *ob, struct ob_store *late, const char *expected)
{
	const struct outbox_event_query query = { .chunk = 1 };
	const struct outbox_event *event;
	outbox_event_reader *reader = NULL;
	char text[256] = "";
	size_t used = 0;
	int r;

	ck_assert_int_eq(outbox_events_open(ob, &query, &reader, &ev_fault), 0);
	while ((r = outbox_events_next(reader, &event, &ev_fault)) > 0) {
		if (used == 0 && late)
			store_commit(late);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
					 event->event_type);
	}
	ck_assert_msg(r == 0, "%s", ev_fault.message);
	outbox_events_close(reader);
	ck_assert_str_eq(text, expected);
}

OB_TEST(a_pass_is_what_was_committed_when_it_began_and_waits_for_nobody)
{
	const struct outbox_message late = { .event_type = "late", .payload = "{}" };
	struct ob_store *other;

	fill();
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	other = store_open();
	outbox *open = ev_open_on(other);
	ck_assert_int_eq(outbox_append(open, &order, 3, &late, 1, NULL, NULL, &ev_fault), 0);
	ev_append(&ev_ann, 3, "d");
	/* The open transaction has a lower position than d; the pass does not wait for it. The
	 * store's transactions on MySQL have no snapshot: what commits meanwhile is in the pass. */
	bool mysql = strcmp(fx.backend->name, "mysql") == 0;
	outbox *ob = ev_open_on(fx.store);
	expect_pass(ob, other, mysql ? "a b x a c y a late d" : "a b x a c y a d");
	ev_end_on(fx.store, false);
	ck_assert_str_eq(READ(.after_position = position_of(&order, 3)), "late:4 d:4");
}
OB_TEST_END

OB_TEST(bounds_below_zero_and_unknown_flags_are_refused)
{
	const struct outbox_event_query queries[] = {
		{ .after_position = -1 },
		{ .flags = 0x80 },
		{ .size = sizeof(struct outbox_event_query),
		  .stream = { .type = "a", .id = "1" },
		  .correlation_id = "c" },
	};

	fill();
	outbox *ob = ev_open_on(fx.store);
	for (size_t i = 0; i < 3; i++) {
		outbox_event_reader *reader = NULL;

		ck_assert_int_eq(outbox_events_open(ob, &queries[i], &reader, &ev_fault),
				 OUTBOX_EINVAL);
	}
	ev_end_on(fx.store, false);
}
OB_TEST_END

STORE_CASES(events_log, a_category_is_read_by_position, all_events_are_read_by_position,
	    windows_and_types_narrow_a_pass, a_correlation_is_read_over_all_streams,
	    streams_that_ended_are_left_out_of_a_category,
	    a_pass_is_what_was_committed_when_it_began_and_waits_for_nobody,
	    bounds_below_zero_and_unknown_flags_are_refused)
