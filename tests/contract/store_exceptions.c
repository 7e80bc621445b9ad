/* SPDX-License-Identifier: MIT */
/* Contract: which exceptions a read returns, and how they hold what follows in the log. */
#include "store_harness.h"

/* One partition, held; these rows are in the log and read. */
static void begin_with(const char *labels)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all(labels);
	store_read(1000, 0);
}

/* Read both again and compare; nothing of it is kept. */
static void expect(const char *labels)
{
	store_read(0, 1000);
	ck_assert_str_eq(store_labels(&fx.batch), labels);
}

OB_TEST(a_failed_message_is_read_when_it_is_due_with_its_state)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	expect("");
	store_advance_ms(4999);
	expect("");
	store_advance_ms(1);
	expect("a1");
	const struct ob_message *m = store_got("a1");
	ck_assert(m->excepted);
	ck_assert_int_eq(m->state, OB_STATE_FAILED);
	ck_assert_uint_eq(m->attempts, 1);
	ck_assert_str_eq(m->key.p, "a");
	ck_assert_str_eq(m->payload.p, "{}");
	ck_assert_uint_eq(m->partition, store_row("a1")->partition);
}
OB_TEST_END

OB_TEST(a_failed_message_holds_its_key_only)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_put_all("a2 b2");
	store_put_key("free", NULL);
	store_expect_read("a2 b2 free");
	ck_assert(store_got("a2")->held);
	ck_assert(!store_got("b2")->held);
	ck_assert(!store_got("free")->held);
}
OB_TEST_END

OB_TEST(a_message_without_a_key_holds_nothing_and_is_not_held)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_key("n1", NULL);
	store_settle("n1", OB_OUTCOME_RETRY);
	store_put_key("n2", NULL);
	store_expect_read("n2");
	ck_assert(!store_got("n2")->held);
}
OB_TEST_END

OB_TEST(with_partition_order_a_failed_message_holds_its_partition)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.ordering = OB_ORDER_PARTITION;
	store_put_key("n1", NULL);
	store_settle("n1", OB_OUTCOME_RETRY);
	store_put_all("a1 b1");
	store_put_key("n2", NULL);
	store_expect_read("a1 b1 n2");
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(fx.batch.messages[i].held);
	store_park_flagged();
	store_record();
	store_advance_ms(5000);
	store_expect_read("n1 a1 b1 n2");
}
OB_TEST_END

OB_TEST(without_order_a_failed_message_holds_nothing)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.ordering = OB_ORDER_NONE;
	store_put_all("a1");
	store_settle("a1", OB_OUTCOME_RETRY);
	store_put_all("a2");
	store_expect_read("a2");
	ck_assert(!store_got("a2")->held);
}
OB_TEST_END

OB_TEST(a_key_is_held_in_its_own_lane_and_partition_only)
{
	begin_with("a1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_put((struct outbox_message){
		.event_type = "now", .partition_key = "a", .priority = 1 });
	store_expect_read("now");
	ck_assert(!store_got("now")->held);
}
OB_TEST_END

OB_TEST(a_head_is_read_with_what_follows_it)
{
	begin_with("a1 b1 a2 b2 a3");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("a3", OB_OUTCOME_PARK);
	store_record();
	expect("");
	store_advance_ms(5000);
	expect("a1 a2 a3");
	ck_assert_int_eq(store_got("a2")->state, OB_STATE_WAITING);
	ck_assert_uint_eq(store_got("a2")->attempts, 0);
}
OB_TEST_END

OB_TEST(queues_stay_together_each_in_order)
{
	begin_with("a1 b1 a2 b2 a3 b3");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("b1", OB_OUTCOME_RETRY);
	for (int i = 0; i < 4; i++)
		store_outcome((const char *[]){ "a2", "b2", "a3", "b3" }[i], OB_OUTCOME_PARK);
	store_record();
	store_advance_ms(5000);
	store_read(0, 1000);
	const char *got = store_labels(&fx.batch);
	ck_assert_msg(strcmp(got, "a1 a2 a3 b1 b2 b3") == 0 ||
			      strcmp(got, "b1 b2 b3 a1 a2 a3") == 0,
		      "%s", got);
}
OB_TEST_END

OB_TEST(only_a_head_that_is_due_lets_its_queue_be_read)
{
	begin_with("a1 a2 a3");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("a3", OB_OUTCOME_PARK);
	store_record();
	store_advance_ms(5000);
	expect("a1 a2 a3");
	store_outcome("a1", OB_OUTCOME_RETRY); /* again: it is not due, and holds the others */
	store_record();
	expect("");
	store_advance_ms(5000);
	expect("a1 a2 a3");
}
OB_TEST_END

