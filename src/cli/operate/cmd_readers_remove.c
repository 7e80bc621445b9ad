/* SPDX-License-Identifier: MIT */
/* outbox readers remove: forget a reader, its progress and its exceptions. */
#include "base/count.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/decide.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_BYTES = 2048, ARENA_MAX = 16 << 20 };

struct remove_args {
	const char *reason;
	bool yes;
};

static int confirm(const struct ob_cli *cli, const struct ob_reader *reader)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);

	ob_buf_adds(&line, "forget reader ");
	ob_buf_add(&line, reader->name);
	ob_buf_addf(&line, " and its position %" PRId64, reader->high_pos);
	if (reader->exceptions) {
		ob_buf_adds(&line, " with ");
		ob_count_add(&line, reader->exceptions, "message");
		ob_buf_adds(&line, " that failed, wait or were given up");
	}
	int r = ob_cli_confirm(cli, ob_buf_str(&line));
	ob_buf_done(&line);
	return r;
}

/* Who runs it, so that somebody can stop them. */
static int busy(struct ob_store *store, const char *name, const struct ob_err *why)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_buf who = OB_BUF_INIT(LINE_BYTES);
	struct ob_err ignored = OB_ERR_INIT;
	struct ob_worker *workers;
	size_t count = 0;
	int r;

	if (ob_store_workers(store, name, &arena, &workers, &count, &ignored) == 0) {
		for (size_t i = 0; i < count; i++) {
			ob_buf_adds(&who, i ? ", " : "");
			ob_buf_add(&who, workers[i].hostname);
			ob_buf_addf(&who, " pid %d", workers[i].pid);
		}
	}
	if (who.len)
		r = ob_cli_fail("reader %s is being run (%s): stop that first", name,
				ob_buf_str(&who));
	else
		r = ob_cli_fail("%s", why->msg);
	ob_buf_done(&who);
	ob_arena_done(&arena);
	return r;
}

static int print_done(const struct ob_cli *cli, const char *name)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_text(&j, "reader", ob_str(name));
		ob_jout_bool(&j, "removed", true);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		ob_buf_addf(&line, "removed reader %s", name);
		ob_para_print(stdout, ob_buf_view(&line), 0);
	}
	ob_jout_done(&j);
	ob_buf_done(&line);
	return r;
}

static int removed(const struct ob_cli *cli, const struct remove_args *args, struct ob_store *store,
		   const char *name)
{
	struct ob_cli_decision decision;

	ob_cli_decide(&decision, "readers remove", name, NULL, args->reason);
	ob_cli_decided(&decision, store, 0);
	return print_done(cli, name);
}

static int forget(const struct ob_cli *cli, const struct remove_args *args, struct ob_store *store)
{
	const char *name = cli->operands[0];
	struct ob_readers readers;
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	if (ob_readers_load(&readers, store, &err) < 0) {
		r = ob_cli_fail("%s", err.msg);
	} else {
		const struct ob_reader *reader = ob_readers_find(&readers, name);

		if (!reader && ob_readers_unknown(&readers, name, &err) < 0)
			r = ob_cli_fail("%s", err.msg);
		else if (!args->yes)
			r = confirm(cli, reader);
	}
	if (!r) {
		int s = ob_store_reader_remove(store, name, &err);

		if (s == OUTBOX_EBUSY)
			r = busy(store, name, &err);
		else
			r = s < 0 ? ob_cli_fail("%s", err.msg) : removed(cli, args, store, name);
	}
	ob_readers_done(&readers);
	return r;
}

static int readers_remove_run(struct ob_cli *cli, const void *opts)
{
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	if (!r)
		r = forget(cli, opts, session.store);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "NAME" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct remove_args, yes),
		.help = "Do not ask.",
	},
	OB_REASON_OPTION(struct remove_args, reason),
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox readers remove search",
	NULL,
};

const struct ob_cmd ob_cmd_readers_remove = {
	.name = "readers remove",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "forget a reader, its progress and its failures",
	.description =
		"Removes a reader that nobody runs any more, with its position and everything that "
		"failed or waits for it; the messages themselves stay in the log for the others. "
		"Retention keeps nothing for it from then on. A relay of that name that starts "
		"later is new, and begins where its configuration says.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct remove_args),
	.run = readers_remove_run,
};
