/* SPDX-License-Identifier: MIT */
/* Contract: recording outcomes under leases: states, attempts, errors, parking and fencing. */
#include "store_harness.h"

/* One partition, leased, with these keyed rows fetched into fx.batch. */
static void begin_with(const char *const (*rows)[2], size_t count)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	for (size_t i = 0; i < count; i++)
		store_put_key(rows[i][0], rows[i][1]);
	store_fetch(1000, OB_ORDER_KEY);
	fx.outcome.delay_ms = 5000;
}

#define BEGIN(...) \
	do { \
		static const char *const rows_[][2] = { __VA_ARGS__ }; \
		begin_with(rows_, sizeof(rows_) / sizeof(rows_[0])); \
	} while (0)

static void expect_settled(uint32_t applied, uint32_t lost, uint32_t vanished)
{
	ck_assert_uint_eq(fx.settled.applied, applied);
	ck_assert_uint_eq(fx.settled.lost, lost);
	ck_assert_uint_eq(fx.settled.vanished, vanished);
}

OB_TEST(published_is_recorded_with_its_time)
{
	BEGIN({ "a", "k" });
	store_advance_ms(70);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(1, 0, 0);
	const struct ob_message *row = store_row("a");
	ck_assert_int_eq(row->state, OB_STATE_PUBLISHED);
	ck_assert_int_eq(row->published_at_us, fx.start_us + 70000);
	ck_assert_uint_eq(row->attempts, 0);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, 0);
}
OB_TEST_END

OB_TEST(published_rows_can_be_deleted_instead)
{
	BEGIN({ "a", "k" }, { "b", "k" });
	fx.settle.delete_published = true;
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(1, 0, 0);
	ck_assert_ptr_null(store_find("a"));
	store_expect_state("b", OB_STATE_PENDING);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 0, 1);
}
OB_TEST_END

OB_TEST(a_failure_charges_one_attempt_and_sets_the_retry)
{
	BEGIN({ "a", "k" });
	fx.outcome.error = OB_STR("refused: 422");
	store_settle("a", OB_OUTCOME_RETRY);
	expect_settled(1, 0, 0);
	const struct ob_message *row = store_row("a");
	ck_assert_int_eq(row->state, OB_STATE_FAILED);
	ck_assert_uint_eq(row->attempts, 1);
	ck_assert_int_eq(row->available_at_us, fx.start_us + 5000000);
	ck_assert_str_eq(row->last_error.p, "refused: 422");
	store_advance_ms(5000);
	store_fetch_settle("a", OB_OUTCOME_RETRY);
	ck_assert_uint_eq(store_row("a")->attempts, 2);
}
OB_TEST_END

OB_TEST(success_after_failure_clears_the_error_and_keeps_the_attempts)
{
	BEGIN({ "a", "k" });
	fx.outcome.error = OB_STR("x");
	fx.outcome.delay_ms = 0;
	store_settle("a", OB_OUTCOME_RETRY);
	store_fetch_settle("a", OB_OUTCOME_PUBLISHED);
	const struct ob_message *row = store_row("a");
	ck_assert_ptr_null(row->last_error.p);
	ck_assert_uint_eq(row->attempts, 1);
}
OB_TEST_END

OB_TEST(dead_charges_an_attempt_and_is_never_fetched_again)
{
	BEGIN({ "a", "k" }, { "b", "k" });
	fx.outcome.error = OB_STR("gone");
	store_advance_ms(5);
	store_settle("a", OB_OUTCOME_DEAD);
	expect_settled(1, 0, 0);
	const struct ob_message *row = store_row("a");
	ck_assert_int_eq(row->state, OB_STATE_DEAD);
	ck_assert_uint_eq(row->attempts, 1);
	ck_assert_str_eq(row->last_error.p, "gone");
	ck_assert_int_eq(row->published_at_us, fx.start_us + 5000);
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 365);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "b");
}
OB_TEST_END

