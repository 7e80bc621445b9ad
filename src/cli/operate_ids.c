/* SPDX-License-Identifier: MIT */
/* Operator verbs on ids: each is looked at first, so that a refusal can say why and what else. */
#include "cli/operate.h"
#include "cli/para.h"
#include "cli/when.h"

#include <stdio.h>

/* A message has one row for each target; more than this is nobody's. */
enum { ROWS_MAX = 1000, LINE_MAX_BYTES = 4096 };

struct ids {
	const struct ob_operate_task *task;
	struct ob_store *store;
	struct ob_batch batch;
	struct ob_jout json;
	int64_t now_us;
};

/* "; it can be skipped or discarded" */
static void add_possible(struct ob_buf *why, unsigned view)
{
	const char *can[OB_OPERATE_VERBS];
	size_t count = 0;

	for (size_t i = 0; i < OB_OPERATE_VERBS; i++) {
		if (ob_operate_verbs[i].allowed & view)
			can[count++] = ob_operate_verbs[i].can;
	}
	ob_buf_adds(why, count ? "; it can be " : "; nothing can be changed any more");
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(why, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", can[i]);
}

/* Why the state of this row does not allow the verb. */
static void explain(const struct ids *ids, const struct ob_message *m, enum ob_view view,
		    struct ob_buf *why)
{
	const struct ob_operate_verb *verb = &ob_operate_verbs[ids->task->verb];
	char left[OB_WHEN_SIZE];

	if (view == OB_VIEW_PROCESSING) {
		ob_when_age(m->locked_until_us - ids->now_us, left);
		ob_buf_addf(why, "it is in a worker's hands for %s more; wait, or stop that worker",
			    left);
		return;
	}
	ob_buf_addf(why, "it is %s, and only ", ob_view_name(view));
	ob_operate_states(verb->allowed, "and", why);
	ob_buf_addf(why, " messages can be %s", verb->can);
	add_possible(why, 1U << view);
}

/* "0196... for target mail": the target only where there are several. */
static void add_name(const struct ids *ids, const struct ob_message *m, struct ob_buf *out)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	ob_buf_adds(out, id);
	if (ids->batch.count > 1) {
		ob_buf_adds(out, " for target ");
		ob_buf_add(out, m->target);
	}
}

/* Do it to one row; what stood against it is appended to `why`. */
static int change(struct ids *ids, const struct ob_message *m, struct ob_buf *why)
{
	const struct ob_operate_task *task = ids->task;
	struct ob_buf target = OB_BUF_INIT(LINE_MAX_BYTES);
	struct ob_operate operate = { .verb = task->verb, .priority = task->priority };
	uint64_t changed = 0, refused = 0;
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	ob_buf_add(&target, m->target);
	operate.filter.id = &m->id;
	operate.filter.target = ob_buf_str(&target);
	if (ob_store_operate(ids->store, &operate, &changed, &refused, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else if (changed == 0)
		ob_buf_adds(why, "it changed in this moment; look at it with 'outbox show'");
	ob_buf_done(&target);
	return r;
}

static int report(struct ids *ids, const struct ob_message *m, const char *state, struct ob_str why)
{
	const struct ob_operate_task *task = ids->task;
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);
	int r = OB_EXIT_OK;

	if (task->cli->json) {
		ob_operate_json(&ids->json, task, m, state, why.n ? why.p : NULL);
		r = ob_jout_print(&ids->json);
	} else if (!why.n) {
		if (task->args->dry_run)
			ob_buf_adds(&line, "would ");
		ob_operate_phrase(task, !task->args->dry_run, &line);
		ob_buf_addc(&line, ' ');
		add_name(ids, m, &line);
		ob_buf_addf(&line, " (%s %s)", task->args->dry_run ? "is" : "was", state);
		ob_para_print(stdout, ob_buf_view(&line), 0);
	}
	if (why.n) {
		ob_buf_clear(&line);
		add_name(ids, m, &line);
		r = ob_cli_fail("%s: %s", ob_buf_str(&line), why.p);
	}
	ob_buf_done(&line);
	return r;
}

static int operate_row(struct ids *ids, const struct ob_message *m)
{
	enum ob_view view = ob_message_view(m, ids->now_us);
	struct ob_buf why = OB_BUF_INIT(LINE_MAX_BYTES);
	int r = OB_EXIT_OK;

	/* The store refuses a row under a claim whatever its state. */
	if (m->locked_until_us > ids->now_us)
		view = OB_VIEW_PROCESSING;
	if (!(ob_operate_verbs[ids->task->verb].allowed & (1U << view)))
		explain(ids, m, view, &why);
	else if (!ids->task->args->dry_run)
		r = change(ids, m, &why);
	if (!r)
		r = report(ids, m, ob_view_name(view), ob_buf_view(&why));
	ob_buf_done(&why);
	return r;
}

static int not_there(struct ids *ids, const struct ob_uuid *id)
{
	const char *target = ids->task->args->target;
	const struct ob_message nobody = { .id = *id, .target = ob_str(target) };
	char text[OB_UUID_TEXT_SIZE];

	if (ids->task->cli->json) {
		ob_operate_json(&ids->json, ids->task, &nobody, NULL, "no such message");
		(void)ob_jout_print(&ids->json);
	}
	ob_uuid_format(id, text);
	return ob_cli_fail("no message %s%s%s", text, target ? " for target " : "",
			   target ? target : "");
}

static int operate_id(struct ids *ids, const char *text)
{
	struct ob_filter filter = { .target = ids->task->args->target, .limit = ROWS_MAX };
	struct ob_err err = OB_ERR_INIT;
	struct ob_uuid id;
	int worst = OB_EXIT_OK;

	(void)ob_uuid_parse(ob_str(text), &id); /* checked before */
	filter.id = &id;
	if (ob_store_list(ids->store, &filter, &ids->batch, &ids->now_us, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (ids->batch.count == 0)
		return not_there(ids, &id);
	for (uint32_t i = 0; i < ids->batch.count; i++) {
		int r = operate_row(ids, &ids->batch.messages[i]);
		worst = r ? r : worst;
	}
	return worst;
}

int ob_operate_ids(const struct ob_operate_task *task, struct ob_store *store)
{
	struct ids ids = { .task = task, .store = store, .json = OB_JOUT_INIT };
	int worst = OB_EXIT_OK;

	ob_batch_init(&ids.batch);
	/* One that cannot be changed does not stand in the way of the others. */
	for (size_t i = 0; i < task->id_count; i++) {
		int r = operate_id(&ids, task->ids[i]);
		worst = r ? r : worst;
	}
	ob_batch_done(&ids.batch);
	ob_jout_done(&ids.json);
	return worst;
}
