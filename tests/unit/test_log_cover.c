/* SPDX-License-Identifier: MIT */
/* Which rows a progress covers. */
#include "log/cover.h"
#include "suite.h"

static struct ob_cover cover;

static bool open_with(int64_t pos, const char *seen, int64_t late_pos, const char *late_seen)
{
	static struct ob_progress progress; /* the cover borrows from it */

	ob_progress_done(&progress);
	progress = (struct ob_progress){
		.pos = pos,
		.late_pos = late_pos,
		.seen = seen ? ob_seen_new(ob_str(seen)) : NULL,
		.late_seen = late_seen ? ob_seen_new(ob_str(late_seen)) : NULL,
	};
	ob_cover_close(&cover);
	return ob_cover_open(&cover, &progress);
}

OB_TEST(without_anything_seen_the_position_decides)
{
	ck_assert(open_with(10, NULL, 0, NULL));
	ck_assert(ob_cover_has(&cover, 10, 0));
	ck_assert(!ob_cover_has(&cover, 11, 0));
}
OB_TEST_END

OB_TEST(gaps_are_not_covered)
{
	ck_assert(open_with(10, "3,5-6", 0, NULL));
	ck_assert(!ob_cover_has(&cover, 3, 0));
	ck_assert(ob_cover_has(&cover, 4, 0));
	ck_assert(!ob_cover_has(&cover, 6, 99));
	ck_assert(ob_cover_seen(&cover, 12, 0)); /* whatever the position */
	ck_assert(!ob_cover_has(&cover, 12, 0));
	ck_assert(!ob_cover_late_seen(&cover, 5));
}
OB_TEST_END

OB_TEST(a_snapshot_covers_what_it_shows)
{
	ck_assert(open_with(10, "40:50:40,45", 0, NULL));
	ck_assert(ob_cover_has(&cover, 10, 39));
	ck_assert(ob_cover_has(&cover, 10, 44));
	ck_assert(!ob_cover_has(&cover, 10, 45));
	ck_assert(!ob_cover_has(&cover, 10, 50));
	ck_assert(!ob_cover_has(&cover, 11, 39));
	ck_assert(!ob_cover_has(&cover, 10, 0)); /* not known: it may be sent twice, never lost */
}
OB_TEST_END

OB_TEST(a_late_transaction_is_covered_as_far_as_it_was_read)
{
	ck_assert(open_with(10, "40:50:40", 6, "52:52:"));
	ck_assert(ob_cover_has(&cover, 6, 40));
	ck_assert(!ob_cover_has(&cover, 7, 40));
	ck_assert(ob_cover_has(&cover, 7, 41));
	ck_assert(ob_cover_has(&cover, 5, 51));
	ck_assert(!ob_cover_has(&cover, 5, 52));
}
OB_TEST_END

OB_TEST(what_cannot_be_read_covers_nothing)
{
	static const char *const texts[] = { "nonsense", "5:", "9:3:", "7,3" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_msg(!open_with(10, texts[i], 0, NULL), "%s", texts[i]);
		ck_assert(!ob_cover_has(&cover, 1, 1));
	}
	ck_assert(!open_with(10, "40:50:", 6, "x"));
	ck_assert(!ob_cover_has(&cover, 1, 1));
}
OB_TEST_END

OB_SUITE("log_cover", without_anything_seen_the_position_decides, gaps_are_not_covered,
	 a_snapshot_covers_what_it_shows, a_late_transaction_is_covered_as_far_as_it_was_read,
	 what_cannot_be_read_covers_nothing)
