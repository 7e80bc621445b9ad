/* SPDX-License-Identifier: MIT */
/* outbox dlq why: why a parked message is not handled, and what to do. */
#include "base/when.h"
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/out/jprint.h"

#include <inttypes.h>

static void explain(const struct ob_parked *row, const struct ob_parked *head, struct ob_buf *out)
{
	char when[OB_WHEN_SIZE];

	switch (row->state) {
	case OB_PARKED_FAILED:
		ob_when_iso(row->due_us, when);
		ob_buf_addf(out, "it failed %" PRIu32 " time%s and is tried again at %s",
			    row->attempts, row->attempts == 1 ? "" : "s", when);
		break;
	case OB_PARKED_WAITING:
		ob_buf_addf(out, "it waits behind %.*s, which has the same key and is %s",
			    (int)head->id.n, head->id.p ? head->id.p : "",
			    ob_parked_state_name(head->state));
		break;
	case OB_PARKED_DEAD:
		ob_buf_addf(out,
			    "it was given up after %" PRIu32
			    " attempt%s and holds its key: `outbox "
			    "dlq retry` tries it again, `outbox dlq skip` lets the key go on",
			    row->attempts, row->attempts == 1 ? "" : "s");
		break;
	case OB_PARKED_LETTER:
		ob_buf_adds(out, row->id.p ? "it was given up, and its key goes on: `outbox dlq "
					     "replay` hands it to this consumer again"
					   : "it is no message: `outbox dlq discard` removes it");
		break;
	}
	if (row->reason.p)
		ob_buf_addf(out, "; its last error: %.*s", (int)row->reason.n, row->reason.p);
}

/* The one that holds its key. */
static int find_head(struct ob_dlq *dlq, const struct ob_parked *row, struct ob_parked *ret)
{
	const struct ob_parked_filter filter = {
		.consumer = dlq->consumer, .queue = row->queue.p, .state = -1, .limit = 1
	};
	struct ob_parked *rows = NULL;
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0;

	*ret = *row;
	if (row->state != OB_PARKED_WAITING)
		return OB_EXIT_OK;
	if (ob_parked_list(dlq->session.store, &filter, &dlq->arena, &rows, &count, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (count)
		*ret = rows[0];
	return OB_EXIT_OK;
}

static int say(const struct ob_cli *cli, const struct ob_parked *row, const struct ob_parked *head)
{
	struct ob_buf text = OB_BUF_INIT(4096);
	struct ob_jout j = OB_JOUT_INIT;
	int code = OB_EXIT_OK;

	explain(row, head, &text);
	if (cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_text(&j, "id", row->id);
		ob_jout_text(&j, "state", ob_str(ob_parked_state_name(row->state)));
		ob_jout_text(&j, "behind",
			     row->state == OB_PARKED_WAITING ? head->id : OB_STR_NULL);
		ob_jout_text(&j, "why", ob_buf_view(&text));
		ob_jout_end(&j, '}');
		code = ob_jout_print(&j);
	} else {
		printf("%s\n", ob_buf_str(&text));
	}
	ob_jout_done(&j);
	ob_buf_done(&text);
	return code;
}

static int dlq_why_run(struct ob_cli *cli, const void *opts)
{
	struct ob_parked row, head;
	struct ob_dlq dlq;
	int code = ob_dlq_open_one(&dlq, cli);

	(void)opts;
	if (!code) {
		row = dlq.rows[0];
		code = find_head(&dlq, &row, &head);
	}
	if (!code)
		code = say(cli, &row, &head);
	ob_dlq_done(&dlq);
	return code;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "CONSUMER" },
	{ .name = "ID" },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox dlq why billing 0196a1f0-3c5b-7000-8000-00c0ffee0001",
	NULL,
};

const struct ob_cmd ob_cmd_dlq_why = {
	.name = "dlq why",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON | OB_CMD_LOOKS,
	.summary = "why a parked message is not handled, and what to do",
	.description =
		"Says in one line what holds a parked message: its own failures, another message "
		"of "
		"its key, or that it was given up; and which command decides.",
	.examples = examples,
	.operands = operands,
	.run = dlq_why_run,
};
