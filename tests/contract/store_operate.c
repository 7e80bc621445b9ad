/* SPDX-License-Identifier: MIT */
/* Contract: what an operator may do to which rows. */
#include "store_harness.h"

/*
 * Rows in every state, each with a key of its own: pending, delayed, failed with
 * `parked` behind it, dead, held (dead with hold) with `behind` behind it, published.
 */
static void begin_with_all_states(void)
{
	static const char *const rows[][2] = {
		{ "published", "1" }, { "failed", "2" }, { "parked", "2" },  { "dead", "3" },
		{ "held", "4" },      { "behind", "4" }, { "pending", "5" },
	};

	store_begin(1);
	store_hold_all(&fx.me, 60000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		store_put_key(rows[i][0], rows[i][1]);
	store_put((struct outbox_message){
		.event_type = "delayed", .partition_key = "6", .delay_ms = 60000 });
	store_fetch(99, OB_ORDER_KEY);
	fx.outcome.delay_ms = 5000;
	fx.outcome.error = OB_STR("why");
	store_settle("published", OB_OUTCOME_PUBLISHED);
	store_settle("failed", OB_OUTCOME_RETRY);
	store_settle("dead", OB_OUTCOME_DEAD);
	fx.settle.hold_dead = true;
	store_settle("held", OB_OUTCOME_DEAD);
	store_expect_state("parked", OB_STATE_PARKED);
	store_expect_state("behind", OB_STATE_PARKED);
}

OB_TEST(retry_makes_failed_and_dead_rows_pending_with_no_attempts)
{
	static const char *const labels[] = { "failed", "dead", "held" };

	begin_with_all_states();
	store_advance_ms(10);
	for (size_t i = 0; i < 3; i++) {
		store_operate(OB_VERB_RETRY, labels[i], 1, 0);
		const struct ob_message *row = store_row(labels[i]);
		ck_assert_int_eq(row->state, OB_STATE_PENDING);
		ck_assert_uint_eq(row->attempts, 0);
		ck_assert_str_eq(row->last_error.p, "why");
		ck_assert_int_eq(row->published_at_us, 0);
	}
	store_fetch(99, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "failed parked dead held behind pending");
}
OB_TEST_END

OB_TEST(retry_refuses_what_has_not_failed)
{
	static const char *const labels[] = { "pending", "delayed", "parked", "published" };

	begin_with_all_states();
	char *before = store_dump();
	for (size_t i = 0; i < 4; i++)
		store_operate(OB_VERB_RETRY, labels[i], 0, 1);
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	store_operate(OB_VERB_RETRY, NULL, 3, 5);
}
OB_TEST_END

OB_TEST(skip_gives_up_a_row_and_lets_its_key_go_on)
{
	begin_with_all_states();
	store_operate(OB_VERB_SKIP, "failed", 1, 0);
	store_expect_state("failed", OB_STATE_DEAD);
	ck_assert_uint_eq(store_row("failed")->attempts, 1);
	store_expect_state("parked", OB_STATE_PENDING);
	store_operate(OB_VERB_SKIP, "held", 1, 0);
	store_expect_state("held", OB_STATE_DEAD);
	store_expect_state("behind", OB_STATE_PENDING);
	store_operate(OB_VERB_SKIP, "pending", 1, 0);
	store_expect_state("pending", OB_STATE_DEAD);
	store_operate(OB_VERB_SKIP, "delayed", 1, 0);
	store_expect_state("delayed", OB_STATE_DEAD);
	store_operate(OB_VERB_SKIP, "dead", 1, 0);
	store_expect_state("dead", OB_STATE_DEAD);
	store_operate(OB_VERB_SKIP, "published", 0, 1);
}
OB_TEST_END

OB_TEST(skipping_a_parked_row_does_not_release_its_key)
{
	begin_with_all_states();
	store_put_key("more", "2");
	store_operate(OB_VERB_SKIP, "parked", 1, 0);
	store_expect_state("parked", OB_STATE_DEAD);
	store_fetch(99, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "pending");
}
OB_TEST_END

OB_TEST(discard_deletes_anything_not_published_and_lets_its_key_go_on)
{
	static const char *const labels[] = { "pending", "delayed", "dead" };

	begin_with_all_states();
	store_operate(OB_VERB_DISCARD, "failed", 1, 0);
	ck_assert_ptr_null(store_find("failed"));
	store_expect_state("parked", OB_STATE_PENDING);
	store_operate(OB_VERB_DISCARD, "held", 1, 0);
	ck_assert_ptr_null(store_find("held"));
	store_expect_state("behind", OB_STATE_PENDING);
	for (size_t i = 0; i < 3; i++) {
		store_operate(OB_VERB_DISCARD, labels[i], 1, 0);
		ck_assert_ptr_null(store_find(labels[i]));
	}
	store_operate(OB_VERB_DISCARD, "published", 0, 1);
	store_expect_state("published", OB_STATE_PUBLISHED);
	store_operate(OB_VERB_DISCARD, "no such row", 0, 0);
}
OB_TEST_END

static void priority(const char *label, int32_t value, uint64_t changed, uint64_t refused)
{
	const struct ob_operate operate = { .verb = OB_VERB_PRIORITY,
					    .filter.event_type = label,
					    .priority = value };
	uint64_t did, did_not;

	store_ok(ob_store_operate(fx.store, &operate, &did, &did_not, &fx.err));
	ck_assert_uint_eq(did, changed);
	ck_assert_uint_eq(did_not, refused);
}

OB_TEST(priority_changes_rows_that_are_still_to_go_out)
{
	static const char *const labels[] = { "pending", "delayed", "failed", "parked" };

	begin_with_all_states();
	for (size_t i = 0; i < 4; i++) {
		priority(labels[i], 7, 1, 0);
		ck_assert_int_eq(store_row(labels[i])->priority, 7);
	}
	priority("published", 7, 0, 1);
	priority("dead", 7, 0, 1);
	priority("held", 7, 0, 1);
	store_expect_state("failed", OB_STATE_FAILED);
	store_expect_state("parked", OB_STATE_PARKED);
}
OB_TEST_END

OB_TEST(a_priority_out_of_range_is_refused)
{
	struct ob_operate operate = { .verb = OB_VERB_PRIORITY, .priority = 32768 };
	uint64_t did, did_not;

	store_begin(1);
	store_put_key("a", NULL);
	ck_assert_int_eq(ob_store_operate(fx.store, &operate, &did, &did_not, &fx.err),
			 OUTBOX_EINVAL);
	priority("a", -32768, 1, 0);
	ck_assert_int_eq(store_row("a")->priority, -32768);
}
OB_TEST_END

static void operate_with(enum ob_verb verb, struct ob_filter filter, uint64_t changed,
			 uint64_t refused)
{
	const struct ob_operate operate = { .verb = verb, .filter = filter };
	uint64_t did, did_not;

	store_ok(ob_store_operate(fx.store, &operate, &did, &did_not, &fx.err));
	ck_assert_uint_eq(did, changed);
	ck_assert_uint_eq(did_not, refused);
}

OB_TEST(a_verb_reaches_what_the_filter_lets_through)
{
	begin_with_all_states();
	struct ob_uuid id = store_row("pending")->id;
	operate_with(OB_VERB_SKIP, (struct ob_filter){ .id = &id }, 1, 0);
	operate_with(OB_VERB_SKIP, (struct ob_filter){ .key = "2" }, 2, 0);
	operate_with(OB_VERB_SKIP, (struct ob_filter){ .target = "audit" }, 0, 0);
	operate_with(OB_VERB_DISCARD, (struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, 5, 0);
	store_expect_state("behind", OB_STATE_PENDING);
	store_expect_state("delayed", OB_STATE_PENDING);
	store_expect_state("published", OB_STATE_PUBLISHED);
}
OB_TEST_END

OB_TEST(what_matches_is_decided_before_the_first_change)
{
	begin_with_all_states();
	operate_with(OB_VERB_SKIP,
		     (struct ob_filter){ .views = 1U << OB_VIEW_FAILED | 1U << OB_VIEW_PARKED }, 3,
		     0);
	store_expect_state("parked", OB_STATE_DEAD);
	store_expect_state("behind", OB_STATE_DEAD);
}
OB_TEST_END

OB_TEST(the_limit_counts_rows_changed_oldest_first)
{
	begin_with_all_states();
	operate_with(OB_VERB_RETRY, (struct ob_filter){ .limit = 2 }, 2, 5);
	store_expect_state("failed", OB_STATE_PENDING);
	store_expect_state("dead", OB_STATE_PENDING);
	store_expect_state("held", OB_STATE_DEAD_HOLD);
}
OB_TEST_END

OB_TEST(a_retried_row_waits_for_the_one_that_holds_its_key)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put_key("a2", "a");
	fx.outcome.delay_ms = 5000;
	store_fetch_settle("a1", OB_OUTCOME_DEAD);
	store_fetch_settle("a2", OB_OUTCOME_RETRY);
	store_operate(OB_VERB_RETRY, "a1", 1, 0);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, 0);
	store_operate(OB_VERB_RETRY, "a2", 1, 0);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "a1 a2");
}
OB_TEST_END

