/* SPDX-License-Identifier: MIT */
/* outbox cleanup: one pass of retention now. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jout.h"
#include "cli/out/para.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* BUSY_*: how long and how often it is tried while a worker does the same. */
enum { LINE_MAX_BYTES = 4096, BATCH_MAX = 1000000, BUSY_MS = 5000, TRY_MS = 100 };

/* A reader that has not moved for so long stands still. */
#define STILL_US (INT64_C(60) * 1000000)

#define DAYS_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

struct cleanup_args {
	const char *published, *dead; /* NULL: as configured */
	int64_t batch;                /* 0: as configured */
};

struct cleaning {
	const struct ob_cli *cli;
	struct ob_retain rule;
	uint64_t rows, dead, batches;
	uint64_t parts_made, parts_dropped; /* of a partitioned log */
	struct ob_buf held_by;
	int64_t held_us;
};

/* ---- what to remove -------------------------------------------------- */

static int read_age(const struct ob_cli *cli, const char *name, const char *text, int64_t *ret_ms)
{
	const struct ob_opt row[] = {
		{ .name = name,
		  .type = OB_OPT_DURATION_MS,
		  .flags = OB_OPT_NEVER,
		  .min = 0,
		  .max = DAYS_MAX_MS },
		OB_OPT_END,
	};
	struct ob_err err = OB_ERR_INIT;

	if (!text || ob_opt_set(row, ret_ms, name, text, &err) == 0)
		return OB_EXIT_OK;
	return ob_cli_usage(cli, "--%s", err.msg);
}

static int make_rule(struct cleaning *c, const struct cleanup_args *args,
		     const struct ob_config_retention *retention)
{
	c->rule = (struct ob_retain){ .published_ms = retention->published_ms,
				      .dead_ms = retention->dead_ms,
				      .limit = args->batch ? (uint32_t)args->batch
							   : retention->batch };
	int r = read_age(c->cli, "published", args->published, &c->rule.published_ms);
	return r ? r : read_age(c->cli, "dead", args->dead, &c->rule.dead_ms);
}

/* ---- removing -------------------------------------------------------- */

/* One call; while a worker holds the lock of retention it is tried again for a while. */
static int remove_batch(struct ob_store *store, const struct ob_retain *rule,
			struct ob_arena *arena, struct ob_retained *done, struct ob_err *err)
{
	for (int waited = 0;; waited += TRY_MS) {
		*done = (struct ob_retained){ 0 };
		int r = ob_store_retain(store, rule, arena, done, err);

		if (r < 0 || !done->busy || waited >= BUSY_MS)
			return r;
		(void)poll(NULL, 0, TRY_MS);
	}
}

/* Batch by batch, each its own transaction: writers get their turn in between. */
static int remove_all(struct cleaning *c, struct ob_store *store, bool *ret_busy,
		      struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_retained done;
	int r;

	do {
		r = remove_batch(store, &c->rule, &arena, &done, err);
		if (r < 0 || done.busy)
			break;
		c->rows += done.rows;
		c->dead += done.dead;
		c->parts_made += done.parts_made;
		c->parts_dropped += done.parts_dropped;
		c->batches += done.rows + done.dead > 0;
		ob_buf_clear(&c->held_by);
		ob_buf_add(&c->held_by, done.held_by);
		c->held_us = done.held_us;
		ob_arena_reset(&arena, SIZE_MAX);
	} while (done.more);
	*ret_busy = r == 0 && done.busy;
	ob_arena_done(&arena);
	return r;
}

/* ---- telling --------------------------------------------------------- */

static void add_holder(const struct cleaning *c, struct ob_buf *line)
{
	char since[OB_WHEN_SIZE];

	/* One that moved a moment ago is on its way. */
	if (!c->held_by.len || ob_clock_real_us(&ob_clock_system) - c->held_us < STILL_US)
		return;
	ob_when_iso(c->held_us, since);
	ob_buf_addf(line,
		    "; reader %s holds what is left: it stands still since %s, start it or forget "
		    "it with 'outbox readers remove %s'",
		    ob_buf_str(&c->held_by), since, ob_buf_str(&c->held_by));
}

