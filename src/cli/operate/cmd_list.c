/* SPDX-License-Identifier: MIT */
/* outbox list: messages by state and filter, a page at a time. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "operate/message.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <stdio.h>

/* Rows held at once: payloads may be large. */
enum { PAGE = 100, LIMIT_MAX = 1000000, LIMIT = 50 };

struct list_args {
	int64_t limit, after;
	const char *key, *type, *event, *reader;
	bool newest;
};

static const char *const state_names[] = {
#define X(name, text) (text),
	OB_VIEW_MAP(X)
#undef X
		"all",
	NULL,
};

/* No state named: everything that is not yet out. */
static unsigned wanted_views(const struct ob_cli *cli)
{
	unsigned views = 0;

	for (size_t i = 0; i < cli->operand_count; i++) {
		int view = ob_view_parse(cli->operands[i]);
		if (view < 0)
			return 0; /* "all" */
		views |= 1U << view;
	}
	if (views)
		return views;
	return ((1U << OB_VIEW_COUNT) - 1) & ~(1U << OB_VIEW_PUBLISHED | 1U << OB_VIEW_DISCARDED);
}

static void add_row(struct ob_grid *table, const struct ob_message *m, int64_t now_us)
{
	char id[OB_UUID_TEXT_SIZE], age[OB_WHEN_SIZE];

	ob_uuid_format(&m->id, id);
	ob_when_age(now_us - m->created_at_us, age);
	ob_grid_int(table, m->seq);
	ob_grid_cell(table, ob_str(id));
	ob_grid_cell(table, ob_str(ob_view_name(m->view)));
	ob_grid_cell(table, ob_str(age));
	ob_grid_cell(table, m->key);
	ob_grid_cell(table, m->event_type);
	ob_grid_int(table, m->attempts);
	ob_grid_cell(table, m->last_error);
}

struct listing {
	const struct ob_cli *cli;
	struct ob_store *store;
	struct ob_filter filter;
	struct ob_batch batch;
	struct ob_grid table;
	struct ob_jout json;
	int64_t left; /* rows still wanted */
	bool more;    /* there are rows behind the last one */
};

