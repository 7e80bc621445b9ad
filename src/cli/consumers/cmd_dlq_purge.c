/* SPDX-License-Identifier: MIT */
/* outbox dlq purge: remove old dead letters. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/operate/decide.h"

static const struct ob_dlq_verb verb = { OB_PARKED_DISCARD, "remove", "removed", "letter" };

static int dlq_purge_run(struct ob_cli *cli, const void *opts)
{
	struct ob_dlq_args args = *(const struct ob_dlq_args *)opts;

	args.state = "letter";
	return ob_dlq_decide(cli, &args, &verb);
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "older-than",
		.arg = "AGE",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct ob_dlq_args, age_ms),
		.max = INT64_C(315360000000),
		.help = "Only those that are at least that old, such as 720h; left out: all.",
	},
	{
		.name = "dry-run",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, dry_run),
		.help = "Say which it would be, and change nothing.",
	},
	{
		.name = "yes",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, yes),
		.help = "Do not ask.",
	},
	OB_REASON_OPTION(struct ob_dlq_args, reason),
	OB_CMD_OPT_END,
};

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq purge billing --older-than 720h",
	"outbox dlq purge billing --yes",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_purge = {
	.name = "dlq purge",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "remove dead letters",
	.description =
		"Removes letters of a consumer: messages that were given up while their key went "
		"on, "
		"and entries that were no messages. What holds a key, or comes again, stays. Asks "
		"first; without a terminal --yes must say it.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct ob_dlq_args),
	.run = dlq_purge_run,
};
