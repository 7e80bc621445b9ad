/* SPDX-License-Identifier: MIT */
/* Contract: what an operator may do to which messages. */
#include "store_harness.h"

/*
 * Messages in every state, each with a key of its own: p1 published; f1 failed with f2 parked; d1
 * dead; h1 dead and holding, with h2 parked; w1 delayed; n1 in the log, not read; l1 in the log,
 * not due.
 */
static void begin_with_all(void)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	store_put_all("p1 f1 f2 d1 h1 h2");
	store_put((struct outbox_message){
		.event_type = "w1", .partition_key = "w", .delay_ms = 60000 });
	store_read(99, 0);
	fx.decide.hold_delayed = true;
	store_outcome("f1", OB_OUTCOME_RETRY);
	store_outcome("f2", OB_OUTCOME_PARK);
	store_outcome("d1", OB_OUTCOME_DEAD);
	store_outcome("w1", OB_OUTCOME_DELAY);
	fx.decide.hold_dead = true;
	store_outcome("h1", OB_OUTCOME_DEAD);
	store_outcome("h2", OB_OUTCOME_PARK);
	store_record();
	store_put_all("n1");
	store_put((struct outbox_message){
		.event_type = "l1", .partition_key = "l", .delay_ms = 60000 });
}

/* The worker goes on behind the rows of the verbs. */
static void expect_exceptions(const char *labels)
{
	store_read(0, 99);
	ck_assert_str_eq(store_labels(&fx.batch), labels);
}

OB_TEST(retry_makes_failed_and_dead_messages_due_without_attempts)
{
	static const char *const labels[] = { "f1", "d1", "h1" };

	begin_with_all();
	store_advance_ms(10);
	for (size_t i = 0; i < 3; i++) {
		store_operate(OB_VERB_RETRY, labels[i], 1, 0);
		const struct ob_message *row = store_row(labels[i]);
		ck_assert_int_eq(row->view, OB_VIEW_PENDING);
		ck_assert_int_eq(row->state, OB_STATE_WAITING);
		ck_assert_uint_eq(row->attempts, 0);
		ck_assert_int_eq(row->due_us, fx.start_us + 10000);
		ck_assert_str_eq(row->last_error.p, "why");
	}
	store_read(0, 99);
	ck_assert_uint_eq(fx.batch.count, 5);
	(void)store_got("f2");
	(void)store_got("h2");
	(void)store_got("d1");
}
OB_TEST_END

OB_TEST(retry_refuses_what_has_not_failed)
{
	static const char *const labels[] = { "n1", "l1", "w1", "f2", "h2", "p1" };

	begin_with_all();
	char *before = store_dump();
	for (size_t i = 0; i < 6; i++)
		store_operate(OB_VERB_RETRY, labels[i], 0, 1);
	store_expect_same(before, store_dump());
	store_operate(OB_VERB_RETRY, NULL, 3, 6);
}
OB_TEST_END

OB_TEST(skip_gives_a_message_up_and_lets_its_key_go_on)
{
	begin_with_all();
	store_operate(OB_VERB_SKIP, "f1", 1, 0);
	store_expect_state("f1", OB_STATE_DEAD);
	ck_assert_uint_eq(store_row("f1")->attempts, 1);
	store_expect_view("f2", OB_VIEW_PENDING);
	expect_exceptions("f2");
	store_operate(OB_VERB_SKIP, "h1", 1, 0);
	store_expect_state("h1", OB_STATE_DEAD);
	store_expect_view("h2", OB_VIEW_PENDING);
	expect_exceptions("f2 h2");
	store_operate(OB_VERB_SKIP, "n1", 1, 0);
	store_expect_state("n1", OB_STATE_DEAD);
	ck_assert_uint_eq(store_row("n1")->attempts, 0);
	store_operate(OB_VERB_SKIP, "l1", 1, 0);
	store_operate(OB_VERB_SKIP, "w1", 1, 0);
	store_expect_state("w1", OB_STATE_DEAD);
	store_operate(OB_VERB_SKIP, "d1", 0, 1);
	store_operate(OB_VERB_SKIP, "p1", 0, 1);
	store_advance_ms(60000);
	expect_exceptions("f2 h2");
	store_take_over();
	store_read(99, 0);
	ck_assert_uint_eq(fx.batch.count, 0);
}
OB_TEST_END

