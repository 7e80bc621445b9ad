/* SPDX-License-Identifier: MIT */
/*
 * Contract: rows that commit after higher numbers were read are neither lost nor read twice. Where
 * only one transaction can write at a time there are none, and the cases end at once.
 */
#include "store_harness.h"

/* Begin with one partition, held, and a second writer; NULL: the store has one writer. */
static struct ob_store *begin_with_two(void)
{
	store_begin(1);
	store_hold_all(60000);
	return store_has(OB_STORE_CONCURRENT_WRITERS) ? store_open() : NULL;
}

OB_TEST(a_late_row_is_read_once)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1");
	store_put_all("a1");
	store_expect_read("a1");
	store_record();
	store_expect_read("");
	store_commit(slow);
	store_expect_view("s1", OB_VIEW_PENDING);
	store_expect_read("s1");
	ck_assert(!store_got("s1")->held);
	store_expect_read("");
	store_record();
	store_expect_view("s1", OB_VIEW_PUBLISHED);
	store_expect_read("");
}
OB_TEST_END

OB_TEST(a_late_row_is_read_after_a_takeover_too)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1");
	store_put_all("a1");
	store_expect_read("a1");
	store_record();
	store_advance_ms(60000);
	store_be("main", "default", 2);
	store_hold_all(60000);
	store_expect_read("");
	store_commit(slow);
	store_expect_read("s1");
}
OB_TEST_END

OB_TEST(late_comes_before_next_and_each_by_number)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_put_all("a1");
	store_open_with(slow, "s1 s2");
	store_put_all("a2");
	store_expect_read("a1 a2");
	store_push(slow, (struct outbox_message){ .event_type = "s3" }); /* above the position */
	store_commit(slow);
	store_put_all("a3");
	store_expect_read("s1 s2 s3 a3");
}
OB_TEST_END

OB_TEST(a_transaction_that_stays_open_stops_nobody)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1");
	for (int i = 0; i < 5; i++) {
		store_put_all("a1 a2");
		store_expect_read("a1 a2");
		store_record();
	}
	store_commit(slow);
	store_expect_read("s1");
	store_record();
	store_expect_read("");
}
OB_TEST_END

OB_TEST(a_transaction_that_rolls_back_leaves_nothing_to_read)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1 s2");
	store_put_all("a1");
	store_expect_read("a1");
	store_record();
	store_roll_back(slow);
	store_expect_read("");
	store_put_all("a2");
	store_expect_read("a2");
	store_record();
	store_expect_read("");
}
OB_TEST_END

OB_TEST(transactions_that_interleave_are_each_read_once)
{
	struct ob_store *one = begin_with_two();

	if (!one)
		return;
	struct ob_store *two = store_open(), *three = store_open();
	store_open_with(one, "a1");
	store_open_with(two, "b1");
	store_open_with(three, "c1");
	store_push(one, (struct outbox_message){ .event_type = "a2", .partition_key = "a" });
	store_put_all("z1");
	store_expect_read("z1");
	store_commit(two);
	store_expect_read("b1");
	store_record();
	store_push(one, (struct outbox_message){ .event_type = "a3", .partition_key = "a" });
	store_roll_back(three);
	store_expect_read("");
	store_commit(one);
	store_put_all("z2");
	store_expect_read("a1 a2 a3 z2");
	store_record();
	store_expect_read("");
}
OB_TEST_END

OB_TEST(a_late_transaction_larger_than_a_read_is_read_in_parts)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1 s2 s3 s4 s5");
	store_put_all("a1");
	store_expect_read("a1");
	store_record();
	store_commit(slow);
	store_put_all("a2 a3");
	ck_assert_str_eq(store_read_all(2), "s1 s2 s3 s4 s5 a2 a3");
	store_record();
	store_expect_read("");
	store_expect_view("s5", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(half_of_a_late_transaction_can_be_recorded)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1 s2 s3 s4 s5");
	store_put_all("a1");
	store_expect_read("a1");
	store_record();
	store_commit(slow);
	store_put_all("a2");
	store_read(2, 0);
	ck_assert_str_eq(store_labels(&fx.batch), "s1 s2");
	ck_assert(fx.done.more);
	store_record();
	store_expect_view("s2", OB_VIEW_PUBLISHED);
	store_expect_view("s3", OB_VIEW_PENDING);
	store_expect_view("a2", OB_VIEW_PENDING);
	/* Another goes on from there. */
	store_advance_ms(60000);
	store_be("main", "default", 2);
	store_hold_all(60000);
	ck_assert_str_eq(store_read_all(2), "s3 s4 s5 a2");
}
OB_TEST_END

OB_TEST(what_commits_while_a_large_one_is_read_in_parts_is_not_lost)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	struct ob_store *other = store_open();
	store_open_with(other, "o1");
	store_open_with(slow, "s1 s2 s3");
	store_push(other, (struct outbox_message){ .event_type = "o2" });
	store_put_all("a1");
	store_expect_read("a1");
	store_commit(slow);
	store_read(2, 0);
	ck_assert_str_eq(store_labels(&fx.batch), "s1 s2");
	store_record();
	store_commit(other); /* both below and above what was read of the large one */
	const char *rest = store_read_all(2);
	ck_assert_msg(strstr(rest, "s3") && strstr(rest, "o1") && strstr(rest, "o2") &&
			      strlen(rest) == strlen("s3 o1 o2"),
		      "%s", rest);
	store_record();
	store_expect_read("");
}
OB_TEST_END

