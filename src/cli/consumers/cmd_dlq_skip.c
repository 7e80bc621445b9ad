/* SPDX-License-Identifier: MIT */
/* outbox dlq skip: count parked messages as handled. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"

static const struct ob_dlq_verb verb = { OB_PARKED_SKIP, "skip", "skipped", "message" };

static int dlq_skip_run(struct ob_cli *cli, const void *args)
{
	return ob_dlq_operate(cli, args, &verb);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq skip billing 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox dlq skip billing --key order:1042 --dry-run",
	"outbox dlq skip billing --all --yes",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_skip = {
	.name = "dlq skip",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "count parked messages as handled",
	.description =
		"Removes failed or dead messages of a consumer and notes them in its inbox, so "
		"that no copy of them is handled. What waited behind them goes on, in order. Name "
		"the messages by their ids, or by filters; what a filter matches is counted and "
		"asked about first, without a terminal --yes must say it.",
	.examples = examples,
	.operands = operands,
	.options = ob_dlq_filter_options,
	.args_size = sizeof(struct ob_dlq_args),
	.run = dlq_skip_run,
};
