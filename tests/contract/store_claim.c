/* SPDX-License-Identifier: MIT */
/* Contract: row claims: who gets which row, for how long, and what a late claimer may do. */
#include "store_harness.h"

#include <pthread.h>

static void begin_with_rows(int count)
{
	char label[16];

	store_begin(1);
	for (int i = 1; i <= count; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_put_key(label, NULL);
	}
	fx.settle.ordering = OB_ORDER_NONE;
}

static void expect_claim(uint8_t token, uint32_t limit, int64_t ttl_ms, const char *labels)
{
	store_claim(fx.store, token, limit, ttl_ms);
	ck_assert_str_eq(store_labels(&fx.batch), labels);
}

static void use_token(uint8_t n)
{
	static struct ob_uuid token;

	token = store_uuid(n);
	fx.settle.token = &token;
}

OB_TEST(a_claimed_row_is_not_given_out_again)
{
	begin_with_rows(3);
	expect_claim(1, 2, 1000, "m1 m2");
	expect_claim(2, 9, 1000, "m3");
	expect_claim(3, 9, 1000, "");
}
OB_TEST_END

OB_TEST(a_claim_of_zero_takes_nothing)
{
	begin_with_rows(1);
	expect_claim(1, 0, 1000, "");
	expect_claim(2, 1, 1000, "m1");
}
OB_TEST_END

OB_TEST(a_claimed_row_keeps_its_state_and_shows_as_processing)
{
	const struct ob_message *row;

	begin_with_rows(1);
	expect_claim(1, 1, 1500, "m1");
	row = store_row("m1");
	ck_assert_int_eq(row->state, OB_STATE_PENDING);
	ck_assert_int_eq(row->locked_until_us, fx.start_us + 1500000);
	ck_assert_str_eq(row->locked_by.p, "claimer");
	ck_assert_int_eq(ob_message_view(row, fx.start_us), OB_VIEW_PROCESSING);
	ck_assert_uint_eq(row->attempts, 0);
}
OB_TEST_END

OB_TEST(a_claim_is_free_at_the_exact_instant_it_expires)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	store_advance_ms(999);
	expect_claim(2, 1, 1000, "");
	store_advance_ms(1);
	expect_claim(2, 1, 1000, "m1");
}
OB_TEST_END

OB_TEST(claims_go_by_priority_then_by_number)
{
	store_begin(4);
	store_put((struct outbox_message){ .event_type = "a", .partition_key = "1" });
	store_put(
		(struct outbox_message){ .event_type = "b", .partition_key = "2", .priority = 9 });
	store_put((struct outbox_message){ .event_type = "c", .partition_key = "3" });
	store_put(
		(struct outbox_message){ .event_type = "d", .partition_key = "4", .priority = 9 });
	expect_claim(1, 3, 1000, "b d a");
}
OB_TEST_END

OB_TEST(only_due_rows_of_the_target_are_claimed)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "late", .delay_ms = 500 });
	store_put((struct outbox_message){ .event_type = "other", .target = "audit" });
	expect_claim(1, 9, 1000, "");
	store_advance_ms(500);
	expect_claim(2, 9, 1000, "late");
}
OB_TEST_END

OB_TEST(max_bytes_ends_a_claim_but_one_message_always_fits)
{
	struct ob_claim claim = { .target = "default",
				  .token = store_uuid(1),
				  .worker = "w",
				  .limit = 9,
				  .max_bytes = 1,
				  .ttl_ms = 1000 };

	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "b", .payload = "1" });
	store_put((struct outbox_message){ .event_type = "c", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "d", .payload = "2" });
	store_ok(ob_store_claim(fx.store, &claim, &fx.batch, &fx.err));
	ck_assert_str_eq(store_labels(&fx.batch), "a");
	claim.token = store_uuid(2);
	claim.max_bytes = 3;
	store_ok(ob_store_claim(fx.store, &claim, &fx.batch, &fx.err));
	ck_assert_str_eq(store_labels(&fx.batch), "b");
	/* What did not fit was not claimed. */
	expect_claim(3, 9, 1000, "c d");
}
OB_TEST_END

