/* SPDX-License-Identifier: MIT */
/* outbox readers list: who reads the log, and how far they are. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/cells.h"
#include "cli/out/jprint.h"
#include "operate/snapshot.h"

#include <stdio.h>

static void print_table(const struct ob_snapshot *s)
{
	static const struct ob_grid_column columns[] = {
		{ "READER", OB_GRID_SHRINK },    { "READS", OB_GRID_SHRINK },
		{ "POSITION", OB_GRID_RIGHT },   { "LAG", OB_GRID_RIGHT },
		{ "EXCEPTIONS", OB_GRID_RIGHT }, { "MOVED", OB_GRID_RIGHT },
		{ "WORKERS", OB_GRID_RIGHT },    { "FILTER", OB_GRID_SHRINK | OB_GRID_LAST },
	};
	struct ob_grid table;

	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < s->count; i++) {
		const struct ob_reader *r = &s->rows[i].reader;
		char moved[OB_WHEN_SIZE];

		ob_when_age(s->now_us - r->moved_at_us, moved);
		ob_grid_cell(&table, r->name);
		ob_grid_cell(&table, r->target);
		ob_cell_count(&table, r->high_pos);
		ob_cell_count(&table, ob_snapshot_lag(&s->rows[i]));
		ob_cell_capped(&table, r->exceptions);
		ob_grid_cell(&table, ob_str(moved));
		ob_grid_int(&table, r->workers);
		ob_grid_cell(&table, r->filter.n ? r->filter : OB_STR_NULL);
	}
	ob_grid_print(&table, ob_terminal_width(), stdout);
	ob_grid_done(&table);
}

static int print_json(const struct ob_snapshot *s)
{
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	for (size_t i = 0; !r && i < s->count; i++) {
		ob_snapshot_row_json(&j, s, &s->rows[i]);
		r = ob_jout_print(&j);
	}
	ob_jout_done(&j);
	return r;
}

static int readers_list_run(struct ob_cli *cli, const void *opts)
{
	struct ob_snapshot s = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	(void)opts;
	if (!r && ob_snapshot_take(&s, session.store, NULL, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && cli->json)
		r = print_json(&s);
	else if (!r && s.count == 0)
		printf("no reader yet: 'outbox work' makes one when a relay first starts\n");
	else if (!r)
		print_table(&s);
	ob_snapshot_done(&s);
	ob_session_done(&session);
	return r;
}

const struct ob_cmd ob_cmd_readers_list = {
	.name = "readers list",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "who reads the log, and how far they are",
	.description =
		"Lists the readers. Every relay has one of its name, made when it first starts, "
		"with a position in the log and messages of its own that failed, wait or were "
		"given "
		"up (exceptions). A replay has one while it runs. With --json it is one object a "
		"line.",
	.run = readers_list_run,
};
