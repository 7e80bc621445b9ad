/* SPDX-License-Identifier: MIT */
/* Failure kinds to actions. */
#include "relay/policy.h"

static struct ob_verdict verdict_of_failure(const struct ob_policy *policy, uint32_t attempts,
					    double random)
{
	uint32_t attempt = attempts < UINT32_MAX ? attempts + 1 : attempts;

	if (policy->max_attempts > 0 && attempt >= policy->max_attempts)
		return (struct ob_verdict){ .action = OB_ACT_DEAD };
	return (struct ob_verdict){
		.action = OB_ACT_RETRY,
		.delay_ms = ob_retry_delay_ms(&policy->retry, attempt, random),
	};
}

struct ob_verdict ob_policy_judge(const struct ob_policy *policy, enum ob_err_kind kind,
				  uint32_t attempts, double random)
{
	switch (kind) {
	case OB_ERR_NONE:
		return (struct ob_verdict){ .action = OB_ACT_PUBLISHED };
	case OB_ERR_DOWN:
		return (struct ob_verdict){ .action = OB_ACT_WAIT };
	case OB_ERR_RETRY:
		return verdict_of_failure(policy, attempts, random);
	case OB_ERR_REJECT:
		return (struct ob_verdict){ .action = OB_ACT_DEAD };
	case OB_ERR_LOST:
		return (struct ob_verdict){ .action = OB_ACT_FORGET };
	case OB_ERR_FATAL:
		break;
	}
	return (struct ob_verdict){ .action = OB_ACT_STOP };
}
