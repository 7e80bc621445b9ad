/* SPDX-License-Identifier: MIT */
/* The life of a delivery, the same on every sink: one outcome for each, or forgotten. */
#include "sink_harness.h"
#include "suite.h"

#include <stdlib.h>

enum { KEYS = 7, MANY = 10000 };

static struct ob_str key_of(size_t i)
{
	static const char *const keys[KEYS] = { "a", "b", "c", "d", "e", "f", "g" };

	return ob_str(keys[i % KEYS]);
}

static struct parcel *make_parcels(size_t count)
{
	struct parcel *parcels = calloc(count, sizeof(*parcels));

	ck_assert_ptr_nonnull(parcels);
	for (size_t i = 0; i < count; i++)
		parcel_init(&parcels[i], i, key_of(i), OB_STR("{\"n\":1}"));
	return parcels;
}

static int poll_now(struct ob_sink *sink, struct ob_ack *acks, size_t max)
{
	struct ob_err err = OB_ERR_INIT;
	int n = ob_sink_poll(sink, 0, acks, max, &err);

	ck_assert_msg(n >= 0, "%s", err.msg);
	return n;
}

OB_TEST(ten_thousand_deliveries_get_one_outcome_each_and_keep_the_order_of_keys)
{
	struct sink_env env;
	struct stored *stored;
	uint64_t next[KEYS];

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	struct parcel *parcels = make_parcels(MANY);
	struct tally tally = { .seen = calloc(MANY, 1), .seen_size = MANY };
	for (size_t i = 0; i < MANY; i++)
		sink_push(sink, &parcels[i].delivery, &tally);
	sink_drain(sink, &tally, MANY);
	ck_assert_uint_eq(tally.confirmed, MANY);
	ck_assert_uint_eq(sink_read(&env, &stored), MANY);
	for (size_t k = 0; k < KEYS; k++)
		next[k] = k;
	for (size_t i = 0; i < MANY && !env.plan.store_late && !env.kind->concurrent; i++) {
		uint64_t key = stored[i].n % KEYS;

		ck_assert(ob_str_eq(stored[i].key, key_of(key)));
		ck_assert_uint_eq(stored[i].n, next[key]);
		next[key] += KEYS;
	}
	ob_sink_free(sink);
	free(tally.seen);
	free(parcels);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(outcomes_can_be_fetched_one_by_one)
{
	struct sink_env env;
	struct ob_ack ack;
	uint8_t seen[50] = { 0 };
	struct tally tally = { .seen = seen, .seen_size = 50 };

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	struct parcel *parcels = make_parcels(50);
	for (size_t i = 0; i < 50; i++)
		sink_push(sink, &parcels[i].delivery, &tally);
	while (tally.confirmed < 50)
		tally_polled(&tally, &ack, poll_now(sink, &ack, 1));
	ck_assert_int_eq(poll_now(sink, &ack, 1), 0);
	ob_sink_free(sink);
	free(parcels);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_full_window_says_so_and_goes_on_after_a_poll)
{
	struct sink_env env;
	struct ob_err err = OB_ERR_INIT;
	struct tally tally = { 0 };
	size_t accepted = 0;
	int r = 0;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	struct parcel *parcels = make_parcels(MANY);
	while (accepted < MANY && (r = ob_sink_send(sink, &parcels[accepted].delivery, &err)) == 0)
		accepted++;
	ck_assert_int_eq(r, OB_SINK_FULL);
	ck_assert_int_eq(ob_sink_send(sink, &parcels[accepted].delivery, &err), OB_SINK_FULL);
	sink_drain(sink, &tally, accepted);
	ck_assert_int_eq(ob_sink_send(sink, &parcels[accepted].delivery, &err), 0);
	sink_drain(sink, &tally, accepted + 1);
	ck_assert_uint_eq(tally.failed, 0);
	ob_sink_free(sink);
	free(parcels);
	sink_env_done(&env);
}
OB_TEST_END

static void send_ten(struct ob_sink *sink, const struct parcel *parcels)
{
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < 10; i++)
		ck_assert_int_eq(ob_sink_send(sink, &parcels[i].delivery, &err), 0);
}

OB_TEST(reset_forgets_and_nothing_comes_after)
{
	struct sink_env env;
	struct ob_err err = OB_ERR_INIT;
	struct stored *stored;
	struct tally tally = { 0 };
	struct ob_ack acks[64];

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	struct parcel *parcels = make_parcels(20);
	send_ten(sink, parcels);
	ob_sink_reset(sink);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(poll_now(sink, acks, 64), 0);
	for (size_t i = 10; i < 20; i++)
		sink_push(sink, &parcels[i].delivery, &tally);
	uint8_t seen[20] = { 0 };
	tally.seen = seen;
	tally.seen_size = 20;
	sink_drain(sink, &tally, 10);
	for (size_t i = 0; i < 20; i++)
		ck_assert_uint_eq(seen[i], i >= 10);
	size_t count = sink_read(&env, &stored);
	ck_assert_uint_ge(count, 10);
	ck_assert_uint_ge(stored[count - 1].n, 10);
	ob_sink_free(sink);
	free(parcels);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(closing_with_unconfirmed_deliveries_is_clean)
{
	struct sink_env env;
	struct stored *stored;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	struct parcel *parcels = make_parcels(10);
	send_ten(sink, parcels);
	ob_sink_free(sink);
	(void)sink_read(&env, &stored); /* whatever is there is whole */
	free(parcels);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(opening_again_leaves_the_unconfirmed_alone)
{
	struct sink_env env;
	struct ob_err err = OB_ERR_INIT;
	struct tally tally = { 0 };
	struct parcel parcel;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{}"));
	sink_push(sink, &parcel.delivery, &tally);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	ck_assert_int_eq(ob_sink_open(sink, &err), 0);
	sink_drain(sink, &tally, 1);
	ck_assert_uint_eq(tally.confirmed, 1);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_sink_that_was_never_opened_is_down_and_closes)
{
	struct sink_env env;
	struct ob_err err = OB_ERR_INIT;
	struct parcel parcel;
	struct ob_ack ack;

	sink_env_init(&env);
	struct ob_sink *sink = env.kind->make(&env);
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{}"));
	ck_assert_int_lt(ob_sink_send(sink, &parcel.delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_int_eq(poll_now(sink, &ack, 1), 0);
	ob_sink_reset(sink);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_poll_with_nothing_to_do_returns_at_once)
{
	struct sink_env env;
	struct ob_buf text = OB_BUF_INIT(1000);
	struct ob_ack ack;

	sink_env_init(&env);
	struct ob_sink *sink = sink_make(&env);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(poll_now(sink, &ack, 1), 0);
	ck_assert_int_ge(ob_sink_fd(sink), -1);
	ob_sink_describe(sink, &text);
	ck_assert_uint_gt(text.len, 0);
	ck_assert_ptr_null(strchr(ob_buf_str(&text), '\n'));
	ob_buf_done(&text);
	ob_sink_free(sink);
	sink_env_done(&env);
}
OB_TEST_END

SINK_SUITE("sink outcomes", ten_thousand_deliveries_get_one_outcome_each_and_keep_the_order_of_keys,
	   outcomes_can_be_fetched_one_by_one, a_full_window_says_so_and_goes_on_after_a_poll,
	   reset_forgets_and_nothing_comes_after, closing_with_unconfirmed_deliveries_is_clean,
	   opening_again_leaves_the_unconfirmed_alone,
	   a_sink_that_was_never_opened_is_down_and_closes,
	   a_poll_with_nothing_to_do_returns_at_once)
