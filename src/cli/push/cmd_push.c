/* SPDX-License-Identifier: MIT */
/* outbox push: one message from options, or many as lines of JSON. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"
#include "cli/push/lines.h"
#include "cli/push/ndjson.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* 16 bytes each: 64 million ids. */
enum { IDS_MAX = 1 << 30 };

struct push_args {
	const char *type, *aggregate, *event, *payload, *payload_file, *headers, *id, *key, *target;
	const char *correlation, *causation;
	int64_t sequence, priority, delay_ms, revision;
	bool tombstone;
};

static int print_id(const struct ob_cli *cli, const char *id)
{
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (!cli->json) {
		printf("%s\n", id);
		return r;
	}
	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "id", ob_str(id));
	ob_jout_end(&j, '}');
	r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

/* ---- many ------------------------------------------------------------ */

static int print_ids(const struct ob_cli *cli, const struct ob_buf *ids)
{
	int r = OB_EXIT_OK;

	for (size_t at = 0; !r && !ferror(stdout) && at < ids->len; at += sizeof(struct ob_uuid)) {
		char text[OB_UUID_TEXT_SIZE];
		struct ob_uuid id;

		memcpy(&id, ids->data + at, sizeof(id));
		ob_uuid_format(&id, text);
		r = print_id(cli, text);
	}
	return r;
}

/* A producer may have no right to look at what the relay needs: that is not asked for here. */
static int open_session(struct ob_session *session, const struct ob_cli *cli)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_session_connect(session, cli);

	if (!r && ob_store_check(session->store, &err) < 0 && err.status != OUTBOX_ESTORE)
		r = ob_cli_fail("%s", err.msg);
	return r;
}

/* It is stored all the same: whoever reads it may come later. */
static void warn_unread(const struct ob_session *session, const struct ob_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++) {
		if (!ob_target_is_read(targets->names[i], session->config, session->store))
			ob_cli_warn("no relay reads target '%s': its messages wait",
				    targets->names[i]);
	}
}

static int push_stdin(const struct ob_cli *cli)
{
	struct ob_buf ids = OB_BUF_INIT(IDS_MAX);
	struct ob_targets targets;
	struct ob_session session;
	uint64_t count;

	if (isatty(STDIN_FILENO))
		(void)fputs("outbox: reading one JSON object a line; Ctrl-D ends\n", stderr);
	ob_targets_init(&targets);
	int r = open_session(&session, cli);
	if (!r)
		r = ob_push_lines(session.store, STDIN_FILENO, "stdin", cli->json ? &ids : NULL,
				  &targets, &count);
	if (!r)
		warn_unread(&session, &targets);
	/* Not before: an id that is printed is an id that is stored. */
	if (!r && cli->json)
		r = print_ids(cli, &ids);
	else if (!r)
		printf("%" PRIu64 " message%s pushed\n", count, count == 1 ? "" : "s");
	ob_targets_done(&targets);
	ob_buf_done(&ids);
	ob_session_done(&session);
	return r;
}

/* ---- one ------------------------------------------------------------- */

static int check_args(const struct ob_cli *cli, const struct push_args *args)
{
	int bodies = !!args->payload + !!args->payload_file + args->tombstone;

	if (!args->type)
		return ob_cli_usage(cli, "--type is missing");
	if (!args->event)
		return ob_cli_usage(cli, "--event is missing");
	if (bodies == 0)
		return ob_cli_usage(cli,
				    "--payload is missing; or give --payload-file or --tombstone");
	if (bodies > 1)
		return ob_cli_usage(cli,
				    "give only one of --payload, --payload-file and --tombstone");
	return OB_EXIT_OK;
}

/* Read at most one byte more than may be stored: that is enough to refuse it. */
static int read_payload(const char *path, struct ob_buf *out)
{
	bool is_stdin = strcmp(path, "-") == 0;
	OB_AUTOCLOSE int opened = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int fd = is_stdin ? STDIN_FILENO : opened;
	char part[16384];
	ssize_t n;

	if (fd < 0)
		return ob_cli_fail("%s: %m", path);
	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ob_cli_fail("%s: %m", is_stdin ? "stdin" : path);
		ob_buf_add(out, (struct ob_str){ part, (size_t)n });
		if (out->len > (size_t)OUTBOX_PAYLOAD_MAX || out->failed)
			return ob_cli_fail("%s: a payload may have at most %u MB",
					   is_stdin ? "stdin" : path, OUTBOX_PAYLOAD_MAX >> 20);
	}
	return OB_EXIT_OK;
}

static int store_one(const struct ob_cli *cli, const struct outbox_message *message)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	struct ob_targets targets;
	struct outbox_id id;
	size_t index = 0;

	int r = open_session(&session, cli);
	if (!r) {
		int s = ob_store_tx_begin(session.store, &err);
		if (s == 0)
			s = ob_store_tx_push(session.store, message, 1, &id, &index, &err);
		if (s == 0)
			s = ob_store_tx_end(session.store, true, &err);
		if (s < 0) /* closing the store rolls back */
			r = ob_cli_fail("%s", err.msg);
	}
	ob_targets_init(&targets);
	ob_targets_note(&targets, ob_str(message->target));
	if (!r)
		warn_unread(&session, &targets);
	ob_targets_done(&targets);
	ob_session_done(&session);
	return r ? r : print_id(cli, id.text);
}

