/* SPDX-License-Identifier: MIT */
/* Failure kinds to actions, and the last errors. */
#include "relay/metrics.h"
#include "relay/policy.h"
#include "suite.h"

static const struct ob_policy policy = {
	.retry = { .base_ms = 5000, .max_ms = 60000, .multiplier = 2, .jitter = 0.25 },
	.max_attempts = 4,
};

OB_TEST(each_kind_has_its_action)
{
	static const struct {
		enum ob_err_kind kind;
		enum ob_action action;
	} cases[] = {
		{ OB_ERR_NONE, OB_ACT_PUBLISHED }, { OB_ERR_DOWN, OB_ACT_WAIT },
		{ OB_ERR_RETRY, OB_ACT_RETRY },    { OB_ERR_REJECT, OB_ACT_DEAD },
		{ OB_ERR_LOST, OB_ACT_FORGET },    { OB_ERR_FATAL, OB_ACT_STOP },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_int_eq(ob_policy_judge(&policy, cases[i].kind, 0, 0.5).action,
				 cases[i].action);
}
OB_TEST_END

OB_TEST(the_first_retry_comes_after_the_base_delay_and_then_it_doubles)
{
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, 0, 0.5).delay_ms, 5000);
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, 1, 0.5).delay_ms, 10000);
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, 2, 0.5).delay_ms, 20000);
}
OB_TEST_END

OB_TEST(jitter_is_applied_both_ways)
{
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, 0, 0).delay_ms, 3750);
	ck_assert_int_gt(ob_policy_judge(&policy, OB_ERR_RETRY, 0, 0.99).delay_ms, 6000);
}
OB_TEST_END

OB_TEST(the_attempt_that_reaches_the_maximum_is_the_last)
{
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, 2, 0.5).action, OB_ACT_RETRY);
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, 3, 0.5).action, OB_ACT_DEAD);
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_RETRY, UINT32_MAX, 0.5).action,
			 OB_ACT_DEAD);
}
OB_TEST_END

OB_TEST(an_outage_never_ends_a_message)
{
	ck_assert_int_eq(ob_policy_judge(&policy, OB_ERR_DOWN, 1000, 0.5).action, OB_ACT_WAIT);
}
OB_TEST_END

OB_TEST(the_last_five_errors_are_kept_newest_last_and_long_ones_are_cut)
{
	struct ob_metrics metrics;
	struct ob_metrics_data data;
	struct ob_err err = OB_ERR_INIT;

	ob_metrics_init(&metrics, &(struct ob_uuid){ { 0 } });
	for (int i = 0; i < 7; i++) {
		(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_RETRY, "error %d", i);
		ob_metrics_error(&metrics, OB_ERROR_OF_SINK, i, &err, NULL);
	}
	memset(err.msg, 'x', sizeof(err.msg) - 1);
	ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 7, &err, NULL);
	ob_metrics_read(&metrics, &data);
	ck_assert_uint_eq(data.error_count, 5);
	ck_assert_str_eq(data.errors[0].text, "error 3");
	ck_assert_str_eq(data.errors[3].text, "error 6");
	ck_assert_uint_lt(strlen(data.errors[4].text), OB_LAST_ERROR_TEXT);
	ck_assert_str_eq(data.errors[4].text + strlen(data.errors[4].text) - 3, "\xe2\x80\xa6");
	/* An older one than those that are kept. */
	(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_RETRY, "too old");
	ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 2, &err, NULL);
	ob_metrics_read(&metrics, &data);
	ck_assert_uint_eq(data.error_count, 5);
	ck_assert_str_eq(data.errors[0].text, "error 3");
	ob_metrics_done(&metrics);
}
OB_TEST_END

/* The longest text that is kept whole, and one byte more; of characters of two bytes, none is cut.
 */
OB_TEST(a_text_is_cut_between_two_characters)
{
	struct ob_metrics metrics;
	struct ob_metrics_data data;
	struct ob_err err = { .kind = OB_ERR_RETRY };
	char text[OB_LAST_ERROR_TEXT + 2] = "";

	ob_metrics_init(&metrics, &(struct ob_uuid){ { 0 } });
	memset(text, 'x', OB_LAST_ERROR_TEXT - 1);
	memcpy(err.msg, text, sizeof(text));
	ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 1, &err, NULL);
	err.msg[OB_LAST_ERROR_TEXT - 1] = 'x';
	ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 2, &err, NULL);
	/* One byte, so that the limit falls into the middle of a character. */
	for (size_t i = 1; i < OB_LAST_ERROR_TEXT; i += 2)
		memcpy(err.msg + i, "\xc3\xa9", 2);
	ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 3, &err, &(struct ob_uuid){ { 7 } });
	ob_metrics_read(&metrics, &data);
	ck_assert_str_eq(data.errors[0].text, text);
	ck_assert_uint_eq(strlen(data.errors[1].text), OB_LAST_ERROR_TEXT - 1);
	ck_assert_str_eq(data.errors[1].text + OB_LAST_ERROR_TEXT - 4, "\xe2\x80\xa6");
	ck_assert_str_eq(data.errors[2].text + strlen(data.errors[2].text) - 5,
			 "\xc3\xa9\xe2\x80\xa6");
	ck_assert_uint_eq(data.errors[1].message.b[0], 0);
	ck_assert_uint_eq(data.errors[2].message.b[0], 7);
	ob_metrics_done(&metrics);
}
OB_TEST_END