static void add_parts(const struct cleaning *c, struct ob_buf *line)
{
	if (c->parts_dropped) {
		ob_buf_adds(line, ", dropped ");
		ob_para_count(line, c->parts_dropped, "table partition");
	}
	if (c->parts_made) {
		ob_buf_adds(line, ", made ");
		ob_para_count(line, c->parts_made, "table partition");
	}
}

static int report(const struct cleaning *c)
{
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (c->cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_int(&j, "rows", (int64_t)c->rows);
		ob_jout_int(&j, "dead", (int64_t)c->dead);
		ob_jout_int(&j, "batches", (int64_t)c->batches);
		ob_jout_int(&j, "partitions_made", (int64_t)c->parts_made);
		ob_jout_int(&j, "partitions_dropped", (int64_t)c->parts_dropped);
		ob_jout_text(&j, "held_by",
			     c->held_by.len ? ob_buf_view(&c->held_by) : OB_STR_NULL);
		ob_jout_when(&j, "held_since", c->held_by.len ? c->held_us : 0);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		ob_buf_adds(&line, "removed ");
		ob_para_count(&line, c->rows, "row");
		if (c->dead) {
			ob_buf_adds(&line, " and forgot ");
			ob_para_count(&line, c->dead, "dead message");
		}
		add_parts(c, &line);
		add_holder(c, &line);
		ob_para_print(stdout, ob_buf_view(&line), 0);
	}
	ob_jout_done(&j);
	ob_buf_done(&line);
	return r;
}

static int clean(struct cleaning *c, struct ob_store *store)
{
	struct ob_err err = OB_ERR_INIT;
	bool busy;
	int r = remove_all(c, store, &busy, &err);

	/* What earlier batches removed stays removed: it is told also when a later one fails. */
	int code = (r == 0 && !busy) || c->batches ? report(c) : OB_EXIT_OK;
	if (r < 0)
		return ob_cli_fail("%s", err.msg);
	if (busy)
		return ob_cli_fail("a worker is at it right now: try again in a while");
	return code;
}

static int cleanup_run(struct ob_cli *cli, const void *opts)
{
	struct cleaning c = { .cli = cli, .held_by = OB_BUF_INIT(LINE_MAX_BYTES) };
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	if (!r)
		r = make_rule(&c, opts, &session.entry->retention);
	if (!r)
		r = clean(&c, session.store);
	ob_buf_done(&c.held_by);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "published",
		.arg = "AGE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct cleanup_args, published),
		.help = "Remove what every reader had passed this long ago, such as 7d; 0 for all "
			"of it, never for nothing.",
	},
	{
		.name = "dead",
		.arg = "AGE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct cleanup_args, dead),
		.help = "Forget what died this long ago and holds no key, or never.",
	},
	{
		.name = "batch",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct cleanup_args, batch),
		.min = 1,
		.max = BATCH_MAX,
		.help = "Rows of one transaction.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox cleanup",
	"outbox cleanup --published 1h --dead 90d",
	NULL,
};

const struct ob_cmd ob_cmd_cleanup = {
	.name = "cleanup",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "remove what every reader has passed",
	.description =
		"Does at once what a running relay does every minute: it removes rows that every "
		"reader has delivered and that are old enough, and forgets dead messages that are "
		"old enough, in batches, until none is left. The ages are those of the retention "
		"section of the store; the options name others.\n\n"
		"A message that a reader has not delivered yet stays, however old it is; so does a "
		"dead message that holds its key. When a reader that stands still holds rows that "
		"are old enough, the line says which one and since when.\n\n"
		"From a log that is partitioned by number (`setup --partitioned`) whole table "
		"partitions are dropped, and new ones are made ahead; the line says how many.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct cleanup_args),
	.run = cleanup_run,
};
