/* SPDX-License-Identifier: MIT */
/* What the figures were taken on. */
#ifndef OB_BENCH_MACHINE_H
#define OB_BENCH_MACHINE_H

#include "bench/env.h"

struct bench_machine {
	char processor[BENCH_TEXT_SIZE], kernel[BENCH_TEXT_SIZE], system[BENCH_TEXT_SIZE];
	char servers[1024]; /* "PostgreSQL 15.14, Redis 7.0.15": those that ran */
	long cores;
	double memory_gb;
	double load; /* of the last minute, at the start */
	char date[32];
};

void bench_machine_read(struct bench_machine *machine);
/* At the end of a run, before the servers are stopped. */
void bench_machine_servers(struct bench_machine *machine, struct bench_env *env);

#endif
