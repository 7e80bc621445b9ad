/* SPDX-License-Identifier: MIT */
/* outbox consumers: who consumes, how far, and how they are, from any machine. */
#include "base/when.h"
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/monitor/stores.h"
#include "cli/operate/cells.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/consumers.h"

struct consumers_args {
	bool down, dead;
};

/* One run: all stores into one table. */
struct listing {
	const struct ob_cli *cli;
	const struct consumers_args *args;
	const char *name;
	struct ob_grid consumers, processes;
	struct ob_buf troubles;
	size_t count, installed;
};

static void add_known(struct ob_grid *grid, int64_t count)
{
	if (count < 0)
		ob_grid_cell(grid, OB_STR_NULL);
	else
		ob_cell_count(grid, count);
}

static void add_age(struct ob_grid *grid, int64_t us)
{
	char age[OB_WHEN_SIZE];

	ob_when_age(us, age);
	ob_grid_cell(grid, us < 0 ? OB_STR_NULL : ob_str(age));
}

static void add_row(struct ob_grid *grid, const struct ob_consumer_view *view)
{
	const struct ob_consumer_row *row = &view->row;
	char rate[32];

	(void)snprintf(rate, sizeof(rate), "%.1f/s", view->rate);
	ob_grid_cell(grid, row->name);
	ob_grid_cell(grid, ob_str(ob_consumer_word(view)));
	add_known(grid, row->lag);
	add_age(grid, row->oldest_us);
	ob_grid_cell(grid, ob_str(rate));
	ob_cell_count(grid, (int64_t)row->handled);
	ob_cell_count(grid, (int64_t)row->duplicates);
	ob_cell_count(grid, (int64_t)row->failed);
	ob_cell_count(grid, (int64_t)row->parked);
	ob_cell_count(grid, (int64_t)row->dead);
	ob_grid_int(grid, (int64_t)view->alive);
	ob_grid_cell(grid, row->source);
}

static void add_process(struct ob_grid *grid, const struct ob_consumer_view *view,
			const struct ob_consumer_process *p)
{
	const struct ob_consumer_report *r = &p->report;
	bool lease = view->row.held && ob_uuid_eq(&view->row.owner, &p->member.id);

	ob_grid_cell(grid, p->member.hostname);
	ob_grid_int(grid, p->member.pid);
	ob_grid_cell(grid, !p->member.alive ? OB_STR("silent")
			   : lease          ? OB_STR("has the lease")
					    : OB_STR("stands by"));
	add_age(grid, view->row.now_us - p->member.started_at_us);
	ob_grid_cell(grid, p->told && r->version[0] ? ob_str(r->version) : OB_STR_NULL);
	ob_grid_cell(grid, p->told && r->handler[0] ? ob_str(r->handler) : OB_STR_NULL);
	ob_grid_cell(grid, p->told && r->last_error[0] ? ob_str(r->last_error) : OB_STR_NULL);
}

/* What --fail-if-down and --fail-if-dead are about; without them everything that is wrong. */
static bool is_wanted(const struct listing *l, const struct ob_consumer_view *view)
{
	bool all = !l->args->down && !l->args->dead;

	return ((all || l->args->down) && ob_consumer_is_bad(view)) ||
	       ((all || l->args->dead) && view->row.dead > 0);
}

static void add_trouble(struct listing *l, const struct ob_consumer_view *view)
{
	struct ob_buf text = OB_BUF_INIT(1024);

	if (!is_wanted(l, view))
		return;
	ob_consumer_trouble_text(view, &text);
	ob_buf_adds(&l->troubles, l->troubles.len ? "; consumer " : "consumer ");
	ob_buf_add(&l->troubles, view->row.name);
	ob_buf_addf(&l->troubles, ": %s", ob_buf_str(&text));
	ob_buf_done(&text);
}

static int add_view(struct listing *l, const struct ob_consumer_view *view)
{
	struct ob_jout j = OB_JOUT_INIT;
	int code = OB_EXIT_OK;

	l->count++;
	add_trouble(l, view);
	if (l->cli->json) {
		ob_consumer_view_json(&j, view);
		code = ob_jout_print(&j);
		ob_jout_done(&j);
		return code;
	}
	add_row(&l->consumers, view);
	for (size_t i = 0; l->name && i < view->process_count; i++)
		add_process(&l->processes, view, &view->processes[i]);
	return code;
}

static int add_store(struct listing *l, const struct ob_config_store *entry)
{
	struct ob_consumers consumers = { 0 };
	struct ob_store *store = NULL;
	struct ob_err err = OB_ERR_INIT;
	int r = ob_store_connect(&entry->conf, &store, &err), code = OB_EXIT_OK;

	if (r == 0)
		r = ob_consumers_take(&consumers, store, l->name, &err);
	if (r < 0)
		code = ob_cli_fail("%s", err.msg);
	l->installed += r == 0 && consumers.installed;
	for (size_t i = 0; !code && i < consumers.count; i++)
		code = add_view(l, &consumers.views[i]);
	ob_consumers_done(&consumers);
	ob_store_free(store);
	return code;
}

