/* SPDX-License-Identifier: MIT */
/* What the commands about parked messages share: finding them, showing them, deciding. */
#include "base/count.h"
#include "base/when.h"
#include "cli/consumers/consumers.h"
#include "cli/operate/decide.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "consume/setup.h"

#include <inttypes.h>
#include <stdio.h>

enum { ARENA_MAX = 1 << 30, SHOWN = 20, LINE_BYTES = 8192 };

int ob_dlq_open(struct ob_dlq *dlq, struct ob_cli *cli, const char *consumer)
{
	struct ob_config *config = NULL;
	int code;

	*dlq = (struct ob_dlq){ .consumer = consumer, .arena = OB_ARENA_INIT(ARENA_MAX) };
	if (!cli->store) {
		code = ob_cli_load_config(cli, &config);
		if (code)
			return code;
		const struct ob_config_consumer *conf = ob_consume_find(config, consumer);
		/* One that is no longer in the configuration may still have parked messages. */
		if (conf && config->store_count > 1) {
			for (size_t i = 0; i < config->store_count; i++) {
				if (&config->stores[i] == conf->store)
					dlq->session.entry = &config->stores[i];
			}
		}
		if (dlq->session.entry) {
			struct ob_err err = OB_ERR_INIT;

			dlq->session.config = config;
			if (ob_store_connect(&dlq->session.entry->conf, &dlq->session.store, &err) <
			    0)
				return ob_cli_fail("%s", err.msg);
			return OB_EXIT_OK;
		}
		ob_config_free(config);
	}
	return ob_session_connect(&dlq->session, cli);
}

void ob_dlq_done(struct ob_dlq *dlq)
{
	ob_arena_done(&dlq->arena);
	ob_session_done(&dlq->session);
}

/* -1: any; -2: there is no such state. */
static int state_of(const char *name)
{
	if (!name)
		return -1;
	for (int i = 0; i <= OB_PARKED_LETTER; i++) {
		if (strcmp(ob_parked_state_name((enum ob_parked_state)i), name) == 0)
			return i;
	}
	return -2;
}

int ob_dlq_select(struct ob_dlq *dlq, const char *id, const struct ob_dlq_args *args,
		  uint32_t limit)
{
	struct ob_err err = OB_ERR_INIT;
	const struct ob_parked_filter filter = { .consumer = dlq->consumer,
						 .id = id,
						 .queue = args->key,
						 .error = args->error,
						 .state = state_of(args->state),
						 .limit = limit };

	if (filter.state == -2)
		return ob_cli_fail("no state '%s': failed, waiting, dead or letter", args->state);
	if (ob_parked_list(dlq->session.store, &filter, &dlq->arena, &dlq->rows, &dlq->count,
			   &err) < 0)
		return ob_cli_fail("%s", err.msg);
	return OB_EXIT_OK;
}

void ob_dlq_add_json(struct ob_jout *j, const struct ob_parked *row, bool whole)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "consumer", row->consumer);
	ob_jout_text(j, "id", row->id);
	ob_jout_text(j, "key", row->queue);
	ob_jout_text(j, "event_type", row->event_type);
	ob_jout_text(j, "state", ob_str(ob_parked_state_name(row->state)));
	ob_jout_int(j, "attempts", row->attempts);
	ob_jout_when(j, "since", row->since_us);
	ob_jout_when(j, "due", row->due_us);
	ob_jout_text(j, "place", row->place);
	ob_jout_text(j, "reason", row->reason);
	if (whole && row->id.p)
		ob_jout_raw(j, "message", row->message);
	else if (whole)
		ob_jout_text(j, "entry", row->message);
	ob_jout_end(j, '}');
}