OB_TEST(release_without_a_token_changes_nothing)
{
	BEGIN({ "a", "k" });
	char *before = store_dump();
	store_settle("a", OB_OUTCOME_RELEASE);
	expect_settled(1, 0, 0);
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
OB_TEST_END

OB_TEST(a_failure_parks_the_rest_of_its_key)
{
	BEGIN({ "a1", "a" }, { "a2", "a" }, { "b1", "b" }, { "free", NULL });
	store_put((struct outbox_message){
		.event_type = "a3", .partition_key = "a", .delay_ms = 60000 });
	store_settle("a1", OB_OUTCOME_RETRY);
	store_expect_state("a1", OB_STATE_FAILED);
	store_expect_state("a2", OB_STATE_PARKED);
	store_expect_state("a3", OB_STATE_PARKED);
	store_expect_state("b1", OB_STATE_PENDING);
	store_expect_state("free", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(with_partition_order_a_failure_parks_the_whole_partition)
{
	BEGIN({ "a1", "a" }, { "a2", "a" }, { "b1", "b" }, { "free", NULL });
	fx.settle.ordering = OB_ORDER_PARTITION;
	store_settle("a1", OB_OUTCOME_RETRY);
	store_expect_state("a2", OB_STATE_PARKED);
	store_expect_state("b1", OB_STATE_PARKED);
	store_expect_state("free", OB_STATE_PARKED);
}
OB_TEST_END

OB_TEST(without_order_a_failure_parks_nothing)
{
	BEGIN({ "a1", "a" }, { "a2", "a" });
	fx.settle.ordering = OB_ORDER_NONE;
	store_settle("a1", OB_OUTCOME_RETRY);
	store_expect_state("a1", OB_STATE_FAILED);
	store_expect_state("a2", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(success_releases_the_key_in_order)
{
	BEGIN({ "a1", "a" }, { "a2", "a" }, { "a3", "a" });
	store_settle("a1", OB_OUTCOME_RETRY);
	store_advance_ms(5000);
	store_fetch_settle("a1", OB_OUTCOME_PUBLISHED);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "a2 a3");
	store_expect_state("a2", OB_STATE_PENDING);
	store_expect_state("a3", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(deleting_a_published_row_releases_its_key_too)
{
	BEGIN({ "a1", "a" }, { "a2", "a" });
	store_settle("a1", OB_OUTCOME_RETRY);
	store_advance_ms(5000);
	fx.settle.delete_published = true;
	store_fetch_settle("a1", OB_OUTCOME_PUBLISHED);
	store_expect_state("a2", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(death_releases_the_key_unless_it_shall_hold)
{
	BEGIN({ "a1", "a" }, { "a2", "a" });
	store_settle("a1", OB_OUTCOME_RETRY);
	store_advance_ms(5000);
	store_fetch_settle("a1", OB_OUTCOME_DEAD);
	store_expect_state("a1", OB_STATE_DEAD);
	store_expect_state("a2", OB_STATE_PENDING);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "a2");
}
OB_TEST_END

OB_TEST(a_dead_message_with_hold_keeps_its_key)
{
	BEGIN({ "a1", "a" }, { "a2", "a" }, { "b1", "b" });
	fx.settle.hold_dead = true;
	store_settle("a1", OB_OUTCOME_DEAD);
	expect_settled(1, 0, 0);
	store_expect_state("a1", OB_STATE_DEAD_HOLD);
	store_expect_state("a2", OB_STATE_PARKED);
	store_put_key("a3", "a");
	store_advance_ms(INT64_C(1000) * 3600 * 24);
	store_fetch(9, OB_ORDER_KEY);
	ck_assert_str_eq(store_labels(&fx.batch), "b1");
}
OB_TEST_END

OB_TEST(a_dead_message_that_holds_is_settled_for_good)
{
	BEGIN({ "a1", "a" }, { "a2", "a" });
	fx.settle.hold_dead = true;
	store_settle("a1", OB_OUTCOME_DEAD);
	store_settle("a1", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 0, 1);
	store_settle("a1", OB_OUTCOME_RETRY);
	expect_settled(0, 0, 1);
	store_expect_state("a1", OB_STATE_DEAD_HOLD);
	store_expect_state("a2", OB_STATE_PARKED);
}
OB_TEST_END

OB_TEST(without_a_key_or_an_order_there_is_nothing_to_hold)
{
	BEGIN({ "n", NULL }, { "a1", "a" }, { "a2", "a" });
	fx.settle.hold_dead = true;
	store_settle("n", OB_OUTCOME_DEAD);
	store_expect_state("n", OB_STATE_DEAD);
	fx.settle.ordering = OB_ORDER_NONE;
	store_settle("a1", OB_OUTCOME_DEAD);
	store_expect_state("a1", OB_STATE_DEAD);
	store_expect_state("a2", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(a_key_stays_parked_until_nothing_holds_it)
{
	BEGIN({ "a1", "a" }, { "a2", "a" }, { "a3", "a" });
	/* Two of one key in flight, both failed: each holds. */
	fx.outcome.delay_ms = 0;
	store_settle("a1", OB_OUTCOME_RETRY);
	store_settle("a2", OB_OUTCOME_RETRY);
	expect_settled(1, 0, 0);
	store_fetch_settle("a1", OB_OUTCOME_PUBLISHED);
	store_expect_state("a3", OB_STATE_PARKED);
	store_fetch_settle("a2", OB_OUTCOME_PUBLISHED);
	store_expect_state("a3", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(rows_parked_by_partition_are_freed_under_any_order)
{
	BEGIN({ "a1", "a" }, { "b1", "b" }, { "free", NULL });
	fx.settle.ordering = OB_ORDER_PARTITION;
	fx.outcome.delay_ms = 0;
	store_settle("a1", OB_OUTCOME_RETRY);
	store_expect_state("free", OB_STATE_PARKED);
	fx.settle.ordering = OB_ORDER_KEY;
	store_fetch_settle("a1", OB_OUTCOME_PUBLISHED);
	store_expect_state("b1", OB_STATE_PENDING);
	store_expect_state("free", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(a_message_parked_in_flight_can_still_be_published)
{
	BEGIN({ "a1", "a" }, { "a2", "a" });
	store_settle("a1", OB_OUTCOME_RETRY);
	store_settle("a2", OB_OUTCOME_PUBLISHED);
	expect_settled(1, 0, 0);
	store_expect_state("a2", OB_STATE_PUBLISHED);
	store_expect_state("a1", OB_STATE_FAILED);
}
OB_TEST_END

static void settle_twice(enum ob_outcome_kind kind)
{
	BEGIN({ "a", "k" }, { "b", "k" });
	fx.outcome.error = OB_STR("why");
	store_settle("a", kind);
	char *once = store_dump();
	store_settle("a", kind);
	expect_settled(0, 0, 1);
	char *twice = store_dump();
	ck_assert_str_eq(once, twice);
	free(once);
	free(twice);
}

OB_TEST(publishing_twice_changes_nothing)
{
	settle_twice(OB_OUTCOME_PUBLISHED);
}
OB_TEST_END

OB_TEST(failing_twice_charges_once)
{
	settle_twice(OB_OUTCOME_RETRY);
}
OB_TEST_END

OB_TEST(dying_twice_charges_once)
{
	settle_twice(OB_OUTCOME_DEAD);
}
OB_TEST_END

OB_TEST(an_outcome_of_a_row_that_is_gone_has_vanished)
{
	BEGIN({ "a", "k" }, { "b", "k" });
	store_operate(OB_VERB_DISCARD, "a", 1, 0);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 0, 1);
	store_settle("a", OB_OUTCOME_RETRY);
	expect_settled(0, 0, 1);
	store_expect_state("b", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(an_operator_decides_over_a_message_in_flight)
{
	BEGIN({ "a", "k" });
	store_operate(OB_VERB_SKIP, "a", 1, 0);
	store_settle("a", OB_OUTCOME_RETRY);
	expect_settled(0, 0, 1);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 0, 1);
	store_expect_state("a", OB_STATE_DEAD);
	ck_assert_uint_eq(store_row("a")->attempts, 0);
}
OB_TEST_END

OB_TEST(an_operators_retry_in_flight_is_not_charged_but_may_succeed)
{
	BEGIN({ "a", "k" });
	fx.outcome.delay_ms = 0;
	store_settle("a", OB_OUTCOME_RETRY);
	store_fetch(9, OB_ORDER_KEY);
	store_operate(OB_VERB_RETRY, "a", 1, 0);
	store_settle("a", OB_OUTCOME_RETRY);
	expect_settled(0, 0, 1);
	store_expect_state("a", OB_STATE_PENDING);
	ck_assert_uint_eq(store_row("a")->attempts, 0);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(1, 0, 0);
}
OB_TEST_END

/* ---- many at once, and fencing --------------------------------------- */

OB_TEST(a_mixed_batch_is_one_transaction)
{
	BEGIN({ "a1", "a" }, { "a2", "a" }, { "b1", "b" }, { "c1", "c" }, { "d1", "d" });
	struct ob_outcome outcomes[] = {
		{ .message = store_fetched("b1"), .kind = OB_OUTCOME_PUBLISHED },
		{ .message = store_fetched("a1"), .kind = OB_OUTCOME_RETRY, .delay_ms = 9 },
		{ .message = store_fetched("c1"), .kind = OB_OUTCOME_DEAD, .error = OB_STR("x") },
		{ .message = store_fetched("d1"), .kind = OB_OUTCOME_RELEASE },
	};
	fx.settle.outcomes = outcomes;
	fx.settle.outcome_count = 4;
	bool lost[1] = { true };
	store_ok(ob_store_settle(fx.store, &fx.settle, lost, &fx.settled, &fx.err));
	expect_settled(4, 0, 0);
	ck_assert(!lost[0]);
	store_expect_state("a1", OB_STATE_FAILED);
	store_expect_state("a2", OB_STATE_PARKED);
	store_expect_state("b1", OB_STATE_PUBLISHED);
	store_expect_state("c1", OB_STATE_DEAD);
	store_expect_state("d1", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(no_outcome_is_success)
{
	BEGIN({ "a", "k" });
	bool lost[1] = { true };
	store_ok(ob_store_settle(fx.store, &fx.settle, lost, &fx.settled, &fx.err));
	expect_settled(0, 0, 0);
	ck_assert(!lost[0]);
}
OB_TEST_END

OB_TEST(an_expired_lease_that_nobody_took_still_settles)
{
	BEGIN({ "a", "k" });
	store_advance_ms(60001);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(1, 0, 0);
}
OB_TEST_END

OB_TEST(a_worker_that_lost_its_lease_changes_nothing)
{
	BEGIN({ "a", "k" }, { "b", "k" });
	const struct ob_uuid other = store_uuid(201);
	struct ob_lease *leases;
	size_t count;

	store_advance_ms(60000);
	store_ok(ob_store_take(fx.store, "default", &other, 1, 60000, &fx.arena, &leases, &count,
			       &fx.err));
	ck_assert_uint_eq(count, 1);
	char *before = store_dump();
	static const enum ob_outcome_kind kinds[] = { OB_OUTCOME_PUBLISHED, OB_OUTCOME_RETRY,
						      OB_OUTCOME_DEAD, OB_OUTCOME_RELEASE };
	for (size_t i = 0; i < 4; i++) {
		store_settle("a", kinds[i]);
		expect_settled(0, 1, 0);
	}
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
OB_TEST_END

OB_TEST(the_same_owner_with_an_old_epoch_is_fenced_off)
{
	BEGIN({ "a", "k" });
	struct ob_lease *leases;
	size_t count;

	store_advance_ms(60000);
	store_ok(ob_store_take(fx.store, "default", &fx.me, 1, 60000, &fx.arena, &leases, &count,
			       &fx.err));
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 1, 0);
	fx.leases[0] = leases[0];
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(1, 0, 0);
}
OB_TEST_END

OB_TEST(another_owner_with_the_right_epoch_is_fenced_off)
{
	BEGIN({ "a", "k" });
	fx.settle.owner = store_uuid(201);
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 1, 0);
	store_expect_state("a", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(a_released_lease_does_not_settle)
{
	const uint32_t first = 0;

	BEGIN({ "a", "k" });
	store_ok(ob_store_release(fx.store, "default", &fx.me, &first, 1, &fx.err));
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 1, 0);
	store_expect_state("a", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(a_partition_without_a_lease_in_the_list_is_lost)
{
	BEGIN({ "a", "k" });
	fx.settle.lease_count = 0;
	store_settle("a", OB_OUTCOME_PUBLISHED);
	expect_settled(0, 1, 0);
}
OB_TEST_END

OB_TEST(losing_some_leases_loses_only_their_outcomes)
{
	const struct ob_uuid other = store_uuid(201);
	struct ob_outcome outcomes[64];
	bool lost[4];
	char label[16];
	uint32_t lost_partition = UINT32_MAX, lost_rows = 0;

	store_begin(4);
	store_hold_all(&fx.me, 60000);
	for (int i = 0; i < 16; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_put_key(label, label);
	}
	store_fetch(64, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, 16);
	lost_partition = fx.batch.messages[7].partition;
	store_ok(ob_store_release(fx.store, "default", &fx.me, &lost_partition, 1, &fx.err));
	struct ob_lease *taken;
	size_t count;
	store_ok(ob_store_take(fx.store, "default", &other, 9, 60000, &fx.arena, &taken, &count,
			       &fx.err));
	ck_assert_uint_eq(count, 1);
	for (uint32_t i = 0; i < 16; i++) {
		outcomes[i] = (struct ob_outcome){ .message = &fx.batch.messages[i],
						   .kind = OB_OUTCOME_PUBLISHED };
		lost_rows += fx.batch.messages[i].partition == lost_partition;
	}
	fx.settle.outcomes = outcomes;
	fx.settle.outcome_count = 16;
	store_ok(ob_store_settle(fx.store, &fx.settle, lost, &fx.settled, &fx.err));
	expect_settled(16 - lost_rows, lost_rows, 0);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_int_eq(lost[i], fx.leases[i].partition == lost_partition);
	store_fetch(64, OB_ORDER_KEY);
	ck_assert_uint_eq(fx.batch.count, lost_rows);
}
OB_TEST_END

/* ---- the text of an error -------------------------------------------- */

static void expect_error(struct ob_str given, struct ob_str stored)
{
	fx.outcome.delay_ms = 0;
	fx.outcome.error = given;
	store_fetch_settle("a", OB_OUTCOME_RETRY);
	const struct ob_message *row = store_row("a");
	ck_assert_msg(ob_str_eq(row->last_error, stored), "'%s' was stored as '%s'", given.p,
		      row->last_error.p);
}

OB_TEST(an_error_text_is_made_safe)
{
	BEGIN({ "a", "k" });
	expect_error(OB_STR("plain"), OB_STR("plain"));
	expect_error(OB_STR("a\0b"), OB_STR("a b"));
	expect_error(OB_STR("two\nlines"), OB_STR("two lines"));
	expect_error(OB_STR("bad \xff\xfe byte"), OB_STR("bad \xEF\xBF\xBD\xEF\xBF\xBD byte"));
	expect_error(OB_STR("gr\xC3\xBC\xC3\x9F"), OB_STR("gr\xC3\xBC\xC3\x9F"));
	expect_error(OB_STR("'; DROP TABLE outbox; --"), OB_STR("'; DROP TABLE outbox; --"));
	expect_error(OB_STR(""), OB_STR(""));
}
OB_TEST_END

OB_TEST(an_error_text_is_cut_at_1024_characters_not_inside_one)
{
	static const char euro[] = { '\xE2', '\x82', '\xAC' };
	static char text[sizeof(euro) * 2000];

	BEGIN({ "a", "k" });
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = euro[i % sizeof(euro)];
	expect_error((struct ob_str){ text, sizeof(text) },
		     (struct ob_str){ text, sizeof(euro) * 1024 });
	memset(text, 'x', sizeof(text));
	expect_error((struct ob_str){ text, 1024 }, (struct ob_str){ text, 1024 });
	expect_error((struct ob_str){ text, 1025 }, (struct ob_str){ text, 1024 });
}
OB_TEST_END

STORE_CASES(settle, published_is_recorded_with_its_time, published_rows_can_be_deleted_instead,
	    a_failure_charges_one_attempt_and_sets_the_retry,
	    success_after_failure_clears_the_error_and_keeps_the_attempts,
	    dead_charges_an_attempt_and_is_never_fetched_again,
	    release_without_a_token_changes_nothing, a_failure_parks_the_rest_of_its_key,
	    with_partition_order_a_failure_parks_the_whole_partition,
	    without_order_a_failure_parks_nothing, success_releases_the_key_in_order,
	    deleting_a_published_row_releases_its_key_too,
	    death_releases_the_key_unless_it_shall_hold, a_dead_message_with_hold_keeps_its_key,
	    without_a_key_or_an_order_there_is_nothing_to_hold,
	    a_key_stays_parked_until_nothing_holds_it,
	    rows_parked_by_partition_are_freed_under_any_order,
	    a_message_parked_in_flight_can_still_be_published, publishing_twice_changes_nothing,
	    failing_twice_charges_once, dying_twice_charges_once,
	    an_outcome_of_a_row_that_is_gone_has_vanished,
	    an_operator_decides_over_a_message_in_flight,
	    an_operators_retry_in_flight_is_not_charged_but_may_succeed,
	    a_mixed_batch_is_one_transaction, no_outcome_is_success,
	    an_expired_lease_that_nobody_took_still_settles,
	    a_worker_that_lost_its_lease_changes_nothing,
	    the_same_owner_with_an_old_epoch_is_fenced_off, a_released_lease_does_not_settle,
	    another_owner_with_the_right_epoch_is_fenced_off,
	    a_dead_message_that_holds_is_settled_for_good,
	    a_partition_without_a_lease_in_the_list_is_lost,
	    losing_some_leases_loses_only_their_outcomes, an_error_text_is_made_safe,
	    an_error_text_is_cut_at_1024_characters_not_inside_one)
