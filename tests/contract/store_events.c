/* SPDX-License-Identifier: MIT */
/* Contract: streams of events: appending with an expected version, reading, ending them. */
#include "events_cases.h"

#include <inttypes.h>

static struct outbox_stream_info look(const struct outbox_stream *stream)
{
	struct outbox_stream_info info = { 0 };
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_stream_look(ob, stream, &info, &ev_fault);

	ck_assert_msg(r == 0, "%s", ev_fault.message);
	ev_end_on(fx.store, false);
	return info;
}

OB_TEST(versions_are_contiguous_from_one)
{
	struct outbox_appended done = { 0 };

	ev_begin();
	ck_assert_int_eq(ev_try_append(&ev_ann, OUTBOX_NO_STREAM, "a b", NULL, &done), 0);
	ck_assert_int_eq(done.first_version, 1);
	ck_assert_int_eq(done.last_version, 2);
	ck_assert_int_lt(done.first_position, done.last_position);
	ck_assert_int_eq(done.repeated, 0);
	ev_append(&ev_bob, OUTBOX_NO_STREAM, "x");
	ck_assert_int_eq(ev_try_append(&ev_ann, 2, "c", NULL, &done), 0);
	ck_assert_int_eq(done.first_version, 3);
	ck_assert_int_eq(done.first_position, done.last_position);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }), "a:1 b:2 c:3");
	ck_assert_int_eq(look(&ev_ann).version, 3);
	ck_assert_int_eq(look(&ev_bob).version, 1);
}
OB_TEST_END

OB_TEST(another_version_is_a_conflict_and_nothing_is_written)
{
	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a b");
	ck_assert_int_eq(ev_try_append(&ev_ann, 1, "c d", NULL, NULL), OUTBOX_ECONFLICT);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "expected version 1, actual version 2"));
	ck_assert_int_eq(ev_try_append(&ev_ann, 3, "c", NULL, NULL), OUTBOX_ECONFLICT);
	ck_assert_int_eq(ev_try_append(&ev_ann, OUTBOX_NO_STREAM, "c", NULL, NULL),
			 OUTBOX_ECONFLICT);
	ck_assert_int_eq(ev_try_append(&ev_bob, OUTBOX_STREAM_EXISTS, "c", NULL, NULL),
			 OUTBOX_ECONFLICT);
	ck_assert_int_eq(ev_try_append(&ev_bob, 5, "c", NULL, NULL), OUTBOX_ECONFLICT);
	ck_assert_int_eq(ev_try_append(&ev_bob, -3, "c", NULL, NULL), OUTBOX_EINVAL);
	ck_assert_int_eq(look(&ev_ann).version, 2);
	ck_assert_int_eq(look(&ev_bob).version, 0);
	ev_append(&ev_ann, OUTBOX_STREAM_EXISTS, "c");
	ev_append(&ev_ann, OUTBOX_ANY, "d");
	ev_append(&ev_bob, OUTBOX_ANY, "x");
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }),
			 "a:1 b:2 c:3 d:4");
}
OB_TEST_END

OB_TEST(a_conflict_leaves_the_transaction_usable)
{
	const struct outbox_message event = { .event_type = "c", .payload = "{}" };

	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a");
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 0, &event, 1, NULL, NULL, &ev_fault),
			 OUTBOX_ECONFLICT);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 1, &event, 1, NULL, NULL, &ev_fault), 0);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 2, &event, 1, NULL, NULL, &ev_fault), 0);
	ev_end_on(fx.store, true);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }), "a:1 c:2 c:3");
}
OB_TEST_END

OB_TEST(a_rolled_back_append_leaves_no_version)
{
	const struct outbox_message event = { .event_type = "gone", .payload = "{}" };

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 0, &event, 1, NULL, NULL, &ev_fault), 0);
	ev_end_on(fx.store, false);
	ck_assert_int_eq(look(&ev_ann).version, 0);
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a");
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }), "a:1");
}
OB_TEST_END

