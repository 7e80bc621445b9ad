/* SPDX-License-Identifier: MIT */
/* Operator verbs on a filter: count, ask, and never change more than was asked about. */
#include "base/count.h"
#include "base/when.h"
#include "cli/operate/operate.h"
#include "cli/out/grid.h"
#include "cli/out/para.h"

#include <inttypes.h>
#include <stdio.h>

/* PAGE: rows held at once, since payloads may be large; SHOWN: enough to recognise a mistake. */
enum { PAGE = 100, SHOWN = 20, LINE_MAX_BYTES = 8192, ARENA_MAX = 64 << 20 };

struct bulk {
	const struct ob_operate_task *task;
	struct ob_filter filter;
	struct ob_store *store;
	struct ob_buf scope; /* "state failed or dead, type order" */
	uint64_t count;
	struct ob_grid table; /* of a dry run */
	struct ob_jout json;
};

static void add_scope(struct ob_buf *out, const struct ob_filter *f)
{
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "key", f->key },
		{ "type", f->aggregate_type },
		{ "aggregate", f->aggregate_id },
		{ "event", f->event_type },
		{ "reader", f->reader },
	};

	ob_buf_adds(out, "state ");
	ob_views_text(f->views, "or", out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].value)
			ob_buf_addf(out, ", %s %s", rows[i].name, rows[i].value);
	}
}

/* ---- counting -------------------------------------------------------- */

/* Filters that the statistics know: no row is read. */
static int count_by_stats(struct bulk *b, struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_stats *stats;
	size_t count = 0;
	int64_t now_us;
	int r = ob_store_stats(b->store, b->filter.reader, 0, &arena, &stats, &count, &now_us, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		for (int view = 0; view < OB_VIEW_COUNT; view++) {
			if (b->filter.views & (1U << view))
				b->count += stats[i].count[view];
		}
	}
	ob_arena_done(&arena);
	return r;
}

/* What visit() makes of a row; non-zero ends the walk. */
typedef int visit_fn(struct bulk *b, const struct ob_message *m, int64_t now_us);

static int walk(struct bulk *b, visit_fn *visit, struct ob_err *err)
{
	struct ob_filter page = b->filter;
	struct ob_batch batch;
	int64_t now_us = 0;
	int r;

	page.limit = PAGE;
	ob_batch_init(&batch);
	do {
		r = ob_store_list(b->store, &page, &batch, &now_us, err);
		for (uint32_t i = 0; r == 0 && i < batch.count; i++) {
			page.after_seq = batch.messages[i].seq;
			r = visit(b, &batch.messages[i], now_us);
		}
	} while (r == 0 && batch.count == PAGE && !ferror(stdout));
	ob_batch_done(&batch);
	return r < 0 ? r : 0;
}

static int visit_count(struct bulk *b, const struct ob_message *m, int64_t now_us)
{
	(void)now_us;
	b->count += ob_verb_allows(b->task->verb, m);
	return 0;
}

static int count_matches(struct bulk *b)
{
	const struct ob_filter *f = &b->filter;
	const unsigned many = 1U << OB_VIEW_PENDING | 1U << OB_VIEW_DELAYED | 1U << OB_VIEW_PARKED;
	/*
	 * Failed and dead messages are few, and the statistics would count what is pending too. Nor
	 * do they tell a dead message that holds its key from another.
	 */
	bool rows = f->key || f->aggregate_type || f->aggregate_id || f->event_type ||
		    !(f->views & many) || b->task->verb == OB_VERB_SKIP;
	struct ob_err err = OB_ERR_INIT;

	if ((rows ? walk(b, visit_count, &err) : count_by_stats(b, &err)) < 0)
		return ob_cli_fail("%s", err.msg);
	return OB_EXIT_OK;
}

/* ---- showing --------------------------------------------------------- */

static int visit_json(struct bulk *b, const struct ob_message *m, int64_t now_us)
{
	(void)now_us;
	if (!ob_verb_allows(b->task->verb, m))
		return 0;
	ob_operate_json(&b->json, b->task, b->filter.reader, m, ob_view_name(m->view), NULL);
	return ob_jout_print(&b->json);
}

static int visit_row(struct bulk *b, const struct ob_message *m, int64_t now_us)
{
	char id[OB_UUID_TEXT_SIZE], age[OB_WHEN_SIZE];

	if (!ob_verb_allows(b->task->verb, m))
		return 0;
	ob_uuid_format(&m->id, id);
	ob_when_age(now_us - m->created_at_us, age);
	ob_grid_cell(&b->table, ob_str(id));
	ob_grid_cell(&b->table, ob_str(ob_view_name(m->view)));
	ob_grid_cell(&b->table, ob_str(age));
	ob_grid_cell(&b->table, m->key);
	ob_grid_cell(&b->table, m->event_type);
	return b->table.cell_count / b->table.column_count >= SHOWN;
}

