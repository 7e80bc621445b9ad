/* SPDX-License-Identifier: MIT */
/* The parts of `outbox replay`, one file each. Inside this folder only. */
#ifndef OB_CLI_REPLAY_H
#define OB_CLI_REPLAY_H

#include "base/signals.h"
#include "cli/work/work.h"

enum { OB_REPLAY_NAME_MAX = 64 };

struct ob_replay_args {
	const char *relay, *sink, *name, *reason;
	const char *since, *until;
	int64_t from, to; /* 0: not given */
	const char *key, *type, *aggregate, *event;
	int64_t workers;
	bool yes;
};

/* Which messages; asked on worker threads, so it does not change while they run. */
struct ob_replay_which {
	const char *key, *type, *aggregate, *event; /* type and event are patterns; NULL: any */
	int64_t since_us, until_us;                 /* created at; 0: any */
	int64_t *seqs;                              /* ascending; those that ids named */
	size_t seq_count;                           /* 0: any */
};

struct ob_replay {
	const struct ob_cli *cli;
	const struct ob_replay_args *args;
	struct ob_work_plan *plan;
	struct ob_config_relay conf; /* the relay as configured, but for name, sink and headers */
	struct ob_arena arena;       /* what conf has of its own */
	struct ob_store *store;      /* ours, for questions */
	char name[OB_REPLAY_NAME_MAX + 1];
	struct ob_replay_which which;
	struct ob_place place; /* where it begins */
	int64_t end_seq;       /* where it ends */
	bool empty;            /* there is nothing in that range */
	uint64_t published;    /* filled by ob_replay_run() */
};

/* ---- plan.c ------------------------------------------------------------- */

/* From the command line to what shall be done. Prints what is wrong; an exit code. */
int ob_replay_plan(struct ob_replay *replay);
void ob_replay_done(struct ob_replay *replay);
/* Print that there is a reader of that name; OB_EXIT_FAILURE. */
int ob_replay_name_taken(const struct ob_replay *replay);
/* The ob_wants_fn of the relay; `which` is a struct ob_replay_which. */
bool ob_replay_wants(void *which, const struct ob_message *message);

/* ---- run.c ---------------------------------------------------------------- */

/* Do it, show how far it is, leave nothing behind; an exit code. */
int ob_replay_run(struct ob_replay *replay, struct ob_signals *signals);

#endif
