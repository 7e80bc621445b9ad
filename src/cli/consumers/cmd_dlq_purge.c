/* SPDX-License-Identifier: MIT */
/* outbox dlq purge: remove old dead letters. */
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/out/jprint.h"

#include <inttypes.h>

enum { BATCH = 1000 };

static int purge(const struct ob_cli *cli, const struct ob_dlq *dlq, int64_t age_ms)
{
	struct ob_jout j = OB_JOUT_INIT;
	struct ob_err err = OB_ERR_INIT;
	uint64_t all = 0, gone = 0;
	int code = OB_EXIT_OK;

	do {
		if (ob_parked_purge(dlq->session.store, dlq->consumer, age_ms, BATCH, &gone, &err) <
		    0)
			return ob_cli_fail("%s", err.msg);
		all += gone;
	} while (gone == BATCH);
	if (cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_int(&j, "removed", (int64_t)all);
		ob_jout_end(&j, '}');
		code = ob_jout_print(&j);
		ob_jout_done(&j);
	} else {
		printf("removed %" PRIu64 " letter%s\n", all, all == 1 ? "" : "s");
	}
	return code;
}

static int dlq_purge_run(struct ob_cli *cli, const void *opts)
{
	const struct ob_dlq_args *args = opts;
	struct ob_dlq dlq;
	char what[200];
	int code = ob_dlq_open(&dlq, cli, cli->operands[0]);

	(void)snprintf(what, sizeof(what), "remove the dead letters of consumer %.100s for ever",
		       cli->operands[0]);
	if (!code && !args->yes)
		code = ob_cli_confirm(cli, what);
	if (!code)
		code = purge(cli, &dlq, args->age_ms);
	ob_dlq_done(&dlq);
	return code;
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
		.name = "yes",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, yes),
		.help = "Do not ask.",
	},
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
