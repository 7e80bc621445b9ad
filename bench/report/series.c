/* SPDX-License-Identifier: MIT */
/* Order statistics of a few figures. */
#include "bench/report/series.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void bench_sort(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare);
}

double bench_percentile(const double *sorted, size_t count, double part)
{
	size_t rank = (size_t)(part * (double)count);

	return sorted[rank < count ? rank : count - 1];
}

void bench_series_add(struct bench_series *series, double value)
{
	if (series->count < BENCH_ROUNDS_MAX)
		series->values[series->count++] = value;
}

double bench_series_median(const struct bench_series *series)
{
	struct bench_series sorted = *series;
	size_t half = series->count / 2;

	if (series->count == 0)
		return 0;
	bench_sort(sorted.values, sorted.count);
	if (series->count % 2)
		return sorted.values[half];
	return (sorted.values[half - 1] + sorted.values[half]) / 2;
}

double bench_series_min(const struct bench_series *series)
{
	double least = series->count ? series->values[0] : 0;

	for (size_t i = 1; i < series->count; i++)
		least = series->values[i] < least ? series->values[i] : least;
	return least;
}

double bench_series_max(const struct bench_series *series)
{
	double most = series->count ? series->values[0] : 0;

	for (size_t i = 1; i < series->count; i++)
		most = series->values[i] > most ? series->values[i] : most;
	return most;
}
