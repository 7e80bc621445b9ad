/* SPDX-License-Identifier: MIT */
/* What may be removed from the log. */
#include "log/retention.h"
#include "suite.h"

static struct ob_retain_bound bound;

static bool add(int64_t pos, const char *seen, bool snapshots)
{
	struct ob_progress progress = { .pos = pos,
					.seen = seen ? ob_seen_new(ob_str(seen)) : NULL };
	bool ok = ob_retain_add(&bound, &progress, snapshots);

	ob_progress_done(&progress);
	return ok;
}

OB_TEST(nothing_goes_without_a_reader)
{
	ob_retain_init(&bound);
	ck_assert(!ob_retain_may_go(&bound, 1, 1));
	ob_retain_done(&bound);
}
OB_TEST_END

OB_TEST(the_slowest_reader_decides)
{
	ob_retain_init(&bound);
	ck_assert(add(9, NULL, false));
	ck_assert(add(5, NULL, false));
	ck_assert(add(7, NULL, false));
	ck_assert(ob_retain_may_go(&bound, 5, 0));
	ck_assert(!ob_retain_may_go(&bound, 6, 0));
	ob_retain_done(&bound);
	ck_assert(!ob_retain_may_go(&bound, 5, 0));
}
OB_TEST_END

OB_TEST(a_transaction_that_was_open_keeps_its_rows)
{
	ob_retain_init(&bound);
	ck_assert(add(100, "40:60:40,50", true));
	ck_assert(ob_retain_may_go(&bound, 3, 39));
	ck_assert(!ob_retain_may_go(&bound, 3, 40)); /* a low number, not delivered */
	ck_assert(!ob_retain_may_go(&bound, 3, 61));
	ck_assert(add(100, "30:80:30", true));
	ck_assert(!ob_retain_may_go(&bound, 3, 30));
	ck_assert(ob_retain_may_go(&bound, 3, 29));
	ob_retain_done(&bound);
}
OB_TEST_END

OB_TEST(a_gap_of_any_reader_is_kept)
{
	ob_retain_init(&bound);
	ck_assert(add(100, "7,9-12", false));
	ck_assert(add(100, NULL, false));
	ck_assert(add(90, "3,8", false));
	for (int64_t seq = 1; seq <= 100; seq++)
		ck_assert(ob_retain_may_go(&bound, seq, 0) ==
			  (seq <= 90 && seq != 3 && (seq < 7 || seq > 12)));
	ob_retain_done(&bound);
}
OB_TEST_END

OB_TEST(what_cannot_be_read_lets_nothing_go)
{
	ob_retain_init(&bound);
	ck_assert(!add(100, "nonsense", false));
	ck_assert(!ob_retain_may_go(&bound, 1, 0));
	ob_retain_done(&bound);
	ob_retain_init(&bound);
	ck_assert(!add(100, "7,9", true));
	ck_assert(!ob_retain_may_go(&bound, 1, 1));
	ob_retain_done(&bound);
	ob_retain_init(&bound);
	ck_assert(add(100, NULL, true)); /* a snapshot is missing: nothing is known */
	ck_assert(!ob_retain_may_go(&bound, 1, 1));
	ob_retain_done(&bound);
}
OB_TEST_END

OB_SUITE("log_retention", nothing_goes_without_a_reader, the_slowest_reader_decides,
	 a_transaction_that_was_open_keeps_its_rows, a_gap_of_any_reader_is_kept,
	 what_cannot_be_read_lets_nothing_go)
