/* SPDX-License-Identifier: MIT */
/* outbox show: one message with everything that is known about it. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/message_out.h"

#include <stdio.h>

/* A message has one row for each target; more than this is nobody's. */
enum { ROWS_MAX = 1000 };

struct show_args {
	const char *target;
};

static int print_rows(const struct ob_cli *cli, const struct ob_batch *batch, int64_t now_us)
{
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	for (uint32_t i = 0; !r && i < batch->count; i++) {
		if (cli->json) {
			ob_message_json(&j, &batch->messages[i], now_us);
			r = ob_jout_print(&j);
			continue;
		}
		if (i)
			(void)fputc('\n', stdout);
		ob_message_print(&batch->messages[i], now_us);
	}
	ob_jout_done(&j);
	return r;
}

static int show_id(const struct ob_cli *cli, const struct show_args *args, const struct ob_uuid *id)
{
	struct ob_filter filter = { .id = id, .target = args->target, .limit = ROWS_MAX };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	struct ob_batch batch;
	int64_t now_us = 0;

	ob_batch_init(&batch);
	int r = ob_session_open(&session, cli);
	if (!r && ob_store_list(session.store, &filter, &batch, &now_us, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (!r && batch.count == 0)
		r = ob_cli_fail("no message %s%s%s", cli->operands[0],
				args->target ? " for target " : "",
				args->target ? args->target : "");
	if (!r)
		r = print_rows(cli, &batch, now_us);
	ob_batch_done(&batch);
	ob_session_done(&session);
	return r;
}

static int show_run(struct ob_cli *cli, const void *args)
{
	struct ob_uuid id;

	if (!ob_uuid_parse(ob_str(cli->operands[0]), &id))
		return ob_cli_usage(cli, "'%s' is not a UUID", cli->operands[0]);
	return show_id(cli, args, &id);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "target",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct show_args, target),
		.help = "Only the row for this target.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox show 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	NULL,
};

const struct ob_cmd ob_cmd_show = {
	.name = "show",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "one message, whole",
	.description =
		"Prints every field of a message, its state, its errors, and its payload "
		"laid out for reading. A message for several targets is printed once for "
		"each. With --json it is one object a line and the payload is as it was "
		"stored. When there is no such message the exit code is 1.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct show_args),
	.run = show_run,
};