OB_TEST(the_same_ids_at_the_same_place_return_the_first_result)
{
	static const char *const ids[] = { "0195a1b2-0000-7000-8000-00000000000a",
					   "0195a1b2-0000-7000-8000-00000000000b" };
	static const char *const turned[] = { "0195a1b2-0000-7000-8000-00000000000b",
					      "0195a1b2-0000-7000-8000-00000000000a" };
	const int64_t expected[] = { 1, OUTBOX_ANY, OUTBOX_STREAM_EXISTS };
	struct outbox_appended first = { 0 };

	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a");
	ck_assert_int_eq(ev_try_append(&ev_ann, 1, "b c", ids, &first), 0);
	ev_append(&ev_ann, 3, "d");
	for (size_t i = 0; i < 3; i++) {
		struct outbox_appended again = { 0 };

		ck_assert_int_eq(ev_try_append(&ev_ann, expected[i], "b c", ids, &again), 0);
		ck_assert_int_eq(again.repeated, 1);
		ck_assert_int_eq(again.first_version, 2);
		ck_assert_int_eq(again.last_version, 3);
		ck_assert_int_eq(again.first_position, first.first_position);
		ck_assert_int_eq(again.last_position, first.last_position);
	}
	ck_assert_int_eq(ev_try_append(&ev_ann, 1, "b c", turned, NULL), OUTBOX_ECONFLICT);
	ck_assert_int_eq(ev_try_append(&ev_ann, 4, "b c", ids, NULL), OUTBOX_EDUPID);
	ck_assert_int_eq(ev_try_append(&ev_bob, OUTBOX_ANY, "b c", ids, NULL), OUTBOX_EDUPID);
	ck_assert_int_eq(look(&ev_ann).version, 4);
	ck_assert_int_eq(look(&ev_bob).version, 0);
}
OB_TEST_END

OB_TEST(windows_are_after_exclusive_and_to_inclusive)
{
	struct outbox_appended at = { 0 };

	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a b");
	ev_append(&ev_bob, OUTBOX_NO_STREAM, "x");
	ck_assert_int_eq(ev_try_append(&ev_ann, 2, "c", NULL, &at), 0);
	ev_append(&ev_ann, 3, "d a");
#define READ(...) ev_read((struct outbox_event_query){ .stream = ev_ann, __VA_ARGS__ })
	ck_assert_str_eq(READ(.after_version = 1, .to_version = 3), "b:2 c:3");
	ck_assert_str_eq(READ(.after_version = 1, .to_version = 3, .flags = OUTBOX_BACKWARD),
			 "c:3 b:2");
	ck_assert_str_eq(READ(.after_position = at.first_position), "d:4 a:5");
	ck_assert_str_eq(READ(.to_position = at.first_position), "a:1 b:2 c:3");
	ck_assert_str_eq(READ(.event_type = "a"), "a:1 a:5");
	ck_assert_str_eq(READ(.flags = OUTBOX_BACKWARD, .limit = 1), "a:5");
	ck_assert_str_eq(READ(.after_version = 2, .to_version = 3), "c:3"); /* one version */
	ck_assert_str_eq(READ(.after_version = 8, .to_version = 9), "");
	ck_assert_str_eq(READ(.to_us = 1), "");
	ck_assert_str_eq(READ(.after_us = 1), "a:1 b:2 c:3 d:4 a:5");
#undef READ
	ck_assert_str_eq(ev_read((struct outbox_event_query){
				 .stream = { .type = "account", .id = "nobody" } }),
			 "");
}
OB_TEST_END

OB_TEST(chunks_of_any_size_give_the_same_events)
{
	char whole[4096];

	ev_begin();
	for (int i = 0; i < 5; i++)
		ev_append(&ev_ann, OUTBOX_ANY, "a b c d e");
	(void)snprintf(whole, sizeof(whole), "%s",
		       ev_read((struct outbox_event_query){ .stream = ev_ann }));
	for (uint32_t chunk = 1; chunk <= 26; chunk++)
		ck_assert_str_eq(
			ev_read((struct outbox_event_query){ .stream = ev_ann, .chunk = chunk }),
			whole);
	ck_assert_str_eq(
		ev_read((struct outbox_event_query){
			.stream = ev_ann, .chunk = 2, .limit = 3, .flags = OUTBOX_BACKWARD }),
		"e:25 d:24 c:23");
}
OB_TEST_END