OB_TEST(what_several_workers_did_is_added_up_and_the_worst_of_them_counts)
{
	struct ob_metrics_data sum = { 0 };
	const struct ob_metrics_data parts[] = {
		{ .queued = 1,
		  .fetch_us = 10,
		  .settle_us = 20,
		  .last_fetch_us = 5,
		  .last_settle_us = 9,
		  .oldest_unsettled_us = 7,
		  .breaker = OB_BREAKER_HALF_OPEN },
		{ .queued = 2,
		  .fetch_us = 30,
		  .settle_us = 40,
		  .last_fetch_us = 6,
		  .last_settle_us = 8,
		  .oldest_unsettled_us = 4,
		  .breaker = OB_BREAKER_CLOSED,
		  .alarm = true },
		{ .queued = 3, .breaker = OB_BREAKER_CLOSED },
	};

	for (size_t i = 0; i < 3; i++)
		ob_metrics_add(&sum, &parts[i]);
	ck_assert_uint_eq(sum.queued, 6);
	ck_assert_uint_eq(sum.fetch_us, 40);
	ck_assert_uint_eq(sum.settle_us, 60);
	ck_assert_int_eq(sum.last_fetch_us, 6);
	ck_assert_int_eq(sum.last_settle_us, 9);
	ck_assert_int_eq(sum.oldest_unsettled_us, 7);
	ck_assert_int_eq(sum.breaker, OB_BREAKER_HALF_OPEN);
	ck_assert(sum.alarm);
}
OB_TEST_END

OB_TEST(errors_of_several_workers_are_merged_by_time)
{
	struct ob_metrics_data sum = { .published = 1 },
			       part = { .published = 2, .error_count = 3 };

	for (int64_t i = 0; i < 3; i++)
		part.errors[i] =
			(struct ob_last_error){ .at_us = 10 * i, .text = { (char)('a' + i) } };
	ob_metrics_add(&sum, &part);
	for (int64_t i = 0; i < 3; i++)
		part.errors[i] =
			(struct ob_last_error){ .at_us = 10 * i + 5, .text = { (char)('d' + i) } };
	ob_metrics_add(&sum, &part);
	ck_assert_uint_eq(sum.published, 5);
	ck_assert_uint_eq(sum.error_count, 5);
	for (int64_t i = 0; i < 5; i++)
		ck_assert_int_eq(sum.errors[i].at_us, 5 * (i + 1));
}
OB_TEST_END

/* An outage must not push everything else out of sight. */
OB_TEST(an_error_that_comes_again_is_counted_not_listed)
{
	struct ob_metrics metrics;
	struct ob_metrics_data data, sum = { 0 };
	struct ob_err err = OB_ERR_INIT;

	ob_metrics_init(&metrics, &(struct ob_uuid){ { 0 } });
	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "away");
	ck_assert(ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 1, &err, NULL));
	(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_RETRY, "refused");
	ck_assert(ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 2, &err, NULL));
	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "away");
	ck_assert(!ob_metrics_error(&metrics, OB_ERROR_OF_SINK, 3, &err, NULL));
	ob_metrics_read(&metrics, &data);
	ck_assert_uint_eq(data.error_count, 2);
	ck_assert_str_eq(data.errors[1].text, "away");
	ck_assert_uint_eq(data.errors[1].times, 2);
	ck_assert_int_eq(data.errors[1].at_us, 3);
	ob_metrics_add(&sum, &data);
	ob_metrics_add(&sum, &data);
	ck_assert_uint_eq(sum.error_count, 2);
	ck_assert_uint_eq(sum.errors[1].times, 4);
	ob_metrics_done(&metrics);
}
OB_TEST_END

OB_SUITE("policy", each_kind_has_its_action,
	 the_first_retry_comes_after_the_base_delay_and_then_it_doubles,
	 jitter_is_applied_both_ways, the_attempt_that_reaches_the_maximum_is_the_last,
	 an_outage_never_ends_a_message,
	 the_last_five_errors_are_kept_newest_last_and_long_ones_are_cut,
	 a_text_is_cut_between_two_characters,
	 what_several_workers_did_is_added_up_and_the_worst_of_them_counts,
	 errors_of_several_workers_are_merged_by_time,
	 an_error_that_comes_again_is_counted_not_listed)