OB_TEST(a_verb_frees_rows_parked_by_their_partition)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put_key("b1", "b");
	store_put_key("free", NULL);
	fx.settle.ordering = OB_ORDER_PARTITION;
	fx.outcome.delay_ms = 5000;
	store_fetch_settle("a1", OB_OUTCOME_RETRY);
	store_operate(OB_VERB_SKIP, "a1", 1, 0);
	store_expect_state("b1", OB_STATE_PENDING);
	store_expect_state("free", OB_STATE_PENDING);
}
OB_TEST_END

STORE_CASES(operate, retry_makes_failed_and_dead_rows_pending_with_no_attempts,
	    retry_refuses_what_has_not_failed, skip_gives_up_a_row_and_lets_its_key_go_on,
	    skipping_a_parked_row_does_not_release_its_key,
	    discard_deletes_anything_not_published_and_lets_its_key_go_on,
	    priority_changes_rows_that_are_still_to_go_out, a_priority_out_of_range_is_refused,
	    a_verb_reaches_what_the_filter_lets_through,
	    what_matches_is_decided_before_the_first_change,
	    the_limit_counts_rows_changed_oldest_first,
	    a_retried_row_waits_for_the_one_that_holds_its_key,
	    a_verb_frees_rows_parked_by_their_partition)
