/* SPDX-License-Identifier: MIT */
/* outbox events read: events of a stream, a category, a correlation, or all. */
#include "cli/commands.h"
#include "cli/events/events.h"

struct read_args {
	const char *event, *correlation, *target;
	int64_t after, limit;
	bool backward, ended;
};

static int events_read_run(struct ob_cli *cli, const void *opts)
{
	const struct read_args *args = opts;
	bool stream = cli->operand_count > 1;
	const struct outbox_event_query query = {
		.size = sizeof(query),
		.stream = { .type = cli->operand_count > 0 ? cli->operands[0] : NULL,
			    .id = stream ? cli->operands[1] : NULL,
			    .target = args->target },
		.after_version = stream ? args->after : 0,
		.after_position = stream ? 0 : args->after,
		.event_type = args->event,
		.correlation_id = args->correlation,
		.limit = (uint64_t)args->limit,
		.flags = (args->backward ? OUTBOX_BACKWARD : 0u) |
			 (args->ended ? OUTBOX_WITH_ENDED : 0u),
	};
	struct ob_events_session s;
	struct outbox_error err;
	outbox_event_reader *reader = NULL;
	int r = ob_events_begin(&s, cli);

	if (!r && outbox_events_open(s.ob, &query, &reader, &err) < 0)
		r = ob_events_fail(&err);
	if (!r)
		r = ob_events_print(cli, reader);
	ob_events_done(&s);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "TYPE", .optional = true },
	{ .name = "STREAM", .optional = true },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "event",
		.arg = "EVENT",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct read_args, event),
		.help = "Only events of this type.",
	},
	{
		.name = "correlation",
		.arg = "ID",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct read_args, correlation),
		.help = "Only events with this correlation id; not of one stream.",
	},
	{
		.name = "after",
		.arg = "NUMBER",
		.type = OB_CMD_INT,
		.offset = offsetof(struct read_args, after),
		.max = INT64_MAX,
		.help = "Only events after this version of the stream, or this position.",
	},
	{
		.name = "limit",
		.arg = "COUNT",
		.type = OB_CMD_INT,
		.offset = offsetof(struct read_args, limit),
		.dflt = "100",
		.max = INT64_MAX,
		.help = "At most so many; 0: all.",
	},
	{
		.name = "backward",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct read_args, backward),
		.help = "The newest first.",
	},
	{
		.name = "ended",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct read_args, ended),
		.help = "Also of streams that ended, and what was cut off.",
	},
	{
		.name = "target",
		.arg = "TARGET",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct read_args, target),
		.help = "The target of the events; left out: default.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox events read account 42",
	"outbox events read account --event Opened --json",
	NULL,
};

const struct ob_cmd ob_cmd_events_read = {
	.name = "events read",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "events of a stream, of a type, or all",
	.description =
		"Prints the events of a stream by version; with the type alone, of all its "
		"streams by position; with neither, all events. With --json, an object a "
		"line.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct read_args),
	.run = events_read_run,
};
