/* SPDX-License-Identifier: MIT */
/* Failure kinds to actions. */
#include "relay/policy.h"

static struct ob_verdict verdict_of_failure(const struct ob_policy *policy, uint32_t attempts,
					    double random)
{
	uint32_t attempt = attempts < UINT32_MAX ? attempts + 1 : attempts;

	/* P1: what is given up stands dead in the store until a person decides; it is never
	 * dropped. */
	if (policy->max_attempts > 0 && attempt >= policy->max_attempts)
		return (struct ob_verdict){ .action = OB_ACT_DEAD };
	return (struct ob_verdict){
		.action = OB_ACT_RETRY,
		.delay_ms = ob_retry_delay_ms(&policy->retry, attempt, random),
	};
}

/*
 * P5: only an error about this message costs it an attempt. DOWN says nothing about it, so it waits
 * however long the outage is. LOST is another worker's now, who sends it from its own progress
 * (P7): to record anything about it here would be to decide for him.
 */
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
