/* SPDX-License-Identifier: MIT */
/* The line that shows how far a replay is. */
#include "cli/replay/bar.h"
#include "suite.h"

#include <string.h>

#define SECOND INT64_C(1000000)

static struct ob_replay_bar half(void)
{
	return (struct ob_replay_bar){ .name = "r1",
				       .from = 1000,
				       .position = 1500,
				       .end = 2000,
				       .published = 12345,
				       .rate = 1234,
				       .left_us = 123 * SECOND };
}

static const char *draw(const struct ob_replay_bar *bar, size_t width, bool ascii)
{
	static char text[2048];
	struct ob_buf out = OB_BUF_INIT(sizeof(text));

	ob_replay_bar_draw(bar, width, ascii, &out);
	(void)snprintf(text, sizeof(text), "%s", ob_buf_str(&out));
	ob_buf_done(&out);
	return text;
}

OB_TEST(the_bar_shows_how_far_how_fast_and_how_long)
{
	struct ob_replay_bar bar = half();

	ck_assert_str_eq(
		draw(&bar, 80, true),
		"r1 [###############...............]  50%  12,345 sent  1,234/s  2m03s left");
	ck_assert_str_eq(draw(&bar, 60, true),
			 "r1 [#######........]  50%  12,345 sent  1,234/s  2m03s left");
	bar.position = 2000;
	ck_assert_str_eq(draw(&bar, 80, true),
			 "r1 [##############################] 100%  12,345 sent  1,234/s");
	ck_assert_ptr_nonnull(strstr(draw(&bar, 80, false), "[\xE2\x96\x88\xE2\x96\x88"));
}
OB_TEST_END

OB_TEST(what_goes_wrong_is_in_the_line)
{
	struct ob_replay_bar bar = half();

	bar.dead = 2;
	bar.waits = 3;
	ck_assert_ptr_nonnull(strstr(draw(&bar, 120, true),
				     "12,345 sent  2 dead  3 waiting  1,234/s  2m03s left"));
	bar.down = true;
	ck_assert_ptr_nonnull(strstr(draw(&bar, 120, true), "1,234/s  the sink is away"));
	bar.down = false;
	bar.left_us = -1;
	ck_assert_ptr_null(strstr(draw(&bar, 120, true), "left"));
}
OB_TEST_END

OB_TEST(a_narrow_terminal_gets_the_figures_alone)
{
	struct ob_replay_bar bar = half();

	ck_assert_str_eq(draw(&bar, 40, true), "r1   50%  12,345 sent  1,234/s  2m03s l~");
	ck_assert_str_eq(draw(&bar, 0, true), "");
}
OB_TEST_END

OB_TEST(the_percentage_is_of_the_numbers_and_ends_at_the_end)
{
	struct ob_replay_bar bar = { .name = "r", .from = 0, .end = 1000 };

	ck_assert_uint_eq(ob_replay_percent(&bar), 0);
	bar.position = 999;
	ck_assert_uint_eq(ob_replay_percent(&bar), 99);
	bar.position = 1000;
	ck_assert_uint_eq(ob_replay_percent(&bar), 100);
	bar.position = 1200;
	ck_assert_uint_eq(ob_replay_percent(&bar), 100);
	bar.from = bar.end;
	bar.position = 0;
	ck_assert_uint_eq(ob_replay_percent(&bar), 100);
}
OB_TEST_END

OB_TEST(the_time_left_follows_the_speed)
{
	struct ob_replay_bar bar = half();

	ck_assert_int_eq(ob_replay_left_us(&bar, 100), 5 * SECOND);
	ck_assert_int_eq(ob_replay_left_us(&bar, 0), -1);
	bar.position = bar.end;
	ck_assert_int_eq(ob_replay_left_us(&bar, 0), 0);
}
OB_TEST_END

OB_SUITE("replay_bar", the_bar_shows_how_far_how_fast_and_how_long, what_goes_wrong_is_in_the_line,
	 a_narrow_terminal_gets_the_figures_alone,
	 the_percentage_is_of_the_numbers_and_ends_at_the_end, the_time_left_follows_the_speed)
