/* SPDX-License-Identifier: MIT */
/* What the commands about consumers share. */
#ifndef OB_CLI_CONSUMERS_H
#define OB_CLI_CONSUMERS_H

#include "base/jout.h"
#include "cli/cli.h"
#include "consume/consume.h"
#include "operate/parked.h"

/* One object about a consumer that runs, on a line of its own; an exit code. */
int ob_consume_print(const char *consumer, const struct ob_consume_metrics *metrics);

/* The options of the commands about parked messages. */
struct ob_dlq_args {
	const char *key, *state, *error, *reason;
	bool all, yes, dry_run;
	int64_t limit, age_ms;
};
extern const struct ob_cmd_opt ob_dlq_filter_options[];

/* A store with its inbox, and the parked messages that the command line names. */
struct ob_dlq {
	struct ob_session session;
	const char *consumer; /* NULL: of all */
	struct ob_arena arena;
	struct ob_parked *rows;
	size_t count;
};

/* Connect to the store of the consumer that is the first operand. An exit code; the caller ends it
 * in every case. */
int ob_dlq_open(struct ob_dlq *dlq, struct ob_cli *cli, const char *consumer);
/* Read what an id, or the options, select; at most `limit`. */
int ob_dlq_select(struct ob_dlq *dlq, const char *id, const struct ob_dlq_args *args,
		  uint32_t limit);
void ob_dlq_done(struct ob_dlq *dlq);
/* Both operands: open the store, and find the one message; it is rows[0]. */
int ob_dlq_open_one(struct ob_dlq *dlq, struct ob_cli *cli);
/* As a table. */
void ob_dlq_print_rows(const struct ob_parked *rows, size_t count);
void ob_dlq_add_json(struct ob_jout *j, const struct ob_parked *row, bool whole);

/* A command that decides. */
struct ob_dlq_verb {
	enum ob_parked_verb verb;
	const char *name, *did, *thing; /* "retry", "retried", "message" */
};

/* retry, skip, discard and replay: by ids, or by a filter. */
int ob_dlq_operate(struct ob_cli *cli, const struct ob_dlq_args *args,
		   const struct ob_dlq_verb *verb);
/* What the arguments say, counted, asked about, changed, and taken down in the audit. */
int ob_dlq_decide(struct ob_cli *cli, const struct ob_dlq_args *args,
		  const struct ob_dlq_verb *verb);

#endif