OB_TEST(when_a_head_goes_the_next_is_the_head)
{
	begin_with("a1 a2 a3");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("a3", OB_OUTCOME_PARK);
	store_record();
	store_advance_ms(5000);
	expect("a1 a2 a3");
	store_outcome("a1", OB_OUTCOME_PUBLISHED);
	store_record();
	expect("a2 a3");
	store_outcome("a2", OB_OUTCOME_RETRY);
	store_record();
	expect("");
	store_expect_view("a3", OB_VIEW_PARKED);
	store_advance_ms(5000);
	expect("a2 a3");
	store_outcome("a2", OB_OUTCOME_DEAD);
	store_record();
	expect("a3");
	store_outcome("a3", OB_OUTCOME_PUBLISHED);
	store_record();
	expect("");
	store_put_all("a4");
	store_expect_read("a4");
	ck_assert(!store_got("a4")->held);
}
OB_TEST_END

OB_TEST(a_queue_that_empties_in_the_settle_that_parks_into_it_goes_on)
{
	begin_with("a1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_put_all("a2");
	store_expect_read("a1 a2");
	ck_assert(store_got("a2")->held);
	store_outcome("a1", OB_OUTCOME_PUBLISHED);
	store_outcome("a2", OB_OUTCOME_PARK); /* its head goes at the same time */
	store_record();
	expect("a2");
}
OB_TEST_END

OB_TEST(a_queue_goes_on_when_the_ordering_is_another_one)
{
	static const enum ob_ordering orders[] = { OB_ORDER_KEY, OB_ORDER_PARTITION,
						   OB_ORDER_NONE };

	for (int from = 0; from < 2; from++) {
		for (int to = 0; to < 3; to++) {
			begin_with("a1 a2 a3");
			fx.decide.ordering = orders[from];
			store_outcome("a1", OB_OUTCOME_RETRY);
			store_outcome("a2", OB_OUTCOME_PARK);
			store_outcome("a3", OB_OUTCOME_PARK);
			store_record();
			fx.decide.ordering = orders[to];
			store_advance_ms(5000);
			expect("a1 a2 a3");
			ck_assert(store_got("a2")->queue.p);
			store_outcome("a1", OB_OUTCOME_PUBLISHED);
			store_record();
			expect("a2 a3");
			store_outcome("a2", OB_OUTCOME_RETRY);
			store_record();
			expect("");
			store_advance_ms(5000);
			expect("a2 a3");
			store_outcome("a2", OB_OUTCOME_DEAD);
			store_record();
			expect("a3");
			store_end();
		}
	}
}
OB_TEST_END

OB_TEST(a_dead_message_lets_its_key_go_on_unless_it_holds)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_DEAD);
	fx.decide.hold_dead = true;
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_record();
	store_put_all("a2 b2");
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 365);
	store_expect_read("a2 b2");
	ck_assert(!store_got("a2")->held);
	ck_assert(store_got("b2")->held);
	store_park_flagged();
	store_record();
	expect("");
	/* What follows it was parked, and that makes only a head due that waits. */
	ck_assert_int_eq(store_row("b1")->due_us, 0);
}
OB_TEST_END

/* ---- delayed --------------------------------------------------------- */

static void put_delayed(const char *label, const char *key, int64_t delay_ms)
{
	store_put((struct outbox_message){
		.event_type = label, .partition_key = key, .delay_ms = (uint64_t)delay_ms });
}

OB_TEST(a_message_that_is_not_due_says_so)
{
	store_begin(1);
	store_hold_all(60000);
	put_delayed("a1", "a", 1000);
	store_put_all("b1");
	store_expect_read("a1 b1");
	ck_assert(store_got("a1")->delayed);
	ck_assert_int_eq(store_got("a1")->available_at_us, fx.start_us + 1000000);
	ck_assert(!store_got("b1")->delayed);
	store_forget();
	store_advance_ms(999);
	store_read(9, 0);
	ck_assert(store_got("a1")->delayed);
	store_forget();
	store_advance_ms(1);
	store_read(9, 0);
	ck_assert(!store_got("a1")->delayed);
}
OB_TEST_END

