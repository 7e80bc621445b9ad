/* SPDX-License-Identifier: MIT */
/* The steps of `outbox bench`. Inside cmd_bench.c and steps.c only. */
#ifndef OB_CLI_BENCH_H
#define OB_CLI_BENCH_H

#include "base/arena.h"
#include "base/signals.h"
#include "cli/demo/child.h"
#include "store/store.h"

enum { OB_BENCH_SAMPLES = 200 };

/* Where it is done; all but the child is the caller's. */
struct ob_bench {
	struct ob_store *store;
	const char *reader; /* the relay's name */
	const char *target; /* what it reads */
	const char *config; /* for the relay's process */
	const char *dir;    /* its working directory */
	const char *log;    /* where its errors go */
	struct ob_signals *signals;
	struct ob_arena arena;
	struct ob_child relay;
	struct ob_buf payload;
};

/* What came of it. */
struct ob_bench_figures {
	double single_rate, batch_rate, drain_rate; /* messages a second */
	double p50_ms, p99_ms, max_ms;              /* from COMMIT asked for to delivery recorded */
};

/*
 * What waits for the reader, counted up to `cap` (0: all). None: there is no such reader yet, or
 * everything is delivered.
 */
int ob_bench_waiting(struct ob_bench *bench, uint64_t cap, uint64_t *ret_waiting,
		     struct ob_err *err);
/* The relay runs, and messages are pushed one at a time, each when the one before is delivered. */
int ob_bench_latency(struct ob_bench *bench, struct ob_bench_figures *figures, struct ob_err *err);
/* No relay runs: `count` messages in transactions of `each`; the rate. */
int ob_bench_push(struct ob_bench *bench, uint64_t count, size_t each, double *ret_rate,
		  struct ob_err *err);
/* The relay is started on what was pushed; its rate from the first delivery on. */
int ob_bench_drain(struct ob_bench *bench, struct ob_bench_figures *figures, struct ob_err *err);
/* Stop the relay if it runs, and forget its reader, so that nothing is kept for it. */
int ob_bench_clean(struct ob_bench *bench, struct ob_err *err);

#endif
