/* SPDX-License-Identifier: MIT */
/* outbox cleanup: delete what has been out, or dead, for long enough. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/jout.h"
#include "cli/para.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 100, BATCH = 5000, BATCH_MAX = 1000000, LINE_MAX_BYTES = 4096 };

#define DAYS_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

struct cleanup_args {
	int64_t published_ms, dead_ms, batch; /* 0: not given */
	const char *target;
	bool dry_run;
};

struct cleaning {
	const struct ob_cli *cli;
	const struct cleanup_args *args;
	struct ob_store *store;
	struct ob_jout json;
};

struct totals {
	uint64_t published, dead, batches;
};

static int report(struct cleaning *c, const struct ob_cleanup *rule, const struct totals *t)
{
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);

	if (c->cli->json) {
		ob_jout_begin(&c->json, NULL, '{');
		ob_jout_text(&c->json, "target", ob_str(rule->target));
		ob_jout_int(&c->json, "published", (int64_t)t->published);
		ob_jout_int(&c->json, "dead", (int64_t)t->dead);
		ob_jout_int(&c->json, "batches", (int64_t)t->batches);
		ob_jout_bool(&c->json, "dry_run", c->args->dry_run);
		ob_jout_end(&c->json, '}');
		return ob_jout_print(&c->json);
	}
	if (rule->target)
		ob_buf_addf(&line, "%s: ", rule->target);
	ob_buf_addf(&line, "%s %" PRIu64 " published and %" PRIu64 " dead messages",
		    c->args->dry_run ? "would delete" : "deleted", t->published, t->dead);
	if (!c->args->dry_run) {
		ob_buf_adds(&line, " in ");
		ob_buf_addf(&line, "%" PRIu64 " batch%s", t->batches, t->batches == 1 ? "" : "es");
	}
	ob_para_print(stdout, ob_buf_view(&line), 0);
	ob_buf_done(&line);
	return OB_EXIT_OK;
}

/* ---- counting only --------------------------------------------------- */

static void count_row(const struct ob_cleanup *rule, const struct ob_message *m, int64_t now_us,
		      struct totals *t)
{
	bool published = m->state == OB_STATE_PUBLISHED;
	int64_t age_ms = published ? rule->published_ms : rule->dead_ms;

	if (age_ms == OB_NEVER_MS || m->state == OB_STATE_DEAD_HOLD ||
	    m->published_at_us > now_us - age_ms * 1000)
		return;
	t->published += published;
	t->dead += !published;
}

static int count(struct cleaning *c, const struct ob_cleanup *rule, struct totals *t,
		 struct ob_err *err)
{
	struct ob_filter filter = { .target = rule->target,
				    .views = 1U << OB_VIEW_PUBLISHED | 1U << OB_VIEW_DEAD,
				    .limit = PAGE };
	struct ob_batch batch;
	int64_t now_us = 0;
	int r;

	ob_batch_init(&batch);
	do {
		r = ob_store_list(c->store, &filter, &batch, &now_us, err);
		for (uint32_t i = 0; r == 0 && i < batch.count; i++) {
			filter.after_seq = batch.messages[i].seq;
			count_row(rule, &batch.messages[i], now_us, t);
		}
	} while (r == 0 && batch.count == PAGE);
	ob_batch_done(&batch);
	return r;
}

/* ---- deleting -------------------------------------------------------- */

/* Batch by batch, each its own transaction: writers get their turn in between. */
static int drain(struct cleaning *c, const struct ob_cleanup *rule, struct totals *t,
		 struct ob_err *err)
{
	uint64_t published, dead;

	do {
		published = 0;
		dead = 0;
		int r = ob_store_cleanup(c->store, rule, &published, &dead, err);
		if (r < 0)
			return r;
		t->published += published;
		t->dead += dead;
		t->batches += published + dead > 0;
	} while (published + dead >= rule->limit);
	return 0;
}

