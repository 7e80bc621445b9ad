/* SPDX-License-Identifier: MIT */
/* outbox why: what a message is waiting for. */
#include "cli/commands.h"
#include "cli/grid.h"
#include "cli/jout.h"
#include "cli/para.h"
#include "cli/why.h"

#include <stdio.h>

/* A message has one row for each target; more than this is nobody's. */
enum { ROWS_MAX = 1000, TEXT_MAX = 32 << 10 };

struct why_args {
	const char *target;
};

static int print_json(const struct ob_why *why, struct ob_str text)
{
	const struct ob_message *m = why->message;
	char id[OB_UUID_TEXT_SIZE], other[OB_UUID_TEXT_SIZE];
	bool leased = why->reason == OB_WHY_LEASED;
	struct ob_jout j = OB_JOUT_INIT;

	ob_uuid_format(&m->id, id);
	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "id", ob_str(id));
	ob_jout_text(&j, "target", m->target);
	ob_jout_text(&j, "state", ob_str(ob_view_name(ob_message_view(m, why->now_us))));
	ob_jout_text(&j, "reason", ob_str(ob_why_name(why->reason)));
	ob_jout_text(&j, "text", text);
	ob_jout_text(&j, "key", m->key);
	ob_jout_int(&j, "partition", m->partition);
	ob_jout_int(&j, "attempts", m->attempts);
	ob_jout_text(&j, "last_error", m->last_error);
	ob_jout_when(&j, "available_at", m->available_at_us);
	ob_jout_when(&j, "published_at", m->published_at_us);
	ob_uuid_format(&why->holder.id, other);
	ob_jout_text(&j, "behind", why->has_holder ? ob_str(other) : OB_STR_NULL);
	ob_uuid_format(&why->worker.id, other);
	ob_jout_text(&j, "lease_owner", leased ? ob_str(other) : OB_STR_NULL);
	ob_jout_when(&j, "lease_until", why->lease_until_us);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

/* The subject of the sentence; the target only where there are several. */
static int print_row(const struct ob_cli *cli, const struct ob_why *why, bool several)
{
	struct ob_buf text = OB_BUF_INIT(TEXT_MAX);
	char id[OB_UUID_TEXT_SIZE];
	int r = OB_EXIT_OK;

	ob_uuid_format(&why->message->id, id);
	ob_buf_addf(&text, "Message %s ", id);
	if (several) {
		ob_buf_adds(&text, "for target ");
		ob_buf_add(&text, why->message->target);
		ob_buf_addc(&text, ' ');
	}
	ob_why_text(why, &text);
	if (cli->json)
		r = print_json(why, ob_buf_view(&text));
	else
		ob_para_print(stdout, ob_buf_view(&text), ob_terminal_width());
	ob_buf_done(&text);
	return r;
}

static int why_rows(const struct ob_cli *cli, const struct ob_session *session,
		    const struct ob_batch *batch, int64_t now_us)
{
	int r = OB_EXIT_OK;

	for (uint32_t i = 0; !r && i < batch->count; i++) {
		struct ob_err err = OB_ERR_INIT;
		struct ob_why why;

		if (ob_why_find(&why, session->store, session->config, &batch->messages[i], now_us,
				&err) < 0)
			r = ob_cli_fail("%s", err.msg);
		else
			r = print_row(cli, &why, batch->count > 1);
		ob_why_done(&why);
	}
	return r;
}

static int why_run(struct ob_cli *cli, const void *opts)
{
	const struct why_args *args = opts;
	struct ob_err err = OB_ERR_INIT;
	struct ob_session session;
	struct ob_batch batch;
	struct ob_uuid id;
	int64_t now_us = 0;

	if (!ob_uuid_parse(ob_str(cli->operands[0]), &id))
		return ob_cli_usage(cli, "'%s' is not a UUID", cli->operands[0]);
	const struct ob_filter filter = { .id = &id, .target = args->target, .limit = ROWS_MAX };

	ob_batch_init(&batch);
	int r = ob_session_open(&session, cli);
	if (!r && ob_store_list(session.store, &filter, &batch, &now_us, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (!r && batch.count == 0)
		r = ob_cli_fail(
			"no message %s%s%s: its transaction has not committed or was rolled "
			"back, or the message was deleted since",
			cli->operands[0], args->target ? " for target " : "",
			args->target ? args->target : "");
	if (!r)
		r = why_rows(cli, &session, &batch, now_us);
	ob_batch_done(&batch);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "ID" },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "target",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct why_args, target),
		.help = "Only the row for this target.",
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
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "why a message is not out yet",
	.description =
		"Says what a message is waiting for: the time it is due, its next attempt, another "
		"message of its key, a worker for its target, or you; and what can be done. When "
		"there is no such message, for one because its transaction has not committed, "
		"the exit code is 1.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct why_args),
	.run = why_run,
};
