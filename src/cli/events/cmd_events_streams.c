/* SPDX-License-Identifier: MIT */
/* outbox events streams: the streams that were appended to last. */
#include "cli/commands.h"
#include "cli/events/events.h"

struct streams_args {
	const char *target;
	int64_t limit;
};

static int events_streams_run(struct ob_cli *cli, const void *opts)
{
	const struct streams_args *args = opts;
	struct ob_events_session s;
	struct outbox_error err;
	outbox_event_reader *reader = NULL;
	int r = ob_events_begin(&s, cli);

	if (!r &&
	    outbox_events_recent(s.ob, args->target, (uint32_t)args->limit, &reader, &err) < 0)
		r = ob_events_fail(&err);
	if (!r)
		r = ob_events_print(cli, reader);
	ob_events_done(&s);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "limit",
		.arg = "COUNT",
		.type = OB_CMD_INT,
		.offset = offsetof(struct streams_args, limit),
		.dflt = "20",
		.min = 1,
		.max = 1000000,
		.help = "How many streams.",
	},
	{
		.name = "target",
		.arg = "TARGET",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct streams_args, target),
		.help = "The target of the streams; left out: default.",
	},
	OB_CMD_OPT_END,
};

const struct ob_cmd ob_cmd_events_streams = {
	.name = "events streams",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "the streams that were appended to last",
	.description =
		"Prints the last event of each of the streams that were appended to last, "
		"newest first. Streams that ended are left out.",
	.options = options,
	.args_size = sizeof(struct streams_args),
	.run = events_streams_run,
};
