/* SPDX-License-Identifier: MIT */
/* Contract: what retention removes, and what it must not. */
#include "base/opt.h"
#include "store_harness.h"

static struct ob_retained done;

static void retain(int64_t published_ms, int64_t dead_ms, uint32_t limit)
{
	const struct ob_retain settings = { .published_ms = published_ms,
					    .dead_ms = dead_ms,
					    .limit = limit };

	store_ok(ob_store_retain(fx.store, &settings, &fx.arena, &done, &fx.err));
	ck_assert(!done.busy);
}

/* One batch by these settings; how many rows and exceptions go. */
static void expect(int64_t published_ms, int64_t dead_ms, uint64_t rows, uint64_t dead)
{
	retain(published_ms, dead_ms, 1000);
	ck_assert_uint_eq(done.rows, rows);
	ck_assert_uint_eq(done.dead, dead);
	ck_assert(!done.more);
}

/* One partition, held for ever; these rows are delivered. */
static void begin_with(const char *labels)
{
	store_begin(1);
	store_hold_all(INT64_C(1000) * 3600 * 24 * 1000);
	store_put_all(labels);
	store_read(1000, 0);
}

enum { MINUTE_MS = 60000 };

OB_TEST(what_is_delivered_goes_when_it_is_old_enough)
{
	begin_with("a1 b1");
	store_record();
	store_advance_ms(10 * MINUTE_MS);
	store_put_all("a2");
	store_read(99, 0);
	store_record();
	expect(10 * MINUTE_MS + 1, 0, 0, 0);
	expect(10 * MINUTE_MS, 0, 2, 0);
	store_expect_rows("a2");
	store_advance_ms(10 * MINUTE_MS - 1);
	expect(10 * MINUTE_MS, 0, 0, 0);
	store_advance_ms(1);
	expect(10 * MINUTE_MS, 0, 1, 0);
	store_expect_rows("");
	store_put_all("a3");
	store_expect_read("a3");
}
OB_TEST_END

OB_TEST(what_is_old_enough_goes_in_batches_while_others_record)
{
	begin_with("a1 b1 c1");
	store_record();
	store_advance_ms(5000);
	for (int i = 0; i < 3; i++) {
		store_put_all("z1");
		store_read(9, 0);
		store_record();
		retain(5000, 0, 1);
		ck_assert_uint_eq(done.rows, 1);
	}
	retain(5000, 0, 1);
	ck_assert_uint_eq(done.rows, 0);
}
OB_TEST_END

OB_TEST(age_counts_from_the_delivery_not_from_the_creation)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	store_put_all("a1");
	store_advance_ms(5000);
	store_read(99, 0);
	store_record();
	store_advance_ms(500);
	expect(1000, 0, 0, 0);
	store_advance_ms(500);
	expect(1000, 0, 1, 0);
}
OB_TEST_END

OB_TEST(at_once_means_at_once_and_never_means_never)
{
	begin_with("a1 b1");
	store_record();
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 400);
	expect(OB_NEVER_MS, OB_NEVER_MS, 0, 0);
	store_expect_rows("a1 b1");
	expect(0, 0, 2, 0);
	store_put_all("c1");
	store_read(9, 0);
	store_record();
	expect(0, 0, 1, 0);
}
OB_TEST_END

OB_TEST(what_is_not_delivered_stays_however_old_it_is)
{
	begin_with("a1 b1");
	store_record();
	store_put_all("c1 d1");
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 400);
	expect(0, 0, 2, 0);
	store_expect_rows("c1 d1");
	store_expect_read("c1 d1");
}
OB_TEST_END

OB_TEST(what_is_read_and_not_recorded_stays)
{
	begin_with("a1");
	expect(0, 0, 0, 0);
	store_expect_rows("a1");
}
OB_TEST_END

OB_TEST(the_slowest_reader_of_the_log_decides)
{
	begin_with("a1 b1");
	ck_assert(store_make_reader("slow", "default", (struct ob_place){ 0 }));
	store_record();
	store_advance_ms(1000);
	expect(0, 0, 0, 0);
	store_be("slow", "default", 2);
	store_hold_all(60000);
	store_read(1, 0);
	store_record();
	expect(0, 0, 1, 0);
	store_expect_rows("b1");
	store_read(9, 0);
	store_record();
	expect(0, 0, 1, 0);
}
OB_TEST_END

