/* SPDX-License-Identifier: MIT */
/* outbox why: what a message is waiting for. */
#include "cli/commands.h"
#include "cli/operate/look_up.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/why.h"

#include <stdio.h>

enum { TEXT_MAX = 32 << 10 };

struct why_args {
	const char *reader;
};

static int print_json(const struct ob_why *why, struct ob_str text)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_why_json(&j, why, text);
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int print_reason(const struct ob_cli *cli, const struct ob_why *why, bool several)
{
	struct ob_buf text = OB_BUF_INIT(TEXT_MAX);
	int r = OB_EXIT_OK;

	ob_why_sentence(why, several, &text);
	if (cli->json)
		r = print_json(why, ob_buf_view(&text));
	else
		ob_para_print(stdout, ob_buf_view(&text), ob_terminal_width());
	ob_buf_done(&text);
	return r;
}

static int why_message(const struct ob_cli *cli, const struct ob_lookup *l,
		       const struct ob_config *config, const char *reader,
		       const struct ob_message *m, bool several)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_why why;
	int r = ob_why_find(&why, l->store, config, reader, m, l->now_us, &err);

	r = r < 0 ? ob_cli_fail("%s", err.msg) : print_reason(cli, &why, several);
	ob_why_done(&why);
	return r;
}

static size_t count_readers(const struct ob_lookup *l)
{
	size_t count = 0;

	for (uint32_t row = 0; row < l->rows.count; row++) {
		for (size_t i = 0; i < l->readers.count; i++)
			count += ob_lookup_reads(l, &l->readers.list[i], &l->rows.messages[row]);
	}
	return count;
}

static int why_row(const struct ob_cli *cli, struct ob_lookup *l, const struct ob_config *config,
		   const struct ob_message *row)
{
	bool several = count_readers(l) > 1, read = false;
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	for (size_t i = 0; !r && i < l->readers.count; i++) {
		const struct ob_message *m;
		const char *name;

		if (!ob_lookup_reads(l, &l->readers.list[i], row))
			continue;
		read = true;
		if (ob_lookup_see(l, &l->readers.list[i], row, &m, &name, &err) < 0)
			r = ob_cli_fail("%s", err.msg);
		else
			r = why_message(cli, l, config, name, m, several);
	}
	return r || read ? r : why_message(cli, l, config, NULL, row, several);
}

static int why_run(struct ob_cli *cli, const void *opts)
{
	const struct why_args *args = opts;
	struct ob_session session;
	struct ob_lookup l;
	int r = ob_cli_look_up(&l, cli, &session, args->reader,
			       ": its transaction has not committed or was rolled back, or the "
			       "message was removed since");

	for (uint32_t i = 0; !r && i < l.rows.count; i++)
		r = why_row(cli, &l, session.config, &l.rows.messages[i]);
	ob_lookup_done(&l);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct why_args, reader),
		.help = "Only for this reader; left out: for each reader of its target.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox why 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	NULL,
};

const struct ob_cmd ob_cmd_why = {
	.name = "why",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "why a message is not out yet",
	.description =
		"Takes an id, the beginning of one, or a number (SEQ) as list prints them. Says, "
		"for each reader of its target, what a message is waiting for: the time it "
		"is "
		"due, its next attempt, the message that holds its key, a worker, or you; how far "
		"the reader is from it; and what can be done. When there is no such message, for "
		"one because its transaction has not committed, "
		"the exit code is 1.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct why_args),
	.run = why_run,
};
