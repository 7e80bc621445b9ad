/* SPDX-License-Identifier: MIT */
/* outbox discard: delete messages that shall never go out. */
#include "cli/commands.h"
#include "cli/operate.h"

static int discard_run(struct ob_cli *cli, const void *args)
{
	const struct ob_operate_task task = { .cli = cli,
					      .args = args,
					      .verb = OB_VERB_DISCARD,
					      .ids = cli->operands,
					      .id_count = cli->operand_count };

	return ob_operate_run(&task);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox discard 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox discard --state dead --type order",
	NULL,
};

const struct ob_cmd ob_cmd_discard = {
	.name = "discard",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "delete messages that are not published",
	.description =
		"Deletes messages for good; nothing of them is left. What was parked behind them "
		"goes "
		"on, in order. To keep a message but not send it, use skip.\n\n"
		"Name the messages by their ids, or by filters. More than one message by filter is "
		"counted and asked about first; without a terminal "
		"--yes must say it. A filter without --state takes failed and dead messages.",
	.examples = examples,
	.operands = operands,
	.options = ob_operate_options,
	.args_size = sizeof(struct ob_operate_args),
	.run = discard_run,
};
