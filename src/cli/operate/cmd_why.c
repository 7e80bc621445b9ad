/* SPDX-License-Identifier: MIT */
/* outbox why: what a message is waiting for. */
#include "cli/commands.h"
#include "cli/operate/lookup.h"
#include "cli/operate/why.h"
#include "cli/out/grid.h"
#include "cli/out/jout.h"
#include "cli/out/para.h"

#include <stdio.h>

enum { TEXT_MAX = 32 << 10 };

struct why_args {
	const char *reader;
};

static void int_or_null(struct ob_jout *j, const char *key, bool known, int64_t value)
{
	if (known)
		ob_jout_int(j, key, value);
	else
		ob_jout_raw(j, key, OB_STR("null"));
}

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
	ob_jout_text(&j, "reader", ob_str(why->reader));
	ob_jout_text(&j, "state", ob_str(ob_view_name(m->view)));
	ob_jout_text(&j, "reason", ob_str(ob_why_name(why->reason)));
	ob_jout_text(&j, "text", text);
	ob_jout_int(&j, "seq", m->seq);
	int_or_null(&j, "position", why->has_pos, why->pos);
	ob_jout_text(&j, "key", m->key);
	ob_jout_int(&j, "partition", m->partition);
	ob_jout_int(&j, "attempts", m->attempts);
	ob_jout_text(&j, "last_error", m->last_error);
	ob_jout_when(&j, "due", m->due_us);
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

/* The subject of the sentence; the reader only where there are several. */
static int print_reason(const struct ob_cli *cli, const struct ob_why *why, bool several)
{
	struct ob_buf text = OB_BUF_INIT(TEXT_MAX);
	char id[OB_UUID_TEXT_SIZE];
	int r = OB_EXIT_OK;

	ob_uuid_format(&why->message->id, id);
	if (several && why->reader)
		ob_buf_addf(&text, "For reader %s, message %s ", why->reader, id);
	else
		ob_buf_addf(&text, "Message %s ", id);
	ob_why_text(why, &text);
	if (cli->json)
		r = print_json(why, ob_buf_view(&text));
	else
		ob_para_print(stdout, ob_buf_view(&text), ob_terminal_width());
	ob_buf_done(&text);
	return r;
}

static int why_message(const struct ob_cli *cli, const struct ob_lookup *l, const char *reader,
		       const struct ob_message *m, bool several)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_why why;
	int r = ob_why_find(&why, l->session->store, l->session->config, reader, m, l->now_us,
			    &err);

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

static int why_row(const struct ob_cli *cli, struct ob_lookup *l, const struct ob_message *row)
{
	bool several = count_readers(l) > 1, read = false;
	int r = OB_EXIT_OK;

	for (size_t i = 0; !r && i < l->readers.count; i++) {
		const struct ob_message *m;
		const char *name;

		if (!ob_lookup_reads(l, &l->readers.list[i], row))
			continue;
		read = true;
		m = ob_lookup_see(l, &l->readers.list[i], row, &name);
		r = m ? why_message(cli, l, name, m, several) : OB_EXIT_FAILURE;
	}
	return r || read ? r : why_message(cli, l, NULL, row, several);
}

static int why_run(struct ob_cli *cli, const void *opts)
{
	const struct why_args *args = opts;
	struct ob_session session;
	struct ob_lookup l;
	int r = ob_lookup_find(&l, cli, &session, cli->operands[0], args->reader,
			       ": its transaction has not committed or was rolled back, or the "
			       "message was removed since");

	for (uint32_t i = 0; !r && i < l.rows.count; i++)
		r = why_row(cli, &l, &l.rows.messages[i]);
	ob_lookup_done(&l);
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