/* One page; *ret_end when it was the last. */
static int list_page(struct listing *l, bool *ret_end)
{
	uint32_t want = l->left < PAGE ? (uint32_t)l->left : PAGE;
	struct ob_err err = OB_ERR_INIT;
	int64_t now_us;
	int r = OB_EXIT_OK;

	l->filter.limit = want + 1; /* one more tells whether there is more */
	if (ob_store_list(l->store, &l->filter, &l->batch, &now_us, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	uint32_t count = l->batch.count < want ? l->batch.count : want;
	for (uint32_t i = 0; !r && i < count; i++) {
		const struct ob_message *m = &l->batch.messages[i];

		l->filter.after_seq = m->seq;
		if (l->cli->json) {
			ob_jout_begin(&l->json, NULL, '{');
			ob_message_json_state(&l->json, l->filter.reader, m);
			ob_message_json(&l->json, m);
			ob_jout_end(&l->json, '}');
			r = ob_jout_print(&l->json);
		} else {
			add_row(&l->table, m, now_us);
		}
	}
	l->left -= count;
	l->more = l->batch.count > want;
	/* nobody reads any more, or the disk is full: main() says so */
	*ret_end = !l->more || l->left == 0 || ferror(stdout);
	return r;
}

/* A log whose messages are all out is not empty. */
static int print_nothing(struct listing *l)
{
	bool waiting = l->cli->operand_count == 0, any = false;
	struct ob_err err = OB_ERR_INIT;
	int64_t now_us;

	l->filter.views = 0;
	l->filter.limit = 1;
	if (waiting) {
		if (ob_store_list(l->store, &l->filter, &l->batch, &now_us, &err) < 0)
			return ob_cli_fail("%s", err.msg);
		any = l->batch.count > 0;
	}
	printf("%s\n", any ? "no message is waiting: 'outbox list all' shows those that are out"
			   : "no messages");
	return OB_EXIT_OK;
}

static int print_table(struct listing *l)
{
	if (l->table.cells.failed)
		return ob_cli_fail("too many messages for one table; take fewer, or --json");
	if (l->table.cell_count == 0)
		return print_nothing(l);
	ob_grid_print(&l->table, ob_terminal_width(), stdout);
	if (l->more)
		printf("more: --after %" PRId64 "\n", l->filter.after_seq);
	return OB_EXIT_OK;
}

static int list_run(struct ob_cli *cli, const void *opts)
{
	static const struct ob_grid_column columns[] = {
		{ "SEQ", OB_GRID_RIGHT },
		{ "ID", 0 },
		{ "STATE", 0 },
		{ "AGE", OB_GRID_RIGHT },
		{ "KEY", OB_GRID_SHRINK },
		{ "EVENT", OB_GRID_SHRINK },
		{ "TRIES", OB_GRID_RIGHT },
		{ "LAST ERROR", OB_GRID_SHRINK | OB_GRID_LAST },
	};
	const struct list_args *args = opts;
	struct listing l = {
		.cli = cli,
		.left = args->limit ? args->limit
			: cli->json ? INT64_MAX
				    : LIMIT,
		.json = OB_JOUT_INIT,
		.filter = { .views = wanted_views(cli),
			    .key = args->key,
			    .aggregate_type = args->type,
			    .event_type = args->event,
			    .after_seq = args->after,
			    .newest_first = args->newest },
	};
	struct ob_readers readers = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	bool end = false;

	ob_batch_init(&l.batch);
	ob_grid_init(&l.table, columns, sizeof(columns) / sizeof(columns[0]));
	int r = ob_session_open(&session, cli);
	l.store = session.store;
	if (!r &&
	    ob_readers_name(&readers, l.store, args->reader, true, &l.filter.reader, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	while (!r && !end)
		r = list_page(&l, &end);
	if (!r && !cli->json)
		r = print_table(&l);
	ob_jout_done(&l.json);
	ob_grid_done(&l.table);
	ob_batch_done(&l.batch);
	ob_readers_done(&readers);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "STATE",
	  .optional = true,
	  .many = true,
	  .complete = OB_COMPLETE_CHOICES,
	  .choices = state_names },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "limit",
		.letter = 'n',
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct list_args, limit),
		.min = 1,
		.max = LIMIT_MAX,
		.help = "At most so many messages; left out: 50, and with --json all.",
	},
	{
		.name = "after",
		.arg = "SEQ",
		.type = OB_CMD_INT,
		.offset = offsetof(struct list_args, after),
		.min = 1,
		.max = INT64_MAX,
		.help = "Go on behind the message of that number.",
	},
	{
		.name = "newest",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct list_args, newest),
		.help = "The newest first, instead of the oldest.",
	},
	{
		.name = "key",
		.arg = "KEY",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct list_args, key),
		.help = "Only this ordering key, such as order:1042.",
	},
	{
		.name = "type",
		.arg = "TYPE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct list_args, type),
		.help = "Only this aggregate type.",
	},
	{
		.name = "event",
		.arg = "EVENT",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct list_args, event),
		.help = "Only this event type.",
	},
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct list_args, reader),
		.help = "Whose messages; may be left out when there is one reader.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox list",
	"outbox list failed dead --newest",
	"outbox list published --type order --json | jq .payload",
	NULL,
};

const struct ob_cmd ob_cmd_list = {
	.name = "list",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "messages, by state and filter",
	.description =
		"Lists messages in the order they were stored, as a reader sees them: every relay "
		"has a reader of its name. Without a state it lists those that are not published "
		"yet; several states may be named, and all means every message.\n\n"
		"The states: pending is due and waits for a relay, delayed is not due yet, failed "
		"waits for its next attempt, parked waits for the head of its key, dead was given "
		"up, discarded is not delivered because somebody decided so, published is out. In "
		"a "
		"log that nobody has read yet everything is pending or delayed.\n\n"
		"With --json every message is one object on a line of its own, with all its fields "
		"and its payload.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct list_args),
	.run = list_run,
};
