/* SPDX-License-Identifier: MIT */
/* Contract: recording progress and exceptions. */
#include "store_harness.h"

/* One partition, held; these rows are in the log and read. */
static void begin_with(const char *labels)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all(labels);
	store_read(1000, 0);
}

OB_TEST(what_is_recorded_is_published_with_its_time)
{
	begin_with("a1 b1");
	store_expect_view("a1", OB_VIEW_PENDING);
	store_advance_ms(70);
	store_record();
	const struct ob_message *row = store_row("a1");
	ck_assert_int_eq(row->view, OB_VIEW_PUBLISHED);
	ck_assert_int_eq(row->published_at_us, fx.start_us + 70000);
	ck_assert_uint_eq(row->attempts, 0);
	ck_assert(!row->excepted);
	store_expect_read("");
	store_forget();
	store_expect_read("");
}
OB_TEST_END

OB_TEST(the_first_record_that_covers_a_message_is_its_time)
{
	begin_with("a1");
	store_advance_ms(1000);
	store_record();
	store_put_all("b1");
	store_read(9, 0);
	store_advance_ms(1000);
	store_record();
	ck_assert_int_eq(store_row("a1")->published_at_us, fx.start_us + 1000000);
	ck_assert_int_eq(store_row("b1")->published_at_us, fx.start_us + 2000000);
}
OB_TEST_END

OB_TEST(each_record_is_the_next_row_of_the_journal)
{
	begin_with("a1");
	uint64_t batch = fx.parts[0].batch;
	size_t rows = store_journal_count();
	store_record();
	ck_assert_uint_eq(fx.parts[0].batch, batch + 1);
	store_record();
	ck_assert_uint_eq(fx.parts[0].batch, batch + 2);
	if (rows > 0)
		ck_assert_uint_eq(store_journal_count(), rows + 2 * fx.part_count);
}
OB_TEST_END

OB_TEST(a_failure_charges_one_attempt_and_sets_the_retry)
{
	begin_with("a1");
	fx.error = OB_STR("refused: 422");
	store_advance_ms(3);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	const struct ob_message *row = store_row("a1");
	ck_assert_int_eq(row->view, OB_VIEW_FAILED);
	ck_assert_int_eq(row->state, OB_STATE_FAILED);
	ck_assert_uint_eq(row->attempts, 1);
	ck_assert_int_eq(row->due_us, fx.start_us + 5003000);
	ck_assert_int_eq(row->since_us, fx.start_us + 3000);
	ck_assert_str_eq(row->last_error.p, "refused: 422");
	ck_assert_int_eq(row->published_at_us, 0);
	store_advance_ms(5000);
	store_settle("a1", OB_OUTCOME_RETRY);
	ck_assert_uint_eq(store_row("a1")->attempts, 2);
}
OB_TEST_END

OB_TEST(success_after_failure_leaves_a_published_message)
{
	begin_with("a1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_settle("a1", OB_OUTCOME_PUBLISHED);
	const struct ob_message *row = store_row("a1");
	ck_assert_int_eq(row->view, OB_VIEW_PUBLISHED);
	ck_assert(!row->excepted);
	ck_assert_ptr_null(row->last_error.p);
}
OB_TEST_END

OB_TEST(dead_charges_an_attempt_and_is_never_read_again)
{
	begin_with("a1 b1");
	fx.error = OB_STR("gone");
	store_outcome("a1", OB_OUTCOME_DEAD);
	store_record();
	const struct ob_message *row = store_row("a1");
	ck_assert_int_eq(row->view, OB_VIEW_DEAD);
	ck_assert_int_eq(row->state, OB_STATE_DEAD);
	ck_assert_uint_eq(row->attempts, 1);
	ck_assert_str_eq(row->last_error.p, "gone");
	ck_assert_int_eq(row->due_us, 0);
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 365);
	store_expect_read("");
}
OB_TEST_END

OB_TEST(a_parked_message_has_no_time_and_no_error)
{
	begin_with("a1 a2");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_record();
	const struct ob_message *row = store_row("a2");
	ck_assert_int_eq(row->view, OB_VIEW_PARKED);
	ck_assert_int_eq(row->state, OB_STATE_WAITING);
	ck_assert_int_eq(row->due_us, 0);
	ck_assert_uint_eq(row->attempts, 0);
	ck_assert_ptr_null(row->last_error.p);
}
OB_TEST_END

OB_TEST(an_error_stays_until_the_next_one)
{
	begin_with("a1");
	fx.decide.ordering = OB_ORDER_NONE;
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_read(0, 9);
	fx.error = OB_STR_NULL;
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	ck_assert_str_eq(store_row("a1")->last_error.p, "why");
	ck_assert_uint_eq(store_row("a1")->attempts, 2);
}
OB_TEST_END

