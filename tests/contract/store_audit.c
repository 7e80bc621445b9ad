/* SPDX-License-Identifier: MIT */
/* Contract: what people did is taken down, listed newest first, and forgotten in time. */
#include "store_harness.h"

static struct ob_audit_row *entries;
static size_t entry_count;

static struct ob_audit_row entry_of(const char *plan, const char *verb, const char *reader)
{
	return (struct ob_audit_row){ .who = OB_STR("anna@host"),
				      .origin = OB_STR("cli"),
				      .verb = ob_str(verb),
				      .reader = ob_str(reader),
				      .filter = OB_STR("state dead"),
				      .count = 7,
				      .plan = ob_str(plan),
				      .reason = OB_STR("a reason") };
}

static void take_down(const char *plan, const char *verb, const char *reader)
{
	const struct ob_audit_row entry = entry_of(plan, verb, reader);

	store_ok(ob_store_audit(fx.store, &entry, &fx.err));
}

static const char *plans(struct ob_audit_ask ask)
{
	static char text[200];
	size_t n = 0;

	store_ok(ob_store_audits(fx.store, &ask, &fx.arena, &entries, &entry_count, &fx.err));
	text[0] = '\0';
	for (size_t i = 0; i < entry_count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "",
				      entries[i].plan.p);
	return text;
}

#define EXPECT_PLANS(expected, ...) \
	ck_assert_str_eq(plans((struct ob_audit_ask){ __VA_ARGS__ }), expected)

OB_TEST(an_entry_is_listed_as_it_was_taken_down)
{
	store_begin(1);
	EXPECT_PLANS("", .limit = 9);
	take_down("p1", "retry", "main");
	EXPECT_PLANS("p1", .limit = 9);
	ck_assert_int_gt(entries[0].number, 0);
	ck_assert_int_eq(entries[0].at_us, fx.start_us);
	ck_assert_str_eq(entries[0].who.p, "anna@host");
	ck_assert_str_eq(entries[0].origin.p, "cli");
	ck_assert_str_eq(entries[0].verb.p, "retry");
	ck_assert_str_eq(entries[0].reader.p, "main");
	ck_assert_str_eq(entries[0].filter.p, "state dead");
	ck_assert_uint_eq(entries[0].count, 7);
	ck_assert_str_eq(entries[0].reason.p, "a reason");
	store_ok(ob_store_audit(fx.store, &(struct ob_audit_row){ .plan = OB_STR("p2") }, &fx.err));
	EXPECT_PLANS("p2 p1", .limit = 9);
	ck_assert_str_eq(entries[0].reader.p, "");
	ck_assert_str_eq(entries[0].reason.p, "");
}
OB_TEST_END

OB_TEST(the_newest_come_first_and_pages_go_on_by_number)
{
	static const char *const names[] = { "p1", "p2", "p3", "p4", "p5" };

	store_begin(1);
	for (int i = 0; i < 5; i++)
		take_down(names[i], i % 2 ? "skip" : "retry", i < 3 ? "main" : "audit");
	EXPECT_PLANS("p5 p4", .limit = 2);
	EXPECT_PLANS("p3 p2", .limit = 2, .before = entries[1].number);
	EXPECT_PLANS("p1", .limit = 2, .before = entries[1].number);
	EXPECT_PLANS("", .limit = 2, .before = entries[0].number);
	EXPECT_PLANS("p5 p4 p3 p2 p1", .limit = 0);
	EXPECT_PLANS("p3 p2 p1", .reader = "main");
	EXPECT_PLANS("p4 p2", .verb = "skip");
	EXPECT_PLANS("p2", .verb = "skip", .reader = "main");
	EXPECT_PLANS("", .verb = "discard");
}
OB_TEST_END

OB_TEST(a_repeat_of_a_plan_changes_nothing)
{
	store_begin(1);
	take_down("p1", "retry", "main");
	take_down("p1", "retry", "main");
	EXPECT_PLANS("p1", .limit = 9);
	ck_assert_uint_eq(entries[0].count, 7);
}
OB_TEST_END

