/* SPDX-License-Identifier: MIT */
/* The same figure from several rounds: its median and its spread. */
#ifndef OB_BENCH_SERIES_H
#define OB_BENCH_SERIES_H

#include <stddef.h>

enum { BENCH_ROUNDS_MAX = 32 };

/* All zero is an empty one. */
struct bench_series {
	double values[BENCH_ROUNDS_MAX];
	size_t count;
};

/* What is beyond BENCH_ROUNDS_MAX is dropped. */
void bench_series_add(struct bench_series *series, double value);
/* Of an even number: the mean of the middle two. 0 when there is none. */
double bench_series_median(const struct bench_series *series);
double bench_series_min(const struct bench_series *series);
double bench_series_max(const struct bench_series *series);

/* Sort ascending. */
void bench_sort(double *values, size_t count);
/* The value that `part` (0 to 1) of the sorted ones do not exceed; count > 0. */
double bench_percentile(const double *sorted, size_t count, double part);

#endif
