/* SPDX-License-Identifier: MIT */
/* outbox show: one message with everything that is known about it. */
#include "cli/commands.h"
#include "cli/operate/look_up.h"
#include "cli/out/jprint.h"
#include "cli/out/message.h"
#include "operate/message.h"

#include <stdio.h>

struct show_args {
	const char *reader;
};

static void state_json(struct ob_jout *j, const char *reader, const struct ob_message *m)
{
	ob_jout_begin(j, NULL, '{');
	ob_message_json_state(j, reader, m);
	ob_jout_end(j, '}');
}

static int row_json(struct ob_lookup *l, const struct ob_message *row)
{
	struct ob_jout j = OB_JOUT_INIT;
	struct ob_err err = OB_ERR_INIT;
	size_t shown = 0;
	int r = OB_EXIT_OK;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_begin(&j, "readers", '[');
	for (size_t i = 0; !r && i < l->readers.count; i++) {
		const struct ob_message *m;
		const char *name;

		if (!ob_lookup_reads(l, &l->readers.list[i], row))
			continue;
		if (ob_lookup_see(l, &l->readers.list[i], row, &m, &name, &err) == 0)
			state_json(&j, name, m);
		else
			r = ob_cli_fail("%s", err.msg);
		shown++;
	}
	if (!shown)
		state_json(&j, NULL, row);
	ob_jout_end(&j, ']');
	ob_message_json(&j, row);
	ob_jout_end(&j, '}');
	if (!r)
		r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int row_text(struct ob_lookup *l, const struct ob_message *row)
{
	struct ob_err err = OB_ERR_INIT;
	size_t shown = 0;

	ob_message_print(row, l->now_us);
	for (size_t i = 0; i < l->readers.count; i++) {
		const struct ob_message *m;
		const char *name;

		if (!ob_lookup_reads(l, &l->readers.list[i], row))
			continue;
		if (ob_lookup_see(l, &l->readers.list[i], row, &m, &name, &err) < 0)
			return ob_cli_fail("%s", err.msg);
		ob_message_print_state(name, m, l->now_us);
		shown++;
	}
	if (!shown)
		printf("%-16s %s\n", "state", ob_view_name(row->view));
	ob_message_print_body(row);
	return OB_EXIT_OK;
}

static int show_run(struct ob_cli *cli, const void *opts)
{
	const struct show_args *args = opts;
	struct ob_session session;
	struct ob_lookup l;
	int r = ob_cli_look_up(&l, cli, &session, args->reader, "");

	for (uint32_t i = 0; !r && i < l.rows.count; i++) {
		if (i && !cli->json)
			(void)fputc('\n', stdout);
		r = cli->json ? row_json(&l, &l.rows.messages[i])
			      : row_text(&l, &l.rows.messages[i]);
	}
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
		.offset = offsetof(struct show_args, reader),
		.help = "Only what this reader says of it.",
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
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "one message, whole",
	.description =
		"Takes an id, the beginning of one, or a number (SEQ) as list prints them. Prints "
		"every field of a message, then for each reader of its target the state "
		"there, attempts and errors, and the payload laid out for reading. A message for "
		"several targets is printed once for each. With --json it is one object a line, "
		"with the readers in a list, and the payload is as it was stored. When there is no "
		"such message the exit code is 1.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct show_args),
	.run = show_run,
};
