/* SPDX-License-Identifier: MIT */
/* outbox discard: messages that shall never go out. */
#include "cli/commands.h"
#include "cli/operate/operate.h"

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
	.summary = "never deliver messages that are not published",
	.description =
		"Decides that a reader never delivers these messages; that cannot be undone. What "
		"was parked behind them goes on, in order. Their rows stay in the log as long as "
		"others do, and other readers deliver them as if nothing had happened. To be able "
		"to retry a message later, use skip.\n\n"
		"Name the messages by their ids, or by filters. More than one message by filter is "
		"counted and asked about first; without a terminal "
		"--yes must say it. A filter without --state takes failed and dead messages. Where "
		"there are several readers, --reader says whose progress is meant.",
	.examples = examples,
	.operands = operands,
	.options = ob_operate_options,
	.args_size = sizeof(struct ob_operate_args),
	.run = discard_run,
};
