/* SPDX-License-Identifier: MIT */
/* Figures by name. */
#include "bench/report/result.h"

#include "bench/fatal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Its place; result->count when it is not there. */
static size_t find(const struct bench_result *result, const char *name)
{
	size_t at = 0;

	while (at < result->count && strcmp(result->metrics[at].name, name) != 0)
		at++;
	return at;
}

void bench_result_add(struct bench_result *result, const char *name, double value)
{
	size_t at = find(result, name);

	if (at == BENCH_METRICS_MAX)
		bench_fatal("%s: too many figures", result->name);
	if (at == result->count)
		result->metrics[result->count++].name = name;
	bench_series_add(&result->metrics[at].series, value);
}

const struct bench_series *bench_result_get(const struct bench_result *result, const char *name)
{
	size_t at = find(result, name);

	return at < result->count ? &result->metrics[at].series : NULL;
}

double bench_result_median(const struct bench_result *result, const char *name)
{
	const struct bench_series *series = bench_result_get(result, name);

	return series ? bench_series_median(series) : 0;
}

void bench_result_miss(struct bench_result *result, const char *fmt, ...)
{
	va_list args;

	if (result->missing[0])
		return;
	va_start(args, fmt);
	(void)vsnprintf(result->missing, sizeof(result->missing), fmt, args);
	va_end(args);
}

void bench_result_leave_out(struct bench_result *result, const char *reason)
{
	if (!result->without[0])
		(void)snprintf(result->without, sizeof(result->without), "%s", reason);
}
