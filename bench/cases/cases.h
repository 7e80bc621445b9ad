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
	uint64_t keys;      /* of the messages; 0: each has its own */
	unsigned kinds;     /* bits 1 << BENCH_RELAY ...: who takes turns */
	uint32_t each;      /* push: messages of a transaction; latency: messages a second;
			       consume: 1 is by position */
	uint32_t producers; /* push, append */
};

/* All of them, in the order in which they run; *ret_count says how many. */
const struct bench_case *bench_cases(size_t *ret_count);

/* How many messages this run takes for the case. */
uint64_t bench_case_messages(const struct bench_env *env, const struct bench_case *c);
/* A subject of the case with its servers started. False: the relay's absence leaves the case
 * unmeasured, another's is left out of it, and the result has the reason. */
bool bench_case_subject(struct bench_env *env, const struct bench_case *c, enum bench_kind kind,
			struct bench_subject *subject, struct bench_result *result);

bench_case_fn bench_run_drain;    /* drain.c */
bench_case_fn bench_run_fanout;   /* fanout.c */
bench_case_fn bench_run_refused;  /* refused.c */
bench_case_fn bench_run_latency;  /* latency.c */
bench_case_fn bench_run_backlog;  /* growth.c */
bench_case_fn bench_run_finished; /* growth.c */
bench_case_fn bench_run_held;     /* growth.c */
bench_case_fn bench_run_repeats;  /* repeats.c */
bench_case_fn bench_run_takeover; /* takeover.c */
bench_case_fn bench_run_append;   /* append.c */
bench_case_fn bench_run_consume;  /* consume.c */
bench_case_fn bench_run_push;     /* push.c */
bench_case_fn bench_run_memory;   /* process.c */
bench_case_fn bench_run_idle;     /* process.c */
bench_case_fn bench_run_start;    /* process.c */
bench_case_fn bench_run_lines;    /* lines.c */

#endif
