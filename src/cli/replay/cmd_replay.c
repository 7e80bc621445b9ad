/* SPDX-License-Identifier: MIT */
/* outbox replay: send messages of the log again. */
#include "cli/commands.h"
#include "cli/operate/decide.h"
#include "cli/operate/place.h"
#include "cli/out/jprint.h"
#include "cli/replay/replay.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_BYTES = 2048 };

static void add_scope(const struct ob_replay *replay, struct ob_buf *line)
{
	if (replay->which.seq_count) {
		ob_buf_addf(line, "(%zu)", replay->which.seq_count);
	} else {
		ob_buf_adds(line, "from ");
		ob_place_text(&replay->place, line);
		ob_buf_addf(line, " to number %" PRId64, replay->end_seq);
	}
	ob_buf_addf(line, " of target %s again, to the sink %s", replay->conf.reads,
		    replay->conf.sink->name);
}

/* Also when it was stopped: what was sent is sent. */
static void take_down(const struct ob_replay *replay)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	struct ob_cli_decision decision;

	ob_buf_adds(&line, "messages ");
	add_scope(replay, &line);
	ob_cli_decide(&decision, "replay", replay->name, ob_buf_str(&line), replay->args->reason);
	ob_cli_decided(&decision, replay->store, replay->published);
	ob_buf_done(&line);
}

static int confirm(const struct ob_replay *replay)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);

	ob_buf_adds(&line, "send messages ");
	add_scope(replay, &line);
	int r = ob_cli_confirm(replay->cli, ob_buf_str(&line));
	ob_buf_done(&line);
	return r;
}

static int print_nothing(const struct ob_replay *replay)
{
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (replay->cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_text(&j, "replay", ob_str(replay->name));
		ob_jout_int(&j, "published", 0);
		ob_jout_bool(&j, "complete", true);
		ob_jout_bool(&j, "done", true);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		(void)fprintf(ob_work_uses_stdout(&replay->conf) ? stderr : stdout,
			      "nothing to send again\n");
	}
	ob_jout_done(&j);
	return r;
}

static int replay_run(struct ob_cli *cli, const void *opts)
{
	struct ob_replay replay = { .cli = cli, .args = opts };
	struct ob_signals signals = { .fd = -1 };
	struct ob_err err = OB_ERR_INIT;
	int r = ob_replay_plan(&replay);

	if (!r && replay.empty) {
		r = print_nothing(&replay);
	} else if (!r) {
		if (!replay.args->yes && replay.which.seq_count != 1)
			r = confirm(&replay);
		/* Not before the question, so that Ctrl-C answers it, too. */
		if (!r && ob_signals_init(&signals, &err) < 0)
			r = ob_cli_fail("%s", err.msg);
		if (!r) {
			r = ob_replay_run(&replay, &signals);
			take_down(&replay);
		}
	}
	if (signals.fd >= 0)
		ob_signals_done(&signals);
	ob_replay_done(&replay);
	return r;
}

#define TEXT_OPTION(option, word, text) \
	{ \
		.name = #option, .arg = (word), .type = OB_CMD_TEXT, \
		.offset = offsetof(struct ob_replay_args, option), .help = (text) \
	}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID", .optional = true, .many = true },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	TEXT_OPTION(relay, "NAME",
		    "The relay whose target, order, routes and sink are used; may be left out when "
		    "there is one."),
	TEXT_OPTION(sink, "NAME",
		    "Another sink of the configuration; where --store is a URL: the sink, as for "
		    "work."),
	TEXT_OPTION(since, "TIME", "Only what was stored at or after this time."),
	TEXT_OPTION(until, "TIME", "Only what was stored at or before this time."),
	{
		.name = "from",
		.arg = "SEQ",
		.type = OB_CMD_INT,
		.offset = offsetof(struct ob_replay_args, from),
		.min = 1,
		.max = INT64_MAX - 1,
		.help = "Only from this number of the log on.",
	},
	{
		.name = "to",
		.arg = "SEQ",
		.type = OB_CMD_INT,
		.offset = offsetof(struct ob_replay_args, to),
		.min = 1,
		.max = INT64_MAX - 1,
		.help = "Only up to this number; left out: up to the newest one there is now.",
	},
	TEXT_OPTION(key, "KEY", "Only this ordering key, such as order:1042."),
	TEXT_OPTION(type, "PATTERN", "Only aggregate types that match; * stands for any text."),
	TEXT_OPTION(aggregate, "ID", "Only this aggregate id."),
	TEXT_OPTION(event, "PATTERN", "Only event types that match."),
	TEXT_OPTION(name, "NAME", "What the header outbox-replay says; left out: one is made."),
	{
		.name = "workers",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct ob_replay_args, workers),
		.min = 1,
		.max = 256,
		.help = "Threads, instead of what the relay has.",
	},
	{
		.name = "yes",
		.letter = 'y',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_replay_args, yes),
		.help = "Do not ask.",
	},
	OB_REASON_OPTION(struct ob_replay_args, reason),
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox replay --since 2026-05-01T00:00:00Z --until 2026-05-02T00:00:00Z",
	"outbox replay --key order:1042 --sink audit",
	"outbox replay --from 1000 --to 2000 --event 'Order*' --yes --json",
	"outbox replay 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	NULL,
};

const struct ob_cmd ob_cmd_replay = {
	.name = "replay",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "send messages of the log again",
	.description =
		"Sends what is in the log once more, to the sink of a relay or to another one: "
		"everything, or what the options or ids name, up to the newest message at the "
		"start "
		"and in order within each key. Whoever receives a message sees by the header "
		"outbox-replay, which has the name of the replay, that it is sent again. Whether "
		"it "
		"was delivered before does not matter, but what is not due yet is left out.\n\n"
		"A replay has a reader of its own, which is removed at the end, also after Ctrl-C: "
		"relays go on undisturbed, and their progress is not touched. What fails is tried "
		"again as the relay would; what is given up is printed, and the exit code is 1 "
		"then.\n\n"
		"On a terminal a bar shows how far it is, how fast, and how long it will take. "
		"With "
		"--json it prints an object a second, and one with done at the end.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct ob_replay_args),
	.run = replay_run,
};