OB_TEST(a_repeated_claim_hands_out_its_own_rows_again)
{
	begin_with_rows(3);
	expect_claim(1, 2, 1000, "m1 m2");
	expect_claim(1, 2, 1000, "m1 m2");
	expect_claim(2, 9, 1000, "m3");
}
OB_TEST_END

OB_TEST(outcomes_are_guarded_by_the_token)
{
	begin_with_rows(2);
	expect_claim(1, 2, 1000, "m1 m2");
	use_token(9);
	store_settle("m1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.lost, 1);
	store_expect_state("m1", OB_STATE_PENDING);
	use_token(1);
	store_settle("m1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.applied, 1);
	store_expect_state("m1", OB_STATE_PUBLISHED);
	ck_assert_int_eq(store_row("m1")->locked_until_us, 0);
}
OB_TEST_END

OB_TEST(a_late_claimer_changes_nothing)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	store_advance_ms(1000);
	expect_claim(2, 1, 1000, "m1");
	char *before = store_dump();
	use_token(1);
	static const enum ob_outcome_kind kinds[] = { OB_OUTCOME_PUBLISHED, OB_OUTCOME_RETRY,
						      OB_OUTCOME_DEAD, OB_OUTCOME_RELEASE };
	for (size_t i = 0; i < 4; i++) {
		store_settle("m1", kinds[i]);
		ck_assert_uint_eq(fx.settled.lost, 1);
		ck_assert_uint_eq(fx.settled.applied, 0);
	}
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	use_token(2);
	store_settle("m1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.applied, 1);
}
OB_TEST_END

OB_TEST(an_expired_claim_that_nobody_took_still_settles)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	store_advance_ms(5000);
	use_token(1);
	store_settle("m1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.applied, 1);
}
OB_TEST_END

OB_TEST(a_released_claim_is_free_at_once_and_costs_nothing)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	use_token(1);
	store_settle("m1", OB_OUTCOME_RELEASE);
	ck_assert_uint_eq(fx.settled.applied, 1);
	ck_assert_uint_eq(store_row("m1")->attempts, 0);
	ck_assert_ptr_null(store_row("m1")->locked_by.p);
	expect_claim(2, 1, 1000, "m1");
}
OB_TEST_END

OB_TEST(a_failed_claim_is_retried_when_due)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	use_token(1);
	fx.outcome.delay_ms = 300;
	store_settle("m1", OB_OUTCOME_RETRY);
	store_expect_state("m1", OB_STATE_FAILED);
	expect_claim(2, 1, 1000, "");
	store_advance_ms(300);
	expect_claim(2, 1, 1000, "m1");
	ck_assert_uint_eq(store_fetched("m1")->attempts, 1);
}
OB_TEST_END

OB_TEST(settling_a_claim_twice_changes_nothing)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	use_token(1);
	store_settle("m1", OB_OUTCOME_RETRY);
	char *before = store_dump();
	store_settle("m1", OB_OUTCOME_RETRY);
	ck_assert_uint_eq(fx.settled.applied, 0);
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
OB_TEST_END

OB_TEST(an_operator_may_not_touch_a_claimed_row)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	store_operate(OB_VERB_SKIP, "m1", 0, 1);
	store_operate(OB_VERB_DISCARD, "m1", 0, 1);
	store_operate(OB_VERB_PRIORITY, "m1", 0, 1);
	store_advance_ms(1000);
	/* The claim is over: the verb ends it, and the claimer comes too late. */
	store_operate(OB_VERB_SKIP, "m1", 1, 0);
	use_token(1);
	store_settle("m1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.applied, 0);
	store_expect_state("m1", OB_STATE_DEAD);
}
OB_TEST_END

