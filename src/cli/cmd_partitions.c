/* SPDX-License-Identifier: MIT */
/* outbox partitions: who works on which, and how many there are. */
#include "cli/commands.h"
#include "cli/grid.h"
#include "cli/jout.h"
#include "cli/resize.h"
#include "cli/when.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MAX_MS  (INT64_C(24) * 3600 * 1000)
#define WAIT_DFLT_MS (INT64_C(30) * 1000)

struct partitions_args {
	const char *target;
	int64_t wait_ms;
};

/* "12s" ahead, "over 3s" behind, "free" when nobody has it. */
static void lease_text(const struct ob_partition *p, int64_t now_us, char out[OB_WHEN_SIZE + 8])
{
	char age[OB_WHEN_SIZE];

	ob_when_age(p->leased ? p->until_us - now_us : now_us - p->until_us, age);
	if (ob_uuid_is_nil(&p->owner))
		(void)snprintf(out, OB_WHEN_SIZE + 8, "free");
	else
		(void)snprintf(out, OB_WHEN_SIZE + 8, "%s%s", p->leased ? "" : "over ", age);
}

static void add_row(struct ob_grid *table, const struct ob_owners *o, const struct ob_partition *p)
{
	const struct ob_worker *w = ob_owners_find(o, &p->owner);
	char label[8], id[OB_OWNER_SHORT_SIZE], lease[OB_WHEN_SIZE + 8], pid[16];
	bool owned = !ob_uuid_is_nil(&p->owner);

	ob_partition_label(p->number, label);
	ob_owner_short(&p->owner, id);
	lease_text(p, o->now_us, lease);
	(void)snprintf(pid, sizeof(pid), "%d", w ? w->pid : 0);
	ob_grid_cell(table, ob_str(label));
	ob_grid_cell(table, p->target);
	ob_grid_cell(table, owned ? ob_str(id) : OB_STR_NULL);
	ob_grid_cell(table, w ? w->hostname : OB_STR_NULL);
	ob_grid_cell(table, w ? ob_str(pid) : OB_STR_NULL);
	ob_grid_int(table, (int64_t)p->epoch);
	ob_grid_cell(table, ob_str(lease));
}

static void print_table(const struct ob_owners *o)
{
	static const struct ob_grid_column columns[] = {
		{ "PARTITION", 0 },
		{ "TARGET", OB_GRID_SHRINK },
		{ "WORKER", 0 },
		{ "HOST", OB_GRID_SHRINK },
		{ "PID", OB_GRID_RIGHT },
		{ "EPOCH", OB_GRID_RIGHT },
		{ "LEASE", OB_GRID_RIGHT },
	};
	struct ob_grid table;

	if (o->partition_count == 0) {
		printf("no partitions: a worker makes them when it first starts\n");
		return;
	}
	ob_grid_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < o->partition_count; i++)
		add_row(&table, o, &o->partitions[i]);
	ob_grid_print(&table, ob_terminal_width(), stdout);
	ob_grid_done(&table);
}

static void partition_json(struct ob_jout *j, const struct ob_owners *o,
			   const struct ob_partition *p)
{
	const struct ob_worker *w = ob_owners_find(o, &p->owner);
	bool owned = !ob_uuid_is_nil(&p->owner);
	char id[OB_UUID_TEXT_SIZE], label[8];

	ob_uuid_format(&p->owner, id);
	ob_partition_label(p->number, label);
	ob_jout_begin(j, NULL, '{');
	ob_jout_int(j, "partition", p->number);
	ob_jout_text(j, "label", ob_str(label));
	ob_jout_text(j, "target", p->target);
	ob_jout_bool(j, "leased", p->leased);
	ob_jout_text(j, "owner", owned ? ob_str(id) : OB_STR_NULL);
	ob_jout_text(j, "hostname", w ? w->hostname : OB_STR_NULL);
	if (w)
		ob_jout_int(j, "pid", w->pid);
	else
		ob_jout_raw(j, "pid", OB_STR("null"));
	ob_jout_int(j, "epoch", (int64_t)p->epoch);
	ob_jout_when(j, "until", p->until_us);
	ob_jout_end(j, '}');
}

static int print_json(const struct ob_owners *o)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_when(&j, "now", o->now_us);
	ob_jout_begin(&j, "partitions", '[');
	for (size_t i = 0; i < o->partition_count; i++)
		partition_json(&j, o, &o->partitions[i]);
	ob_jout_end(&j, ']');
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int list(const struct ob_cli *cli, struct ob_store *store, const char *target)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_owners o;
	int r = OB_EXIT_OK;

	if (ob_owners_load(&o, store, target, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (cli->json)
		r = print_json(&o);
	else
		print_table(&o);
	ob_owners_done(&o);
	return r;
}

/* What "resize N" asks for; 0: there is no such word. */
static int read_words(const struct ob_cli *cli, const struct partitions_args *args,
		      uint32_t *ret_count)
{
	char *end;

	*ret_count = 0;
	if (cli->operand_count == 0)
		return args->wait_ms ? ob_cli_usage(cli, "--wait belongs to resize") : OB_EXIT_OK;
	if (cli->operand_count == 1)
		return ob_cli_usage(cli, "resize needs a number: N");
	if (args->target)
		return ob_cli_usage(cli, "resize is for all targets: --target has no meaning here");
	errno = 0;
	long n = strtol(cli->operands[1], &end, 10);
	if (errno || end == cli->operands[1] || *end || n < 1 || n > OB_PARTITIONS_MAX)
		return ob_cli_usage(cli, "'%s' is not a number from 1 to %d", cli->operands[1],
				    OB_PARTITIONS_MAX);
	*ret_count = (uint32_t)n;
	return OB_EXIT_OK;
}

static int partitions_run(struct ob_cli *cli, const void *opts)
{
	const struct partitions_args *args = opts;
	struct ob_session session;
	uint32_t count;
	int r = read_words(cli, args, &count);

	if (r)
		return r;
	r = ob_session_open(&session, cli);
	if (!r)
		r = count ? ob_resize(cli, &session, count,
				      args->wait_ms ? args->wait_ms : WAIT_DFLT_MS)
			  : list(cli, session.store, args->target);
	ob_session_done(&session);
	return r;
}

static const char *const actions[] = { "resize", NULL };

static const struct ob_cmd_operand operands[] = {
	{ .name = "ACTION", .optional = true, .complete = OB_COMPLETE_CHOICES, .choices = actions },
	{ .name = "N", .optional = true },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "target",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct partitions_args, target),
		.help = "Only the partitions of this target.",
	},
	{
		.name = "wait",
		.arg = "DURATION",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct partitions_args, wait_ms),
		.max = WAIT_MAX_MS,
		.help = "With resize: how long workers may take to let go; 30s if left out.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox partitions",
	"outbox partitions resize 32",
	NULL,
};

const struct ob_cmd ob_cmd_partitions = {
	.name = "partitions",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "who works on which partition; change their number",
	.description =
		"Lists the partitions of each target with the worker that holds the lease, the "
		"number of times the partition changed hands, and how long the lease lasts. The "
		"worker is named by the last group of its id, as status prints it.\n\n"
		"resize N changes the number of partitions for all targets. Messages keep the "
		"order of their keys and none is left behind. Running workers are asked to finish "
		"what is in flight and let go, and share the new partitions afterwards: nothing "
		"needs to be stopped. A worker that does not answer is waited for until its leases "
		"end.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct partitions_args),
	.run = partitions_run,
};
