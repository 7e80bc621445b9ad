/* SPDX-License-Identifier: MIT */
/* outbox reconcile: deliver what a relay's filter selects now and did not before. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"
#include "events/reconcile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct reconcile_args {
	const char *was;
	int64_t from_seq;
	bool dry_run;
};

static const struct ob_config_relay *find_relay(const struct ob_config *config, const char *name)
{
	for (size_t i = 0; i < config->relay_count; i++) {
		if (strcmp(config->relays[i].name, name) == 0)
			return &config->relays[i];
	}
	return NULL;
}

static int say(const struct ob_cli *cli, const char *reader, uint64_t count, bool dry_run)
{
	if (!cli->json) {
		printf("%" PRIu64 " message%s of history %s by relay %s\n", count,
		       count == 1 ? "" : "s", dry_run ? "would be delivered" : "will be delivered",
		       reader);
		return OB_EXIT_OK;
	}
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "reader", ob_str(reader));
	ob_jout_int(&j, "messages", (int64_t)count);
	ob_jout_bool(&j, "dry_run", dry_run);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int reconcile_run(struct ob_cli *cli, const void *opts)
{
	const struct reconcile_args *args = opts;
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	uint64_t count = 0;
	int r = ob_session_open(&session, cli);

	if (r) {
		ob_session_done(&session);
		return r;
	}
	const struct ob_reconcile what = {
		.relay = find_relay(session.config, cli->operands[0]),
		.old_filter = args->was,
		.from_seq = args->from_seq,
		.dry_run = args->dry_run,
	};
	if (!what.relay)
		r = ob_cli_fail("the configuration has no relay %s", cli->operands[0]);
	else if (ob_reconcile_run(session.store, &what, &count, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else
		r = say(cli, cli->operands[0], count, args->dry_run);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "READER" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "was",
		.arg = "FILTER",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct reconcile_args, was),
		.help = "The filter before, as `outbox readers show` prints it; left out: the one "
			"that is stored.",
	},
	{
		.name = "from",
		.arg = "NUMBER",
		.type = OB_CMD_INT,
		.offset = offsetof(struct reconcile_args, from_seq),
		.max = INT64_MAX,
		.help = "Only messages from this number of the log on.",
	},
	{
		.name = "dry-run",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct reconcile_args, dry_run),
		.help = "Only say how many there are.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox reconcile billing --dry-run",
	NULL,
};

const struct ob_cmd ob_cmd_reconcile = {
	.name = "reconcile",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "deliver what a changed filter selects of history",
	.description =
		"A relay passes over what its `types` and `aggregates` do not select. When these "
		"change, this command finds what they select now and did not before, anywhere in "
		"the history that is still in the log, and has the relay deliver it: in order by "
		"key, and before what comes later of the same key.\n\nRun it before the relay runs "
		"with the new filter: what it delivers meanwhile would be delivered again.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct reconcile_args),
	.run = reconcile_run,
};
