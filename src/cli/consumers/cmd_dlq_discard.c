/* SPDX-License-Identifier: MIT */
/* outbox dlq discard: remove parked messages. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"

static const struct ob_dlq_verb verb = { OB_PARKED_DISCARD, "discard", "discarded", "message" };

static int dlq_discard_run(struct ob_cli *cli, const void *args)
{
	return ob_dlq_operate(cli, args, &verb);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq discard billing 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox dlq discard billing --key order:1042 --dry-run",
	"outbox dlq discard billing --all --yes",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_discard = {
	.name = "dlq discard",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "remove parked messages",
	.description =
		"Removes parked messages of a consumer, those that wait too. The inbox does not "
		"learn of them: another copy would be handled. What waited behind them goes on. "
		"Name the messages by their ids, or by filters; what a filter matches is counted "
		"and asked about first, without a terminal --yes must say it.",
	.examples = examples,
	.operands = operands,
	.options = ob_dlq_filter_options,
	.args_size = sizeof(struct ob_dlq_args),
	.run = dlq_discard_run,
};
