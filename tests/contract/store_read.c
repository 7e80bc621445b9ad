/* SPDX-License-Identifier: MIT */
/* Contract: what a read returns of the log, in which order, within which limits. */
#include "store_harness.h"

/* One read of the log alone, from where the worker is recorded. */
static void expect(struct ob_read read, const char *labels)
{
	store_forget();
	store_read_with(read);
	ck_assert_str_eq(store_labels(&fx.batch), labels);
}

static int64_t pos(void)
{
	return fx.parts[0].reading.pos;
}

OB_TEST(an_empty_log_is_success_with_an_empty_batch)
{
	store_begin(1);
	store_hold_all(60000);
	store_expect_read("");
	ck_assert_uint_eq(fx.batch.bytes, 0);
	ck_assert(!fx.done.more);
	ck_assert_int_eq(pos(), fx.parts[0].recorded.pos);
}
OB_TEST_END

OB_TEST(a_read_writes_nothing_and_returns_the_same_again)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 a2");
	char *before = store_dump();
	store_expect_read("a1 a2");
	store_forget();
	store_expect_read("a1 a2");
	store_expect_same(before, store_dump());
}
OB_TEST_END

OB_TEST(a_read_goes_on_from_what_was_read_before_it_is_recorded)
{
	store_begin(2);
	store_hold_all(60000);
	store_put_all("a1 b1");
	store_expect_read("a1 b1");
	store_expect_read("");
	store_put_all("a2 b2");
	store_expect_read("a2 b2");
}
OB_TEST_END

OB_TEST(a_message_has_its_fields)
{
	static const char headers[] = "{\"h\": 1}";

	store_begin(4);
	store_hold_all(60000);
	store_put((struct outbox_message){
		.aggregate_type = "order",
		.aggregate_id = "1042",
		.event_type = "placed",
		.payload = "{ \"a\" :1}",
		.headers = headers,
		.id = "0195a1b2-0000-7000-8000-0000000000ff",
		.correlation_id = "corr",
		.causation_id = "caus",
		.sequence_number = 7,
		.occurred_at_us = 1234567,
		.revision = 3,
		.priority = -5,
	});
	store_read(10, 10);
	const struct ob_message *m = store_got("placed");
	char id[OB_UUID_TEXT_SIZE];
	ob_uuid_format(&m->id, id);
	ck_assert_str_eq(id, "0195a1b2-0000-7000-8000-0000000000ff");
	ck_assert_str_eq(m->aggregate_type.p, "order");
	ck_assert_str_eq(m->aggregate_id.p, "1042");
	ck_assert(ob_str_eq(m->payload, OB_STR("{ \"a\" :1}")));
	ck_assert(ob_str_eq(m->headers, ob_str(headers)));
	ck_assert_str_eq(m->correlation_id.p, "corr");
	ck_assert_str_eq(m->causation_id.p, "caus");
	ck_assert_str_eq(m->key.p, "order:1042");
	ck_assert_str_eq(m->target.p, "default");
	ck_assert_int_eq(m->sequence_number, 7);
	ck_assert_int_eq(m->occurred_at_us, 1234567);
	ck_assert_int_eq(m->created_at_us, fx.start_us);
	ck_assert_int_eq(m->revision, 3);
	ck_assert_int_eq(m->priority, -5);
	ck_assert_uint_ge(m->partition, 8);
	ck_assert_uint_lt(m->partition, 12);
	ck_assert_uint_eq(m->attempts, 0);
	ck_assert(!m->excepted);
	ck_assert(!m->held);
	ck_assert(!m->delayed);
	ck_assert_uint_eq(fx.batch.bytes, m->payload.n + m->headers.n);
}
OB_TEST_END

OB_TEST(absent_fields_stay_absent)
{
	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "t", .flags = OUTBOX_TOMBSTONE });
	store_read(10, 0);
	const struct ob_message *m = store_got("t");
	ck_assert_ptr_null(m->payload.p);
	ck_assert_ptr_null(m->headers.p);
	ck_assert_ptr_null(m->aggregate_id.p);
	ck_assert_ptr_null(m->key.p);
	ck_assert_ptr_null(m->correlation_id.p);
	ck_assert_int_eq(m->sequence_number, 0);
	ck_assert_int_eq(m->revision, 1);
}
OB_TEST_END