OB_TEST(what_a_reader_was_moved_back_to_stays)
{
	const struct ob_place beginning = { OB_START_BEGINNING, 0 };

	begin_with("a1 b1");
	store_record();
	store_advance_ms(10 * MINUTE_MS);
	store_ok(ob_store_reader_seek(fx.store, "main", &beginning, &fx.err));
	store_advance_ms(10);
	expect(MINUTE_MS, 0, 0, 0);
	expect(0, 0, 0, 0);
	store_expect_rows("a1 b1");
	store_hold_all(60000);
	store_expect_read("a1 b1");
	store_record();
	expect(0, 0, 2, 0);
}
OB_TEST_END

OB_TEST(the_slowest_partition_of_a_reader_decides)
{
	store_begin(4);
	store_hold_all(60000);
	store_put_all("a1 b1 c1 d1 e1 f1");
	store_read(99, 0);
	/* All but one partition record. */
	fx.part_count--;
	store_record();
	fx.part_count++;
	expect(0, 0, 0, 0);
	store_record();
	expect(0, 0, 6, 0);
}
OB_TEST_END

OB_TEST(rows_of_another_target_go_when_all_readers_have_passed_them)
{
	store_begin(1);
	ck_assert(store_make_reader("log", "audit", (struct ob_place){ 0 }));
	store_hold_all(60000);
	store_put_all("a1");
	store_put((struct outbox_message){ .event_type = "x", .target = "audit" });
	store_read(9, 0);
	store_record();
	expect(0, 0, 0, 0);
	store_be("log", "audit", 2);
	store_hold_all(60000);
	store_read(9, 0);
	store_record();
	expect(0, 0, 2, 0);
}
OB_TEST_END

OB_TEST(a_late_row_with_a_low_number_stays)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_put_all("a1");
	store_open_with(slow, "s1 s2");
	store_put_all("a2");
	store_read(99, 0);
	store_record();
	store_commit(slow);
	store_advance_ms(1000);
	retain(0, 0, 1000);
	store_expect_view("s1", OB_VIEW_PENDING);
	store_expect_view("s2", OB_VIEW_PENDING);
	store_expect_read("s1 s2");
	store_record();
	store_expect_read(""); /* sees that nothing is open any more */
	store_record();
	retain(0, 0, 1000);
	store_expect_rows("");
}
OB_TEST_END

OB_TEST(an_open_transaction_is_not_waited_for_and_not_lost)
{
	store_begin(1);
	store_hold_all(60000);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_open_with(slow, "s1");
	store_put_all("a1");
	store_read(99, 0);
	store_record();
	retain(0, 0, 1000);
	store_commit(slow);
	retain(0, 0, 1000);
	store_expect_read("s1");
}
OB_TEST_END

/* ---- exceptions ------------------------------------------------------ */

OB_TEST(a_row_with_an_exception_stays)
{
	begin_with("a1 a2 b1 c1 d1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_outcome("d1", OB_OUTCOME_SPILL);
	store_record();
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 400);
	expect(0, OB_NEVER_MS, 1, 0);
	store_expect_rows("a1 a2 b1 d1");
	store_read(0, 99);
	ck_assert_uint_eq(fx.batch.count, 3);
	ck_assert_str_eq(store_got("a1")->payload.p, "{}");
}
OB_TEST_END

OB_TEST(a_row_with_an_exception_of_any_reader_stays)
{
	begin_with("a1 b1");
	ck_assert(store_make_reader("other", "default", (struct ob_place){ OB_START_END, 0 }));
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	expect(0, 0, 1, 0);
	store_expect_rows("a1");
}
OB_TEST_END

