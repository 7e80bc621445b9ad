/* SPDX-License-Identifier: MIT */
/* outbox wait: until a reader has caught up. */
#include "base/when.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"
#include "events/wait.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <stdio.h>

struct wait_args {
	const char *reader;
	int64_t timeout_ms;
};

static int say(const struct ob_cli *cli, const char *reader, bool caught, const struct ob_lag *lag)
{
	char age[OB_WHEN_SIZE];

	if (cli->json) {
		struct ob_jout j = OB_JOUT_INIT;

		ob_jout_begin(&j, NULL, '{');
		ob_jout_text(&j, "reader", ob_str(reader));
		ob_jout_bool(&j, "caught_up", caught);
		ob_jout_int(&j, "lag_messages", (int64_t)lag->messages);
		ob_jout_int(&j, "lag_seconds", lag->oldest_us / 1000000);
		ob_jout_end(&j, '}');
		int r = ob_jout_print(&j);
		ob_jout_done(&j);
		return r || caught ? r : OB_EXIT_FAILURE;
	}
	if (caught) {
		printf("reader %s has caught up\n", reader);
		return OB_EXIT_OK;
	}
	ob_when_age(lag->oldest_us, age);
	return ob_cli_fail("reader %s has not caught up: %" PRIu64
			   "%s messages wait, the oldest "
			   "for %s; `outbox status` shows whether a worker runs",
			   reader, lag->messages > 10000 ? 10000 : lag->messages,
			   lag->messages > 10000 ? "+" : "", age);
}

static int wait_run(struct ob_cli *cli, const void *opts)
{
	const struct wait_args *args = opts;
	struct ob_readers readers = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	struct ob_lag lag = { 0 };
	const char *name = NULL;
	bool caught = false;
	int r = ob_session_open(&session, cli);

	if (!r && (ob_readers_name(&readers, session.store, args->reader, false, &name, &err) < 0 ||
		   ob_wait_caught_up(session.store, name, args->timeout_ms, &caught, &err) < 0 ||
		   ob_lag_read(session.store, name, &lag, &err) < 0))
		r = ob_cli_fail("%s", err.msg);
	if (!r)
		r = say(cli, name, caught, &lag);
	ob_readers_done(&readers);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct wait_args, reader),
		.help = "The reader; may be left out when there is only one.",
	},
	{
		.name = "timeout",
		.arg = "TIME",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct wait_args, timeout_ms),
		.dflt = "30s",
		.min = 0,
		.max = 86400000,
		.help = "How long to wait; 0 only looks.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox wait --reader projection --timeout 10s",
	NULL,
};

const struct ob_cmd ob_cmd_wait = {
	.name = "wait",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "wait until a reader has caught up",
	.description =
		"Waits until a reader has delivered everything that was committed when the wait "
		"began: for tests, and for scripts that switch over to a projection that was built "
		"anew. Dead and discarded messages, and those that are not due yet, are not waited "
		"for. Exits with 1 when the time is over, and says how far behind the reader is.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct wait_args),
	.run = wait_run,
};
