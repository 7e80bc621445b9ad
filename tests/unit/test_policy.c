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
		ob_metrics_error(&metrics, i, &err, NULL);
	}
	memset(err.msg, 'x', sizeof(err.msg) - 1);
	ob_metrics_error(&metrics, 7, &err, NULL);
	ob_metrics_read(&metrics, &data);
	ck_assert_uint_eq(data.error_count, 5);
	ck_assert_str_eq(data.errors[0].text, "error 3");
	ck_assert_str_eq(data.errors[3].text, "error 6");
	ck_assert_uint_lt(strlen(data.errors[4].text), OB_LAST_ERROR_TEXT);
	ck_assert_str_eq(data.errors[4].text + strlen(data.errors[4].text) - 3, "\xe2\x80\xa6");
	ob_metrics_done(&metrics);
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
	ck_assert(ob_metrics_error(&metrics, 1, &err, NULL));
	(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_RETRY, "refused");
	ck_assert(ob_metrics_error(&metrics, 2, &err, NULL));
	(void)ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_DOWN, "away");
	ck_assert(!ob_metrics_error(&metrics, 3, &err, NULL));
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
	 errors_of_several_workers_are_merged_by_time,
	 an_error_that_comes_again_is_counted_not_listed)
