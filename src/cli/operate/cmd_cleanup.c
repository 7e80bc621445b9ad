/* SPDX-License-Identifier: MIT */
/* outbox cleanup: one pass of retention now. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/decide.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/maintain.h"

#include <stdio.h>

enum { LINE_MAX_BYTES = 4096, BATCH_MAX = 1000000 };

/* A reader that has not moved for so long stands still. */
#define STILL_US (INT64_C(60) * 1000000)

#define DAYS_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

struct cleanup_args {
	const char *published, *dead; /* NULL: as configured */
	const char *archive;          /* NULL: none */
	const char *reason;
	int64_t batch; /* 0: as configured */
	bool append;
};

struct cleaning {
	const struct ob_cli *cli;
	const struct cleanup_args *args;
	struct ob_maintain maintain;
	struct ob_maintained done;
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

static int make_rule(struct cleaning *c, const struct ob_config_retention *retention)
{
	struct ob_retain *rule = &c->maintain.rule;

	*rule = (struct ob_retain){ .published_ms = retention->published_ms,
				    .dead_ms = retention->dead_ms,
				    .limit = c->args->batch ? (uint32_t)c->args->batch
							    : retention->batch };
	int r = read_age(c->cli, "published", c->args->published, &rule->published_ms);
	return r ? r : read_age(c->cli, "dead", c->args->dead, &rule->dead_ms);
}

/* ---- telling --------------------------------------------------------- */

static void add_holder(const struct ob_maintained *done, struct ob_buf *line)
{
	char since[OB_WHEN_SIZE];

	/* One that moved a moment ago is on its way. */
	if (!done->held_by.len || ob_clock_real_us(&ob_clock_system) - done->held_us < STILL_US)
		return;
	ob_when_iso(done->held_us, since);
	ob_buf_addf(line,
		    "; reader %s holds what is left: it stands still since %s, start it or forget "
		    "it with 'outbox readers remove %s'",
		    ob_buf_str(&done->held_by), since, ob_buf_str(&done->held_by));
}

static int report(const struct cleaning *c)
{
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (c->cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_maintained_json(&j, &c->done);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		ob_maintained_text(&c->done, &line);
		add_holder(&c->done, &line);
		ob_para_print(stdout, ob_buf_view(&line), 0);
	}
	ob_jout_done(&j);
	ob_buf_done(&line);
	return r;
}

static void add_age(struct ob_buf *out, const char *name, int64_t ms)
{
	char age[OB_WHEN_SIZE] = "never";

	if (ms != OB_NEVER_MS)
		ob_when_age(ms * 1000, age);
	ob_buf_addf(out, "%s %s", name, age);
}

static void take_down(const struct cleaning *c, struct ob_store *store)
{
	struct ob_buf filter = OB_BUF_INIT(LINE_MAX_BYTES);
	struct ob_cli_decision decision;

	if (c->done.rows + c->done.dead + c->done.parts_dropped == 0)
		return;
	add_age(&filter, "published", c->maintain.rule.published_ms);
	add_age(&filter, ", dead", c->maintain.rule.dead_ms);
	if (c->args->archive)
		ob_buf_addf(&filter, ", archived to %s", c->args->archive);
	ob_cli_decide(&decision, "cleanup", NULL, ob_buf_str(&filter), c->args->reason);
	ob_cli_decided(&decision, store, c->done.rows + c->done.dead);
	ob_buf_done(&filter);
}

static int clean(struct cleaning *c, struct ob_store *store)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_maintain_run(store, &c->maintain, &c->done, &err);

	take_down(c, store);
	/* What earlier batches removed stays removed: it is told also when a later one fails. */
	int code = (r == 0 && !c->done.busy) || c->done.batches ? report(c) : OB_EXIT_OK;
	if (r < 0)
		return ob_cli_fail("%s", err.msg);
	if (c->done.busy)
		return ob_cli_fail("a worker is at it right now: try again in a while");
	return code;
}

static int open_archive(struct cleaning *c)
{
	struct ob_err err = OB_ERR_INIT;

	if (!c->args->archive)
		return OB_EXIT_OK;
	if (ob_archive_open(c->args->archive, c->args->append, &c->maintain.archive, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	return OB_EXIT_OK;
}

static int cleanup_run(struct ob_cli *cli, const void *opts)
{
	struct cleaning c = { .cli = cli, .args = opts };
	struct ob_session session;

	if (c.args->append && !c.args->archive)
		return ob_cli_usage(cli, "--append belongs to --archive");
	int r = ob_session_open(&session, cli);

	ob_maintained_init(&c.done);
	if (!r)
		r = make_rule(&c, &session.entry->retention);
	if (!r)
		r = open_archive(&c);
	if (!r)
		r = clean(&c, session.store);
	ob_archive_free(c.maintain.archive);
	ob_maintained_done(&c.done);
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
	{
		.name = "archive",
		.arg = "FILE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct cleanup_args, archive),
		.complete = OB_COMPLETE_FILE,
		.help = "Write the messages to this file before they are removed: .ndjson.gz.",
	},
	{
		.name = "append",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct cleanup_args, append),
		.help = "Add to the file of --archive if it exists; else that is refused.",
	},
	OB_REASON_OPTION(struct cleanup_args, reason),
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox cleanup",
	"outbox cleanup --published 1h --dead 90d",
	"outbox cleanup --archive 2026-05.ndjson.gz",
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
		"partitions are dropped, and new ones are made ahead; the line says how many.\n\n"
		"With --archive each message is on the disk, as a line of JSON with the keys of "
		"`outbox list --json`, before it is removed; a crash in between leaves it in both. "
		"Messages are "
		"removed one by one then: emptied table partitions are dropped by the next "
		"cleanup "
		"without it. `zcat FILE` reads the file.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct cleanup_args),
	.run = cleanup_run,
};