OB_TEST(any_text_is_taken_down_as_one_valid_line)
{
	static char large[5000];
	struct ob_audit_row entry = entry_of("p1", "retry", "main");

	memset(large, 'x', sizeof(large) - 1);
	entry.who = (struct ob_str){ "a\0b\x1b[31m\xff", 9 };
	entry.filter = ob_str(large);
	entry.reason = OB_STR("two\nlines 😀 'quoted'");
	store_begin(1);
	store_ok(ob_store_audit(fx.store, &entry, &fx.err));
	EXPECT_PLANS("p1", .limit = 9);
	ck_assert_str_eq(entries[0].who.p, "a b [31m\xef\xbf\xbd");
	ck_assert_uint_eq(entries[0].filter.n, 2048);
	ck_assert_str_eq(entries[0].reason.p, "two lines 😀 'quoted'");
}
OB_TEST_END

/* Keys a, b: failed. */
static void begin_with_failed(void)
{
	store_begin(1);
	store_hold_all(INT64_C(1000000000));
	store_put_all("a1 b1");
	store_read(99, 0);
	store_outcome("a1", OB_OUTCOME_DEAD);
	store_outcome("b1", OB_OUTCOME_DEAD);
	store_record();
}

static void retry(const struct ob_audit_row *audit, const char *label, uint64_t expected)
{
	const struct ob_operate operate = { .verb = OB_VERB_RETRY,
					    .audit = audit,
					    .filter = { .reader = "main", .event_type = label } };
	uint64_t changed = 99, refused;

	store_ok(ob_store_operate(fx.store, &operate, &changed, &refused, &fx.err));
	ck_assert_uint_eq(changed, expected);
}

OB_TEST(a_verb_in_pieces_counts_up_its_own_entry)
{
	const struct ob_audit_row audit = entry_of("p1", "retry", "main");

	begin_with_failed();
	retry(&audit, "a1", 1);
	EXPECT_PLANS("p1", .limit = 9);
	ck_assert_uint_eq(entries[0].count, 1);
	retry(&audit, "b1", 1);
	EXPECT_PLANS("p1", .limit = 9);
	ck_assert_uint_eq(entries[0].count, 2);
	/* Nothing is changed any more. */
	retry(&audit, "b1", 0);
	EXPECT_PLANS("p1", .limit = 9);
	ck_assert_uint_eq(entries[0].count, 2);
}
OB_TEST_END

OB_TEST(a_verb_that_changes_nothing_leaves_no_entry)
{
	const struct ob_audit_row audit = entry_of("p1", "retry", "main");

	begin_with_failed();
	retry(&audit, "nothing", 0);
	EXPECT_PLANS("", .limit = 9);
	retry(NULL, "a1", 1);
	EXPECT_PLANS("", .limit = 9);
}
OB_TEST_END

OB_TEST(entries_are_kept_for_their_days)
{
	const struct ob_retain retain = { .published_ms = 0, .dead_ms = OB_NEVER_MS, .limit = 9 };
	struct ob_retained done;

	store_begin(1);
	take_down("p1", "retry", "main");
	store_advance_ms(INT64_C(1000) * 86400 * (OB_AUDIT_DAYS - 1));
	take_down("p2", "retry", "main");
	store_ok(ob_store_retain(fx.store, &retain, &fx.arena, &done, &fx.err));
	EXPECT_PLANS("p2 p1", .limit = 9);
	store_advance_ms(INT64_C(1000) * 86400 * 2);
	store_ok(ob_store_retain(fx.store, &retain, &fx.arena, &done, &fx.err));
	EXPECT_PLANS("p2", .limit = 9);
	take_down("p1", "retry", "main");
	EXPECT_PLANS("p1 p2", .limit = 9);
}
OB_TEST_END

STORE_CASES(audit, an_entry_is_listed_as_it_was_taken_down,
	    the_newest_come_first_and_pages_go_on_by_number, a_repeat_of_a_plan_changes_nothing,
	    any_text_is_taken_down_as_one_valid_line, a_verb_in_pieces_counts_up_its_own_entry,
	    a_verb_that_changes_nothing_leaves_no_entry, entries_are_kept_for_their_days)