OB_TEST(only_rows_of_the_target_are_read)
{
	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "mine" });
	store_put((struct outbox_message){ .event_type = "other", .target = "audit" });
	store_put((struct outbox_message){ .event_type = "also" });
	expect((struct ob_read){ .limit = 9, .max_bytes = 999 }, "mine also");
	/* Progress is over all of them: a target that is quiet does not fall behind. */
	store_put((struct outbox_message){ .event_type = "more", .target = "audit" });
	int64_t was = pos();
	store_read(9, 0);
	ck_assert_uint_eq(fx.batch.count, 0);
	ck_assert_int_gt(pos(), was);
}
OB_TEST_END

OB_TEST(no_partition_is_nothing_never_everything)
{
	struct ob_read_part none;

	store_begin(1);
	store_put_all("a1");
	store_hold_all(60000);
	store_read(9, 0);
	ck_assert_uint_eq(fx.batch.count, 1);
	store_read_with((struct ob_read){ .parts = &none, .limit = 9, .max_bytes = 999 });
	ck_assert_uint_eq(fx.batch.count, 0);
}
OB_TEST_END

OB_TEST(only_the_given_partitions_are_read)
{
	char label[16];
	uint32_t seen = 0;

	store_begin(4);
	store_hold_all(60000);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_put_key(label, label);
	}
	for (uint32_t p = 0; p < 4; p++) {
		struct ob_read_part part = { .partition = p, .from = fx.parts[p].recorded };

		store_read_with((struct ob_read){
			.parts = &part, .part_count = 1, .limit = 100, .max_bytes = 1 << 20 });
		ob_progress_done(&part.after);
		for (uint32_t i = 0; i < fx.batch.count; i++) {
			ck_assert_uint_eq(fx.batch.messages[i].partition, p);
			if (i > 0)
				ck_assert_int_gt(fx.batch.messages[i].seq,
						 fx.batch.messages[i - 1].seq);
		}
		seen += fx.batch.count;
	}
	ck_assert_uint_eq(seen, 40);
}
OB_TEST_END

OB_TEST(all_partitions_are_read_in_the_order_of_the_log)
{
	store_begin(4);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1 a2 b2 f1 g1 h1 a3");
	store_expect_read("a1 b1 c1 d1 e1 a2 b2 f1 g1 h1 a3");
}
OB_TEST_END

OB_TEST(a_partition_goes_on_from_its_own_place)
{
	struct ob_read_part parts[STORE_PARTS_MAX];
	uint32_t late = UINT32_MAX;

	store_begin(4);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1 f1 g1 h1");
	uint32_t of_b = store_row("b1")->partition;
	store_read(1000, 0);
	store_put_all("b2 c2");
	for (size_t i = 0; i < fx.part_count; i++) {
		bool behind = fx.parts[i].partition == of_b;

		parts[i] = (struct ob_read_part){ .partition = fx.parts[i].partition,
						  .from = behind ? fx.parts[i].recorded
								 : fx.parts[i].reading };
		late = behind ? (uint32_t)i : late;
	}
	store_read_with((struct ob_read){
		.parts = parts, .part_count = fx.part_count, .limit = 1000, .max_bytes = 1 << 20 });
	/* Everything of b's partition, and only what is new of the others. */
	for (uint32_t i = 0; i < fx.batch.count; i++) {
		const struct ob_message *m = &fx.batch.messages[i];

		ck_assert(m->partition == of_b || m->event_type.p[1] == '2');
		ck_assert(i == 0 || m->seq > fx.batch.messages[i - 1].seq);
	}
	(void)store_got("b1");
	(void)store_got("b2");
	(void)store_got("c2");
	/* Afterwards all are at one place. */
	for (size_t i = 0; i < fx.part_count; i++) {
		ck_assert_int_eq(parts[i].after.pos, parts[0].after.pos);
		ck_assert(ob_seen_equal(parts[i].after.seen, parts[0].after.seen));
	}
	for (size_t i = 0; i < fx.part_count; i++)
		ob_progress_done(&parts[i].after);
	ck_assert_uint_ne(late, UINT32_MAX);
}
OB_TEST_END

/* ---- limits ---------------------------------------------------------- */