OB_TEST(every_field_of_an_event_comes_back)
{
	const struct outbox_message in = {
		.event_type = "Opened",
		.payload = "{\"a\": \"\xC3\xBC\"}",
		.headers = "{\"h\":1}",
		.id = "00000000-0000-4000-8000-000000000001",
		.correlation_id = "corr",
		.causation_id = "caus",
		.revision = 3,
		.occurred_at_us = 1700000000123456,
	};
	const struct outbox_event_query query = { .stream = ev_ann };
	const struct outbox_event *event = NULL;
	outbox_event_reader *reader = NULL;

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 0, &in, 1, NULL, NULL, &ev_fault), 0);
	ck_assert_int_eq(outbox_events_open(ob, &query, &reader, &ev_fault), 0);
	ck_assert_int_eq(outbox_events_next(reader, &event, &ev_fault), 1);
	ck_assert_str_eq(event->id, in.id);
	ck_assert_str_eq(event->type, "account");
	ck_assert_str_eq(event->stream_id, "ann");
	ck_assert_str_eq(event->target, "default");
	ck_assert_uint_eq(event->payload_size, strlen(in.payload));
	ck_assert_mem_eq(event->payload, in.payload, event->payload_size);
	ck_assert_mem_eq(event->headers, in.headers, event->headers_size);
	ck_assert_str_eq(event->correlation_id, "corr");
	ck_assert_str_eq(event->causation_id, "caus");
	ck_assert_int_eq(event->occurred_at_us, in.occurred_at_us);
	ck_assert_int_gt(event->created_at_us, 0);
	ck_assert_int_eq(event->revision, 3);
	outbox_events_close(reader);
	ev_end_on(fx.store, true);
}
OB_TEST_END

OB_TEST(an_event_does_not_name_another_stream)
{
	const struct outbox_message bad[] = {
		{ .event_type = "e", .payload = "1", .aggregate_id = "bob" },
		{ .event_type = "e", .payload = "1", .sequence_number = 7 },
		{ .event_type = "e", .payload = "1", .target = "audit" },
	};
	const struct outbox_stream nameless = { .type = "account" };

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(outbox_append(ob, &ev_ann, -1, &bad[i], 1, NULL, NULL, &ev_fault),
				 OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_append(ob, &nameless, -1, bad, 1, NULL, NULL, &ev_fault),
			 OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, -1, NULL, 0, NULL, NULL, &ev_fault), 0);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(look(&ev_ann).version, 0);
}
OB_TEST_END

OB_TEST(many_events_are_one_append)
{
	/* The most that one append takes is a long run. */
	const char *wanted = getenv("OUTBOX_TEST_EVENTS");
	const size_t many = wanted ? (size_t)strtoul(wanted, NULL, 10) : 2500;
	struct outbox_message *events = calloc(OUTBOX_APPEND_MAX + 1, sizeof(*events));
	struct outbox_appended done = { 0 };

	ev_begin();
	ck_assert_ptr_nonnull(events);
	for (size_t i = 0; i < many; i++)
		events[i] = (struct outbox_message){ .event_type = "e", .payload = "{}" };
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_append(ob, &ev_ann, 0, events, many, NULL, &done, &ev_fault);
	ck_assert_msg(r == 0, "%s", ev_fault.message);
	ck_assert_int_eq(done.last_version, (int64_t)many);
	ck_assert_int_ge(done.last_position - done.first_position, (int64_t)many - 1);
	ck_assert_int_eq(
		outbox_append(ob, &ev_ann, 0, events, OUTBOX_APPEND_MAX + 1, NULL, NULL, &ev_fault),
		OUTBOX_EINVAL);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(look(&ev_ann).version, (int64_t)many);
	free(events);
}
OB_TEST_END

OB_TEST(a_handle_counts_appends_and_conflicts)
{
	const char *id = "0195a1b2-0000-7000-8000-00000000000a";
	const struct outbox_message events[] = { { .event_type = "e", .payload = "{}", .id = id },
						 { .event_type = "e", .payload = "no JSON" } };
	struct outbox_append_counts c = { .size = sizeof(c) };
	struct { /* of a program that was built with fewer members */
		size_t size;
		uint64_t appends, behind;
	} old = { offsetof(struct outbox_append_counts, events), 0, 42 };

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	outbox_append_counted(ob, &c);
	const struct outbox_append_counts from = c;
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 0, events, 1, NULL, NULL, &ev_fault), 0);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 0, events, 1, NULL, NULL, &ev_fault), 0);
	ck_assert_int_eq(outbox_append(ob, &ev_bob, 7, events, 1, NULL, NULL, &ev_fault),
			 OUTBOX_ECONFLICT);
	ck_assert_int_lt(outbox_append(ob, &ev_bob, 0, events + 1, 1, NULL, NULL, &ev_fault), 0);
	outbox_append_counted(ob, &c);
	ck_assert_uint_eq(c.appends - from.appends, 2);
	ck_assert_uint_eq(c.events - from.events, 1);
	ck_assert_uint_eq(c.repeats - from.repeats, 1);
	ck_assert_uint_eq(c.conflicts - from.conflicts, 1);
	ck_assert_uint_eq(c.failures - from.failures, 1);
	outbox_append_counted(ob, (void *)&old);
	ck_assert_uint_eq(old.appends, c.appends);
	ck_assert_uint_eq(old.behind, 42);
	ev_end_on(fx.store, true);
}
OB_TEST_END