static int print_all(struct listing *l)
{
	bool watch = l->args->down || l->args->dead;
	size_t width = ob_terminal_width();

	if (l->count == 0 && l->name)
		return ob_cli_fail("no consumer '%s' has run yet: see `outbox consume`", l->name);
	if (!l->cli->json && !watch && l->count == 0)
		printf("no consumer has run yet%s\n",
		       l->installed ? ""
				    : ", and no store has their tables: `outbox setup --inbox`");
	else if (!l->cli->json && !watch)
		ob_grid_print(&l->consumers, width, stdout);
	if (!l->cli->json && !watch && l->name && l->processes.cell_count) {
		(void)fputc('\n', stdout);
		ob_grid_print(&l->processes, width, stdout);
	}
	if (!l->cli->json && l->troubles.len) {
		if (!watch)
			(void)fputc('\n', stdout);
		ob_para_print(stdout, ob_buf_view(&l->troubles), width);
	}
	return watch && l->troubles.len ? OB_EXIT_FAILURE : OB_EXIT_OK;
}

static int consumers_run(struct ob_cli *cli, const void *args)
{
	static const struct ob_grid_column columns[] = {
		{ "CONSUMER", OB_GRID_SHRINK },  { "STATUS", 0 },
		{ "LAG", OB_GRID_RIGHT },        { "OLDEST", OB_GRID_RIGHT },
		{ "RATE", OB_GRID_RIGHT },       { "HANDLED", OB_GRID_RIGHT },
		{ "DUPLICATES", OB_GRID_RIGHT }, { "FAILED", OB_GRID_RIGHT },
		{ "PARKED", OB_GRID_RIGHT },     { "DEAD", OB_GRID_RIGHT },
		{ "PROCESSES", OB_GRID_RIGHT },  { "SOURCE", OB_GRID_SHRINK },
	};
	static const struct ob_grid_column process_columns[] = {
		{ "HOST", OB_GRID_SHRINK },
		{ "PID", OB_GRID_RIGHT },
		{ "STATE", 0 },
		{ "RUNS", OB_GRID_RIGHT },
		{ "VERSION", 0 },
		{ "HANDLER", OB_GRID_SHRINK },
		{ "LAST ERROR", OB_GRID_SHRINK },
	};
	struct listing l = { .cli = cli,
			     .args = args,
			     .name = cli->operand_count ? cli->operands[0] : NULL,
			     .troubles = OB_BUF_INIT(1 << 20) };
	struct ob_cli_stores stores;
	int code = ob_cli_stores_load(&stores, cli);

	ob_grid_init(&l.consumers, columns, sizeof(columns) / sizeof(columns[0]));
	ob_grid_init(&l.processes, process_columns,
		     sizeof(process_columns) / sizeof(process_columns[0]));
	for (size_t i = 0; !code && i < stores.config->store_count; i++) {
		if (!stores.only || stores.only == &stores.config->stores[i])
			code = add_store(&l, &stores.config->stores[i]);
	}
	if (!code)
		code = print_all(&l);
	ob_grid_done(&l.consumers);
	ob_grid_done(&l.processes);
	ob_buf_done(&l.troubles);
	ob_cli_stores_done(&stores);
	return code;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "fail-if-down",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct consumers_args, down),
		.help = "Print only what is wrong, and exit with 1, when no process runs a "
			"consumer, "
			"its source or its handler is down, or it is full.",
	},
	{
		.name = "fail-if-dead",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct consumers_args, dead),
		.help = "The same when a message is dead.",
	},
	OB_CMD_OPT_END,
};

static const struct ob_cmd_operand operands[] = {
	{ .name = "NAME", .optional = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox consumers",
	"outbox consumers billing",
	"outbox consumers --fail-if-down --fail-if-dead",
	NULL,
};

const struct ob_cmd ob_cmd_consumers = {
	.name = "consumers",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "who consumes, how far they are, and what is wrong",
	.description =
		"Lists the consumers of all stores of the configuration, as their processes told "
		"it "
		"with the last renewal of their lease; it works from any machine that reaches the "
		"database. LAG and OLDEST are of the source: messages that wait, and the age of "
		"the "
		"first. HANDLED, DUPLICATES and FAILED count since the consumer's first start. The "
		"status is the worst that is true: stopped (no process is alive), full (no room to "
		"park, the source is paused), source down, failing (most keys fail), handler down, "
		"waiting (nobody has the lease yet), held (dead messages hold keys), ok. With a "
		"NAME also its processes.\n\n"
		"--json prints an object for each consumer: consumer, source, status, trouble, "
		"updated_at, handled, duplicates, failed, rate, in_flight, lag, oldest_ms, parked, "
		"dead, parked_since, held_keys, and processes with all that each told in `state`.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct consumers_args),
	.run = consumers_run,
};