OB_TEST(the_limit_is_respected_and_says_whether_there_is_more)
{
	store_begin(2);
	store_hold_all(60000);
	store_put_all("a1 b1 c1");
	expect((struct ob_read){ .limit = 1, .max_bytes = 999 }, "a1");
	ck_assert(fx.done.more);
	expect((struct ob_read){ .limit = 2, .max_bytes = 999 }, "a1 b1");
	ck_assert(fx.done.more);
	expect((struct ob_read){ .limit = 4, .max_bytes = 999 }, "a1 b1 c1");
	ck_assert(!fx.done.more);
	store_forget();
	ck_assert_str_eq(store_read_all(1), "a1 b1 c1");
	store_forget();
	ck_assert_str_eq(store_read_all(2), "a1 b1 c1");
}
OB_TEST_END

OB_TEST(a_limit_of_zero_reads_nothing_of_the_log_and_moves_nothing)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 b1");
	expect((struct ob_read){ .limit = 0, .max_bytes = 999 }, "");
	expect((struct ob_read){ .limit = 0, .exception_limit = 9, .max_bytes = 999 }, "");
	ck_assert_int_eq(pos(), fx.parts[0].recorded.pos);
	store_expect_read("a1 b1");
}
OB_TEST_END

OB_TEST(max_bytes_ends_the_batch_but_one_message_always_fits)
{
	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "a", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "b", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "c", .payload = "1" });
	expect((struct ob_read){ .limit = 9, .max_bytes = 0 }, "a");
	ck_assert(fx.done.more);
	expect((struct ob_read){ .limit = 9, .max_bytes = 10 }, "a");
	expect((struct ob_read){ .limit = 9, .max_bytes = 19 }, "a");
	expect((struct ob_read){ .limit = 9, .max_bytes = 20 }, "a b");
	expect((struct ob_read){ .limit = 9, .max_bytes = 21 }, "a b c");
	ck_assert(!fx.done.more);
	/* What did not fit comes next. */
	expect((struct ob_read){ .limit = 9, .max_bytes = 19 }, "a");
	store_read(9, 0);
	ck_assert_str_eq(store_labels(&fx.batch), "b c");
}
OB_TEST_END

/* A store may fetch large bodies by themselves: with each limit another one counts as large. */
OB_TEST(a_message_is_read_whole_whatever_the_limit_of_bytes)
{
	static const char payload[] = "\"12345678\"", headers[] = "{\"h\":1}";

	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){
		.event_type = "a", .payload = payload, .headers = headers });
	for (size_t max = 0; max < 48; max++) {
		store_forget();
		store_read_with((struct ob_read){ .limit = 1, .max_bytes = max });
		ck_assert(ob_str_eq(store_got("a")->payload, ob_str(payload)));
		ck_assert(ob_str_eq(store_got("a")->headers, ob_str(headers)));
	}
}
OB_TEST_END

OB_TEST(headers_count_towards_max_bytes)
{
	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "a", .payload = "1", .headers = "{}" });
	store_put((struct outbox_message){ .event_type = "b", .payload = "2", .headers = "{}" });
	expect((struct ob_read){ .limit = 9, .max_bytes = 5 }, "a");
	expect((struct ob_read){ .limit = 9, .max_bytes = 6 }, "a b");
}
OB_TEST_END

OB_TEST(nothing_overtakes_a_message_that_does_not_fit)
{
	store_begin(2);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "a", .payload = "1" });
	store_put((struct outbox_message){ .event_type = "big", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "c", .payload = "1" });
	expect((struct ob_read){ .limit = 9, .max_bytes = 5 }, "a");
	store_read_with((struct ob_read){ .limit = 9, .max_bytes = 5 });
	ck_assert_str_eq(store_labels(&fx.batch), "big");
}
OB_TEST_END

/* ---- progress -------------------------------------------------------- */

OB_TEST(a_read_that_finds_nothing_moves_to_the_end_of_the_log)
{
	store_begin(4);
	store_hold_all(60000);
	store_put_all("a1 a2 a3");
	uint32_t of_a = store_row("a1")->partition;
	int64_t last = store_row("a3")->seq;
	struct ob_read_part part = { .partition = (of_a + 1) % 4 };
	ob_progress_set(&part.from, &fx.parts[part.partition].recorded);
	store_read_with(
		(struct ob_read){ .parts = &part, .part_count = 1, .limit = 10, .max_bytes = 999 });
	ck_assert_uint_eq(fx.batch.count, 0);
	ck_assert(part.reached);
	ck_assert_int_eq(part.after.pos, last);
	ob_progress_done(&part.from);
	ob_progress_done(&part.after);
}
OB_TEST_END

OB_TEST(a_full_read_moves_to_its_last_message)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 b1 c1");
	store_read(2, 0);
	ck_assert_int_ge(pos(), store_row("b1")->seq);
	ck_assert_int_lt(pos(), store_row("c1")->seq);
}
OB_TEST_END

