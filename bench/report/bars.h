/* SPDX-License-Identifier: MIT */
/* The bars, and whether a run clears them. */
#ifndef OB_BENCH_BARS_H
#define OB_BENCH_BARS_H

#include "bench/report/result.h"

struct bench_bar {
	const char *text;   /* what is asked */
	const char *name;   /* of the case */
	const char *metric; /* the figure that counts */
	bool at_most;       /* else at least */
	double value;
	const char *unit;  /* "×", "ms"; may be "" */
	const char *bound; /* instead of the value: another figure of the case; or NULL */
};

extern const struct bench_bar bench_bars[]; /* ends with an empty name */

enum bench_verdict { BENCH_PASS, BENCH_MISS, BENCH_UNMEASURED };

/* The value that counts in that result. */
double bench_bar_value(const struct bench_bar *bar, const struct bench_result *result);
/* *ret_result: the result that it is about, or NULL when the case did not run. */
enum bench_verdict bench_bar_judge(const struct bench_bar *bar, const struct bench_result *results,
				   size_t count, const struct bench_result **ret_result);

#endif
