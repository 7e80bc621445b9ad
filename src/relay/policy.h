/* SPDX-License-Identifier: MIT */
/* What happens to a message after its delivery ended: a pure function. */
#ifndef OB_RELAY_POLICY_H
#define OB_RELAY_POLICY_H

#include "base/backoff.h"
#include "base/err.h"

#include <stdbool.h>

enum ob_action {
	OB_ACT_PUBLISHED, /* settle it as published */
	OB_ACT_RETRY,     /* settle it as failed, due again after delay_ms */
	OB_ACT_DEAD,      /* settle it as dead */
	OB_ACT_WAIT,      /* the sink is down: drop it unsettled, nothing is charged */
	OB_ACT_FORGET,    /* not ours: drop it unsettled */
	OB_ACT_STOP,      /* the sink is of no use: stop the worker; nothing is charged */
};

struct ob_policy {
	struct ob_retry_policy retry;
	uint32_t max_attempts; /* 0: no limit */
};

struct ob_verdict {
	enum ob_action action;
	int64_t delay_ms; /* RETRY */
};

/*
 * `attempts`: failed attempts before this one. `random` in [0, 1) places the jitter.
 * The first retry comes after base; the attempt that reaches max_attempts is the last.
 */
struct ob_verdict ob_policy_judge(const struct ob_policy *policy, enum ob_err_kind kind,
				  uint32_t attempts, double random);

#endif
