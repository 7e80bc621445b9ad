/* SPDX-License-Identifier: MIT */
/* What came of a case: figures by name, each a series over the rounds. */
#ifndef OB_BENCH_RESULT_H
#define OB_BENCH_RESULT_H

#include "bench/report/series.h"

#include <stdbool.h>

enum { BENCH_METRICS_MAX = 64, BENCH_NAME_SIZE = 48, BENCH_TEXT_SIZE = 200 };

struct bench_metric {
	const char *name; /* static: "relay_rate" */
	struct bench_series series;
};

struct bench_result {
	char name[BENCH_NAME_SIZE];    /* of the case: "postgres-redis-keep" */
	char title[BENCH_NAME_SIZE];   /* "PostgreSQL → Redis, keep" */
	const char *group;             /* static: which table it belongs to */
	char missing[BENCH_TEXT_SIZE]; /* why there is no figure, or "" */
	char without[BENCH_TEXT_SIZE]; /* why a part of it is not compared, or "" */
	char limit[BENCH_TEXT_SIZE];   /* what it was waiting for, or "" */
	struct bench_metric metrics[BENCH_METRICS_MAX];
	size_t count;
};

/* Another round's value of that figure; `name` is kept. */
void bench_result_add(struct bench_result *result, const char *name, double value);
/* NULL: it was not measured. */
const struct bench_series *bench_result_get(const struct bench_result *result, const char *name);
/* The median; 0 when there is none. */
double bench_result_median(const struct bench_result *result, const char *name);
/* Say why there is no figure; only the first reason is kept. */
void bench_result_miss(struct bench_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Say why one of those to compare with is left out; only the first reason is kept. */
void bench_result_leave_out(struct bench_result *result, const char *reason);

#endif