static void say(const struct bulk *b, const char *before, bool did, const char *after, FILE *out)
{
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);

	ob_buf_adds(&line, before);
	ob_buf_addf(&line, "%s ", ob_operate_phrase(b->task, did));
	ob_count_add(&line, b->count, "message");
	ob_buf_addf(&line, " (%s)%s", ob_buf_str(&b->scope), after);
	ob_para_print(out, ob_buf_view(&line), 0);
	ob_buf_done(&line);
}

static int dry_run(struct bulk *b)
{
	static const struct ob_grid_column columns[] = {
		{ "ID", 0 },
		{ "STATE", 0 },
		{ "AGE", OB_GRID_RIGHT },
		{ "KEY", OB_GRID_SHRINK },
		{ "EVENT", OB_GRID_SHRINK },
	};
	struct ob_err err = OB_ERR_INIT;
	bool json = b->task->cli->json;
	int r = OB_EXIT_OK;

	ob_grid_init(&b->table, columns, sizeof(columns) / sizeof(columns[0]));
	if (walk(b, json ? visit_json : visit_row, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r && !json) {
		ob_grid_print(&b->table, ob_terminal_width(), stdout);
		if (b->count > SHOWN)
			printf("and %" PRIu64 " more\n", b->count - SHOWN);
		say(b, "would ", false, "", stdout);
	}
	ob_grid_done(&b->table);
	return r;
}

/* ---- doing ----------------------------------------------------------- */

static int confirm(const struct bulk *b)
{
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);

	ob_buf_addf(&line, "%s ", ob_operate_phrase(b->task, false));
	ob_count_add(&line, b->count, "message");
	ob_buf_addf(&line, " (%s)", ob_buf_str(&b->scope));
	int r = ob_cli_confirm(b->task->cli, ob_buf_str(&line));
	ob_buf_done(&line);
	return r;
}

static int print_done(struct bulk *b, uint64_t changed)
{
	const uint64_t counted = b->count;
	char after[64] = "";

	if (b->task->cli->json) {
		ob_jout_begin(&b->json, NULL, '{');
		ob_jout_text(&b->json, "verb", ob_str(ob_verb_rules[b->task->verb].name));
		ob_jout_int(&b->json, "matched", (int64_t)counted);
		ob_jout_int(&b->json, "changed", (int64_t)changed);
		ob_jout_end(&b->json, '}');
		return ob_jout_print(&b->json);
	}
	b->count = changed;
	if (changed < counted)
		(void)snprintf(after, sizeof(after), "; %" PRIu64 " changed state meanwhile",
			       counted - changed);
	say(b, "", true, after, stdout);
	return OB_EXIT_OK;
}

static int change(struct bulk *b)
{
	struct ob_operate operate = { .verb = b->task->verb, .filter = b->filter };
	uint64_t changed = 0, refused = 0;
	struct ob_err err = OB_ERR_INIT;
	struct ob_cli_decision decision;

	ob_cli_decide(&decision, ob_verb_rules[b->task->verb].name, b->filter.reader,
		      ob_buf_str(&b->scope), b->task->args->reason);
	operate.audit = &decision.d.row;
	/* What came after the question was asked is not part of the answer. */
	operate.filter.limit = b->count < UINT32_MAX ? (uint32_t)b->count : UINT32_MAX;
	if (ob_store_operate(b->store, &operate, &changed, &refused, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (changed > 0)
		ob_cli_decided_with(&decision, changed);
	return print_done(b, changed);
}

static int decide(struct bulk *b)
{
	const struct ob_operate_args *args = b->task->args;
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);
	int r = count_matches(b);

	if (!r && b->count == 0 && !b->task->cli->json) {
		ob_buf_addf(&line, "no messages (%s)", ob_buf_str(&b->scope));
		ob_para_print(stdout, ob_buf_view(&line), 0);
	} else if (!r && args->dry_run) {
		r = dry_run(b);
	} else if (!r && b->count == 0) {
		r = print_done(b, 0);
	} else if (!r) {
		if (!args->yes && (b->count > 1 || args->all))
			r = confirm(b);
		if (!r)
			r = change(b);
	}
	ob_buf_done(&line);
	return r;
}

int ob_operate_bulk(const struct ob_operate_task *task, const struct ob_filter *filter,
		    struct ob_store *store)
{
	struct bulk b = { .task = task,
			  .filter = *filter,
			  .store = store,
			  .scope = OB_BUF_INIT(LINE_MAX_BYTES),
			  .json = OB_JOUT_INIT };

	add_scope(&b.scope, filter);
	int r = decide(&b);
	ob_jout_done(&b.json);
	ob_buf_done(&b.scope);
	return r;
}
