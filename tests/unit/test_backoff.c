/* SPDX-License-Identifier: MIT */
/* Retry delays, idle and reconnect backoff, and the seeded generator behind the jitter. */
#include "base/backoff.h"
#include "base/rng.h"
#include "suite.h"

OB_TEST(the_first_retry_comes_after_the_base_delay_and_then_it_doubles_to_the_cap)
{
	const struct ob_retry_policy policy = { 1000, 60000, 2.0, 0.0 };
	static const int64_t expected[] = { 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };

	for (uint32_t n = 1; n <= 8; n++)
		ck_assert_int_eq(ob_retry_delay_ms(&policy, n, 0.9), expected[n - 1]);
	ck_assert_int_eq(ob_retry_delay_ms(&policy, 0, 0.5), 1000);
	ck_assert_int_eq(ob_retry_delay_ms(&policy, UINT32_MAX, 0.5), 60000);
}
OB_TEST_END

OB_TEST(jitter_stays_within_its_fraction_on_both_sides)
{
	const struct ob_retry_policy policy = { 1000, 8000, 2.0, 0.25 };

	ck_assert_int_eq(ob_retry_delay_ms(&policy, 1, 0.0), 750);
	ck_assert_int_eq(ob_retry_delay_ms(&policy, 1, 0.5), 1000);
	ck_assert_int_eq(ob_retry_delay_ms(&policy, 3, 0.0), 3000);
	/* The spread remains at the cap. */
	ck_assert_int_eq(ob_retry_delay_ms(&policy, 20, 0.0), 6000);
	ck_assert_int_eq(ob_retry_delay_ms(&policy, 20, 0.75), 9000);

	struct ob_rng rng;
	int64_t least = INT64_MAX, most = 0;
	ob_rng_init(&rng, 1);
	for (int i = 0; i < 10000; i++) {
		int64_t delay = ob_retry_delay_ms(&policy, 1, ob_rng_unit(&rng));
		least = delay < least ? delay : least;
		most = delay > most ? delay : most;
	}
	ck_assert_int_ge(least, 750);
	ck_assert_int_le(least, 760);
	ck_assert_int_le(most, 1250);
	ck_assert_int_ge(most, 1240);
}
OB_TEST_END

OB_TEST(odd_policies_give_sane_delays)
{
	ck_assert_int_eq(ob_retry_delay_ms(&(struct ob_retry_policy){ 0, 1000, 2, 0.5 }, 5000, 0.5),
			 0);
	ck_assert_int_eq(
		ob_retry_delay_ms(&(struct ob_retry_policy){ 500, 500, 1, 0 }, 1000000, 0.5), 500);
	ck_assert_int_eq(ob_retry_delay_ms(&(struct ob_retry_policy){ 500, 100, 2, 0 }, 1, 0.5),
			 100);
	ck_assert_int_eq(ob_retry_delay_ms(&(struct ob_retry_policy){ 1000, 9000, 1.5, 0 }, 3, 0.5),
			 2250);
	ck_assert_int_eq(ob_retry_delay_ms(&(struct ob_retry_policy){ 10, 1000, 2, 1 }, 1, 0), 0);
	ck_assert_int_eq(
		ob_retry_delay_ms(&(struct ob_retry_policy){ 1, INT64_MAX, 1000, 1 }, 1000, 0.99),
		INT64_MAX);
}
OB_TEST_END

OB_TEST(waiting_doubles_to_the_cap_and_a_reset_begins_again)
{
	struct ob_backoff backoff;
	static const int64_t expected[] = { 100, 200, 400, 800, 1000, 1000 };

	ob_backoff_init(&backoff, 100, 1000);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 6; i++)
			ck_assert_int_eq(ob_backoff_next_ms(&backoff), expected[i]);
		ob_backoff_reset(&backoff);
	}
}
OB_TEST_END

OB_TEST(a_cap_not_above_base_means_no_growth)
{
	struct ob_backoff backoff;

	for (int64_t cap = 0; cap <= 100; cap += 50) {
		ob_backoff_init(&backoff, 100, cap);
		for (int i = 0; i < 5; i++)
			ck_assert_int_eq(ob_backoff_next_ms(&backoff), 100);
	}
	ob_backoff_init(&backoff, INT64_MAX / 2 + 10, INT64_MAX);
	(void)ob_backoff_next_ms(&backoff);
	ck_assert_int_eq(ob_backoff_next_ms(&backoff), INT64_MAX);
}
OB_TEST_END

OB_TEST(a_seed_repeats_its_numbers_and_another_does_not)
{
	struct ob_rng a, b, c;
	int same = 0;

	ob_rng_init(&a, 42);
	ob_rng_init(&b, 42);
	ob_rng_init(&c, 43);
	for (int i = 0; i < 100; i++) {
		uint64_t x = ob_rng_next(&a);

		ck_assert_uint_eq(x, ob_rng_next(&b));
		same += x == ob_rng_next(&c);
	}
	ck_assert_int_eq(same, 0);
	ob_rng_init_random(&a);
	ob_rng_init_random(&b);
	ck_assert_uint_ne(ob_rng_next(&a), ob_rng_next(&b));
}
OB_TEST_END

OB_TEST(random_numbers_stay_below_their_limit_and_reach_all_of_it)
{
	unsigned seen[7] = { 0 };
	struct ob_rng rng;

	ob_rng_init(&rng, 0);
	for (int i = 0; i < 70000; i++)
		seen[ob_rng_below(&rng, 7)]++;
	for (int i = 0; i < 7; i++) {
		ck_assert_uint_gt(seen[i], 9500);
		ck_assert_uint_lt(seen[i], 10500);
	}
	ck_assert_uint_eq(ob_rng_below(&rng, 1), 0);
	for (int i = 0; i < 1000; i++) {
		ck_assert_uint_le(ob_rng_below(&rng, UINT64_MAX), UINT64_MAX - 1);
		double unit = ob_rng_unit(&rng);
		ck_assert(unit >= 0 && unit < 1);
	}
}
OB_TEST_END

OB_SUITE("backoff", the_first_retry_comes_after_the_base_delay_and_then_it_doubles_to_the_cap,
	 jitter_stays_within_its_fraction_on_both_sides, odd_policies_give_sane_delays,
	 waiting_doubles_to_the_cap_and_a_reset_begins_again, a_cap_not_above_base_means_no_growth,
	 a_seed_repeats_its_numbers_and_another_does_not,
	 random_numbers_stay_below_their_limit_and_reach_all_of_it)
