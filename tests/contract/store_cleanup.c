/* SPDX-License-Identifier: MIT */
/* Contract: which rows a cleanup deletes, and how many at once. */
#include "store_harness.h"

static void clean(struct ob_cleanup cleanup, uint64_t published, uint64_t dead)
{
	uint64_t did_published = 77, did_dead = 77;

	store_ok(ob_store_cleanup(fx.store, &cleanup, &did_published, &did_dead, &fx.err));
	ck_assert_uint_eq(did_published, published);
	ck_assert_uint_eq(did_dead, dead);
}

/* p1 p2 published, d1 dead, h1 dead with hold and h2 behind it, and one of each that is not done.
 */
static void begin_with_done_rows(void)
{
	static const char *const rows[][2] = {
		{ "p1", "1" }, { "p2", "2" }, { "d1", "3" }, { "h1", "4" },
		{ "h2", "4" }, { "f1", "5" }, { "f2", "5" }, { "n1", "6" },
	};

	store_begin(1);
	store_hold_all(&fx.me, 60000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		store_put_key(rows[i][0], rows[i][1]);
	store_put((struct outbox_message){ .event_type = "late", .delay_ms = 999999999 });
	store_fetch(99, OB_ORDER_KEY);
	store_settle("p1", OB_OUTCOME_PUBLISHED);
	store_settle("p2", OB_OUTCOME_PUBLISHED);
	store_settle("d1", OB_OUTCOME_DEAD);
	store_settle("f1", OB_OUTCOME_RETRY);
	fx.settle.hold_dead = true;
	store_settle("h1", OB_OUTCOME_DEAD);
}

static void expect_rows(const char *labels)
{
	const struct ob_filter everything = { 0 };
	int64_t now;

	store_ok(ob_store_list(fx.store, &everything, &fx.look, &now, &fx.err));
	ck_assert_str_eq(store_labels(&fx.look), labels);
}

OB_TEST(only_published_rows_that_are_old_enough_go)
{
	begin_with_done_rows();
	store_advance_ms(999);
	clean((struct ob_cleanup){ .published_ms = 1000, .dead_ms = OB_NEVER_MS, .limit = 99 }, 0,
	      0);
	store_advance_ms(1);
	clean((struct ob_cleanup){ .published_ms = 1000, .dead_ms = OB_NEVER_MS, .limit = 99 }, 2,
	      0);
	expect_rows("d1 h1 h2 f1 f2 n1 late");
}
OB_TEST_END

OB_TEST(dead_rows_go_on_request_but_not_those_that_hold_a_key)
{
	begin_with_done_rows();
	store_advance_ms(500);
	clean((struct ob_cleanup){ .published_ms = OB_NEVER_MS, .dead_ms = 501, .limit = 99 }, 0,
	      0);
	clean((struct ob_cleanup){ .published_ms = OB_NEVER_MS, .dead_ms = 500, .limit = 99 }, 0,
	      1);
	expect_rows("p1 p2 h1 h2 f1 f2 n1 late");
}
OB_TEST_END

OB_TEST(unfinished_rows_stay_however_old_they_are)
{
	begin_with_done_rows();
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 400);
	clean((struct ob_cleanup){ .published_ms = 0, .dead_ms = 0, .limit = 99 }, 2, 1);
	expect_rows("h1 h2 f1 f2 n1 late");
	clean((struct ob_cleanup){ .published_ms = 0, .dead_ms = 0, .limit = 99 }, 0, 0);
}
OB_TEST_END

OB_TEST(the_limit_is_shared_and_published_rows_go_first)
{
	begin_with_done_rows();
	clean((struct ob_cleanup){ .limit = 1 }, 1, 0);
	clean((struct ob_cleanup){ .limit = 2 }, 1, 1);
	clean((struct ob_cleanup){ .limit = 2 }, 0, 0);
}
OB_TEST_END

OB_TEST(a_limit_of_zero_and_never_delete_nothing)
{
	begin_with_done_rows();
	clean((struct ob_cleanup){ .limit = 0 }, 0, 0);
	clean((struct ob_cleanup){ .published_ms = OB_NEVER_MS,
				   .dead_ms = OB_NEVER_MS,
				   .limit = 99 },
	      0, 0);
	expect_rows("p1 p2 d1 h1 h2 f1 f2 n1 late");
}
OB_TEST_END

OB_TEST(cleanup_keeps_to_its_target)
{
	begin_with_done_rows();
	clean((struct ob_cleanup){ .target = "audit", .limit = 99 }, 0, 0);
	clean((struct ob_cleanup){ .target = "default", .limit = 99 }, 2, 1);
}
OB_TEST_END

OB_TEST(a_skipped_row_is_cleaned_like_any_dead_one)
{
	begin_with_done_rows();
	store_advance_ms(1000);
	store_operate(OB_VERB_SKIP, "n1", 1, 0);
	clean((struct ob_cleanup){ .published_ms = OB_NEVER_MS, .dead_ms = 1000, .limit = 9 }, 0,
	      1);
	store_expect_state("n1", OB_STATE_DEAD);
	store_advance_ms(1000);
	clean((struct ob_cleanup){ .published_ms = OB_NEVER_MS, .dead_ms = 1000, .limit = 9 }, 0,
	      1);
	ck_assert_ptr_null(store_find("n1"));
}
OB_TEST_END

OB_TEST(repeated_batches_drain_a_backlog)
{
	static struct ob_outcome outcomes[250];
	uint64_t published, dead, total = 0;
	int calls = 0;

	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	for (int i = 0; i < 250; i++)
		store_push(fx.store, (struct outbox_message){ .event_type = "m" });
	store_ok(ob_store_tx_end(fx.store, true, &fx.err));
	store_fetch(250, OB_ORDER_KEY);
	for (uint32_t i = 0; i < 250; i++)
		outcomes[i] = (struct ob_outcome){ .message = &fx.batch.messages[i],
						   .kind = OB_OUTCOME_PUBLISHED };
	fx.settle.outcomes = outcomes;
	fx.settle.outcome_count = 250;
	store_ok(ob_store_settle(fx.store, &fx.settle, NULL, &fx.settled, &fx.err));
	ck_assert_uint_eq(fx.settled.applied, 250);
	do {
		const struct ob_cleanup cleanup = { .limit = 100 };
		store_ok(ob_store_cleanup(fx.store, &cleanup, &published, &dead, &fx.err));
		total += published;
		calls++;
	} while (published + dead >= 100);
	ck_assert_uint_eq(total, 250);
	ck_assert_int_eq(calls, 3);
}
OB_TEST_END

STORE_CASES(cleanup, only_published_rows_that_are_old_enough_go,
	    dead_rows_go_on_request_but_not_those_that_hold_a_key,
	    unfinished_rows_stay_however_old_they_are,
	    the_limit_is_shared_and_published_rows_go_first,
	    a_limit_of_zero_and_never_delete_nothing, cleanup_keeps_to_its_target,
	    a_skipped_row_is_cleaned_like_any_dead_one, repeated_batches_drain_a_backlog)
