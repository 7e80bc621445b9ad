/* SPDX-License-Identifier: MIT */
/* outbox skip: give messages up without deleting them. */
#include "cli/commands.h"
#include "cli/operate/operate.h"

static int skip_run(struct ob_cli *cli, const void *args)
{
	const struct ob_operate_task task = { .cli = cli,
					      .args = args,
					      .verb = OB_VERB_SKIP,
					      .ids = cli->operands,
					      .id_count = cli->operand_count };

	return ob_operate_run(&task);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox skip 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox skip --key order:1042",
	"outbox skip --state pending --event OrderTested --yes",
	NULL,
};

const struct ob_cmd ob_cmd_skip = {
	.name = "skip",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "give messages up, so that their key goes on",
	.description =
		"Makes messages dead for a reader: they are not sent, and can still be retried. "
		"What was parked behind them goes on, in order.\n\n"
		"Name the messages by their ids, or by filters. More than one message by filter is "
		"counted and asked about first; without a terminal "
		"--yes must say it. A filter without --state takes failed and dead messages. Where "
		"there are several readers, --reader says whose progress is meant.",
	.examples = examples,
	.operands = operands,
	.options = ob_operate_options,
	.args_size = sizeof(struct ob_operate_args),
	.run = skip_run,
};
