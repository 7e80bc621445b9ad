/* SPDX-License-Identifier: MIT */
/* outbox events forget: destroy the key of a data subject. */
#include "cli/commands.h"
#include "cli/events/events.h"
#include "cli/out/jprint.h"
#include "config.h"
#include "outbox/crypt.h"

#include <stdio.h>

struct forget_args {
	bool yes;
};

static int say(const struct ob_cli *cli, bool had)
{
	if (!cli->json) {
		printf(had ? "the key of %s is destroyed\n" : "%s had no key\n", cli->operands[0]);
		return OB_EXIT_OK;
	}
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "subject", ob_str(cli->operands[0]));
	ob_jout_bool(&j, "forgotten", had);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int destroy_key(struct ob_cli *cli, bool *ret_had)
{
#if HAVE_CRYPT
	struct ob_events_session s;
	struct outbox_error err;
	int r = ob_events_begin(&s, cli);
	int had = r ? 0 : outbox_forget(s.ob, cli->operands[0], &err);

	if (!r && had < 0)
		r = ob_events_fail(&err);
	if (!r)
		r = ob_events_commit(&s);
	ob_events_done(&s);
	*ret_had = had > 0;
	return r;
#else
	(void)cli;
	(void)ret_had;
	return ob_cli_fail("this build has no encryption: install libssl-dev and build again");
#endif
}

static int events_forget_run(struct ob_cli *cli, const void *opts)
{
	const struct forget_args *args = opts;
	bool had = false;
	int r = OB_EXIT_OK;

	if (!args->yes)
		r = ob_cli_confirm(cli,
				   "destroy the key of this subject, so that nothing encrypted "
				   "for it can ever be read again");
	if (!r)
		r = destroy_key(cli, &had);
	return r ? r : say(cli, had);
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "SUBJECT" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct forget_args, yes),
		.help = "Do not ask.",
	},
	OB_CMD_OPT_END,
};

const struct ob_cmd ob_cmd_events_forget = {
	.name = "events forget",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "destroy the key of a data subject",
	.description =
		"Removes the key that payloads of a data subject are encrypted with. The log "
		"stays as it is, and none of them can be read any more, nor in backups of the "
		"log. Needs no master key. A backup of outbox_keys still has it.",
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct forget_args),
	.run = events_forget_run,
};
