/* SPDX-License-Identifier: MIT */
/* What retry, skip, discard and priority share: all but their names and help. */
#ifndef OB_CLI_OPERATE_H
#define OB_CLI_OPERATE_H

#include "cli/cli.h"
#include "cli/jout.h"

struct ob_operate_args {
	const char *key, *type, *aggregate, *event, *target, *state;
	bool all, yes, dry_run;
};

/* The options of all four, stored in a struct ob_operate_args. */
extern const struct ob_cmd_opt ob_operate_options[];

/* One run of a verb. */
struct ob_operate_task {
	const struct ob_cli *cli;
	const struct ob_operate_args *args;
	enum ob_verb verb;
	int32_t priority;       /* OB_VERB_PRIORITY */
	const char *const *ids; /* as typed */
	size_t id_count;        /* 0: by filter */
};

/* Check the command line, open the store, do it, and say what was done; an exit code. */
int ob_operate_run(const struct ob_operate_task *task);

/* ---- between the files of this module -------------------------------- */

/* How a verb is spoken of, and what it may touch. Sets of states are bits 1 << OB_VIEW_.... */
struct ob_operate_verb {
	const char *name; /* of the command */
	const char *ask;  /* "retry" 3 messages? */
	const char *did;  /* "retried" 3 messages */
	const char *can;  /* it can be "retried" */
	bool with_number; /* ask and did are followed by the priority and "to" */
	unsigned allowed; /* the states it works on */
	unsigned usual;   /* those that a filter without --state means */
};

/* By enum ob_verb. */
extern const struct ob_operate_verb ob_operate_verbs[];
enum { OB_OPERATE_VERBS = OB_VERB_PRIORITY + 1 };

/* "retry", "retried" or "give priority 5 to". */
void ob_operate_phrase(const struct ob_operate_task *task, bool did, struct ob_buf *out);
/* The names of the states, as in "failed, parked or dead". */
void ob_operate_states(unsigned views, const char *conjunction, struct ob_buf *out);
/*
 * Append one object about one row: what was done to it, what would be (with
 * --dry-run), or the error that stood against it (NULL: none).
 */
void ob_operate_json(struct ob_jout *j, const struct ob_operate_task *task,
		     const struct ob_message *message, const char *state, const char *error);

/* The ids one by one; all were checked to be UUIDs. */
int ob_operate_ids(const struct ob_operate_task *task, struct ob_store *store);
/* What matches `filter`, counted and asked about first. */
int ob_operate_bulk(const struct ob_operate_task *task, const struct ob_filter *filter,
		    struct ob_store *store);

#endif