OB_TEST(a_mixed_record_is_one_transaction)
{
	begin_with("a1 a2 b1 c1 d1 e1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("c1", OB_OUTCOME_DEAD);
	store_outcome("d1", OB_OUTCOME_SPILL);
	store_record();
	store_expect_view("a1", OB_VIEW_FAILED);
	store_expect_view("a2", OB_VIEW_PARKED);
	store_expect_view("b1", OB_VIEW_PUBLISHED);
	store_expect_view("c1", OB_VIEW_DEAD);
	store_expect_view("d1", OB_VIEW_PENDING);
	store_expect_view("e1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(many_changes_fit_into_one_record)
{
	char label[16];

	store_begin(4);
	store_hold_all(60000);
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	for (int i = 0; i < 300; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_push(fx.store,
			   (struct outbox_message){ .event_type = label, .partition_key = label });
	}
	store_commit(fx.store);
	store_read(1000, 0);
	ck_assert_uint_eq(fx.batch.count, 300);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_outcome(label, i % 3 ? OB_OUTCOME_RETRY : OB_OUTCOME_DEAD);
	}
	store_record();
	store_advance_ms(5000);
	store_read(1000, 1000);
	ck_assert_uint_eq(fx.batch.count, 200);
	for (uint32_t i = 0; i < 200; i++) {
		(void)snprintf(label, sizeof(label), "%s", fx.batch.messages[i].event_type.p);
		store_outcome(label, OB_OUTCOME_PUBLISHED);
	}
	store_record();
	store_read(1000, 1000);
	ck_assert_uint_eq(fx.batch.count, 0);
}
OB_TEST_END

OB_TEST(no_part_is_success)
{
	struct ob_settle settle = { .reader = "main" };

	store_begin(1);
	char *before = store_dump();
	store_ok(ob_store_settle(fx.store, &settle, &fx.err));
	store_expect_same(before, store_dump());
}
OB_TEST_END

OB_TEST(removing_an_exception_that_is_not_there_is_success)
{
	begin_with("a1");
	fx.changes[fx.change_count++] = (struct ob_change){ .kind = OB_CHANGE_REMOVE,
							    .partition = 0,
							    .seq = store_row("a1")->seq };
	fx.changes[fx.change_count++] = (struct ob_change){ .kind = OB_CHANGE_SET,
							    .partition = 0,
							    .seq = store_row("a1")->seq,
							    .state = OB_STATE_FAILED };
	store_record();
	store_expect_view("a1", OB_VIEW_PUBLISHED);
	ck_assert(!store_row("a1")->excepted);
}
OB_TEST_END

OB_TEST(adding_an_exception_that_is_there_changes_nothing)
{
	begin_with("a1");
	store_outcome("a1", OB_OUTCOME_DEAD);
	store_record();
	store_outcome("a1", OB_OUTCOME_RETRY); /* as read from the log: an ADD */
	store_record();
	store_expect_state("a1", OB_STATE_DEAD);
	ck_assert_uint_eq(store_row("a1")->attempts, 1);
}
OB_TEST_END

/* ---- an operator came between ---------------------------------------- */

OB_TEST(an_operator_decides_over_a_message_under_way)
{
	begin_with("a1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_read(0, 9);
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_operate(OB_VERB_SKIP, "a1", 1, 0);
	fx.parts[0].batch++; /* that of the verb */
	store_record();
	store_expect_state("a1", OB_STATE_DEAD);
	ck_assert_uint_eq(store_row("a1")->attempts, 1);
}
OB_TEST_END

OB_TEST(an_operators_retry_is_not_charged_but_may_succeed)
{
	begin_with("a1 b1");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("b1", OB_OUTCOME_RETRY);
	store_record();
	store_advance_ms(5000);
	store_read(0, 9);
	store_operate(OB_VERB_RETRY, NULL, 2, 0);
	fx.parts[0].batch++;
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("b1", OB_OUTCOME_PUBLISHED);
	store_record();
	store_expect_state("a1", OB_STATE_WAITING);
	ck_assert_uint_eq(store_row("a1")->attempts, 0);
	store_expect_view("b1", OB_VIEW_PUBLISHED);
}
OB_TEST_END

OB_TEST(a_dead_message_that_holds_is_not_charged_again)
{
	begin_with("a1 a2");
	fx.decide.hold_dead = true;
	store_outcome("a1", OB_OUTCOME_DEAD);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_record();
	fx.changes[fx.change_count++] = (struct ob_change){ .kind = OB_CHANGE_SET,
							    .partition = 0,
							    .seq = store_row("a1")->seq,
							    .state = OB_STATE_FAILED,
							    .attempts = 2,
							    .was_attempts = 1,
							    .due = OB_DUE_AFTER };
	store_record();
	store_expect_state("a1", OB_STATE_DEAD_HOLD);
	store_expect_view("a2", OB_VIEW_PARKED);
}
OB_TEST_END

/* ---- the text of an error -------------------------------------------- */

static void expect_error(struct ob_str given, struct ob_str stored)
{
	fx.delay_ms = 0;
	fx.error = given;
	store_settle("a1", OB_OUTCOME_RETRY);
	const struct ob_message *row = store_row("a1");
	ck_assert_msg(ob_str_eq(row->last_error, stored), "'%s' was stored as '%s'", given.p,
		      row->last_error.p);
}

OB_TEST(an_error_text_is_made_safe)
{
	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1");
	expect_error(OB_STR("plain"), OB_STR("plain"));
	expect_error(OB_STR("a\0b"), OB_STR("a b"));
	expect_error(OB_STR("two\nlines"), OB_STR("two lines"));
	expect_error(OB_STR("bad \xff\xfe byte"), OB_STR("bad \xEF\xBF\xBD\xEF\xBF\xBD byte"));
	expect_error(OB_STR("gr\xC3\xBC\xC3\x9F"), OB_STR("gr\xC3\xBC\xC3\x9F"));
	expect_error(OB_STR("'; DROP TABLE outbox; --"), OB_STR("'; DROP TABLE outbox; --"));
	expect_error(OB_STR("{a,\"b\\\",NULL}"), OB_STR("{a,\"b\\\",NULL}"));
	expect_error(OB_STR("NULL"), OB_STR("NULL"));
	expect_error(OB_STR(""), OB_STR(""));
}
OB_TEST_END

OB_TEST(an_error_text_is_cut_at_1024_characters_not_inside_one)
{
	static const char euro[] = { '\xE2', '\x82', '\xAC' };
	static char text[sizeof(euro) * 2000];

	store_begin(1);
	store_hold_all(60000);
	store_put_all("a1");
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = euro[i % sizeof(euro)];
	expect_error((struct ob_str){ text, sizeof(text) },
		     (struct ob_str){ text, sizeof(euro) * 1024 });
	memset(text, 'x', sizeof(text));
	expect_error((struct ob_str){ text, 1024 }, (struct ob_str){ text, 1024 });
	expect_error((struct ob_str){ text, 1025 }, (struct ob_str){ text, 1024 });
}
OB_TEST_END

OB_TEST(a_key_may_hold_anything)
{
	static const char *const keys[] = { "{}",  "a,b",    "\"",       "\\",  "NULL", "null",
					    "'",   "k\"v\\", "a b",      "%_*", " ",    "\xC3\xBC",
					    "x;y", "--",     "${a} {b}", "\t" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		store_begin(1);
		store_hold_all(60000);
		store_put_key("1", keys[i]);
		store_put_key("2", keys[i]);
		store_read(9, 0);
		store_outcome("1", OB_OUTCOME_RETRY);
		store_outcome("2", OB_OUTCOME_PARK);
		store_record();
		store_put_key("3", keys[i]);
		store_expect_read("3");
		ck_assert_msg(store_got("3")->held, "%s", keys[i]);
		store_park_flagged();
		store_record();
		store_advance_ms(5000);
		store_expect_read("1 2 3");
		store_outcome("1", OB_OUTCOME_PUBLISHED);
		store_record();
		store_expect_read("2 3");
		store_end();
	}
}
OB_TEST_END

STORE_CASES(settle, what_is_recorded_is_published_with_its_time,
	    the_first_record_that_covers_a_message_is_its_time,
	    each_record_is_the_next_row_of_the_journal,
	    a_failure_charges_one_attempt_and_sets_the_retry,
	    success_after_failure_leaves_a_published_message,
	    dead_charges_an_attempt_and_is_never_read_again,
	    a_parked_message_has_no_time_and_no_error, an_error_stays_until_the_next_one,
	    a_mixed_record_is_one_transaction, many_changes_fit_into_one_record, no_part_is_success,
	    removing_an_exception_that_is_not_there_is_success,
	    adding_an_exception_that_is_there_changes_nothing,
	    an_operator_decides_over_a_message_under_way,
	    an_operators_retry_is_not_charged_but_may_succeed,
	    a_dead_message_that_holds_is_not_charged_again, an_error_text_is_made_safe,
	    an_error_text_is_cut_at_1024_characters_not_inside_one, a_key_may_hold_anything)
