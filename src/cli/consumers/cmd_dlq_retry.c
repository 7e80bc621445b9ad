/* SPDX-License-Identifier: MIT */
/* outbox dlq retry: handle parked messages again, in order. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"

static const struct ob_dlq_verb verb = { OB_PARKED_RETRY, "retry", "retried", "message" };

static int dlq_retry_run(struct ob_cli *cli, const void *args)
{
	return ob_dlq_operate(cli, args, &verb);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq retry billing 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox dlq retry billing --state dead --dry-run",
	"outbox dlq retry billing --all --yes",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_retry = {
	.name = "dlq retry",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "handle parked messages again, in order",
	.description =
		"Makes failed and dead messages of a consumer due now, with all their attempts "
		"before them. A message keeps its place: what waits behind it with the same key is "
		"handled after it, in order. One that waits behind another cannot be retried "
		"before that one. Name the messages by their ids, or by filters; what a filter "
		"matches is counted and asked about first, without a terminal --yes must say it.",
	.examples = examples,
	.operands = operands,
	.options = ob_dlq_filter_options,
	.args_size = sizeof(struct ob_dlq_args),
	.run = dlq_retry_run,
};
