/* SPDX-License-Identifier: MIT */
/* Who is suspected of making the receiver hang up, and who is to blame. */
#include "relay/suspects.h"
#include "suite.h"

enum { MAX = 40, OTHER = 1000000 };

static struct ob_suspects suspects;

static void start(void)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_suspects_init(&suspects, MAX, &err), 0);
}

/* A suspect of that number, after which another has passed. */
static void accuse(int64_t seq)
{
	for (int i = 0; i < OB_SUSPECT_DROPS; i++)
		ck_assert(!ob_suspects_drop(&suspects, seq, false));
	ob_suspects_pass(&suspects, OTHER);
}

OB_TEST(two_lost_connections_make_a_suspect_and_a_pass_clears_it)
{
	start();
	ck_assert(!ob_suspects_drop(&suspects, 7, false));
	ck_assert(!ob_suspects_has(&suspects, 7));
	ck_assert(!ob_suspects_drop(&suspects, 7, false));
	ck_assert(ob_suspects_has(&suspects, 7));
	ck_assert(!ob_suspects_has(&suspects, 8));
	ob_suspects_pass(&suspects, 7);
	ck_assert(!ob_suspects_has(&suspects, 7));
	ck_assert(!ob_suspects_drop(&suspects, 7, false));
	ck_assert(!ob_suspects_has(&suspects, 7));
	ob_suspects_done(&suspects);
}
OB_TEST_END

OB_TEST(three_losses_alone_while_others_pass_are_its_own)
{
	start();
	accuse(7);
	for (int attempt = 0; attempt < 3; attempt++) {
		for (int i = 1; i <= OB_SUSPECT_STRIKES; i++) {
			ck_assert_int_eq(ob_suspects_drop(&suspects, 7, true),
					 i == OB_SUSPECT_STRIKES);
			ob_suspects_pass(&suspects, OTHER);
		}
		ck_assert(ob_suspects_has(&suspects, 7));
	}
	ob_suspects_done(&suspects);
}
OB_TEST_END

OB_TEST(while_nothing_passes_nobody_is_to_blame)
{
	start();
	accuse(7);
	for (int i = 0; i < 1000; i++)
		ck_assert(!ob_suspects_drop(&suspects, 7, true));
	ob_suspects_done(&suspects);
}
OB_TEST_END

OB_TEST(in_company_nobody_is_to_blame)
{
	start();
	accuse(7);
	for (int i = 0; i < 1000; i++) {
		ck_assert(!ob_suspects_drop(&suspects, 7, false));
		ob_suspects_pass(&suspects, OTHER);
	}
	ob_suspects_done(&suspects);
}
OB_TEST_END

OB_TEST(many_are_known_at_a_time_and_too_many_are_forgotten)
{
	start();
	for (int64_t seq = 1; seq <= MAX; seq++)
		accuse(seq);
	for (int64_t seq = 1; seq <= MAX; seq++)
		ck_assert(ob_suspects_has(&suspects, seq));
	for (int64_t seq = MAX + 1; seq <= 100 * MAX; seq++) {
		accuse(seq);
		ck_assert(ob_suspects_has(&suspects, seq));
		ck_assert_uint_le(suspects.used, suspects.mask);
		if (seq % 3 == 0)
			ob_suspects_pass(&suspects, seq);
	}
	ob_suspects_done(&suspects);
}
OB_TEST_END

/* As after two crashes: nobody is left to blame, and it must not take a round trip for each. */
OB_TEST(with_each_that_passes_more_may_go_together)
{
	start();
	for (int64_t seq = 1; seq <= MAX; seq++)
		accuse(seq);
	ck_assert_uint_eq(ob_suspects_company(&suspects, 1), 0);
	ck_assert_uint_eq(ob_suspects_company(&suspects, OTHER), UINT32_MAX);
	for (int64_t seq = 1; seq <= 4; seq++)
		ob_suspects_pass(&suspects, seq);
	ck_assert_uint_eq(ob_suspects_company(&suspects, 5), 15);
	/* A lost connection: from the beginning, and who was on it waits for the others. */
	ck_assert(!ob_suspects_drop(&suspects, 5, false));
	ck_assert_uint_eq(ob_suspects_company(&suspects, 6), 0);
	ob_suspects_pass(&suspects, 6);
	ck_assert_uint_eq(ob_suspects_company(&suspects, 7), 1);
	ck_assert_uint_eq(ob_suspects_company(&suspects, 5), 0);
	for (int64_t seq = 7; seq <= MAX; seq++)
		ob_suspects_pass(&suspects, seq);
	ck_assert_uint_eq(ob_suspects_company(&suspects, 5), 0);
	ob_suspects_done(&suspects);
}
OB_TEST_END

OB_SUITE("suspects", two_lost_connections_make_a_suspect_and_a_pass_clears_it,
	 three_losses_alone_while_others_pass_are_its_own, while_nothing_passes_nobody_is_to_blame,
	 in_company_nobody_is_to_blame, many_are_known_at_a_time_and_too_many_are_forgotten,
	 with_each_that_passes_more_may_go_together)
