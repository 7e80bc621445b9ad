/* SPDX-License-Identifier: MIT */
/* outbox audit: what people did to the log, newest first. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/cells.h"
#include "cli/out/jprint.h"
#include "operate/audit.h"

#include <stdio.h>

enum { ARENA_MAX = 64 << 20, PAGE = 500, LIMIT_MAX = 1000000 };

struct audit_args {
	const char *reader, *verb;
	int64_t limit, before;
};

struct listing {
	const struct ob_cli *cli;
	struct ob_grid table;
	struct ob_jout json;
	uint64_t count;
};

static void add_cells(struct listing *l, const struct ob_audit_row *row)
{
	char at[OB_WHEN_SIZE];

	ob_when_iso(row->at_us, at);
	at[19] = '\0'; /* to the second */
	at[10] = ' ';
	ob_grid_int(&l->table, row->number);
	ob_grid_cell(&l->table, ob_str(at));
	ob_grid_cell(&l->table, row->who);
	ob_grid_cell(&l->table, row->origin);
	ob_grid_cell(&l->table, row->verb);
	ob_grid_cell(&l->table, row->reader.n ? row->reader : OB_STR_NULL);
	ob_cell_count(&l->table, (int64_t)row->count);
	ob_grid_cell(&l->table, row->filter);
	ob_grid_cell(&l->table, row->reason);
}

/* A page at a time, so that any number of entries takes little memory. */
static int walk(struct listing *l, struct ob_store *store, const struct audit_args *args,
		struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_audit_ask ask = { .before = args->before,
				    .reader = args->reader,
				    .verb = args->verb };
	size_t count = PAGE;
	int r = 0;

	while (r == 0 && count == PAGE && l->count < (uint64_t)args->limit) {
		struct ob_audit_row *rows = NULL;
		uint64_t left = (uint64_t)args->limit - l->count;

		ob_arena_reset(&arena, SIZE_MAX);
		ask.limit = left < PAGE ? (uint32_t)left : PAGE;
		r = ob_store_audits(store, &ask, &arena, &rows, &count, err);
		for (size_t i = 0; r == 0 && i < count; i++, l->count++) {
			ask.before = rows[i].number;
			if (l->cli->json) {
				ob_audit_row_json(&l->json, &rows[i]);
				r = ob_jout_print(&l->json) ? -1 : 0;
			} else {
				add_cells(l, &rows[i]);
			}
		}
	}
	return r;
}

static int audit_run(struct ob_cli *cli, const void *opts)
{
	static const struct ob_grid_column columns[] = {
		{ "NO", OB_GRID_RIGHT },
		{ "AT (UTC)", 0 },
		{ "WHO", OB_GRID_SHRINK },
		{ "FROM", 0 },
		{ "VERB", 0 },
		{ "READER", OB_GRID_SHRINK },
		{ "COUNT", OB_GRID_RIGHT },
		{ "WHAT", OB_GRID_SHRINK },
		{ "REASON", OB_GRID_SHRINK | OB_GRID_LAST },
	};
	struct listing l = { .cli = cli, .json = OB_JOUT_INIT };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	ob_grid_init(&l.table, columns, sizeof(columns) / sizeof(columns[0]));
	if (!r && walk(&l, session.store, opts, &err) < 0)
		r = err.status < 0 ? ob_cli_fail("%s", err.msg) : OB_EXIT_FAILURE;
	if (!r && !cli->json && l.count == 0)
		printf("nobody has changed anything\n");
	else if (!r && !cli->json)
		ob_grid_print(&l.table, ob_terminal_width(), stdout);
	ob_grid_done(&l.table);
	ob_jout_done(&l.json);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct audit_args, reader),
		.help = "Only entries about this reader.",
	},
	{
		.name = "verb",
		.arg = "VERB",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct audit_args, verb),
		.help = "Only this verb, such as retry or \"readers seek\".",
	},
	{
		.name = "limit",
		.letter = 'l',
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct audit_args, limit),
		.dflt = "50",
		.min = 1,
		.max = LIMIT_MAX,
		.help = "At most so many.",
	},
	{
		.name = "before",
		.arg = "NO",
		.type = OB_CMD_INT,
		.offset = offsetof(struct audit_args, before),
		.min = 1,
		.max = INT64_MAX,
		.help = "Only entries older than the one of this number: the next page.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox audit",
	"outbox audit --verb discard --json",
	NULL,
};

const struct ob_cmd ob_cmd_audit = {
	.name = "audit",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "who changed what, newest first",
	.description =
		"Lists what people did, from the command line or the monitor: retry, skip, "
		"discard, replay, readers seek and remove, partitions resize and free, cleanup, "
		"adopt. Each entry says when by the database's clock, who, on how many messages, "
		"which, and why, if --reason said so. A bulk verb has one entry, which is written "
		"in the same transactions as its changes. A verb that changes nothing leaves none. "
		"Entries are kept for 90 days, then retention removes them. The same goes to the "
		"log of the system (syslog) as one line.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct audit_args),
	.run = audit_run,
};
