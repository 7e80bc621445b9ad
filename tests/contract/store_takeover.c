/* SPDX-License-Identifier: MIT */
/* Contract: taking partitions over. */
#include "store_harness.h"

static struct ob_owned owned;

static void take_over(struct ob_store *store, uint8_t owner, uint64_t epoch)
{
	const struct ob_uuid id = store_uuid(owner);

	owned = (struct ob_owned){ .partition = 0, .epoch = epoch, .batch = 77 };
	store_ok(ob_store_take_over(store, "main", &id, &owned, 1, &fx.err));
	ob_progress_done(&owned.progress);
}

OB_TEST(a_takeover_copies_the_progress)
{
	store_begin(2);
	store_put_all("a1 b1 a2");
	store_hold_all(60000);
	store_read(2, 0);
	store_record();
	struct ob_progress was[STORE_PARTS_MAX] = { { 0 } };
	uint64_t batch = fx.parts[0].batch;
	for (size_t i = 0; i < fx.part_count; i++)
		ob_progress_set(&was[i], &fx.parts[i].recorded);
	store_advance_ms(60000);
	store_be("main", "default", 2);
	store_hold_all(60000);
	ck_assert_uint_eq(fx.parts[0].batch, batch + 1);
	for (size_t i = 0; i < fx.part_count; i++) {
		ck_assert(ob_progress_equal(&was[i], &fx.parts[i].recorded));
		ob_progress_done(&was[i]);
	}
	store_expect_read("a2");
}
OB_TEST_END

OB_TEST(the_first_row_of_the_journal_is_number_zero)
{
	store_begin(1);
	take_over(fx.store, 1, 1);
	ck_assert(!owned.lost);
	ck_assert_uint_eq(owned.batch, 1);
}
OB_TEST_END

OB_TEST(a_takeover_repeated_by_its_owner_is_the_same_row)
{
	store_begin(1);
	take_over(fx.store, 1, 1);
	uint64_t batch = owned.batch;
	size_t rows = store_journal_count();
	take_over(fx.store, 1, 1);
	ck_assert(!owned.lost);
	ck_assert_uint_eq(owned.batch, batch);
	ck_assert_uint_eq(store_journal_count(), rows);
	/* With a new lease it is another row, or what is under way from before would count. */
	take_over(fx.store, 1, 2);
	ck_assert_uint_eq(owned.batch, batch + 1);
}
OB_TEST_END

OB_TEST(a_lower_epoch_has_lost)
{
	store_begin(1);
	take_over(fx.store, 1, 5);
	char *before = store_dump();
	take_over(fx.store, 2, 4);
	ck_assert(owned.lost);
	take_over(fx.store, 1, 4);
	ck_assert(owned.lost);
	store_expect_same(before, store_dump());
	take_over(fx.store, 2, 6);
	ck_assert(!owned.lost);
}
OB_TEST_END

OB_TEST(the_one_before_can_record_nothing_more)
{
	enum ob_settled settled[STORE_PARTS_MAX];

	store_begin(1);
	store_put_all("a1 b1");
	store_hold_all(60000);
	store_read(100, 0);
	take_over(store_open(), 2, fx.parts[0].epoch + 1);
	store_outcome("a1", OB_OUTCOME_DEAD);
	store_try_record(settled);
	ck_assert_int_eq(settled[0], OB_SETTLE_LOST);
	/* Lanes of their own, which were not taken over, are recorded. */
	ck_assert_int_eq(settled[1], OB_SETTLED);
	ck_assert_int_eq(settled[2], OB_SETTLED);
	store_expect_view("a1", OB_VIEW_PENDING);
	ck_assert(!store_row("a1")->excepted);
	store_expect_view("b1", OB_VIEW_PENDING);
}
OB_TEST_END

OB_TEST(what_was_recorded_before_the_takeover_counts)
{
	store_begin(1);
	store_put_all("a1 b1 c1");
	store_hold_all(60000);
	store_read(2, 0);
	store_record();
	store_read(1, 0); /* sent, perhaps, and not recorded: a repeat, never a loss */
	store_advance_ms(60000);
	store_be("main", "default", 2);
	store_hold_all(60000);
	store_expect_read("c1");
}
OB_TEST_END

OB_TEST(partitions_are_taken_over_one_by_one)
{
	struct ob_owned two[2] = { { .partition = 0, .epoch = 3 }, { .partition = 1, .epoch = 1 } };
	const struct ob_uuid one = store_uuid(1);

	store_begin(2);
	two[1].epoch = 9;
	store_ok(ob_store_take_over(fx.store, "main", &one, &two[1], 1, &fx.err));
	ob_progress_done(&two[1].progress);
	two[1].epoch = 8;
	store_ok(ob_store_take_over(fx.store, "main", &one, two, 2, &fx.err));
	ck_assert(!two[0].lost);
	ck_assert(two[1].lost);
	ob_progress_done(&two[0].progress);
	store_ok(ob_store_take_over(fx.store, "main", &one, NULL, 0, &fx.err));
}
OB_TEST_END

STORE_CASES(takeover, a_takeover_copies_the_progress, the_first_row_of_the_journal_is_number_zero,
	    a_takeover_repeated_by_its_owner_is_the_same_row, a_lower_epoch_has_lost,
	    the_one_before_can_record_nothing_more, what_was_recorded_before_the_takeover_counts,
	    partitions_are_taken_over_one_by_one)