OB_TEST(late_rows_that_do_not_fit_by_size_are_read_next)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "");
	for (int i = 0; i < 3; i++)
		store_push(slow, (struct outbox_message){
					 .event_type = (const char *[]){ "s1", "s2", "s3" }[i],
					 .payload = "\"12345678\"" });
	store_put_all("a1");
	store_expect_read("a1");
	store_commit(slow);
	store_read_with((struct ob_read){ .limit = 9, .max_bytes = 25 });
	ck_assert_str_eq(store_labels(&fx.batch), "s1 s2");
	ck_assert(fx.done.more);
	ck_assert_str_eq(store_read_all(9), "s3");
}
OB_TEST_END

OB_TEST(late_rows_of_many_partitions_are_each_read_once)
{
	store_begin(4);
	store_hold_all(60000);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_open_with(slow, "a1 b1 c1 d1 e1 f1 g1 h1");
	store_put_all("a2 b2 c2 d2");
	store_expect_read("a2 b2 c2 d2");
	store_record();
	store_commit(slow);
	store_put_all("a3 b3 c3 d3");
	const char *all = store_read_all(3);
	ck_assert_uint_eq(strlen(all), strlen("a1 b1 c1 d1 e1 f1 g1 h1 a3 b3 c3 d3"));
	for (const char *label = "a1b1c1d1e1f1g1h1a3b3c3d3"; *label; label += 2) {
		char one[3] = { label[0], label[1], '\0' };
		ck_assert_msg(strstr(all, one), "%s is not in %s", one, all);
	}
	ck_assert(strstr(all, "a1") < strstr(all, "a3"));
	store_record();
	store_expect_read("");
}
OB_TEST_END

OB_TEST(a_late_row_of_a_held_key_is_held)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "k1");
	store_put_all("k2");
	store_settle("k2", OB_OUTCOME_RETRY);
	store_commit(slow);
	store_expect_read("k1");
	ck_assert(store_got("k1")->held);
	/* Parked, it is the lowest of its queue: it becomes the head at once. */
	store_park_flagged();
	store_record();
	store_expect_read("k1");
	ck_assert(store_got("k1")->excepted);
	store_outcome("k1", OB_OUTCOME_PUBLISHED);
	store_record();
	store_advance_ms(5000);
	store_expect_read("k2");
}
OB_TEST_END

OB_TEST(a_late_row_with_an_exception_of_its_own_is_left_out)
{
	struct ob_store *slow = begin_with_two();

	if (!slow)
		return;
	store_open_with(slow, "s1 s2");
	store_put_all("a1");
	store_settle("a1", OB_OUTCOME_PUBLISHED);
	store_commit(slow);
	store_operate(OB_VERB_DISCARD, "s1", 1, 0);
	store_take_over();
	store_expect_read("s2");
	store_record();
	store_expect_view("s1", OB_VIEW_DISCARDED);
}
OB_TEST_END

OB_TEST(late_rows_are_found_from_every_place)
{
	struct ob_store *slow = begin_with_two();
	struct ob_read_part parts[STORE_PARTS_MAX];

	if (!slow)
		return;
	store_end();
	store_begin(2);
	store_hold_all(60000);
	slow = store_open();
	store_put_all("a1 b1");
	store_open_with(slow, "a2 b2");
	store_put_all("a3 b3");
	/* The partition of a has read on, that of b has not. */
	uint32_t of_a = store_row("a1")->partition;
	uint32_t of_b = store_row("b1")->partition;
	store_read(100, 0);
	store_commit(slow);
	for (size_t i = 0; i < fx.part_count; i++)
		parts[i] = (struct ob_read_part){ .partition = fx.parts[i].partition,
						  .from = fx.parts[i].partition == of_a
								  ? fx.parts[i].reading
								  : fx.parts[i].recorded };
	store_read_with((struct ob_read){
		.parts = parts, .part_count = fx.part_count, .limit = 100, .max_bytes = 9999 });
	if (of_a == of_b)
		ck_assert_str_eq(store_labels(&fx.batch), "a2 b2");
	else
		ck_assert_str_eq(store_labels(&fx.batch), "a2 b1 b2 b3");
	for (size_t i = 0; i < fx.part_count; i++)
		ob_progress_done(&parts[i].after);
}
OB_TEST_END

STORE_CASES(late, a_late_row_is_read_once, a_late_row_is_read_after_a_takeover_too,
	    late_comes_before_next_and_each_by_number, a_transaction_that_stays_open_stops_nobody,
	    a_transaction_that_rolls_back_leaves_nothing_to_read,
	    transactions_that_interleave_are_each_read_once,
	    a_late_transaction_larger_than_a_read_is_read_in_parts,
	    half_of_a_late_transaction_can_be_recorded,
	    what_commits_while_a_large_one_is_read_in_parts_is_not_lost,
	    late_rows_that_do_not_fit_by_size_are_read_next,
	    late_rows_of_many_partitions_are_each_read_once, a_late_row_of_a_held_key_is_held,
	    a_late_row_with_an_exception_of_its_own_is_left_out,
	    late_rows_are_found_from_every_place)