OB_TEST(dead_messages_go_on_request_but_not_those_that_hold)
{
	begin_with("a1 b1 c1");
	store_outcome("a1", OB_OUTCOME_DEAD);
	fx.decide.hold_dead = true;
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_record();
	store_advance_ms(500);
	retain(OB_NEVER_MS, 501, 99);
	ck_assert_uint_eq(done.dead, 0);
	retain(OB_NEVER_MS, 500, 99);
	ck_assert_uint_eq(done.dead, 1);
	ck_assert_uint_eq(done.rows, 0);
	store_expect_state("b1", OB_STATE_DEAD_HOLD);
	retain(0, 0, 99);
	ck_assert_uint_eq(done.rows, 2);
	store_expect_rows("b1");
}
OB_TEST_END

OB_TEST(a_dead_message_that_was_not_reached_is_not_forgotten)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	store_put_all("a1 b1 c1");
	store_operate(OB_VERB_SKIP, "a1", 1, 0);
	store_operate(OB_VERB_DISCARD, "b1", 1, 0);
	store_advance_ms(INT64_C(1000000));
	retain(0, 0, 99);
	store_take_over();
	store_expect_read("c1"); /* or both would be delivered after all */
	store_record();
	store_advance_ms(INT64_C(1000000));
	for (int i = 0; i < 2; i++)
		retain(0, 0, 99);
	store_expect_rows("");
}
OB_TEST_END

/* What another partition has behind it says nothing of this one. */
OB_TEST(a_dead_message_that_its_own_partition_did_not_reach_is_not_forgotten)
{
	store_begin(2);
	store_hold_all(INT64_C(1000000000));
	store_put_all("a1 b1 c1 d1 e1 f1");
	store_read(99, 0);

	uint32_t last = fx.parts[1].partition;
	char dead[8] = "";

	for (uint32_t i = 0; i < fx.batch.count; i++) {
		if (fx.batch.messages[i].partition == last)
			(void)snprintf(dead, sizeof(dead), "%s", fx.batch.messages[i].event_type.p);
	}
	ck_assert_str_ne(dead, "");
	store_operate(OB_VERB_SKIP, dead, 1, 0);
	/* The other one records so often that its number is the highest. */
	fx.part_count = 1;
	for (int i = 0; i < 3; i++)
		store_record();
	store_advance_ms(INT64_C(1000000));
	retain(0, 0, 99);
	store_expect_state(dead, OB_STATE_DEAD);
}
OB_TEST_END

OB_TEST(a_discarded_message_goes_like_a_published_one)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_operate(OB_VERB_DISCARD, "a1", 1, 0);
	store_advance_ms(1000);
	retain(1001, OB_NEVER_MS, 99);
	store_expect_view("a1", OB_VIEW_DISCARDED);
	for (int i = 0; i < 2; i++)
		retain(1000, OB_NEVER_MS, 99);
	store_expect_rows("");
}
OB_TEST_END

/* ---- batches --------------------------------------------------------- */

OB_TEST(the_limit_is_kept_and_more_is_told)
{
	begin_with("a1 b1 c1 d1 e1");
	store_record();
	retain(0, 0, 2);
	ck_assert_uint_eq(done.rows, 2);
	ck_assert(done.more);
	store_expect_rows("c1 d1 e1");
	retain(0, 0, 2);
	ck_assert_uint_eq(done.rows, 2);
	ck_assert(done.more);
	retain(0, 0, 2);
	ck_assert_uint_eq(done.rows, 1);
	ck_assert(!done.more);
	retain(0, 0, 0);
	ck_assert_uint_eq(done.rows, 0);
}
OB_TEST_END

OB_TEST(a_limit_of_zero_removes_nothing)
{
	begin_with("a1");
	store_record();
	retain(0, 0, 0);
	ck_assert_uint_eq(done.rows, 0);
	ck_assert(!done.more);
	store_expect_rows("a1");
}
OB_TEST_END

/* ---- the journal ----------------------------------------------------- */

OB_TEST(the_newest_row_of_the_journal_stays_for_ever)
{
	begin_with("a1");
	store_record();
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 400);
	retain(0, 0, 99);
	store_be("main", "default", 2);
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 1000);
	store_put_all("b1");
	store_hold_all(60000);
	store_expect_read("b1");
}
OB_TEST_END

