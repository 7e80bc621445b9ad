/* SPDX-License-Identifier: MIT */
/*
 * One drain: a process empties the outbox into the broker, and we watch.
 *
 * The watch begins when the broker has the first messages and ends when every row is settled (or,
 * for a part of a backlog, when the broker has so many). Messages that were there at its beginning
 * do not count. It is the same for relays and loops. When the first look finds more than half of
 * them, the run was too short for that, and counts from the start of the process.
 */
#ifndef OB_BENCH_DRAIN_H
#define OB_BENCH_DRAIN_H

#include "bench/env.h"

struct bench_drained {
	double rate;     /* messages a second */
	double first_ms; /* from the process's start to the first message stored */
	double cpu_us, store_cpu_us, broker_cpu_us; /* a message */
	double log_bytes, dead_rows;                /* a message; negative: unknown */
	double peak_mb;                             /* the most resident memory */
};

/*
 * Drain `messages`. `part`: there are more of them, and it ends when the broker has that many
 * more. The store is filled and the broker cleared by the caller. False: it stopped or made no
 * progress, and `reason` says so.
 */
bool bench_drain(struct bench_env *env, const struct bench_subject *subject, uint64_t messages,
		 bool part, struct bench_drained *ret, char reason[BENCH_TEXT_SIZE]);

/* For a process that runs: wait until the broker has `more` than now; the rate, or negative. */
double bench_drain_rate(struct bench_env *env, struct bench_broker *broker, struct ob_child *child,
			uint64_t more, char reason[BENCH_TEXT_SIZE]);
/* Wait for the first message that the process delivers; false as above. */
bool bench_drain_first(struct bench_env *env, struct bench_broker *broker, struct ob_child *child,
		       char reason[BENCH_TEXT_SIZE]);

#endif
