/* SPDX-License-Identifier: MIT */
/* outbox events show: what is known of a stream. */
#include "cli/commands.h"
#include "cli/events/events.h"
#include "cli/out/jprint.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const ends[] = {
	[OUTBOX_STREAM_OPEN] = "open",
	[OUTBOX_STREAM_ARCHIVED] = "archived",
	[OUTBOX_STREAM_TOMBSTONED] = "tombstoned",
};

static int print_stream(const struct ob_cli *cli, const struct outbox_stream_info *info)
{
	if (!cli->json) {
		printf("%-16s %s\n%-16s %s\n", "type", cli->operands[0], "stream",
		       cli->operands[1]);
		printf("%-16s %" PRId64 "\n%-16s %" PRId64 "\n%-16s %s\n", "version", info->version,
		       "first_version", info->first_version, "state", ends[info->end]);
		return OB_EXIT_OK;
	}
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "type", ob_str(cli->operands[0]));
	ob_jout_text(&j, "stream", ob_str(cli->operands[1]));
	ob_jout_int(&j, "version", info->version);
	ob_jout_int(&j, "first_version", info->first_version);
	ob_jout_text(&j, "state", ob_str(ends[info->end]));
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int events_show_run(struct ob_cli *cli, const void *opts)
{
	const struct outbox_stream stream = { .type = cli->operands[0], .id = cli->operands[1] };
	struct outbox_stream_info info = { 0 };
	struct ob_events_session s;
	struct outbox_error err;
	int r = ob_events_begin(&s, cli);

	(void)opts;
	if (!r && outbox_stream_look(s.ob, &stream, &info, &err) < 0)
		r = ob_events_fail(&err);
	if (!r && info.version == 0 && info.end == OUTBOX_STREAM_OPEN)
		r = ob_cli_fail("there is no stream %s of type %s", stream.id, stream.type);
	else if (!r)
		r = print_stream(cli, &info);
	ob_events_done(&s);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "TYPE" },
	{ .name = "STREAM" },
	OB_CMD_OPERAND_END,
};

const struct ob_cmd ob_cmd_events_show = {
	.name = "events show",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "version and state of one stream",
	.description =
		"Prints the version of a stream, where reads of it begin, and whether it is "
		"open, archived or tombstoned. `outbox events read` prints its events.",
	.operands = operands,
	.run = events_show_run,
};
