/* SPDX-License-Identifier: MIT */
/* outbox dlq list: what consumers have parked. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/out/jprint.h"

static int print_json(const struct ob_dlq *dlq)
{
	struct ob_jout j = OB_JOUT_INIT;
	int code = OB_EXIT_OK;

	for (size_t i = 0; i < dlq->count && !code; i++) {
		ob_dlq_add_json(&j, &dlq->rows[i], false);
		code = ob_jout_print(&j);
	}
	ob_jout_done(&j);
	return code;
}

static int dlq_list_run(struct ob_cli *cli, const void *opts)
{
	const struct ob_dlq_args *args = opts;
	struct ob_dlq dlq;
	int code = ob_dlq_open(&dlq, cli, cli->operand_count ? cli->operands[0] : NULL);

	if (!code)
		code = ob_dlq_select(&dlq, NULL, args, (uint32_t)args->limit);
	if (!code && cli->json)
		code = print_json(&dlq);
	else if (!code && dlq.count)
		ob_dlq_print_rows(dlq.rows, dlq.count);
	else if (!code)
		printf("nothing is parked\n");
	ob_dlq_done(&dlq);
	return code;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "key",
		.arg = "KEY",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_dlq_args, key),
		.help = "Messages of this key.",
	},
	{
		.name = "state",
		.arg = "STATE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_dlq_args, state),
		.help = "failed, waiting, dead or letter.",
	},
	{
		.name = "error",
		.arg = "TEXT",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_dlq_args, error),
		.help = "Messages whose last error contains this.",
	},
	{
		.name = "limit",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct ob_dlq_args, limit),
		.min = 1,
		.max = 100000,
		.dflt = "100",
		.help = "At most so many.",
	},
	OB_CMD_OPT_END,
};

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER", .optional = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq list",
	"outbox dlq list billing --state dead",
	"outbox dlq list billing --key order:1042 --json",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_list = {
	.name = "dlq list",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "what consumers have parked: failed and dead messages",
	.description =
		"Lists the messages that consumers have parked in their database, in the order in "
		"which they will be handled: those that failed and come again, those that wait "
		"behind one of their key, those that were given up. --json prints an object for "
		"each.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct ob_dlq_args),
	.run = dlq_list_run,
};