OB_TEST(a_delayed_message_is_read_at_its_exact_instant)
{
	store_begin(1);
	store_hold_all(60000);
	put_delayed("a1", "a", 1000);
	store_read(9, 0);
	store_park_flagged();
	store_record();
	expect("");
	store_advance_ms(999);
	expect("");
	store_advance_ms(1);
	expect("a1");
	ck_assert_int_eq(store_got("a1")->state, OB_STATE_DELAYED);
	ck_assert_uint_eq(store_got("a1")->attempts, 0);
	store_outcome("a1", OB_OUTCOME_PUBLISHED);
	store_record();
	expect("");
}
OB_TEST_END

OB_TEST(a_delayed_message_holds_its_key_where_that_is_wanted)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.hold_delayed = true;
	put_delayed("a1", "a", 1000);
	store_read(9, 0);
	store_park_flagged();
	store_record();
	store_put_all("a2 b1");
	store_expect_read("a2 b1");
	ck_assert(store_got("a2")->held);
	ck_assert(!store_got("b1")->held);
	store_park_flagged();
	store_record();
	expect("");
	store_advance_ms(1000);
	expect("a1 a2");
}
OB_TEST_END

OB_TEST(a_delayed_message_that_holds_nothing_lets_its_key_go_on)
{
	store_begin(1);
	store_hold_all(60000);
	put_delayed("a1", "a", 1000);
	store_read(9, 0);
	store_park_flagged();
	store_record();
	store_put_all("a2");
	store_expect_read("a2");
	ck_assert(!store_got("a2")->held);
	store_record();
	store_advance_ms(1000);
	expect("a1");
}
OB_TEST_END

OB_TEST(a_delayed_message_in_a_queue_stops_what_follows_until_it_is_due)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.hold_delayed = true;
	store_put_all("a1");
	put_delayed("a2", "a", 9000);
	store_put_all("a3");
	store_read(9, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_DELAY);
	store_outcome("a3", OB_OUTCOME_PARK);
	store_record();
	store_advance_ms(5000);
	expect("a1");
	store_advance_ms(4000);
	expect("a1 a2 a3");
}
OB_TEST_END

/* ---- limits ---------------------------------------------------------- */