OB_TEST(a_fault_in_the_last_event_leaves_nothing_of_the_first)
{
	const struct outbox_message events[] = { { .event_type = "a", .payload = "{}" },
						 { .event_type = "b", .payload = "{" } };

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_append(ob, &ev_ann, 0, events, 2, NULL, NULL, &ev_fault),
			 OUTBOX_EPAYLOADJSON);
	ck_assert_uint_eq(ev_fault.index, 1);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(look(&ev_ann).version, 0);
}
OB_TEST_END

OB_TEST(a_stream_that_ended_is_left_out_and_takes_nothing)
{
	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a b c");
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_stream_truncate(ob, &ev_ann, 5, &ev_fault), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_stream_truncate(ob, &ev_ann, 2, &ev_fault), 0);
	ev_end_on(fx.store, true);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }), "b:2 c:3");
	ev_append(&ev_ann, 3, "d");

	ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_ann, OUTBOX_STREAM_ARCHIVED, &ev_fault), 0);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(look(&ev_ann).end, OUTBOX_STREAM_ARCHIVED);
	ck_assert_int_eq(look(&ev_ann).version, 4);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }), "");
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann,
							      .flags = OUTBOX_WITH_ENDED }),
			 "a:1 b:2 c:3 d:4");
	ck_assert_int_eq(ev_try_append(&ev_ann, OUTBOX_ANY, "e", NULL, NULL), OUTBOX_EENDED);

	ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_ann, OUTBOX_STREAM_OPEN, &ev_fault), 0);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(look(&ev_ann).first_version, 1);
	ev_append(&ev_ann, 4, "e");

	ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_ann, OUTBOX_STREAM_TOMBSTONED, &ev_fault),
			 0);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_ann, OUTBOX_STREAM_TOMBSTONED, &ev_fault),
			 0);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_ann, OUTBOX_STREAM_OPEN, &ev_fault),
			 OUTBOX_EENDED);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(ev_try_append(&ev_ann, 5, "f", NULL, NULL), OUTBOX_EENDED);
	ev_append(&ev_bob, OUTBOX_NO_STREAM, "x");
}
OB_TEST_END

OB_TEST(recent_streams_come_with_their_last_event_newest_first)
{
	static const char *const wanted[] = { "", "c:ann", "c:ann x:bob" };
	const struct outbox_event *event;

	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a b");
	ev_append(&ev_bob, OUTBOX_NO_STREAM, "x");
	ev_append(&ev_ann, 2, "c");
	for (uint32_t limit = 0; limit < 3; limit++) {
		outbox_event_reader *reader = NULL;
		char text[256] = "";
		size_t used = 0;
		outbox *ob = ev_open_on(fx.store);

		ck_assert_int_eq(outbox_events_recent(ob, NULL, limit, &reader, &ev_fault), 0);
		while (outbox_events_next(reader, &event, &ev_fault) > 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%s",
						 used ? " " : "", event->event_type,
						 event->stream_id);
		outbox_events_close(reader);
		ev_end_on(fx.store, false);
		ck_assert_str_eq(text, wanted[limit]);
	}
}
OB_TEST_END

OB_TEST(relays_read_appended_events_in_order)
{
	ev_begin();
	ev_append(&ev_ann, OUTBOX_NO_STREAM, "a1 a2");
	ev_append(&ev_bob, OUTBOX_NO_STREAM, "b1");
	ev_append(&ev_ann, 2, "a3");
	store_hold_all(60000);
	store_expect_read("a1 a2 b1 a3");
}
OB_TEST_END

STORE_CASES(events, versions_are_contiguous_from_one,
	    another_version_is_a_conflict_and_nothing_is_written,
	    a_conflict_leaves_the_transaction_usable, a_rolled_back_append_leaves_no_version,
	    the_same_ids_at_the_same_place_return_the_first_result,
	    windows_are_after_exclusive_and_to_inclusive, chunks_of_any_size_give_the_same_events,
	    every_field_of_an_event_comes_back, an_event_does_not_name_another_stream,
	    many_events_are_one_append, a_handle_counts_appends_and_conflicts,
	    a_fault_in_the_last_event_leaves_nothing_of_the_first,
	    a_stream_that_ended_is_left_out_and_takes_nothing,
	    recent_streams_come_with_their_last_event_newest_first,
	    relays_read_appended_events_in_order)
