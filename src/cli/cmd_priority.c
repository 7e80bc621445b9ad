/* SPDX-License-Identifier: MIT */
/* outbox priority: let messages that are not out yet overtake, or wait. */
#include "cli/commands.h"
#include "cli/operate.h"

#include <errno.h>
#include <stdlib.h>

static int priority_run(struct ob_cli *cli, const void *args)
{
	const char *text = cli->operands[0];
	char *end;

	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < INT16_MIN || n > INT16_MAX)
		return ob_cli_usage(cli, "'%s' is not a priority: a number from %d to %d", text,
				    INT16_MIN, INT16_MAX);
	const struct ob_operate_task task = { .cli = cli,
					      .args = args,
					      .verb = OB_VERB_PRIORITY,
					      .priority = (int32_t)n,
					      .ids = cli->operands + 1,
					      .id_count = cli->operand_count - 1 };

	return ob_operate_run(&task);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "N" },
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox priority 10 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	"outbox priority -5 --type report",
	NULL,
};

const struct ob_cmd ob_cmd_priority = {
	.name = "priority",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "let messages overtake others, or wait",
	.description =
		"Gives messages that are not out yet another priority: a higher one goes first, 0 "
		"is the usual one. Order is kept among messages of one key and one priority, so "
		"a message with a higher priority overtakes those of its own key.\n\n"
		"Name the messages by their ids, or by filters. More than one message by filter is "
		"counted and asked about first; without a terminal --yes must say it. A filter "
		"without --state takes pending, delayed, failed and parked messages.",
	.examples = examples,
	.operands = operands,
	.options = ob_operate_options,
	.args_size = sizeof(struct ob_operate_args),
	.run = priority_run,
};