OB_TEST(exceptions_have_a_limit_of_their_own)
{
	begin_with("a1 a2 b1 b2 c1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_RETRY);
	store_outcome("b2", OB_OUTCOME_PARK);
	store_outcome("c1", OB_OUTCOME_RETRY);
	store_record();
	store_put_all("x1 y1");
	store_advance_ms(5000);
	store_read(1, 3);
	ck_assert_uint_eq(fx.batch.count, 4);
	ck_assert(fx.done.more_exceptions);
	ck_assert(fx.done.more);
	uint32_t excepted = 0;
	for (uint32_t i = 0; i < 4; i++)
		excepted += fx.batch.messages[i].excepted;
	ck_assert_uint_eq(excepted, 3);
	ck_assert_str_eq(fx.batch.messages[3].event_type.p, "x1");
	store_read(0, 5);
	ck_assert_uint_eq(fx.batch.count, 5);
	store_read(9, 0);
	ck_assert_str_eq(store_labels(&fx.batch), "y1");
	ck_assert(!fx.done.more_exceptions);
}
OB_TEST_END

OB_TEST(a_queue_longer_than_the_limit_is_read_from_its_head)
{
	begin_with("a1 a2 a3 a4");
	store_outcome("a1", OB_OUTCOME_RETRY);
	for (int i = 0; i < 3; i++)
		store_outcome((const char *[]){ "a2", "a3", "a4" }[i], OB_OUTCOME_PARK);
	store_record();
	store_advance_ms(5000);
	store_read(0, 2);
	ck_assert_str_eq(store_labels(&fx.batch), "a1 a2");
	ck_assert(fx.done.more_exceptions);
}
OB_TEST_END

OB_TEST(exceptions_count_towards_max_bytes)
{
	store_begin(1);
	store_hold_all(60000);
	store_put((struct outbox_message){
		.event_type = "a1", .partition_key = "a", .payload = "\"12345678\"" });
	store_settle("a1", OB_OUTCOME_RETRY);
	store_put((struct outbox_message){
		.event_type = "b1", .partition_key = "b", .payload = "\"12345678\"" });
	store_advance_ms(5000);
	store_read_with((struct ob_read){ .limit = 9, .exception_limit = 9, .max_bytes = 19 });
	ck_assert_str_eq(store_labels(&fx.batch), "a1");
	ck_assert(fx.done.more);
	store_read_with((struct ob_read){ .limit = 9, .exception_limit = 9, .max_bytes = 20 });
	ck_assert_str_eq(store_labels(&fx.batch), "a1 b1");
}
OB_TEST_END

/* ---- those in memory ------------------------------------------------- */

static void expect_without(const char *excluded, const char *labels)
{
	const int64_t exclude[] = { store_row(excluded)->seq };

	store_read_with((struct ob_read){
		.exception_limit = 99, .max_bytes = 9999, .exclude = exclude, .exclude_count = 1 });
	ck_assert_str_eq(store_labels(&fx.batch), labels);
}

OB_TEST(what_is_in_memory_is_left_out_with_what_follows_it)
{
	begin_with("a1 a2 a3 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("a3", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	expect_without("a1", "b1");
	expect_without("a2", "a1 b1");
	expect_without("a3", "a1 a2 b1");
	expect_without("b1", "a1 a2 a3");
}
OB_TEST_END

OB_TEST(exceptions_without_a_queue_are_excluded_one_by_one)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.ordering = OB_ORDER_NONE;
	store_put_all("a1 a2");
	store_read(9, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	expect_without("a1", "a2");
	expect_without("a2", "a1");
}
OB_TEST_END

OB_TEST(only_exceptions_of_the_given_partitions_are_read)
{
	store_begin(4);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1 f1");
	store_read(99, 0);
	for (int i = 0; i < 6; i++)
		store_outcome((const char *[]){ "a1", "b1", "c1", "d1", "e1", "f1" }[i],
			      OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	uint32_t seen = 0;
	for (size_t p = 0; p < fx.part_count; p++) {
		struct ob_read_part part = { .partition = fx.parts[p].partition,
					     .from = fx.parts[p].recorded };

		store_read_with((struct ob_read){
			.parts = &part, .part_count = 1, .exception_limit = 9, .max_bytes = 999 });
		ob_progress_done(&part.after);
		for (uint32_t i = 0; i < fx.batch.count; i++)
			ck_assert_uint_eq(fx.batch.messages[i].partition, part.partition);
		seen += fx.batch.count;
	}
	ck_assert_uint_eq(seen, 6);
}
OB_TEST_END

OB_TEST(a_spilled_message_is_an_exception_that_is_due_at_once)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_SPILL);
	store_record();
	expect("a1");
	ck_assert_int_eq(store_got("a1")->state, OB_STATE_WAITING);
	ck_assert_uint_eq(store_got("a1")->attempts, 0);
	store_expect_view("a1", OB_VIEW_PENDING);
	store_outcome("a1", OB_OUTCOME_PUBLISHED);
	store_record();
	store_expect_view("a1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(rows_of_the_log_that_have_an_exception_are_left_out)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 b1 c1");
	store_operate(OB_VERB_SKIP, "b1", 1, 0);
	store_take_over();
	store_expect_read("a1 c1");
	store_record();
	store_expect_view("b1", OB_VIEW_DEAD);
	store_expect_read("");
}
OB_TEST_END

STORE_CASES(exceptions, a_failed_message_is_read_when_it_is_due_with_its_state,
	    a_failed_message_holds_its_key_only,
	    a_message_without_a_key_holds_nothing_and_is_not_held,
	    with_partition_order_a_failed_message_holds_its_partition,
	    without_order_a_failed_message_holds_nothing,
	    a_key_is_held_in_its_own_lane_and_partition_only, a_head_is_read_with_what_follows_it,
	    queues_stay_together_each_in_order, only_a_head_that_is_due_lets_its_queue_be_read,
	    when_a_head_goes_the_next_is_the_head,
	    a_queue_that_empties_in_the_settle_that_parks_into_it_goes_on,
	    a_queue_goes_on_when_the_ordering_is_another_one,
	    a_dead_message_lets_its_key_go_on_unless_it_holds, a_message_that_is_not_due_says_so,
	    a_delayed_message_is_read_at_its_exact_instant,
	    a_delayed_message_holds_its_key_where_that_is_wanted,
	    a_delayed_message_that_holds_nothing_lets_its_key_go_on,
	    a_delayed_message_in_a_queue_stops_what_follows_until_it_is_due,
	    exceptions_have_a_limit_of_their_own,
	    a_queue_longer_than_the_limit_is_read_from_its_head, exceptions_count_towards_max_bytes,
	    what_is_in_memory_is_left_out_with_what_follows_it,
	    exceptions_without_a_queue_are_excluded_one_by_one,
	    only_exceptions_of_the_given_partitions_are_read,
	    a_spilled_message_is_an_exception_that_is_due_at_once,
	    rows_of_the_log_that_have_an_exception_are_left_out)
