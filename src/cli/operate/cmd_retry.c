/* SPDX-License-Identifier: MIT */
/* outbox retry: send again what failed or was given up. */
#include "cli/commands.h"
#include "cli/operate/operate.h"

static int retry_run(struct ob_cli *cli, const void *args)
{
	const struct ob_operate_task task = { .cli = cli,
					      .args = args,
					      .verb = OB_VERB_RETRY,
					      .ids = cli->operands,
					      .id_count = cli->operand_count };

	return ob_operate_run(&task);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox retry 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox retry --state dead --type order --dry-run",
	"outbox retry --all --yes",
	NULL,
};

const struct ob_cmd ob_cmd_retry = {
	.name = "retry",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "send failed and dead messages again",
	.description =
		"Makes failed and dead messages due now, with all their attempts before them. A "
		"message keeps its place among those of its key. What was parked behind it goes "
		"on, in order, behind it.\n\n"
		"Name the messages by their ids, or by filters. More than one message by filter is "
		"counted and asked about first; without a terminal "
		"--yes must say it. A filter without --state takes failed and dead messages. Where "
		"there are several readers, --reader says whose progress is meant.",
	.examples = examples,
	.operands = operands,
	.options = ob_operate_options,
	.args_size = sizeof(struct ob_operate_args),
	.run = retry_run,
};
