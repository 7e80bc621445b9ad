/* SPDX-License-Identifier: MIT */
/* outbox maintain: for cron, what relays do inside, once, for every store. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/grid.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/maintain.h"

#include <stdio.h>

enum { LINE_MAX_BYTES = 8192, NAME_BYTES = 256 };

struct maintain_args {
	bool quiet;
};

/* What is left and why, with the settings of this store. */
static int find_upkeep(struct ob_store *store, const struct ob_config_retention *retention,
		       struct ob_snapshot *snapshot, struct ob_upkeep *upkeep, struct ob_err *err)
{
	int r = ob_snapshot_take(snapshot, store, NULL, err);

	return r < 0 ? r : ob_upkeep_find(upkeep, store, snapshot, retention, err);
}

static int print_json(const struct ob_config_store *entry, const struct ob_maintained *done,
		      const struct ob_upkeep *upkeep)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "store", ob_str(entry->name));
	ob_jout_bool(&j, "busy", done->busy);
	ob_maintained_json(&j, done);
	ob_upkeep_json(&j, upkeep);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static void print_text(const struct ob_config_store *entry, const struct ob_maintained *done,
		       const struct ob_upkeep *upkeep, int64_t now_us)
{
	struct ob_buf line = OB_BUF_INIT(LINE_MAX_BYTES);

	ob_buf_addf(&line, "%s: ", entry->name);
	if (done->busy)
		ob_buf_adds(&line, "a relay is at it right now, so nothing was done here");
	else
		ob_maintained_text(done, &line);
	ob_buf_adds(&line, "; ");
	ob_upkeep_text(upkeep, now_us, &line);
	ob_para_print(stdout, ob_buf_view(&line), ob_terminal_width());
	ob_buf_done(&line);
}

static int maintain_store(const struct ob_cli *cli, const struct maintain_args *args,
			  const struct ob_config_store *entry, struct ob_store *store)
{
	const struct ob_config_retention *retention = &entry->retention;
	const struct ob_maintain maintain = { .rule = { .published_ms = retention->published_ms,
							.dead_ms = retention->dead_ms,
							.limit = retention->batch } };
	struct ob_maintained done;
	struct ob_snapshot snapshot = { 0 };
	struct ob_upkeep upkeep = { 0 };
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	ob_maintained_init(&done);
	if (ob_maintain_run(store, &maintain, &done, &err) < 0 ||
	    find_upkeep(store, retention, &snapshot, &upkeep, &err) < 0)
		r = ob_cli_fail("%s: %s", entry->name, err.msg);
	else if (cli->json)
		r = print_json(entry, &done, &upkeep);
	else if (!args->quiet)
		print_text(entry, &done, &upkeep, snapshot.now_us);
	ob_snapshot_done(&snapshot);
	ob_maintained_done(&done);
	return r;
}

/* One store that fails does not keep the others from their turn. */
static int maintain_all(const struct ob_cli *cli, const struct maintain_args *args,
			const struct ob_config *config)
{
	int worst = OB_EXIT_OK;

	for (size_t i = 0; i < config->store_count; i++) {
		const struct ob_config_store *entry = &config->stores[i];
		struct ob_store *store = NULL;
		struct ob_err err = OB_ERR_INIT;
		int r;

		if (ob_store_connect(&entry->conf, &store, &err) < 0 ||
		    ob_store_check(store, &err) < 0)
			r = ob_cli_fail("%s: %s", entry->name, err.msg);
		else
			r = maintain_store(cli, args, entry, store);
		ob_store_free(store);
		worst = r ? r : worst;
	}
	return worst;
}

static int maintain_run(struct ob_cli *cli, const void *opts)
{
	OB_CLEANUP(ob_config_freep) struct ob_config *config = NULL;
	struct ob_session session;
	int r;

	if (!cli->store) {
		r = ob_cli_load_config(cli, &config);
		return r ? r : maintain_all(cli, opts, config);
	}
	r = ob_session_open(&session, cli);
	if (!r)
		r = maintain_store(cli, opts, session.entry, session.store);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "quiet",
		.letter = 'q',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct maintain_args, quiet),
		.help = "Print nothing but what is wrong.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox maintain",
	"outbox maintain --quiet --store main",
	NULL,
};

const struct ob_cmd ob_cmd_maintain = {
	.name = "maintain",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "for cron: the maintenance that relays do inside",
	.description =
		"Does once, for every store of the configuration or the one that --store names, "
		"what a relay does every minute: it removes rows that every reader passed long "
		"enough ago, forgets dead messages that are old enough, makes table partitions "
		"ahead and drops those that are of no use any more, and prunes the journal, the "
		"throughput, and audit entries older than 90 days. For installations where "
		"`retention.every` is never or no relay runs all the time.\n\n"
		"A line for each store says what was done, what may go next, and which reader "
		"holds it back. While a relay does the same it is left to that one, which is no "
		"failure.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct maintain_args),
	.run = maintain_run,
};
