/* SPDX-License-Identifier: MIT */
/* Delays as pure arithmetic; whoever waits brings clock and randomness. */
#include "base/backoff.h"

/* By squaring: a large attempt costs no long loop. Grows to infinity, never to NaN. */
static double power(double x, uint32_t n)
{
	double out = 1;

	for (; n; n >>= 1) {
		if (n & 1)
			out *= x;
		x *= x;
	}
	return out;
}

int64_t ob_retry_delay_ms(const struct ob_retry_policy *policy, uint32_t attempt, double random)
{
	if (policy->base_ms <= 0 || policy->max_ms <= 0)
		return 0;

	double max = (double)policy->max_ms;
	double delay =
		(double)policy->base_ms * power(policy->multiplier, attempt ? attempt - 1 : 0);
	if (delay > max)
		delay = max;
	delay *= 1 + policy->jitter * (2 * random - 1);
	if (delay >= (double)INT64_MAX)
		return INT64_MAX;
	return delay > 0 ? (int64_t)(delay + 0.5) : 0;
}

void ob_backoff_init(struct ob_backoff *backoff, int64_t base_ms, int64_t cap_ms)
{
	*backoff = (struct ob_backoff){ base_ms, cap_ms, base_ms };
}

int64_t ob_backoff_next_ms(struct ob_backoff *backoff)
{
	int64_t now = backoff->next_ms;

	if (now < backoff->cap_ms)
		backoff->next_ms = now > backoff->cap_ms / 2 ? backoff->cap_ms : now * 2;
	return now;
}

void ob_backoff_reset(struct ob_backoff *backoff)
{
	backoff->next_ms = backoff->base_ms;
}