static int push_one(const struct ob_cli *cli, const struct push_args *args)
{
	struct outbox_message message = {
		.aggregate_type = args->type,
		.aggregate_id = args->aggregate,
		.event_type = args->event,
		.payload = args->payload,
		.headers = args->headers,
		.id = args->id,
		.partition_key = args->key,
		.target = args->target,
		.correlation_id = args->correlation,
		.causation_id = args->causation,
		.sequence_number = args->sequence,
		.delay_ms = (uint64_t)args->delay_ms,
		.revision = (int32_t)args->revision,
		.priority = (int32_t)args->priority,
		.flags = args->tombstone ? OUTBOX_TOMBSTONE : 0,
	};
	struct ob_buf body = OB_BUF_INIT(OUTBOX_PAYLOAD_MAX + (1 << 20));
	const char *path = args->payload_file;
	int r = check_args(cli, args);

	if (args->payload && strcmp(args->payload, "-") == 0)
		path = "-"; /* no JSON value looks like that */
	if (!r && path) {
		r = read_payload(path, &body);
		message.payload = ob_buf_str(&body);
		message.payload_size = body.len;
	}
	if (!r)
		r = store_one(cli, &message);
	ob_buf_done(&body);
	return r;
}

static int push_run(struct ob_cli *cli, const void *args)
{
	bool dash = cli->operand_count == 1;

	if (dash && strcmp(cli->operands[0], "-") != 0)
		return ob_cli_usage(cli, "one word too many: '%s'", cli->operands[0]);
	if (dash && cli->given)
		return ob_cli_usage(cli,
				    "- reads messages from standard input: leave the options "
				    "out, or the -");
	return cli->given ? push_one(cli, args) : push_stdin(cli);
}

#define TEXT_OPTION(option, value, member, sentence) \
	{ \
		.name = (option), .arg = (value), .type = OB_CMD_TEXT, \
		.offset = offsetof(struct push_args, member), .help = (sentence), \
	}
#define INT_OPTION(option, member, least, most, sentence) \
	{ \
		.name = (option), .arg = "N", .type = OB_CMD_INT, \
		.offset = offsetof(struct push_args, member), .min = (least), .max = (most), \
		.help = (sentence), \
	}

static const struct ob_cmd_opt options[] = {
	TEXT_OPTION("type", "TYPE", type, "The aggregate's type: the stream, such as order."),
	TEXT_OPTION("aggregate", "ID", aggregate, "Which aggregate: its id."),
	TEXT_OPTION("event", "EVENT", event, "What happened, such as OrderPlaced."),
	TEXT_OPTION("payload", "JSON", payload, "The body; - reads standard input."),
	{
		.name = "payload-file",
		.arg = "FILE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct push_args, payload_file),
		.complete = OB_COMPLETE_FILE,
		.help = "The body from a file, at most 32 MB; - reads standard input.",
	},
	{
		.name = "tombstone",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct push_args, tombstone),
		.help = "There is no body on purpose.",
	},
	TEXT_OPTION("headers", "JSON", headers, "An object for the consumer."),
	TEXT_OPTION("id", "UUID", id, "The message's id; left out: one is made."),
	TEXT_OPTION("key", "KEY", key, "The ordering key instead of type and id."),
	TEXT_OPTION(
		"target", "NAME", target,
		"What it is for: the relays that read this target deliver it; left out: default."),
	TEXT_OPTION("correlation", "ID", correlation, "The correlation id, for tracing."),
	TEXT_OPTION("causation", "ID", causation, "The causation id, for tracing."),
	INT_OPTION("sequence", sequence, 1, INT64_MAX, "The position in the aggregate, from 1."),
	INT_OPTION("revision", revision, 1, INT32_MAX, "The version of the payload's schema."),
	INT_OPTION("priority", priority, -32768, 32767, "From -32768 to 32767, higher first."),
	{
		.name = "delay",
		.arg = "DURATION",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct push_args, delay_ms),
		.min = 0,
		.max = OB_DELAY_MAX_MS,
		.help = "Deliver no sooner than this, such as 30s or 2h.",
	},
	OB_CMD_OPT_END,
};

static const struct ob_cmd_operand operands[] = {
	{ .name = "-", .optional = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox push --type order --aggregate 1042 --event OrderPlaced --payload '{}'",
	"outbox push < messages.ndjson",
	NULL,
};

const struct ob_cmd ob_cmd_push = {
	.name = "push",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "store one message, or many from standard input",
	.description =
		"With options it stores one message and prints its id. Without any, or with -, it "
		"reads "
		"standard input, one JSON object a line, and stores all of them in one "
		"transaction: when any line is wrong, the error names the line and nothing is "
		"stored. Blank lines are skipped; a line may have at most 48 MB. With --json the "
		"ids are printed, one object a line.",
	.topic_title = "Keys of a line",
	.topic = ob_ndjson_key,
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct push_args),
	.run = push_run,
};
