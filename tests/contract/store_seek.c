/* SPDX-License-Identifier: MIT */
/* Contract: a reader is moved to another place. */
#include "store_harness.h"

static void seek(struct ob_place place)
{
	store_ok(ob_store_reader_seek(fx.store, "main", &place, &fx.err));
}

OB_TEST(a_reader_goes_back)
{
	store_begin(2);
	store_put_all("a1 b1 a2 b2");
	store_hold_all(60000);
	store_read(100, 0);
	store_record();
	seek((struct ob_place){ OB_START_SEQ, store_row("a2")->seq });
	store_expect_view("b1", OB_VIEW_PUBLISHED);
	store_expect_view("a2", OB_VIEW_PENDING);
	store_be("main", "default", 2);
	store_hold_all(60000);
	store_expect_read("a2 b2");
	seek((struct ob_place){ OB_START_BEGINNING, 0 });
	store_be("main", "default", 3);
	store_hold_all(60000);
	store_expect_read("a1 b1 a2 b2");
}
OB_TEST_END

OB_TEST(a_reader_goes_to_the_end)
{
	store_begin(2);
	store_put_all("a1 b1");
	seek((struct ob_place){ OB_START_END, 0 });
	store_expect_view("a1", OB_VIEW_PUBLISHED);
	store_put_all("a2");
	store_hold_all(60000);
	store_expect_read("a2");
}
OB_TEST_END

OB_TEST(a_reader_goes_to_a_time)
{
	store_begin(2);
	store_put_all("a1 b1");
	store_advance_ms(10);
	store_put_all("a2 b2");
	seek((struct ob_place){ OB_START_TIME, fx.start_us + 10000 });
	store_hold_all(60000);
	store_expect_read("a2 b2");
}
OB_TEST_END

OB_TEST(a_worker_that_runs_is_lost_and_goes_on_from_the_new_place)
{
	enum ob_settled settled[STORE_PARTS_MAX];
	struct ob_lease *leases;
	size_t count;

	store_begin(2);
	store_put_all("a1 b1 a2 b2");
	store_hold_all(60000);
	store_read(100, 0);
	seek((struct ob_place){ OB_START_SEQ, store_row("b1")->seq });
	store_try_record(settled);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_eq(settled[i], OB_SETTLE_LOST);
	/* Its leases are gone too; taken anew they have a higher epoch, which wins. */
	store_ok(ob_store_renew(fx.store, "main", &fx.me, 60000, &fx.arena, &leases, &count,
				&fx.err));
	ck_assert_uint_eq(count, 0);
	store_hold_all(60000);
	store_expect_read("b1 a2 b2");
	store_record();
}
OB_TEST_END

OB_TEST(a_worker_cannot_take_over_with_an_epoch_from_before)
{
	struct ob_owned owned = { .partition = 0 };

	store_begin(1);
	store_hold_all(60000);
	owned.epoch = fx.parts[0].epoch;
	seek((struct ob_place){ OB_START_END, 0 });
	store_ok(ob_store_take_over(fx.store, "main", &fx.me, &owned, 1, &fx.err));
	ck_assert(owned.lost);
}
OB_TEST_END

OB_TEST(exceptions_of_what_is_read_again_are_gone_and_others_stay)
{
	store_begin(1);
	store_put_all("a1 b1 c1 a2 b2");
	store_hold_all(60000);
	store_read(100, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_outcome("b2", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_record();
	seek((struct ob_place){ OB_START_SEQ, store_row("c1")->seq });
	store_expect_state("a1", OB_STATE_FAILED);
	store_expect_state("b1", OB_STATE_DEAD);
	ck_assert(!store_row("a2")->excepted);
	ck_assert(!store_row("b2")->excepted);
	store_be("main", "default", 2);
	store_hold_all(60000);
	store_expect_read("c1 a2 b2");
	ck_assert(store_got("a2")->held);
	ck_assert(!store_got("b2")->held);
}
OB_TEST_END

OB_TEST(seeking_touches_no_other_reader)
{
	store_begin(1);
	ck_assert(store_make_reader("other", "default", (struct ob_place){ 0 }));
	store_put_all("a1 b1");
	store_be("other", "default", 2);
	store_hold_all(60000);
	store_settle("a1", OB_OUTCOME_RETRY);
	seek((struct ob_place){ OB_START_END, 0 });
	store_expect_state("a1", OB_STATE_FAILED);
	store_put_all("b2");
	store_expect_read("b2");
	store_record();
}
OB_TEST_END

STORE_CASES(seek, a_reader_goes_back, a_reader_goes_to_the_end, a_reader_goes_to_a_time,
	    a_worker_that_runs_is_lost_and_goes_on_from_the_new_place,
	    a_worker_cannot_take_over_with_an_epoch_from_before,
	    exceptions_of_what_is_read_again_are_gone_and_others_stay,
	    seeking_touches_no_other_reader)