OB_TEST(skipping_a_parked_message_does_not_release_its_key)
{
	begin_with_all();
	store_operate(OB_VERB_SKIP, "f2", 1, 0);
	store_expect_view("f2", OB_VIEW_DEAD);
	store_expect_view("f1", OB_VIEW_FAILED);
	expect_exceptions("");
	store_put_all("f3");
	store_take_over();
	store_read(99, 0);
	ck_assert(store_got("f3")->held);
	store_advance_ms(5000);
	expect_exceptions("f1");
}
OB_TEST_END

OB_TEST(discard_takes_anything_not_published_and_lets_its_key_go_on)
{
	static const char *const labels[] = { "n1", "l1", "d1", "w1" };

	begin_with_all();
	store_operate(OB_VERB_DISCARD, "f1", 1, 0);
	store_expect_view("f1", OB_VIEW_DISCARDED);
	store_expect_view("f2", OB_VIEW_PENDING);
	store_operate(OB_VERB_DISCARD, "h1", 1, 0);
	store_expect_view("h1", OB_VIEW_DISCARDED);
	store_expect_view("h2", OB_VIEW_PENDING);
	for (size_t i = 0; i < 4; i++) {
		store_operate(OB_VERB_DISCARD, labels[i], 1, 0);
		store_expect_view(labels[i], OB_VIEW_DISCARDED);
	}
	store_operate(OB_VERB_DISCARD, "p1", 0, 1);
	store_expect_view("p1", OB_VIEW_PUBLISHED);
	store_operate(OB_VERB_DISCARD, "f1", 0, 1);
	store_operate(OB_VERB_RETRY, "f1", 0, 1);
	store_operate(OB_VERB_SKIP, "f1", 0, 1);
	store_operate(OB_VERB_DISCARD, "no such row", 0, 0);
	store_advance_ms(60000);
	expect_exceptions("f2 h2");
	store_take_over();
	store_read(99, 0);
	ck_assert_uint_eq(fx.batch.count, 0);
}
OB_TEST_END

OB_TEST(a_whole_queue_can_be_given_up)
{
	begin_with_all();
	const struct ob_operate operate = { .verb = OB_VERB_SKIP,
					    .filter = { .reader = "main", .key = "f" } };
	uint64_t changed, refused;
	store_ok(ob_store_operate(fx.store, &operate, &changed, &refused, &fx.err));
	ck_assert_uint_eq(changed, 2);
	store_expect_view("f1", OB_VIEW_DEAD);
	store_expect_view("f2", OB_VIEW_DEAD);
	store_put_all("f3");
	store_take_over();
	store_read(99, 0);
	ck_assert(!store_got("f3")->held);
}
OB_TEST_END

static void operate_with(enum ob_verb verb, struct ob_filter filter, uint64_t changed,
			 uint64_t refused)
{
	struct ob_operate operate = { .verb = verb, .filter = filter };
	uint64_t did, did_not;

	operate.filter.reader = operate.filter.reader ? operate.filter.reader : "main";
	store_ok(ob_store_operate(fx.store, &operate, &did, &did_not, &fx.err));
	ck_assert_uint_eq(did, changed);
	ck_assert_uint_eq(did_not, refused);
}

