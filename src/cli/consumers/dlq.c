/* SPDX-License-Identifier: MIT */
/* What the commands about parked messages share: finding them, showing them, deciding. */
#include "base/count.h"
#include "base/when.h"
#include "cli/consumers/consumers.h"
#include "cli/out/jprint.h"
#include "consume/setup.h"

#include <inttypes.h>
#include <stdio.h>

enum { ARENA_MAX = 1 << 30, OPERATE_MAX = 10000 };

static const char *const state_names[] = { "failed", "waiting", "dead", "letter" };

const char *ob_dlq_state_name(enum ob_parked_state state)
{
	return state <= OB_PARKED_LETTER ? state_names[state] : "unknown";
}

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
		if (strcmp(state_names[i], name) == 0)
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
	ob_jout_text(j, "state", ob_str(ob_dlq_state_name(row->state)));
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
		.help = "Say how many it would be, and change nothing.",
	},
	{
		.name = "yes",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_dlq_args, yes),
		.help = "Do not ask.",
	},
	OB_CMD_OPT_END,
};

/* ---- verbs ----------------------------------------------------------- */

/* Which of the rows a verb without --state is about. */
static bool is_meant(enum ob_parked_verb verb, const struct ob_parked *row, bool by_id)
{
	if (verb == OB_PARKED_RETRY)
		return row->state != OB_PARKED_WAITING;
	return by_id || row->state != OB_PARKED_WAITING || verb == OB_PARKED_DISCARD;
}

static size_t keep_meant(struct ob_parked *rows, size_t count, enum ob_parked_verb verb, bool by_id)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (is_meant(verb, &rows[i], by_id))
			rows[kept++] = rows[i];
	}
	return kept;
}

static int apply(const struct ob_cli *cli, struct ob_dlq *dlq, enum ob_parked_verb verb,
		 const char *did)
{
	struct ob_err err = OB_ERR_INIT;
	uint64_t changed = 0, refused = 0;

	if (ob_parked_operate(dlq->session.store, dlq->consumer, verb, dlq->rows, dlq->count,
			      &changed, &refused, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (cli->json) {
		struct ob_jout j = OB_JOUT_INIT;

		ob_jout_begin(&j, NULL, '{');
		ob_jout_int(&j, "changed", (int64_t)changed);
		ob_jout_int(&j, "refused", (int64_t)refused);
		ob_jout_end(&j, '}');
		int code = ob_jout_print(&j);
		ob_jout_done(&j);
		return code;
	}
	printf("%s %" PRIu64 " message%s\n", did, changed, changed == 1 ? "" : "s");
	if (refused)
		printf("%" PRIu64 " %s behind another one of %s key, or gone\n", refused,
		       refused == 1 ? "is" : "are", refused == 1 ? "its" : "their");
	return OB_EXIT_OK;
}

/* Every id must be there. */
static int select_ids(struct ob_dlq *dlq, const struct ob_cli *cli)
{
	static const struct ob_dlq_args any;
	struct ob_parked *rows = ob_arena_alloc(&dlq->arena, cli->operand_count * sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return ob_cli_fail("out of memory");
	for (size_t i = 1; i < cli->operand_count; i++) {
		int code = ob_dlq_select(dlq, cli->operands[i], &any, 1);

		if (code)
			return code;
		if (dlq->count == 0)
			return ob_cli_fail("consumer %s has no parked message %s", dlq->consumer,
					   cli->operands[i]);
		rows[count++] = dlq->rows[0];
	}
	dlq->rows = rows;
	dlq->count = count;
	return OB_EXIT_OK;
}

static int confirm(const struct ob_cli *cli, const struct ob_dlq *dlq, enum ob_parked_verb verb)
{
	static const char *const asks[] = { "retry", "skip", "discard" };
	char what[200];

	(void)snprintf(what, sizeof(what), "%s %zu message%s of consumer %.100s", asks[verb],
		       dlq->count, dlq->count == 1 ? "" : "s", dlq->consumer);
	return ob_cli_confirm(cli, what);
}

int ob_dlq_operate(struct ob_cli *cli, const struct ob_dlq_args *args, enum ob_parked_verb verb,
		   const char *did)
{
	bool by_id = cli->operand_count > 1, filtered = args->key || args->state || args->error;
	struct ob_dlq dlq;

	if (by_id && (filtered || args->all))
		return ob_cli_usage(cli, "give ids, or a filter, not both");
	if (!by_id && !filtered && !args->all)
		return ob_cli_usage(cli, "which messages? Give ids, a filter, or --all");
	int code = ob_dlq_open(&dlq, cli, cli->operands[0]);
	if (!code)
		code = by_id ? select_ids(&dlq, cli) : ob_dlq_select(&dlq, NULL, args, OPERATE_MAX);
	if (!code)
		dlq.count = keep_meant(dlq.rows, dlq.count, verb, by_id);
	if (!code && args->dry_run) {
		printf("%zu message%s\n", dlq.count, dlq.count == 1 ? "" : "s");
	} else if (!code) {
		/* Bulk is counted and asked about; what was counted is what is changed. */
		if (!by_id && dlq.count > 0 && !args->yes)
			code = confirm(cli, &dlq, verb);
		if (!code)
			code = apply(cli, &dlq, verb, did);
	}
	ob_dlq_done(&dlq);
	return code;
}
