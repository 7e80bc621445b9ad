/* SPDX-License-Identifier: MIT */
/* outbox dlq show: one parked message, whole. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/out/jprint.h"

static int dlq_show_run(struct ob_cli *cli, const void *opts)
{
	struct ob_jout j = OB_JOUT_INIT;
	struct ob_dlq dlq;
	int code = ob_dlq_open_one(&dlq, cli);

	(void)opts;
	if (!code) {
		ob_dlq_add_json(&j, &dlq.rows[0], true);
		code = ob_jout_print(&j);
	}
	ob_jout_done(&j);
	ob_dlq_done(&dlq);
	return code;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	{ .name = "ID" },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq show billing 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_show = {
	.name = "dlq show",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "one parked message, whole",
	.description =
		"Prints a parked message as JSON: consumer, id, key, event_type, state, attempts, "
		"since, due, place (where it stood in the source), reason, and message, which has "
		"all its fields. One that could not be read as a message is named by its place, "
		"and "
		"has what stood there in `entry`.",
	.examples = examples,
	.operands = operands,
	.run = dlq_show_run,
};
