/* SPDX-License-Identifier: MIT */
/* Operator verbs on ids: each is read first, so that a refusal can say why and what else. */
#include "cli/operate/operate.h"

#include <stdio.h>

enum { LINE_MAX_BYTES = 4096 };

struct ids {
	const struct ob_operate_task *task;
	const char *reader;
	struct ob_store *store;
	struct ob_batch batch;
	struct ob_jout json;
	struct ob_cli_decision decision; /* one for all of them */
	uint64_t changed;
};

/* Do it; what stood against it is appended to `why`. */
static int change(struct ids *ids, const struct ob_message *m, struct ob_buf *why)
{
	const struct ob_operate operate = { .verb = ids->task->verb,
					    .audit = &ids->decision.d.row,
					    .filter = { .reader = ids->reader, .id = &m->id } };
	uint64_t changed = 0, refused = 0;
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_operate(ids->store, &operate, &changed, &refused, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	ids->changed += changed;
	if (changed == 0)
		ob_buf_adds(why, "it changed in this moment; see 'outbox show'");
	return OB_EXIT_OK;
}

static int report(struct ids *ids, const struct ob_message *m, const char *state, struct ob_str why)
{
	const struct ob_operate_task *task = ids->task;
	bool dry = task->args->dry_run;
	char id[OB_UUID_TEXT_SIZE];
	int r = OB_EXIT_OK;

	ob_uuid_format(&m->id, id);
	if (task->cli->json) {
		ob_operate_json(&ids->json, task, ids->reader, m, state, why.n ? why.p : NULL);
		r = ob_jout_print(&ids->json);
	} else if (!why.n) {
		printf("%s%s %s (%s %s)\n", dry ? "would " : "", ob_operate_phrase(task, !dry), id,
		       dry ? "is" : "was", state);
	}
	return why.n ? ob_cli_fail("%s: %s", id, why.p) : r;
}

static int operate_message(struct ids *ids, const struct ob_message *m)
{
	struct ob_buf why = OB_BUF_INIT(LINE_MAX_BYTES);
	int r = OB_EXIT_OK;

	if (!ob_verb_allows(ids->task->verb, m))
		ob_verb_refusal(ids->task->verb, m, &why);
	else if (!ids->task->args->dry_run)
		r = change(ids, m, &why);
	if (!r)
		r = report(ids, m, ob_view_name(m->view), ob_buf_view(&why));
	ob_buf_done(&why);
	return r;
}

static int not_there(struct ids *ids, const struct ob_uuid *id)
{
	const struct ob_message nobody = { .id = *id };
	char text[OB_UUID_TEXT_SIZE];

	if (ids->task->cli->json) {
		ob_operate_json(&ids->json, ids->task, ids->reader, &nobody, NULL,
				"no such message");
		(void)ob_jout_print(&ids->json);
	}
	ob_uuid_format(id, text);
	return ob_cli_fail("no message %s among those of reader %s", text, ids->reader);
}

static int operate_id(struct ids *ids, const char *text)
{
	struct ob_filter filter = { .reader = ids->reader, .limit = 1 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_uuid id;
	int64_t now_us;

	(void)ob_uuid_parse(ob_str(text), &id); /* checked before */
	filter.id = &id;
	if (ob_store_list(ids->store, &filter, &ids->batch, &now_us, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (ids->batch.count == 0)
		return not_there(ids, &id);
	return operate_message(ids, &ids->batch.messages[0]);
}

int ob_operate_ids(const struct ob_operate_task *task, const char *reader, struct ob_store *store)
{
	struct ids ids = { .task = task, .reader = reader, .store = store, .json = OB_JOUT_INIT };
	struct ob_buf which = OB_BUF_INIT(LINE_MAX_BYTES);
	int worst = OB_EXIT_OK;

	for (size_t i = 0; i < task->id_count; i++)
		ob_buf_addf(&which, "%s%s", i ? ", " : "ids ", task->ids[i]);
	ob_cli_decide(&ids.decision, ob_verb_rules[task->verb].name, reader,
		      which.failed ? "ids" : ob_buf_str(&which), task->args->reason);
	ob_batch_init(&ids.batch);
	/* One that cannot be changed does not stand in the way of the others. */
	for (size_t i = 0; i < task->id_count; i++) {
		int r = operate_id(&ids, task->ids[i]);
		worst = r ? r : worst;
	}
	if (ids.changed > 0)
		ob_cli_decided_with(&ids.decision, ids.changed);
	ob_buf_done(&which);
	ob_batch_done(&ids.batch);
	ob_jout_done(&ids.json);
	return worst;
}