OB_TEST(nothing_is_read_above_the_end_and_progress_does_not_pass_it)
{
	store_begin(2);
	store_hold_all(60000);
	store_put_all("a1 b1 a2 b2");
	int64_t end = store_row("b1")->seq;
	expect((struct ob_read){ .limit = 9, .max_bytes = 999, .end_seq = end }, "a1 b1");
	ck_assert(!fx.done.more);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_le(fx.parts[i].reading.pos, end);
	store_read_with((struct ob_read){ .limit = 9, .max_bytes = 999, .end_seq = end });
	ck_assert_uint_eq(fx.batch.count, 0);
	ck_assert(!fx.done.more);
	expect((struct ob_read){ .limit = 1, .max_bytes = 999, .end_seq = end }, "a1");
	ck_assert(fx.done.more);
	store_forget();
	store_expect_read("a1 b1 a2 b2");
}
OB_TEST_END

OB_TEST(numbers_that_were_rolled_back_hold_nothing)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1");
	store_open_with(fx.store, "a2 a3 a4");
	store_roll_back(fx.store);
	store_put_all("a5");
	store_expect_read("a1 a5");
	store_record();
	store_expect_view("a5", OB_VIEW_PUBLISHED);
	store_put_all("a6");
	store_expect_read("a6");
}
OB_TEST_END

/* ---- lanes ----------------------------------------------------------- */

OB_TEST(a_priority_has_partitions_of_its_own)
{
	store_begin(4);
	store_hold_all(60000);
	store_put((struct outbox_message){ .event_type = "a", .partition_key = "k" });
	store_put(
		(struct outbox_message){ .event_type = "b", .partition_key = "k", .priority = 5 });
	store_put(
		(struct outbox_message){ .event_type = "c", .partition_key = "k", .priority = -1 });
	store_put((struct outbox_message){
		.event_type = "d", .partition_key = "k", .priority = 32767 });
	store_put((struct outbox_message){
		.event_type = "e", .partition_key = "k", .priority = -32768 });
	store_expect_read("a b c d e");
	uint32_t hash = store_got("a")->partition;
	ck_assert_uint_lt(hash, 4);
	ck_assert_uint_eq(store_got("b")->partition, 4 + hash);
	ck_assert_uint_eq(store_got("d")->partition, 4 + hash);
	ck_assert_uint_eq(store_got("c")->partition, 8 + hash);
	ck_assert_uint_eq(store_got("e")->partition, 8 + hash);
}
OB_TEST_END

OB_TEST(a_lane_can_be_read_alone)
{
	struct ob_read_part part = { .partition = 1 };

	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1");
	store_put((struct outbox_message){ .event_type = "now", .priority = 1 });
	ob_progress_set(&part.from, &fx.parts[1].recorded);
	store_read_with(
		(struct ob_read){ .parts = &part, .part_count = 1, .limit = 10, .max_bytes = 999 });
	ck_assert_str_eq(store_labels(&fx.batch), "now");
	ob_progress_done(&part.from);
	ob_progress_done(&part.after);
}
OB_TEST_END

STORE_CASES(read, an_empty_log_is_success_with_an_empty_batch,
	    a_read_writes_nothing_and_returns_the_same_again,
	    a_read_goes_on_from_what_was_read_before_it_is_recorded, a_message_has_its_fields,
	    absent_fields_stay_absent, only_rows_of_the_target_are_read,
	    no_partition_is_nothing_never_everything, only_the_given_partitions_are_read,
	    all_partitions_are_read_in_the_order_of_the_log, a_partition_goes_on_from_its_own_place,
	    the_limit_is_respected_and_says_whether_there_is_more,
	    a_limit_of_zero_reads_nothing_of_the_log_and_moves_nothing,
	    max_bytes_ends_the_batch_but_one_message_always_fits,
	    a_message_is_read_whole_whatever_the_limit_of_bytes, headers_count_towards_max_bytes,
	    nothing_overtakes_a_message_that_does_not_fit,
	    a_read_that_finds_nothing_moves_to_the_end_of_the_log,
	    a_full_read_moves_to_its_last_message,
	    nothing_is_read_above_the_end_and_progress_does_not_pass_it,
	    numbers_that_were_rolled_back_hold_nothing, a_priority_has_partitions_of_its_own,
	    a_lane_can_be_read_alone)
