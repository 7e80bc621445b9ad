/* SPDX-License-Identifier: MIT */
/* What the demonstration shows: exact text for exact numbers. */
#include "cli/demo/view.h"

#include "suite.h"

static const struct ob_demo_style plain = { .width = 80, .ascii = true };

static struct ob_demo_view sample(void)
{
	return (struct ob_demo_view){
		.elapsed_us = 5000000,
		.total_us = 20000000,
		.phase = "taking orders",
		.committed = 1234,
		.rolled_back = 140,
		.delivered = 1230,
		.waiting = 4,
		.oldest_us = 12000,
		.workers = { { 101, OB_DEMO_WORKS, 8 }, { 102, OB_DEMO_PAUSED, 3 } },
		.worker_count = 2,
		.killed = 2,
		.paused = 1,
		.news = "kill -STOP 102",
	};
}

static const char *draw(const struct ob_demo_view *view, const struct ob_demo_style *style)
{
	static struct ob_buf out;

	ob_buf_done(&out);
	out = OB_BUF_INIT(65536);
	size_t lines = ob_demo_draw(view, style, &out), seen = 0;
	for (const char *p = ob_buf_str(&out); (p = strchr(p, '\n')); p++)
		seen++;
	ck_assert_uint_eq(lines, seen);
	return ob_buf_str(&out);
}

static const char *verdict_of(const struct ob_demo_verdict *verdict,
			      const struct ob_demo_style *style)
{
	static struct ob_buf out;

	ob_buf_done(&out);
	out = OB_BUF_INIT(65536);
	ob_demo_draw_verdict(verdict, style, &out);
	return ob_buf_str(&out);
}

OB_TEST(the_view_shows_what_happens)
{
	struct ob_demo_view view = sample();

	ck_assert_str_eq(
		draw(&view, &plain),
		"outbox demo   taking orders             5 of 20 s  =======----------------------\n"
		"  the shop    1,234 events committed   140 rolled back\n"
		"  the relay   1,230 events delivered   0/s  \n"
		"  waiting     4 events, the oldest for 12ms\n"
		"  workers     * 101 has 8/16   o 102 paused\n");
}
OB_TEST_END

OB_TEST(mishaps_have_a_line_of_their_own)
{
	struct ob_demo_view view = sample();

	view.chaos = true;
	ck_assert_ptr_nonnull(strstr(draw(&view, &plain),
				     "  mishaps     2 killed   1 paused   "
				     "kill -STOP 102\n"));
}
OB_TEST_END

OB_TEST(no_line_is_wider_than_the_terminal)
{
	struct ob_demo_view view = sample();
	struct ob_buf intro = OB_BUF_INIT(4096);

	view.chaos = true;
	view.worker_count = OB_DEMO_PROCESSES;
	for (size_t width = 20; width <= 120; width++) {
		struct ob_demo_style style = { .width = width, .ascii = true };
		const char *line = draw(&view, &style);

		for (const char *nl; (nl = strchr(line, '\n')); line = nl + 1)
			ck_assert_uint_le((size_t)(nl - line), width);
	}
	/* the first thing anyone reads must fit on the smallest usual terminal */
	ob_demo_draw_intro(true, &plain, &intro);
	ck_assert_ptr_null(strchr(ob_buf_str(&intro), '~'));
	ob_buf_done(&intro);
}
OB_TEST_END

OB_TEST(a_line_for_the_log_says_the_same)
{
	struct ob_demo_view view = sample();
	struct ob_buf out = OB_BUF_INIT(4096);

	view.chaos = true;
	ob_demo_draw_line(&view, &out);
	ck_assert_str_eq(ob_buf_str(&out),
			 "  5 s  committed 1234  rolled back 140  delivered 1230  0/s  waiting 4 "
			 "(oldest 12ms)  workers 1  killed 2  paused 1\n");
	ob_buf_done(&out);
}
OB_TEST_END

OB_TEST(a_clean_audit_says_what_it_means)
{
	struct ob_audit audit = { .committed = 1234, .delivered = 1234, .rolled_back = 140 };
	struct ob_demo_verdict verdict = { .audit = &audit };

	ck_assert(ob_demo_holds(&verdict));
	ck_assert_str_eq(
		verdict_of(&verdict, &plain),
		"\nThe audit\n"
		"  committed            1,234      events, as the shop remembers them\n"
		"  rolled back            140      events of transactions that failed\n"
		"  delivered            1,234      of the committed ones, found in the file\n"
		"  lost                     0   ok committed, but not in the file\n"
		"  ghosts                   0   ok rolled back, but in the file\n"
		"  out of order             0   ok behind a later one of its customer\n"
		"  duplicates               0   ok delivered more than once\n"
		"\n"
		"Every committed event arrived once, in order per customer.\n"
		"Of what was rolled back, nothing did.\n");
}
OB_TEST_END

OB_TEST(duplicates_are_a_fault_unless_something_happened)
{
	struct ob_audit audit = { .committed = 9, .delivered = 9, .duplicates = 7 };
	struct ob_demo_verdict verdict = { .audit = &audit };

	ck_assert(!ob_demo_holds(&verdict));
	ck_assert_ptr_nonnull(strstr(verdict_of(&verdict, &plain), "7   NO"));
	verdict.chaos = true;
	verdict.killed = 1;
	verdict.duplicates_max = 1500;
	ck_assert(ob_demo_holds(&verdict));
	ck_assert_ptr_nonnull(strstr(verdict_of(&verdict, &plain),
				     "7   ok came again after a mishap (bound: 1,500)\n"));
	ck_assert_ptr_nonnull(strstr(verdict_of(&verdict, &plain), "1 killed, 0 paused"));
}
OB_TEST_END

OB_TEST(a_failed_audit_shows_what_was_found)
{
	struct ob_audit audit = { .committed = 9, .delivered = 8, .lost = 1 };
	struct ob_demo_verdict verdict = { .audit = &audit };

	audit.examples = OB_BUF_INIT(100);
	ob_buf_adds(&audit.examples, "this one is gone\n");
	const char *text = verdict_of(&verdict, &plain);
	ck_assert_ptr_nonnull(strstr(text, "The promises do not hold"));
	ck_assert_ptr_nonnull(strstr(text, "this one is gone\n"));
	ck_assert_ptr_null(strstr(text, "Every committed"));
	ob_audit_done(&audit);
}
OB_TEST_END

OB_SUITE("demo_view", the_view_shows_what_happens, mishaps_have_a_line_of_their_own,
	 no_line_is_wider_than_the_terminal, a_line_for_the_log_says_the_same,
	 a_clean_audit_says_what_it_means, duplicates_are_a_fault_unless_something_happened,
	 a_failed_audit_shows_what_was_found)
