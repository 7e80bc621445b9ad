/* SPDX-License-Identifier: MIT */
/* outbox help: the overview, or the page of one command. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"

static int help_run(struct ob_cli *cli, const void *args)
{
	char name[128];

	(void)args;
	if (cli->operand_count == 0) {
		ob_help_overview(stdout);
		return OB_EXIT_OK;
	}
	if (cli->operand_count > 2)
		return ob_cli_usage(cli, "one word too many: '%s'", cli->operands[2]);
	(void)snprintf(name, sizeof(name), "%s%s%s", cli->operands[0],
		       cli->operand_count == 2 ? " " : "",
		       cli->operand_count == 2 ? cli->operands[1] : "");
	const struct ob_cmd *cmd = ob_cmd_find(name);
	if (cmd)
		ob_help_command(cmd, stdout);
	else if (ob_cmd_is_prefix(name))
		ob_help_prefix(name, stdout);
	else
		return ob_cli_no_command(cli, name);
	return OB_EXIT_OK;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "COMMAND", .optional = true, .many = true, .complete = OB_COMPLETE_COMMAND },
	OB_CMD_OPERAND_END,
};

const struct ob_cmd ob_cmd_help = {
	.name = "help",
	.group = OB_GROUP_PROGRAM,
	.summary = "this overview, or the page of one command",
	.description =
		"Without a command it prints the overview of all commands. With a command it "
		"prints that command's page, as --help behind the command does.",
	.operands = operands,
	.run = help_run,
};
