/* SPDX-License-Identifier: MIT */
/* What retry, skip and discard share: all but their names and help. */
#ifndef OB_CLI_OPERATE_H
#define OB_CLI_OPERATE_H

#include "cli/cli.h"
#include "cli/operate/decide.h"
#include "cli/out/jprint.h"
#include "operate/verbs.h"

struct ob_operate_args {
	const char *key, *type, *aggregate, *event, *reader, *state, *reason;
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

/* "retry" or "retried". */
const char *ob_operate_phrase(const struct ob_operate_task *task, bool did);
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