static int apply(struct cleaning *c, const struct ob_cleanup *rule)
{
	struct totals t = { 0 };
	struct ob_err err = OB_ERR_INIT;
	int r = c->args->dry_run ? count(c, rule, &t, &err) : drain(c, rule, &t, &err);

	/* What earlier batches deleted stays deleted: it is told also when a later one fails. */
	int code = r == 0 || t.batches ? report(c, rule, &t) : OB_EXIT_OK;
	return r < 0 ? ob_cli_fail("%s", err.msg) : code;
}

/* ---- what to delete -------------------------------------------------- */

static int by_options(struct cleaning *c)
{
	const struct cleanup_args *a = c->args;
	const struct ob_cleanup rule = { .target = a->target,
					 .published_ms =
						 a->published_ms ? a->published_ms : OB_NEVER_MS,
					 .dead_ms = a->dead_ms ? a->dead_ms : OB_NEVER_MS,
					 .limit = a->batch ? (uint32_t)a->batch : BATCH };

	return apply(c, &rule);
}

/* The relays of the configuration that use this store say what they keep, each for its target. */
static int by_relays(struct cleaning *c, const struct ob_session *session)
{
	const char *target = c->args->target;
	size_t found = 0;
	int r = OB_EXIT_OK;

	for (size_t i = 0; !r && i < session->config->relay_count; i++) {
		const struct ob_config_relay *relay = &session->config->relays[i];
		const struct ob_cleanup rule = {
			.target = relay->name,
			.published_ms = relay->cleanup.published_after_ms,
			.dead_ms = relay->cleanup.dead_after_ms,
			.limit = c->args->batch ? (uint32_t)c->args->batch : relay->cleanup.batch,
		};

		if (relay->store != session->entry || (target && strcmp(target, relay->name) != 0))
			continue;
		found++;
		r = apply(c, &rule);
	}
	if (!r && !found)
		return ob_cli_usage(c->cli,
				    "say what to delete, such as --published-after 7d or "
				    "--dead-after 30d: no relay of the configuration says it%s%s",
				    target ? " for target " : "", target ? target : "");
	return r;
}

static int cleanup_run(struct ob_cli *cli, const void *opts)
{
	struct cleaning c = { .cli = cli, .args = opts, .json = OB_JOUT_INIT };
	struct ob_session session;
	int r = ob_session_open(&session, cli);

	c.store = session.store;
	if (!r)
		r = c.args->published_ms || c.args->dead_ms ? by_options(&c)
							    : by_relays(&c, &session);
	ob_jout_done(&c.json);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "published-after",
		.arg = "DURATION",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct cleanup_args, published_ms),
		.min = 1,
		.max = DAYS_MAX_MS,
		.help = "Delete what was published this long ago, such as 7d.",
	},
	{
		.name = "dead-after",
		.arg = "DURATION",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct cleanup_args, dead_ms),
		.min = 1,
		.max = DAYS_MAX_MS,
		.help = "Delete what died this long ago and holds no key.",
	},
	{
		.name = "batch",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct cleanup_args, batch),
		.min = 1,
		.max = BATCH_MAX,
		.help = "Messages of one transaction; 5000 if no relay says otherwise.",
	},
	{
		.name = "target",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct cleanup_args, target),
		.help = "Only messages for this target.",
	},
	{
		.name = "dry-run",
		.letter = 'n',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct cleanup_args, dry_run),
		.help = "Only count them.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox cleanup",
	"outbox cleanup --published-after 7d --dead-after 90d",
	NULL,
};

const struct ob_cmd ob_cmd_cleanup = {
	.name = "cleanup",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "delete what has been out for long enough",
	.description =
		"Deletes published and dead messages that are old enough, in batches, until none "
		"is "
		"left. With --published-after or --dead-after it deletes what they name and "
		"nothing "
		"else. Without them it does what the cleanup section of each relay of the "
		"configuration says, for the messages of that relay.\n\n"
		"Messages that are not out yet stay, however old they are; so does a dead "
		"message that holds its key.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct cleanup_args),
	.run = cleanup_run,
};