void ob_dlq_print_rows(const struct ob_parked *rows, size_t count)
{
	static const struct ob_grid_column columns[] = {
		{ "CONSUMER", OB_GRID_SHRINK },
		{ "ID", 0 },
		{ "KEY", OB_GRID_SHRINK },
		{ "TYPE", OB_GRID_SHRINK },
		{ "STATE", 0 },
		{ "ATTEMPTS", OB_GRID_RIGHT },
		{ "SINCE", 0 },
		{ "REASON", OB_GRID_SHRINK },
	};
	struct ob_grid grid;
	char since[OB_WHEN_SIZE];

	ob_grid_init(&grid, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < count; i++) {
		const struct ob_parked *row = &rows[i];

		ob_when_iso(row->since_us, since);
		ob_grid_cell(&grid, row->consumer);
		ob_grid_cell(&grid, row->id.p ? row->id : row->place);
		ob_grid_cell(&grid, row->queue);
		ob_grid_cell(&grid, row->event_type);
		ob_grid_cell(&grid, ob_str(ob_parked_state_name(row->state)));
		ob_grid_int(&grid, row->attempts);
		ob_grid_cell(&grid, ob_str(since));
		ob_grid_cell(&grid, row->reason);
	}
	ob_grid_print(&grid, ob_terminal_width(), stdout);
	ob_grid_done(&grid);
}

const struct ob_cmd_opt ob_dlq_filter_options[] = {
	{
		.name = "key",
		.arg = "KEY",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_dlq_args, key),
		.help = "Messages of this key.",
	},
	{
		.name = "state",
		.arg = "STATE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_dlq_args, state),
		.help = "failed (comes again), waiting (behind one of its key), dead (holds its "
			"key) "
			"or letter (dead, holds nothing).",
	},
	{
		.name = "error",
		.arg = "TEXT",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_dlq_args, error),
		.help = "Messages whose last error contains this.",
	},
	{
		.name = "all",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, all),
		.help = "All that the verb can work on.",
	},
	{
		.name = "dry-run",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, dry_run),
		.help = "Say which it would be, and change nothing.",
	},
	{
		.name = "yes",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, yes),
		.help = "Do not ask.",
	},
	OB_REASON_OPTION(struct ob_dlq_args, reason),
	OB_CMD_OPT_END,
};

/* ---- one ------------------------------------------------------------- */

int ob_dlq_open_one(struct ob_dlq *dlq, struct ob_cli *cli)
{
	static const struct ob_dlq_args any;
	int code = ob_dlq_open(dlq, cli, cli->operands[0]);

	if (!code)
		code = ob_dlq_select(dlq, cli->operands[1], &any, 1);
	if (!code && dlq->count == 0)
		code = ob_cli_fail(
			"consumer %s has no parked message %s: it was handled, or it has "
			"not come yet",
			cli->operands[0], cli->operands[1]);
	return code;
}

/* ---- verbs ----------------------------------------------------------- */

/* One run of a verb. */
struct deciding {
	const struct ob_cli *cli;
	const struct ob_dlq_args *args;
	const struct ob_dlq_verb *verb;
	struct ob_parked_ask ask;
	struct ob_parked_plan plan;
	struct ob_buf scope;
	struct ob_store *store;
};

/* "retry 3 messages of consumer billing (state dead)" */
static void add_sentence(const struct deciding *d, const char *verb, uint64_t count,
			 struct ob_buf *out)
{
	ob_buf_addf(out, "%s ", verb);
	ob_count_add(out, count, d->verb->thing);
	ob_buf_addf(out, " of consumer %s (%s)", d->ask.consumer, ob_buf_str(&d->scope));
}

static int dry_run_json(const struct deciding *d)
{
	struct ob_jout j = OB_JOUT_INIT;
	int code = OB_EXIT_OK;

	for (size_t i = 0; i < d->plan.count && !code; i++) {
		ob_dlq_add_json(&j, &d->plan.rows[i], false);
		code = ob_jout_print(&j);
	}
	ob_jout_done(&j);
	return code;
}

static int dry_run(const struct deciding *d)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	size_t shown = d->plan.count < SHOWN ? d->plan.count : SHOWN;

	if (d->cli->json)
		return dry_run_json(d);
	if (shown)
		ob_dlq_print_rows(d->plan.rows, shown);
	if (d->plan.count > shown)
		printf("and %zu more\n", d->plan.count - shown);
	ob_buf_adds(&line, "would ");
	add_sentence(d, d->verb->name, d->plan.count, &line);
	ob_para_print(stdout, ob_buf_view(&line), 0);
	ob_buf_done(&line);
	return OB_EXIT_OK;
}

