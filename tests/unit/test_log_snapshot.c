/* SPDX-License-Identifier: MIT */
/* Progress and PostgreSQL's snapshots. */
#include "log/snapshot.h"
#include "suite.h"

static struct ob_snapshot parse(const char *text)
{
	struct ob_snapshot snapshot = { 0 };

	ck_assert_msg(ob_snapshot_parse(ob_str(text), &snapshot), "%s", text);
	return snapshot;
}

OB_TEST(a_snapshot_shows_what_had_committed)
{
	struct ob_snapshot s = parse("10:20:10,14,19");
	static const uint64_t hidden[] = { 10, 14, 19, 20, 21, UINT64_MAX };
	static const uint64_t shown[] = { 1, 9, 11, 13, 15, 18 };

	ck_assert_uint_eq(s.xmin, 10);
	ck_assert_uint_eq(s.xmax, 20);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		ck_assert_msg(!ob_snapshot_shows(&s, hidden[i]), "%d", (int)hidden[i]);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		ck_assert_msg(ob_snapshot_shows(&s, shown[i]), "%d", (int)shown[i]);
}
OB_TEST_END

OB_TEST(a_snapshot_without_open_transactions_is_a_line)
{
	struct ob_snapshot s = parse("7:7:");

	ck_assert(ob_snapshot_shows(&s, 6));
	ck_assert(!ob_snapshot_shows(&s, 7));
	s = parse("18446744073709551614:18446744073709551615:18446744073709551614");
	ck_assert(ob_snapshot_shows(&s, 18446744073709551613U));
	ck_assert(!ob_snapshot_shows(&s, 18446744073709551614U));
}
OB_TEST_END

OB_TEST(what_is_not_a_snapshot_is_refused)
{
	static const char *const texts[] = {
		"",        "1",
		"1:2",     "a:b:",
		"2:1:",    "1:3:3",
		"2:4:1",   "1:5:3,2",
		"1:5:2,2", "1:5:2,",
		"1:5:,2",  "1:5:2 ",
		" 1:5:2",  "1:5:2,x",
		"-1:5:2",  "1:5:2;3",
		"0:5:",    "1::",
		":1:",     "1:5:2,3,4,5",
		"7,9-12",  "1:99999999999999999999:",
		"NULL",
	};
	struct ob_snapshot snapshot;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		/* In memory that ends with the text: a sanitizer sees a read beyond it. */
		size_t n = strlen(texts[i]);
		char *copy = malloc(n ? n : 1);

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, texts[i], n);
		ck_assert_msg(!ob_snapshot_parse((struct ob_str){ copy, n }, &snapshot), "%s",
			      texts[i]);
		free(copy);
	}
	ck_assert(!ob_snapshot_parse(OB_STR_NULL, &snapshot));
}
OB_TEST_END

OB_TEST(progress_shares_what_was_seen)
{
	struct ob_seen *seen = ob_seen_new(OB_STR("7:7:"));
	struct ob_progress a = { 5, 0, seen, NULL }, b = { 0 };

	ob_progress_set(&b, &a);
	ck_assert_uint_eq(seen->refs, 2);
	ob_progress_set(&b, &b);
	ck_assert_uint_eq(seen->refs, 2);
	ck_assert(ob_progress_equal(&a, &b));
	ob_progress_done(&a);
	ck_assert_str_eq(b.seen->text, "7:7:");
	ck_assert_ptr_null(a.seen);
	ob_progress_done(&b);
}
OB_TEST_END

OB_TEST(progress_is_equal_when_it_covers_the_same)
{
	struct ob_seen *seven = ob_seen_new(OB_STR("7:7:")), *too = ob_seen_new(OB_STR("7:7:"));
	struct ob_seen *eight = ob_seen_new(OB_STR("7:8:"));
	const struct ob_progress a = { 5, 0, seven, NULL };

	ck_assert(ob_progress_equal(&a, &(struct ob_progress){ 5, 9, too, NULL }));
	ck_assert(!ob_progress_equal(&a, &(struct ob_progress){ 6, 0, seven, NULL }));
	ck_assert(!ob_progress_equal(&a, &(struct ob_progress){ 5, 0, eight, NULL }));
	ck_assert(!ob_progress_equal(&a, &(struct ob_progress){ 5, 0, NULL, NULL }));
	ck_assert(!ob_progress_equal(&a, &(struct ob_progress){ 5, 3, seven, eight }));
	ck_assert(!ob_progress_equal(&(struct ob_progress){ 5, 2, seven, eight },
				     &(struct ob_progress){ 5, 3, seven, eight }));
	ob_seen_unref(seven);
	ob_seen_unref(too);
	ob_seen_unref(eight);
	ob_seen_unref(NULL);
	ck_assert_ptr_null(ob_seen_ref(NULL));
}
OB_TEST_END

OB_SUITE("log_snapshot", a_snapshot_shows_what_had_committed,
	 a_snapshot_without_open_transactions_is_a_line, what_is_not_a_snapshot_is_refused,
	 progress_shares_what_was_seen, progress_is_equal_when_it_covers_the_same)
