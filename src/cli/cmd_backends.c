/* SPDX-License-Identifier: MIT */
/* outbox backends: which databases and brokers this binary can talk to. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"

/* Stores and sinks have the same columns here. */
struct row {
	const char *kind, *name, *package, *help;
	bool built;
};

static void add_row(struct ob_grid *table, const struct row *row)
{
	char state[100];

	if (row->built)
		(void)snprintf(state, sizeof(state), "built in");
	else if (row->package)
		(void)snprintf(state, sizeof(state), "not in this build: needs %s", row->package);
	else
		(void)snprintf(state, sizeof(state), "not in this build");
	ob_grid_cell(table, ob_str(row->kind));
	ob_grid_cell(table, ob_str(row->name));
	ob_grid_cell(table, ob_str(state));
	ob_grid_cell(table, ob_str(row->help));
}

static void add_json(struct ob_jout *j, const struct row *row)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "kind", ob_str(row->kind));
	ob_jout_text(j, "name", ob_str(row->name));
	ob_jout_bool(j, "built", row->built);
	ob_jout_text(j, "package", ob_str(row->package));
	ob_jout_text(j, "help", ob_str(row->help));
	ob_jout_end(j, '}');
}

static int backends_run(struct ob_cli *cli, const void *args)
{
	static const struct ob_grid_column columns[] = {
		{ "KIND", 0 },
		{ "NAME", 0 },
		{ "STATE", 0 },
		{ "WHAT", OB_GRID_SHRINK },
	};
	struct ob_jout j = OB_JOUT_INIT;
	struct ob_grid table;
	int r = OB_EXIT_OK;

	(void)args;
	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	ob_jout_begin(&j, NULL, '[');
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++) {
		struct row row = { "store", b->name, b->package, b->help, b->ops != NULL };
		add_row(&table, &row);
		add_json(&j, &row);
	}
	for (const struct ob_sink_backend *b = ob_sink_backends; b->name; b++) {
		struct row row = { "sink", b->name, b->package, b->help, b->ops != NULL };
		add_row(&table, &row);
		add_json(&j, &row);
	}
	ob_jout_end(&j, ']');
	if (cli->json)
		r = ob_jout_print(&j);
	else
		ob_grid_print(&table, ob_terminal_width(), stdout);
	ob_grid_done(&table);
	ob_jout_done(&j);
	return r;
}

const struct ob_cmd ob_cmd_backends = {
	.name = "backends",
	.group = OB_GROUP_PROGRAM,
	.flags = OB_CMD_JSON,
	.summary = "the databases and brokers of this build",
	.description =
		"Lists every store and every sink this program knows, and says for each "
		"whether it is built in, or which Debian package brings the library that "
		"was missing when it was built.",
	.run = backends_run,
};