static int print_done(const struct deciding *d, uint64_t changed, uint64_t refused)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	struct ob_jout j = OB_JOUT_INIT;
	int code = OB_EXIT_OK;

	if (d->cli->json) {
		ob_jout_begin(&j, NULL, '{');
		ob_jout_int(&j, "changed", (int64_t)changed);
		ob_jout_int(&j, "refused", (int64_t)refused);
		ob_jout_end(&j, '}');
		code = ob_jout_print(&j);
		ob_jout_done(&j);
		return code;
	}
	ob_buf_addf(&line, "%s ", d->verb->did);
	ob_count_add(&line, changed, d->verb->thing);
	printf("%s\n", ob_buf_str(&line));
	if (refused)
		printf("%" PRIu64 " %s behind another one of %s key, or gone\n", refused,
		       refused == 1 ? "is" : "are", refused == 1 ? "its" : "their");
	ob_buf_done(&line);
	return code;
}

static int change(struct deciding *d)
{
	struct ob_cli_decision decision;
	struct ob_err err = OB_ERR_INIT;
	uint64_t changed = 0, refused = 0;
	char verb[32];

	(void)snprintf(verb, sizeof(verb), "dlq %s", d->verb->name);
	ob_cli_decide(&decision, verb, d->ask.consumer, ob_buf_str(&d->scope), d->args->reason);
	int r = ob_parked_apply(&d->plan, d->store, &d->ask, &changed, &refused, &err);
	if (changed > 0)
		ob_cli_decided(&decision, d->store, changed);
	return r < 0 ? ob_cli_fail("%s", err.msg) : print_done(d, changed, refused);
}

/* Bulk is counted and asked about; what was counted is what is changed. */
static int decide(struct deciding *d)
{
	struct ob_buf line = OB_BUF_INIT(LINE_BYTES);
	int code = OB_EXIT_OK;

	if (d->args->dry_run)
		return dry_run(d);
	if (d->ask.id_count == 0 && d->plan.count > 0 && !d->args->yes) {
		add_sentence(d, d->verb->name, d->plan.count, &line);
		code = ob_cli_confirm(d->cli, ob_buf_str(&line));
	}
	ob_buf_done(&line);
	return code ? code : change(d);
}

int ob_dlq_decide(struct ob_cli *cli, const struct ob_dlq_args *args,
		  const struct ob_dlq_verb *verb)
{
	struct deciding d = { .cli = cli,
			      .args = args,
			      .verb = verb,
			      .ask = { .verb = verb->verb,
				       .consumer = cli->operands[0],
				       .ids = cli->operands + 1,
				       .id_count = cli->operand_count - 1,
				       .key = args->key,
				       .error = args->error,
				       .state = state_of(args->state),
				       .age_ms = args->age_ms },
			      .scope = OB_BUF_INIT(LINE_BYTES) };
	struct ob_err err = OB_ERR_INIT;
	struct ob_dlq dlq;

	if (d.ask.state == -2)
		return ob_cli_fail("no state '%s': failed, waiting, dead or letter", args->state);
	int code = ob_dlq_open(&dlq, cli, cli->operands[0]);
	d.store = dlq.session.store;
	ob_parked_scope(&d.ask, &d.scope);
	if (!code && ob_parked_collect(&d.plan, d.store, &d.ask, &err) < 0)
		code = ob_cli_fail("%s", err.msg);
	if (!code)
		code = decide(&d);
	ob_parked_plan_done(&d.plan);
	ob_buf_done(&d.scope);
	ob_dlq_done(&dlq);
	return code;
}

int ob_dlq_operate(struct ob_cli *cli, const struct ob_dlq_args *args,
		   const struct ob_dlq_verb *verb)
{
	bool by_id = cli->operand_count > 1, filtered = args->key || args->state || args->error;

	if (by_id && (filtered || args->all))
		return ob_cli_usage(cli, "give ids, or a filter, not both");
	if (!by_id && !filtered && !args->all)
		return ob_cli_usage(cli, "which messages? Give ids, a filter, or --all");
	return ob_dlq_decide(cli, args, verb);
}
