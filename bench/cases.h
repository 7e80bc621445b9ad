/* SPDX-License-Identifier: MIT */
/* The cases: what is measured, on what, with how many messages. */
#ifndef OB_BENCH_CASES_H
#define OB_BENCH_CASES_H

#include "bench/env.h"

struct bench_case;

/* Measure into the result, or say with bench_result_miss() why not. */
typedef void bench_case_fn(struct bench_env *env, const struct bench_case *c,
			   struct bench_result *result);

struct bench_case {
	char name[BENCH_NAME_SIZE], title[BENCH_NAME_SIZE];
	const char *group;
	bench_case_fn *run;
	const char *store, *broker;
	uint64_t messages, quick; /* in the full and in the quick form */
	size_t payload_size;
	bool one_key, delete_rows;
	uint32_t each;      /* push: messages of a transaction; latency: messages a second */
	uint32_t producers; /* push */
};

/* All of them, in the order in which they run; *ret_count says how many. */
const struct bench_case *bench_cases(size_t *ret_count);

/* How many messages this run takes for the case. */
uint64_t bench_case_messages(const struct bench_env *env, const struct bench_case *c);
/* The subject of a case with its servers started, or false and the reason in the result. */
bool bench_case_subject(struct bench_env *env, const struct bench_case *c,
			struct bench_subject *subject, struct bench_result *result);
/* Empty both sides and fill the store. */
void bench_case_fill(const struct bench_subject *subject, const struct bench_load *load);

bench_case_fn bench_run_drain;     /* case_drain.c */
bench_case_fn bench_run_latency;   /* case_latency.c */
bench_case_fn bench_run_backlog;   /* case_growth.c */
bench_case_fn bench_run_published; /* case_growth.c */
bench_case_fn bench_run_push;      /* case_push.c */
bench_case_fn bench_run_memory;    /* case_process.c */
bench_case_fn bench_run_idle;      /* case_process.c */
bench_case_fn bench_run_start;     /* case_process.c */

#endif
