/* SPDX-License-Identifier: MIT */
/* One run of the bench: what was asked for, the program under test and the servers that run. */
#ifndef OB_BENCH_ENV_H
#define OB_BENCH_ENV_H

#include "bench/broker.h"
#include "bench/store.h"
#include "cli/child.h"

enum { BENCH_STORES = 3, BENCH_BROKERS_MAX = 8, BENCH_PATH = 256, BENCH_BATCH = 1000 };

struct bench_env {
	/* what was asked for */
	bool quick;
	uint32_t rounds;
	uint64_t messages; /* 0: what each case says */
	/* where things are */
	char dir[64];
	char program[BENCH_PATH]; /* outbox */
	char self[BENCH_PATH];    /* this program, for the bare loop */
	struct bench_store stores[BENCH_STORES];
	struct bench_broker brokers[BENCH_BROKERS_MAX];
};

/* Make the directory and find the programs. `program`: NULL is the one of the same build. */
void bench_env_open(struct bench_env *env, const char *program);
/* End every server and remove everything. */
void bench_env_close(struct bench_env *env);

/* Started on first use; NULL: there is none, and *ret_reason says why. */
struct bench_store *bench_env_store(struct bench_env *env, const char *name,
				    const char **ret_reason);
struct bench_broker *bench_env_broker(struct bench_env *env, const char *name,
				      const char **ret_reason);

/* ---- the two subjects, as processes -------------------------------------- */

struct bench_subject {
	struct bench_store *store;
	struct bench_broker *broker;
	bool bare;             /* the loop, instead of the relay */
	bool delete_rows;      /* instead of keeping them */
	const char *more_sink; /* options of the sink: ", max_len: 1000"; or NULL */
};

/* `outbox work --silent` with the defaults, but batches of BENCH_BATCH; or the loop. */
void bench_subject_start(struct bench_env *env, const struct bench_subject *subject,
			 struct ob_child *child);
/* SIGTERM, and wait for its end. */
void bench_subject_stop(struct bench_env *env, struct ob_child *child);
/* The last line of what it wrote, or "". */
void bench_subject_words(struct bench_env *env, char out[BENCH_TEXT_SIZE]);

#endif