OB_TEST(a_verb_reaches_what_the_filter_lets_through)
{
	begin_with_all();
	ck_assert(store_make_reader("other", "default", (struct ob_place){ 0 }));
	ck_assert(store_make_reader("audit", "log", (struct ob_place){ 0 }));
	struct ob_uuid id = store_row("n1")->id;
	operate_with(OB_VERB_SKIP, (struct ob_filter){ .id = &id }, 1, 0);
	operate_with(OB_VERB_SKIP, (struct ob_filter){ .key = "f" }, 2, 0);
	operate_with(OB_VERB_SKIP, (struct ob_filter){ .reader = "audit" }, 0, 0);
	operate_with(OB_VERB_DISCARD, (struct ob_filter){ .views = 1U << OB_VIEW_DEAD }, 5, 0);
	store_expect_view("h2", OB_VIEW_PENDING);
	store_expect_view("w1", OB_VIEW_DELAYED);
	store_expect_view("p1", OB_VIEW_PUBLISHED);
	/* Of another reader nothing was touched. */
	operate_with(OB_VERB_DISCARD, (struct ob_filter){ .reader = "other" }, 9, 0);
	store_expect_view("p1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(what_matches_is_decided_before_the_first_change)
{
	begin_with_all();
	operate_with(OB_VERB_SKIP,
		     (struct ob_filter){ .views = 1U << OB_VIEW_FAILED | 1U << OB_VIEW_PARKED }, 3,
		     0);
	store_expect_view("f1", OB_VIEW_DEAD);
	store_expect_view("f2", OB_VIEW_DEAD);
	store_expect_view("h2", OB_VIEW_DEAD);
	store_expect_state("h1", OB_STATE_DEAD_HOLD);
}
OB_TEST_END

OB_TEST(the_limit_counts_messages_changed_oldest_first)
{
	begin_with_all();
	operate_with(OB_VERB_RETRY, (struct ob_filter){ .limit = 2 }, 2, 6);
	store_expect_state("f1", OB_STATE_WAITING);
	store_expect_state("d1", OB_STATE_WAITING);
	store_expect_state("h1", OB_STATE_DEAD_HOLD);
}
OB_TEST_END

OB_TEST(a_verb_that_changes_nothing_writes_nothing)
{
	begin_with_all();
	uint64_t batch = fx.parts[0].batch;
	store_operate(OB_VERB_RETRY, "p1", 0, 1);
	store_operate(OB_VERB_RETRY, "no such row", 0, 0);
	store_record();
	ck_assert_uint_eq(fx.parts[0].batch, batch + 1);
}
OB_TEST_END

OB_TEST(a_verb_frees_a_queue_of_the_whole_partition)
{
	store_begin(1);
	store_hold_all(60000);
	fx.decide.ordering = OB_ORDER_PARTITION;
	store_put_all("a1 b1");
	store_put_key("n1", NULL);
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("b1", OB_OUTCOME_PARK);
	store_outcome("n1", OB_OUTCOME_PARK);
	store_record();
	store_operate(OB_VERB_SKIP, "a1", 1, 0);
	store_expect_view("b1", OB_VIEW_PENDING);
	store_expect_view("n1", OB_VIEW_PARKED);
	expect_exceptions("b1 n1");
}
OB_TEST_END

OB_TEST(a_verb_does_not_move_progress)
{
	begin_with_all();
	store_operate(OB_VERB_SKIP, "f1", 1, 0);
	store_be("main", "default", 2);
	store_advance_ms(INT64_C(1000000000));
	store_hold_all(60000);
	store_read(99, 0);
	ck_assert_str_eq(store_labels(&fx.batch), "n1 l1");
}
OB_TEST_END

OB_TEST(a_message_skipped_in_the_log_is_not_delivered_when_it_is_reached)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1 a2 a3");
	store_operate(OB_VERB_SKIP, "a2", 1, 0);
	store_take_over();
	char *delivered = store_deliver();
	ck_assert_str_eq(delivered, "a1 a3");
	free(delivered);
	store_expect_view("a2", OB_VIEW_DEAD);
	store_operate(OB_VERB_RETRY, "a2", 1, 0);
	store_take_over();
	delivered = store_deliver();
	ck_assert_str_eq(delivered, "a2");
	free(delivered);
	store_expect_view("a2", OB_VIEW_PUBLISHED);
}
OB_TEST_END

STORE_CASES(operate, retry_makes_failed_and_dead_messages_due_without_attempts,
	    retry_refuses_what_has_not_failed, skip_gives_a_message_up_and_lets_its_key_go_on,
	    skipping_a_parked_message_does_not_release_its_key,
	    discard_takes_anything_not_published_and_lets_its_key_go_on,
	    a_whole_queue_can_be_given_up, a_verb_reaches_what_the_filter_lets_through,
	    what_matches_is_decided_before_the_first_change,
	    the_limit_counts_messages_changed_oldest_first,
	    a_verb_that_changes_nothing_writes_nothing, a_verb_frees_a_queue_of_the_whole_partition,
	    a_verb_does_not_move_progress,
	    a_message_skipped_in_the_log_is_not_delivered_when_it_is_reached)
