/* SPDX-License-Identifier: MIT */
/* outbox readers seek: move a reader to another place in the log. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/operate/decide.h"
#include "cli/operate/place.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_BYTES = 2048 };

struct seek_args {
	const char *reason;
	bool yes;
};

static int confirm(const struct ob_cli *cli, const struct ob_reader *reader, const char *place)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);

	ob_buf_adds(&line, "move reader ");
	ob_buf_add(&line, reader->name);
	ob_buf_addf(&line,
		    " from %" PRId64
		    " to %s: what comes after that place is delivered, again "
		    "where it was before, and what comes before it is not",
		    reader->high_pos, place);
	int r = ob_cli_confirm(cli, ob_buf_str(&line));
	ob_buf_done(&line);
	return r;
}

static int print_done(const struct ob_cli *cli, const char *name, const char *place)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_text(&j, "reader", ob_str(name));
		ob_jout_text(&j, "place", ob_str(cli->operands[1]));
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		ob_buf_addf(&line, "reader %s goes on at %s", name, place);
		ob_para_print(stdout, ob_buf_view(&line), 0);
	}
	ob_jout_done(&j);
	ob_buf_done(&line);
	return r;
}

static int seek(const struct ob_cli *cli, const struct seek_args *args, struct ob_store *store,
		const struct ob_place *to)
{
	const char *name = cli->operands[0];
	struct ob_buf place = OB_BUF_INIT(LINE_BYTES);
	struct ob_readers readers;
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	ob_place_text(to, &place);
	if (ob_readers_load(&readers, store, &err) < 0) {
		r = ob_cli_fail("%s", err.msg);
	} else {
		const struct ob_reader *reader = ob_readers_find(&readers, name);

		if (!reader && ob_readers_unknown(&readers, name, &err) < 0)
			r = ob_cli_fail("%s", err.msg);
		else if (!args->yes)
			r = confirm(cli, reader, ob_buf_str(&place));
	}
	if (!r && ob_store_reader_seek(store, name, to, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r) {
		struct ob_cli_decision decision;

		ob_cli_decide(&decision, "readers seek", name, ob_buf_str(&place), args->reason);
		ob_cli_decided(&decision, store, 0);
		r = print_done(cli, name, ob_buf_str(&place));
	}
	ob_readers_done(&readers);
	ob_buf_done(&place);
	return r;
}

static int readers_seek_run(struct ob_cli *cli, const void *opts)
{
	struct ob_session session;
	struct ob_place to;
	int r;

	if (!ob_place_parse(cli->operands[1], &to))
		return ob_cli_usage(cli,
				    "'%s' is no place: write beginning, end, a time such as "
				    "2026-05-01T00:00:00Z, or a number of the log",
				    cli->operands[1]);
	r = ob_session_open(&session, cli);
	if (!r)
		r = seek(cli, opts, session.store, &to);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "NAME" },
	{ .name = "PLACE" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct seek_args, yes),
		.help = "Do not ask.",
	},
	OB_REASON_OPTION(struct seek_args, reason),
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox readers seek mail end",
	"outbox readers seek search 2026-05-01T00:00:00Z",
	"outbox readers seek search 1042",
	NULL,
};

const struct ob_cmd ob_cmd_readers_seek = {
	.name = "readers seek",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "move a reader to another place in the log",
	.description =
		"Moves a reader: to the beginning, to the end, to a time (what was stored at or "
		"after it comes next), or to a number of the log. What follows the place is "
		"delivered, again where it was delivered before; what lies before it and was not "
		"delivered is passed over. Failed and waiting messages from the place on start "
		"anew; those before it stay as they are. A relay that runs goes on at the new "
		"place "
		"by itself. To send old messages again without moving anybody, use replay.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct seek_args),
	.run = readers_seek_run,
};
