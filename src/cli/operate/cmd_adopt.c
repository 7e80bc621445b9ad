/* SPDX-License-Identifier: MIT */
/* outbox adopt: after a restore into another cluster. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/decide.h"
#include "cli/out/jprint.h"

#include <inttypes.h>
#include <stdio.h>

struct adopt_args {
	const char *reason;
	bool yes;
};

static int adopt(const struct ob_cli *cli, const struct adopt_args *args, struct ob_store *store)
{
	struct ob_jout j = OB_JOUT_INIT;
	struct ob_err err = OB_ERR_INIT;
	struct ob_cli_decision decision;
	uint64_t rows = 0;
	int r = OB_EXIT_OK;

	if (!store->ops->adopt)
		return ob_cli_fail("nothing to adopt: %s needs it after no restore",
				   store->ops->name);
	if (!args->yes)
		r = ob_cli_confirm(cli,
				   "adopt this database, which locks the outbox while it rewrites "
				   "every row of it");
	if (r)
		return r;
	if (ob_store_adopt(store, &rows, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	ob_cli_decide(&decision, "adopt", NULL, NULL, args->reason);
	ob_cli_decided(&decision, store, rows);
	if (cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_int(&j, "waiting", (int64_t)rows);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		printf("adopted; %" PRIu64 " message%s not delivered yet wait%s for the readers\n",
		       rows, rows == 1 ? "" : "s", rows == 1 ? "s" : "");
	}
	ob_jout_done(&j);
	return r;
}

static int adopt_run(struct ob_cli *cli, const void *opts)
{
	struct ob_session session;
	/* The check refuses what is to be adopted. */
	int r = ob_session_connect(&session, cli);

	if (!r)
		r = adopt(cli, opts, session.store);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct adopt_args, yes),
		.help = "Do not ask.",
	},
	OB_REASON_OPTION(struct adopt_args, reason),
	OB_CMD_OPT_END,
};

const struct ob_cmd ob_cmd_adopt = {
	.name = "adopt",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "go on in a database that was restored elsewhere",
	.description =
		"Progress on PostgreSQL is kept in transaction ids, which mean nothing in another "
		"cluster. After a dump was restored into one, or a logical subscriber took over, "
		"relays refuse to start until this has been run once: it finds what no reader had "
		"delivered yet, puts it in their queues, and begins anew with the ids of this "
		"cluster. Stop all relays before. A physical standby, a restored base backup and "
		"pg_upgrade keep their ids and need none of this, nor do other databases.",
	.options = options,
	.args_size = sizeof(struct adopt_args),
	.run = adopt_run,
};