OB_TEST(any_verb_ends_a_claim_that_is_over)
{
	begin_with_rows(1);
	expect_claim(1, 1, 1000, "m1");
	store_advance_ms(1000);
	store_operate(OB_VERB_PRIORITY, "m1", 1, 0);
	use_token(1);
	store_settle("m1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.lost, 1);
	store_expect_state("m1", OB_STATE_PENDING);
}
OB_TEST_END

/* ---- many claimers at once ------------------------------------------- */

enum { CLAIMERS = 8, CLAIM_ROWS = 2000 };

struct claimer {
	struct ob_store *store;
	int64_t seqs[CLAIM_ROWS];
	size_t count;
	uint8_t number;
	bool failed;
};

static bool claim_some(struct claimer *claimer, struct ob_batch *batch, uint8_t round)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_claim claim = {
		.target = "default",
		.worker = "w",
		.limit = 7,
		.max_bytes = 1 << 20,
		.ttl_ms = 60000,
	};

	claim.token = store_uuid(claimer->number);
	claim.token.b[1] = round;
	claim.token.b[2] = (uint8_t)(claimer->count & 0xff);
	claim.token.b[3] = (uint8_t)(claimer->count >> 8);
	int r = ob_store_claim(claimer->store, &claim, batch, &err);
	if (r < 0 && err.kind != OB_ERR_DOWN)
		claimer->failed = true;
	for (uint32_t i = 0; r >= 0 && i < batch->count && claimer->count < CLAIM_ROWS; i++)
		claimer->seqs[claimer->count++] = batch->messages[i].seq;
	return r < 0 ? !claimer->failed : batch->count > 0;
}

static void *run_claimer(void *arg)
{
	struct claimer *claimer = arg;
	struct ob_batch batch;
	uint8_t round = 0;

	ob_batch_init(&batch);
	while (claim_some(claimer, &batch, round))
		round++;
	ob_batch_done(&batch);
	return NULL;
}

static int compare_seq(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

OB_TEST(eight_claimers_get_every_row_exactly_once)
{
	static struct claimer claimers[CLAIMERS];
	static int64_t all[CLAIM_ROWS * 2];
	pthread_t threads[CLAIMERS];
	size_t count = 0;

	store_begin(4);
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	for (int i = 0; i < CLAIM_ROWS; i++)
		store_push(fx.store, (struct outbox_message){ .event_type = "m" });
	store_ok(ob_store_tx_end(fx.store, true, &fx.err));
	for (int i = 0; i < CLAIMERS; i++) {
		claimers[i].store = store_open();
		claimers[i].number = (uint8_t)(i + 1);
	}
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_claimer, &claimers[i]), 0);
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		ck_assert(!claimers[i].failed);
		ck_assert_uint_le(count + claimers[i].count, CLAIM_ROWS);
		memcpy(all + count, claimers[i].seqs, claimers[i].count * sizeof(*all));
		count += claimers[i].count;
	}
	ck_assert_uint_eq(count, CLAIM_ROWS);
	qsort(all, count, sizeof(*all), compare_seq);
	for (size_t i = 1; i < count; i++)
		ck_assert_int_lt(all[i - 1], all[i]);
}
OB_TEST_END

STORE_CASES(claim, a_claimed_row_is_not_given_out_again, a_claim_of_zero_takes_nothing,
	    a_claimed_row_keeps_its_state_and_shows_as_processing,
	    a_claim_is_free_at_the_exact_instant_it_expires, claims_go_by_priority_then_by_number,
	    only_due_rows_of_the_target_are_claimed,
	    max_bytes_ends_a_claim_but_one_message_always_fits,
	    a_repeated_claim_hands_out_its_own_rows_again, outcomes_are_guarded_by_the_token,
	    a_late_claimer_changes_nothing, an_expired_claim_that_nobody_took_still_settles,
	    a_released_claim_is_free_at_once_and_costs_nothing, a_failed_claim_is_retried_when_due,
	    settling_a_claim_twice_changes_nothing, an_operator_may_not_touch_a_claimed_row,
	    any_verb_ends_a_claim_that_is_over, eight_claimers_get_every_row_exactly_once)