OB_TEST(the_journal_is_pruned)
{
	begin_with("a1");
	size_t rows = store_journal_count();
	for (int i = 0; i < 20; i++) {
		store_record();
		store_advance_ms(100);
	}
	if (rows == 0)
		return;
	ck_assert_uint_eq(store_journal_count(), rows + 20 * fx.part_count);
	store_advance_ms(INT64_C(1000) * 3600);
	retain(0, 0, 99);
	ck_assert_uint_eq(store_journal_count(), fx.part_count);
	store_put_all("b1");
	store_expect_read("b1");
	store_record();
	store_expect_view("b1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(one_row_a_minute_stays_while_it_is_young)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	if (store_journal_count() == 0)
		return;
	store_put_all("a1");
	store_read(9, 0);
	for (int i = 0; i < 40; i++) {
		store_advance_ms(10000);
		store_record();
	}
	retain(INT64_C(3600000), 0, 99);
	size_t kept = store_journal_count() / fx.part_count;
	ck_assert_uint_ge(kept, 6);
	ck_assert_uint_le(kept, 9);
	/* Delivery is known to the minute. */
	int64_t at = store_row("a1")->published_at_us;
	ck_assert_int_ge(at, fx.start_us + 10000000);
	ck_assert_int_le(at, fx.start_us + 70000000);
	store_advance_ms(INT64_C(3600000));
	retain(INT64_C(3600000), 0, 99);
	ck_assert_uint_le(store_journal_count() / fx.part_count, 2);
}
OB_TEST_END

OB_TEST(a_takeover_after_pruning_has_the_right_progress)
{
	begin_with("a1 b1");
	store_record();
	store_record();
	store_advance_ms(INT64_C(3600000));
	retain(0, 0, 99);
	store_put_all("c1");
	store_take_over();
	store_expect_read("c1");
	store_record();
	store_expect_read("");
}
OB_TEST_END

/* ---- who holds it ---------------------------------------------------- */

OB_TEST(the_reader_that_holds_most_is_named)
{
	begin_with("a1 b1 c1");
	store_record();
	retain(1000, 0, 99);
	ck_assert_str_eq(done.held_by.p, "");
	store_put_all("d1 e1");
	ck_assert(store_make_reader("far", "default", (struct ob_place){ 0 }));
	ck_assert(store_make_reader("near", "default",
				    (struct ob_place){ OB_START_SEQ, store_row("d1")->seq }));
	int64_t made = ob_clock_real_us(&fx.clock.clock);
	store_read(9, 0);
	store_record();
	retain(1000, 0, 99);
	ck_assert_str_eq(done.held_by.p, ""); /* nothing is old enough to be missed */
	store_advance_ms(2000);
	retain(1000, 0, 99);
	ck_assert_uint_eq(done.rows, 0);
	ck_assert_str_eq(done.held_by.p, "far");
	ck_assert_int_eq(done.held_us, made);
	store_ok(ob_store_reader_remove(fx.store, "far", &fx.err));
	retain(1000, 0, 99);
	ck_assert_uint_eq(done.rows, 3);
	ck_assert_str_eq(done.held_by.p, "near");
	store_ok(ob_store_reader_remove(fx.store, "near", &fx.err));
	retain(1000, 0, 99);
	ck_assert_uint_eq(done.rows, 2);
	ck_assert_str_eq(done.held_by.p, "");
}
OB_TEST_END

OB_TEST(a_temporary_reader_whose_workers_are_gone_is_removed)
{
	const struct ob_reader replay = { .name = OB_STR("replay"),
					  .target = OB_STR("default"),
					  .temporary = true };
	const struct ob_worker worker = { .id = store_uuid(5),
					  .reader = OB_STR("replay"),
					  .hostname = OB_STR("h") };
	struct ob_reader *readers;
	size_t count;
	bool made;

	begin_with("a1");
	store_record();
	store_ok(ob_store_reader_make(fx.store, &replay, &(struct ob_place){ 0 }, &made, &fx.err));
	store_ok(ob_store_beat(fx.store, &worker, 1000, &fx.err));
	store_advance_ms(INT64_C(3600000));
	retain(0, 0, 99);
	ck_assert_uint_eq(done.rows, 0);
	store_advance_ms(1001);
	for (int i = 0; i < 2; i++)
		retain(0, 0, 99);
	store_ok(ob_store_readers(fx.store, &fx.arena, &readers, &count, &fx.err));
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(readers[0].name.p, "main");
	store_expect_rows("");
}
OB_TEST_END

OB_TEST(only_the_numbers_that_are_named_go_and_only_if_they_may)
{
	int64_t only[4];
	struct ob_retain these = { .published_ms = 1000, .dead_ms = OB_NEVER_MS, .limit = 99 };

	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	store_put_all("a1 b1 c1 d1");
	store_read(99, 0);
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_record();
	store_put_all("e1");
	only[0] = store_row("a1")->seq;
	only[1] = store_row("b1")->seq;
	only[2] = store_row("d1")->seq;
	only[3] = store_row("e1")->seq;
	these.only = only;
	these.only_count = 4;
	store_ok(ob_store_retain(fx.store, &these, &fx.arena, &done, &fx.err));
	ck_assert_uint_eq(done.rows, 0);
	store_advance_ms(1000);
	these.only_count = 0;
	store_ok(ob_store_retain(fx.store, &these, &fx.arena, &done, &fx.err));
	ck_assert_uint_eq(done.rows, 0);
	these.only_count = 4;
	store_ok(ob_store_retain(fx.store, &these, &fx.arena, &done, &fx.err));
	ck_assert_uint_eq(done.rows, 2);
	ck_assert(!done.more);
	store_expect_rows("b1 c1 e1");
}
OB_TEST_END

OB_TEST(throughput_is_kept_for_25_hours)
{
	const struct ob_worker worker = { .id = store_uuid(5),
					  .reader = OB_STR("main"),
					  .hostname = OB_STR("h"),
					  .published = 5 };
	struct ob_minute *minutes;
	size_t count;

	store_begin(1);
	store_ok(ob_store_beat(fx.store, &worker, 1000, &fx.err));
	store_advance_ms(INT64_C(24) * 3600 * 1000);
	retain(0, 0, 99);
	store_ok(ob_store_throughput(fx.store, "main", 3000, &fx.arena, &minutes, &count, &fx.err));
	ck_assert_uint_eq(count, 1);
	store_advance_ms(INT64_C(2) * 3600 * 1000);
	retain(0, 0, 99);
	store_ok(ob_store_throughput(fx.store, "main", 3000, &fx.arena, &minutes, &count, &fx.err));
	ck_assert_uint_eq(count, 0);
}
OB_TEST_END

STORE_CASES(retain, what_is_delivered_goes_when_it_is_old_enough,
	    what_is_old_enough_goes_in_batches_while_others_record,
	    age_counts_from_the_delivery_not_from_the_creation,
	    at_once_means_at_once_and_never_means_never,
	    what_is_not_delivered_stays_however_old_it_is, what_is_read_and_not_recorded_stays,
	    the_slowest_reader_of_the_log_decides, what_a_reader_was_moved_back_to_stays,
	    the_slowest_partition_of_a_reader_decides,
	    rows_of_another_target_go_when_all_readers_have_passed_them,
	    a_late_row_with_a_low_number_stays, an_open_transaction_is_not_waited_for_and_not_lost,
	    a_row_with_an_exception_stays, a_row_with_an_exception_of_any_reader_stays,
	    dead_messages_go_on_request_but_not_those_that_hold,
	    a_dead_message_that_was_not_reached_is_not_forgotten,
	    a_dead_message_that_its_own_partition_did_not_reach_is_not_forgotten,
	    a_discarded_message_goes_like_a_published_one, the_limit_is_kept_and_more_is_told,
	    a_limit_of_zero_removes_nothing, the_newest_row_of_the_journal_stays_for_ever,
	    the_journal_is_pruned, one_row_a_minute_stays_while_it_is_young,
	    a_takeover_after_pruning_has_the_right_progress, the_reader_that_holds_most_is_named,
	    a_temporary_reader_whose_workers_are_gone_is_removed, throughput_is_kept_for_25_hours,
	    only_the_numbers_that_are_named_go_and_only_if_they_may)
