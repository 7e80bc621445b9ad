/* SPDX-License-Identifier: MIT */
/* Contract: who may record: repeats, collisions with operators, and owners of before. */
#include "store_harness.h"

static enum ob_settled settled[STORE_PARTS_MAX];

/* One partition, held; these rows are in the log and read. */
static void begin_with(const char *labels)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all(labels);
	store_read(1000, 0);
}

/* Another worker takes everything over, on a connection of its own. */
static void lose_all(void)
{
	struct ob_store *mine = fx.store;
	struct ob_owned owned[STORE_PARTS_MAX] = { 0 };
	const struct ob_uuid other = store_uuid(9);

	for (size_t i = 0; i < fx.part_count; i++)
		owned[i] = (struct ob_owned){ .partition = fx.parts[i].partition,
					      .epoch = fx.parts[i].epoch + 1 };
	store_ok(ob_store_take_over(store_open(), "main", &other, owned, fx.part_count, &fx.err));
	for (size_t i = 0; i < fx.part_count; i++)
		ob_progress_done(&owned[i].progress);
	fx.store = mine;
}

OB_TEST(a_repeated_record_is_recorded_once)
{
	begin_with("a1 a2 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	struct store_fixture was = fx;
	store_record();
	char *once = store_dump();
	/* The reply was lost: the same again. */
	for (size_t i = 0; i < fx.part_count; i++)
		fx.parts[i].batch = was.parts[i].batch;
	fx.change_count = was.change_count;
	fx.promote_count = was.promote_count;
	store_record();
	ck_assert_uint_eq(fx.parts[0].batch, was.parts[0].batch + 1);
	store_expect_same(once, store_dump());
	store_put_all("b2");
	store_read(9, 0);
	store_record();
	store_expect_view("b2", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(a_repeat_charges_an_exception_once)
{
	begin_with("a1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_read(0, 9);
	store_outcome("a1", OB_OUTCOME_RETRY);
	size_t changes = fx.change_count;
	store_record();
	fx.parts[0].batch--;
	fx.parts[1].batch--;
	fx.parts[2].batch--;
	fx.change_count = changes;
	store_record();
	ck_assert_uint_eq(store_row("a1")->attempts, 2);
}
OB_TEST_END

OB_TEST(an_expired_lease_that_nobody_took_still_records)
{
	begin_with("a1");
	store_advance_ms(60001);
	store_record();
	store_expect_view("a1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(leases_do_not_decide_who_may_record)
{
	struct ob_lease *leases;
	const struct ob_uuid other = store_uuid(9);
	size_t count;

	begin_with("a1");
	store_advance_ms(60000);
	store_ok(ob_store_take(fx.store, "main", &other, 1, 60000, &fx.arena, &leases, &count,
			       &fx.err));
	ck_assert_uint_eq(count, 1);
	/* It has the lease, and not taken over yet. */
	store_record();
	store_expect_view("a1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(after_a_takeover_nothing_of_the_one_before_is_written)
{
	begin_with("a1 a2 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_DEAD);
	lose_all();
	char *before = store_dump();
	store_try_record(settled);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_eq(settled[i], OB_SETTLE_LOST);
	store_expect_same(before, store_dump());
}
OB_TEST_END

OB_TEST(exceptions_of_a_lost_partition_are_not_changed)
{
	begin_with("a1 a2 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_read(0, 99);
	store_outcome("a1", OB_OUTCOME_PUBLISHED); /* would promote a2 */
	store_outcome("b1", OB_OUTCOME_RETRY);
	lose_all();
	char *before = store_dump();
	store_try_record(settled);
	ck_assert_int_eq(settled[0], OB_SETTLE_LOST);
	store_expect_same(before, store_dump());
	store_expect_view("a1", OB_VIEW_FAILED);
	store_expect_view("a2", OB_VIEW_PARKED);
}
OB_TEST_END

OB_TEST(an_epoch_of_before_is_lost_even_with_a_free_number)
{
	begin_with("a1");
	lose_all();
	for (size_t i = 0; i < fx.part_count; i++)
		fx.parts[i].batch += 5;
	store_try_record(settled);
	ck_assert_int_eq(settled[0], OB_SETTLE_LOST);
	store_expect_view("a1", OB_VIEW_PENDING);
}
OB_TEST_END

OB_TEST(a_number_that_was_pruned_is_not_free)
{
	const struct ob_retain retain = { .published_ms = 0, .dead_ms = -1, .limit = 100 };
	struct ob_retained done;

	begin_with("a1 b1");
	store_outcome("b1", OB_OUTCOME_DEAD);
	struct store_fixture was = fx;
	lose_all();
	/* The new owner records, so that the row of its takeover is not the newest. */
	fx.me = store_uuid(9);
	for (size_t i = 0; i < fx.part_count; i++) {
		fx.parts[i].epoch++;
		fx.parts[i].batch++;
	}
	fx.change_count = 0;
	store_record();
	store_record();
	store_advance_ms(INT64_C(3600) * 1000);
	store_ok(ob_store_retain(fx.store, &retain, &fx.arena, &done, &fx.err));
	/* Back to the one of before, which wakes up now. */
	fx.me = was.me;
	for (size_t i = 0; i < fx.part_count; i++) {
		fx.parts[i].epoch = was.parts[i].epoch;
		fx.parts[i].batch = was.parts[i].batch;
	}
	fx.change_count = was.change_count;
	store_try_record(settled);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_eq(settled[i], OB_SETTLE_LOST);
	ck_assert(!store_find("b1") || !store_row("b1")->excepted);
}
OB_TEST_END

OB_TEST(another_owner_with_our_epoch_cannot_repeat_us)
{
	begin_with("a1");
	store_record();
	fx.me = store_uuid(9);
	for (size_t i = 0; i < fx.part_count; i++)
		fx.parts[i].batch--;
	store_try_record(settled);
	ck_assert_int_ne(settled[0], OB_SETTLED);
}
OB_TEST_END

OB_TEST(losing_one_partition_loses_only_what_is_its_own)
{
	struct ob_owned owned = { 0 };
	const struct ob_uuid other = store_uuid(9);
	static const char *const labels[] = { "a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1" };

	store_begin(4);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1 f1 g1 h1");
	uint32_t lost = store_row("c1")->partition;
	store_read(99, 0);
	for (int i = 0; i < 8; i++)
		store_outcome(labels[i], OB_OUTCOME_RETRY);
	owned = (struct ob_owned){ .partition = lost, .epoch = 99 };
	store_ok(ob_store_take_over(fx.store, "main", &other, &owned, 1, &fx.err));
	ob_progress_done(&owned.progress);
	store_try_record(settled);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_eq(settled[i],
				 fx.parts[i].partition == lost ? OB_SETTLE_LOST : OB_SETTLED);
	for (int i = 0; i < 8; i++) {
		const struct ob_message *row = store_row(labels[i]);

		ck_assert_int_eq(row->excepted, row->partition != lost);
		ck_assert_int_eq(row->view,
				 row->partition == lost ? OB_VIEW_PENDING : OB_VIEW_FAILED);
	}
}
OB_TEST_END

/* ---- operators ------------------------------------------------------- */

OB_TEST(an_operators_row_moves_the_number)
{
	begin_with("a1 b1");
	uint64_t batch = fx.parts[0].batch;
	store_operate(OB_VERB_SKIP, "b1", 1, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	struct ob_change change = fx.changes[0];
	store_try_record(settled);
	ck_assert_int_eq(settled[0], OB_SETTLE_MOVED);
	ck_assert_uint_eq(fx.parts[0].batch, batch + 1);
	store_expect_view("a1", OB_VIEW_PENDING);
	ck_assert(!store_row("a1")->excepted);
	/* Other lanes had no verb: they are recorded. */
	ck_assert_int_eq(settled[1], OB_SETTLED);

	fx.changes[fx.change_count++] = change;
	store_record();
	store_expect_view("a1", OB_VIEW_FAILED);
	store_expect_view("b1", OB_VIEW_DEAD);
}
OB_TEST_END

OB_TEST(several_operators_move_the_number_to_the_newest)
{
	begin_with("a1 b1 c1");
	uint64_t batch = fx.parts[0].batch;
	store_operate(OB_VERB_SKIP, "b1", 1, 0);
	store_operate(OB_VERB_DISCARD, "c1", 1, 0);
	store_try_record(settled);
	ck_assert_int_eq(settled[0], OB_SETTLE_MOVED);
	ck_assert_uint_eq(fx.parts[0].batch, batch + 2);
	store_record();
}
OB_TEST_END

OB_TEST(a_record_before_the_operator_is_repeated_after_it)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	size_t changes = fx.change_count;
	uint64_t batch[STORE_PARTS_MAX];
	for (size_t i = 0; i < fx.part_count; i++)
		batch[i] = fx.parts[i].batch;
	store_record();
	store_operate(OB_VERB_DISCARD, "a1", 1, 0);
	/* The reply of that record was lost; it is there, below the operator's row. */
	for (size_t i = 0; i < fx.part_count; i++)
		fx.parts[i].batch = batch[i];
	fx.change_count = changes;
	store_record();
	store_expect_view("a1", OB_VIEW_DISCARDED);
	store_expect_view("b1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(a_takeover_over_an_operators_row_is_lost_not_moved)
{
	begin_with("a1 b1");
	store_operate(OB_VERB_SKIP, "b1", 1, 0);
	lose_all();
	store_try_record(settled);
	ck_assert_int_eq(settled[0], OB_SETTLE_LOST);
}
OB_TEST_END

STORE_CASES(fence, a_repeated_record_is_recorded_once, a_repeat_charges_an_exception_once,
	    an_expired_lease_that_nobody_took_still_records, leases_do_not_decide_who_may_record,
	    after_a_takeover_nothing_of_the_one_before_is_written,
	    exceptions_of_a_lost_partition_are_not_changed,
	    an_epoch_of_before_is_lost_even_with_a_free_number,
	    a_number_that_was_pruned_is_not_free, another_owner_with_our_epoch_cannot_repeat_us,
	    losing_one_partition_loses_only_what_is_its_own, an_operators_row_moves_the_number,
	    several_operators_move_the_number_to_the_newest,
	    a_record_before_the_operator_is_repeated_after_it,
	    a_takeover_over_an_operators_row_is_lost_not_moved)
