/* SPDX-License-Identifier: MIT */
/* Whole seconds in a row; the newest is last. */
#include "cli/out/rate.h"

#include <string.h>

enum { SECOND_US = 1000000, NOW_SECONDS = 3 };

static void push(struct ob_rate *rate, double value)
{
	if (rate->count == OB_RATE_SECONDS) {
		memmove(rate->seconds, rate->seconds + 1,
			(OB_RATE_SECONDS - 1) * sizeof(rate->seconds[0]));
		rate->count--;
	}
	rate->seconds[rate->count++] = value;
}

void ob_rate_note(struct ob_rate *rate, uint64_t total, int64_t now_us)
{
	double grown = total > rate->total ? (double)(total - rate->total) : 0;

	if (!rate->started) {
		*rate = (struct ob_rate){ .started = true, .start_us = now_us, .total = total };
		return;
	}
	rate->total = total;
	int64_t whole = (now_us - rate->start_us) / SECOND_US;
	if (whole <= 0) {
		rate->current += grown;
		return;
	}
	double share = grown / (double)whole;
	push(rate, rate->current + share);
	for (int64_t i = 1; i < whole && i < OB_RATE_SECONDS; i++)
		push(rate, share);
	rate->current = 0;
	rate->start_us += whole * SECOND_US;
}

static double mean_of_last(const struct ob_rate *rate, size_t seconds)
{
	size_t n = rate->count < seconds ? rate->count : seconds;
	double sum = 0;

	if (n == 0)
		return rate->current;
	for (size_t i = rate->count - n; i < rate->count; i++)
		sum += rate->seconds[i];
	return sum / (double)n;
}

double ob_rate_now(const struct ob_rate *rate)
{
	return mean_of_last(rate, NOW_SECONDS);
}

double ob_rate_minute(const struct ob_rate *rate)
{
	return mean_of_last(rate, OB_RATE_SECONDS);
}
