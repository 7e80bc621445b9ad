/* SPDX-License-Identifier: MIT */
/* outbox failures: what went wrong, in groups. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/cells.h"
#include "cli/out/jprint.h"
#include "operate/failures.h"

#include <stdio.h>

struct failures_args {
	const char *by, *state, *reader;
};

static void age_cell(struct ob_grid *table, int64_t us)
{
	char age[OB_WHEN_SIZE];

	ob_when_age(us > 0 ? us : 0, age);
	ob_grid_cell(table, ob_str(age));
}

static void add_row(struct ob_grid *table, const struct ob_failures *f,
		    const struct ob_failure_group *g)
{
	ob_grid_cell(table, ob_str(g->id));
	ob_grid_cell(table, g->reader);
	ob_cell_count(table, (int64_t)g->failed);
	ob_cell_count(table, (int64_t)g->dead);
	age_cell(table, f->now_us - g->first_us);
	age_cell(table, f->now_us - g->last_us);
	if (g->next_due_us)
		age_cell(table, g->next_due_us - f->now_us);
	else
		ob_grid_cell(table, OB_STR_NULL);
	ob_cell_count(table, (int64_t)g->keys_held);
	ob_cell_count(table, (int64_t)g->parked);
	ob_grid_cell(table, f->by == OB_FAILURES_SINK ? g->sink : g->event_type);
	ob_grid_cell(table, f->by == OB_FAILURES_KEY ? g->key : g->cause);
}

static void print_table(const struct ob_failures *f)
{
	struct ob_grid_column columns[] = {
		{ "GROUP", 0 },
		{ "READER", OB_GRID_SHRINK },
		{ "FAILED", OB_GRID_RIGHT },
		{ "DEAD", OB_GRID_RIGHT },
		{ "FIRST", OB_GRID_RIGHT },
		{ "LAST", OB_GRID_RIGHT },
		{ "NEXT", OB_GRID_RIGHT },
		{ "HELD KEYS", OB_GRID_RIGHT },
		{ "PARKED", OB_GRID_RIGHT },
		{ f->by == OB_FAILURES_SINK ? "SINK" : "EVENT", OB_GRID_SHRINK },
		{ f->by == OB_FAILURES_KEY ? "KEY" : "CAUSE", OB_GRID_SHRINK | OB_GRID_LAST },
	};
	struct ob_grid table;

	if (f->count == 0) {
		printf("no message has failed\n");
		return;
	}
	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < f->count; i++)
		add_row(&table, f, &f->groups[i]);
	ob_grid_print(&table, ob_terminal_width(), stdout);
	ob_grid_done(&table);
	if (f->capped)
		printf("only the oldest %d messages of each reader were counted\n",
		       OB_FAILURES_SCAN);
}

static int print_json(const struct ob_failures *f)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_failures_json(&j, f);
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

/* What is wrong with the words is said before anything is opened. */
static int read_args(const struct ob_cli *cli, const struct failures_args *args,
		     struct ob_failures_ask *ask)
{
	int by = args->by ? ob_failures_by_parse(args->by) : OB_FAILURES_CAUSE;
	int view = args->state ? ob_view_parse(args->state) : -1;

	if (by < 0)
		return ob_cli_usage(cli, "--by: '%s' is none of cause, type, relay, sink, key",
				    args->by);
	if (args->state && view != OB_VIEW_FAILED && view != OB_VIEW_DEAD)
		return ob_cli_usage(cli, "--state: '%s' is neither failed nor dead", args->state);
	*ask = (struct ob_failures_ask){ .by = (enum ob_failures_by)by,
					 .reader = args->reader,
					 .views = view < 0 ? 0 : 1U << view };
	return OB_EXIT_OK;
}

static int failures_run(struct ob_cli *cli, const void *opts)
{
	struct ob_failures f = { 0 };
	struct ob_failures_ask ask;
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session = { 0 };
	int r = read_args(cli, opts, &ask);

	if (r)
		return r;
	r = ob_session_open(&session, cli);
	if (!r && ob_failures_take(&f, session.store, session.config, &ask, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && cli->json)
		r = print_json(&f);
	else if (!r)
		print_table(&f);
	ob_failures_done(&f);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "by",
		.arg = "WHAT",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct failures_args, by),
		.help = "cause, type, relay, sink or key; left out: cause.",
	},
	{
		.name = "state",
		.arg = "STATE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct failures_args, state),
		.help = "Only failed or only dead messages.",
	},
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct failures_args, reader),
		.help = "Only those of this reader.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox failures",
	"outbox failures --by key --state dead",
	NULL,
};

const struct ob_cmd ob_cmd_failures = {
	.name = "failures",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "what failed, in groups",
	.description =
		"Groups the messages that failed or are dead: by their error with the numbers in "
		"it "
		"blanked (HTTP 422: order 1042 is HTTP #: order #) and their event type, or by "
		"type, relay, sink or key. Each group tells how many there are, since when the "
		"first and the last failed, in how long the next attempt is due, how many keys "
		"they hold "
		"and how many messages are parked behind these. At most 10,000 messages of each "
		"reader are read; a line says when there are more.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct failures_args),
	.run = failures_run,
};
