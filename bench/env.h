/* SPDX-License-Identifier: MIT */
/* One run of the bench: what was asked for, the program under test and the servers that run. */
#ifndef OB_BENCH_ENV_H
#define OB_BENCH_ENV_H

#include "bench/broker/broker.h"
#include "bench/store/store.h"
#include "cli/demo/child.h"

enum { BENCH_STORES = 3, BENCH_BROKERS_MAX = 8, BENCH_PATH = 256, BENCH_BATCH = 1000 };

struct bench_env {
	/* what was asked for */
	bool quick;
	uint32_t rounds;
	uint64_t messages; /* 0: what each case says */
	/* where things are */
	char dir[64];
	char program[BENCH_PATH];  /* outbox */
	char baseline[BENCH_PATH]; /* outbox of the baseline; may not be there */
	char self[BENCH_PATH];     /* this program, for the bare loop */
	struct bench_store stores[BENCH_SIDES][BENCH_STORES];
	struct bench_broker brokers[BENCH_BROKERS_MAX];
};

/* Make the directory and find the programs. `program`: NULL is the one of the same build,
 * `baseline`: NULL is where `make bench` puts it. */
void bench_env_open(struct bench_env *env, const char *program, const char *baseline);
/* End every server and remove everything. */
void bench_env_close(struct bench_env *env);

/* Started on first use; NULL: there is none, and *ret_reason says why. */
struct bench_store *bench_env_store(struct bench_env *env, enum bench_side side, const char *name,
				    const char **ret_reason);
struct bench_broker *bench_env_broker(struct bench_env *env, const char *name,
				      const char **ret_reason);

/* ---- who is measured, as processes ---------------------------------------- */

enum bench_kind {
	BENCH_RELAY,  /* `outbox work` of the program under test */
	BENCH_KEEP,   /* of the baseline, which marks published rows */
	BENCH_DELETE, /* of the baseline, which deletes them */
	BENCH_CURSOR, /* the bare loop */
	BENCH_NODE,   /* a loop in Node on a table of its own */
	BENCH_KINDS,
};

/* Words for people: "the relay", "the baseline (keep)" ... */
extern const char *const bench_kind_titles[BENCH_KINDS];

struct bench_subject {
	enum bench_kind kind;
	struct bench_store *store;
	struct bench_broker *broker;
	const char *more_sink;  /* options of the sink: ", max_len: 1000"; or NULL */
	const char *more_relay; /* lines of the relay, with four spaces before each; or NULL */
	const char *relays;     /* instead of the one relay: the whole list; or NULL */
};

/* The subject with its servers started; false: it cannot be had here, and *ret_reason says why. */
bool bench_subject_get(struct bench_env *env, enum bench_kind kind, const char *store,
		       const char *broker, struct bench_subject *ret, const char **ret_reason);
/* Empty both sides, and fill what it reads from. */
void bench_subject_fill(const struct bench_subject *subject, const struct bench_load *load);
/* Empty what it read from: nothing of it is left for its server to do. */
void bench_subject_clear(const struct bench_subject *subject);
/* Is all that was filled in recorded as delivered? */
bool bench_subject_is_settled(const struct bench_subject *subject);

/* `outbox work --silent` with the defaults, but batches of BENCH_BATCH; or a loop. */
void bench_subject_start(struct bench_env *env, const struct bench_subject *subject,
			 struct ob_child *child);
/* SIGTERM, and wait for its end. */
void bench_subject_stop(struct bench_env *env, struct ob_child *child);
/* The last line of what it wrote, or "". */
void bench_subject_words(struct bench_env *env, char out[BENCH_TEXT_SIZE]);

#endif
