/* SPDX-License-Identifier: MIT */
/* What retry, skip and discard share: all but their names and help. */
#ifndef OB_CLI_OPERATE_H
#define OB_CLI_OPERATE_H

#include "cli/cli.h"
#include "cli/out/jout.h"

struct ob_operate_args {
	const char *key, *type, *aggregate, *event, *reader, *state;
	bool all, yes, dry_run;
};

/* The options of all three, stored in a struct ob_operate_args. */
extern const struct ob_cmd_opt ob_operate_options[];

/* One run of a verb. */
struct ob_operate_task {
	const struct ob_cli *cli;
	const struct ob_operate_args *args;
	enum ob_verb verb;
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
	unsigned allowed; /* the states it works on */
	unsigned usual;   /* those that a filter without --state means */
};

/* By enum ob_verb. */
extern const struct ob_operate_verb ob_operate_verbs[];
enum { OB_OPERATE_VERBS = OB_VERB_DISCARD + 1 };

/* "retry" or "retried". */
const char *ob_operate_phrase(const struct ob_operate_task *task, bool did);
/* Does the message's state allow the verb? A dead one that holds nothing cannot be skipped again.
 */
bool ob_operate_allows(enum ob_verb verb, const struct ob_message *message);
/* The names of the states, as in "failed, parked or dead". */
void ob_operate_states(unsigned views, const char *conjunction, struct ob_buf *out);
/*
 * Append one object about one message: what was done to it, what would be (with
 * --dry-run), or the error that stood against it (NULL: none).
 */
void ob_operate_json(struct ob_jout *j, const struct ob_operate_task *task, const char *reader,
		     const struct ob_message *message, const char *state, const char *error);

/* The ids one by one, as `reader` sees them; all were checked to be UUIDs. */
int ob_operate_ids(const struct ob_operate_task *task, const char *reader, struct ob_store *store);
/* What matches `filter`, counted and asked about first. */
int ob_operate_bulk(const struct ob_operate_task *task, const struct ob_filter *filter,
		    struct ob_store *store);

#endif
