/* SPDX-License-Identifier: MIT */
/* outbox dlq replay: dead letters to the consumer that gave them up. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"

static const struct ob_dlq_verb verb = { OB_PARKED_RETRY, "replay", "replayed", "message" };

static int dlq_replay_run(struct ob_cli *cli, const void *opts)
{
	struct ob_dlq_args args = *(const struct ob_dlq_args *)opts;

	if (args.state)
		return ob_cli_usage(cli, "only letters are replayed: leave --state out");
	if (cli->operand_count < 2)
		args.state = "letter";
	return ob_dlq_operate(cli, &args, &verb);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq replay billing --all --yes",
	"outbox dlq replay billing 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_replay = {
	.name = "dlq replay",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "hand dead letters to their consumer again",
	.description =
		"Makes letters of a consumer due: messages that were given up while their key went "
		"on. They go to that consumer and to no other, without order: their key has gone "
		"on. "
		"Without ids and filters all letters are meant. They are counted and asked about "
		"first; without a terminal --yes must say it.",
	.examples = examples,
	.operands = operands,
	.options = ob_dlq_filter_options,
	.args_size = sizeof(struct ob_dlq_args),
	.run = dlq_replay_run,
};
