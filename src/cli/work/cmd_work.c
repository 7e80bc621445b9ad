/* SPDX-License-Identifier: MIT */
/* outbox work: the relays of a configuration in this process, and what is shown of them. */
#include "cli/commands.h"
#include "cli/work/work.h"
#include "operate/targets.h"

enum { FAULTS_BYTES = 1 << 20 };

static enum ob_work_mode choose_mode(const struct ob_work *w, const struct ob_work_plan *plan)
{
	bool taken = ob_work_plan_uses_stdout(plan);

	if (w->args->silent)
		return OB_WORK_SILENT;
	if (w->cli->json)
		return OB_WORK_JSON;
	if (!taken && ob_screen_possible())
		return OB_WORK_SCREEN;
	/* Messages on a terminal should not be mixed with lines about them. */
	return taken && isatty(STDERR_FILENO) ? OB_WORK_SILENT : OB_WORK_LINES;
}

/* One tick ends with a line of its own: that it took partitions is no news. */
static enum ob_log_level choose_level(const struct ob_work_args *args,
				      const struct ob_work_plan *plan)
{
	if (args->silent)
		return OB_LOG_ERROR;
	if (args->once && plan->config->log_level == OB_LOG_INFO)
		return OB_LOG_WARN;
	return plan->config->log_level;
}

/* The log goes to stderr; while the screen is in use there, its lines wait. */
static int open_log(struct ob_work *w, const struct ob_work_plan *plan)
{
	struct ob_err err = OB_ERR_INIT;

	w->log = (struct ob_log){
		.fd = STDERR_FILENO,
		.level = choose_level(w->args, plan),
		.format = plan->config->log_format,
		.clock = &ob_clock_system,
	};
	if (w->mode != OB_WORK_SCREEN || w->args->once || !isatty(STDERR_FILENO))
		return OB_EXIT_OK;
	if (ob_held_log_new(&w->held, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	w->log.hook = ob_held_log_hook;
	w->log.hook_arg = w->held;
	return OB_EXIT_OK;
}

/* Each database once; one that is away says nothing of its messages. */
static void warn_unread(const struct ob_work *w, const struct ob_work_plan *plan)
{
	for (size_t i = 0; i < plan->config->store_count; i++) {
		const struct ob_config_store *entry = &plan->config->stores[i];
		struct ob_err ignored = OB_ERR_INIT;
		struct ob_targets targets;
		struct ob_store *store;

		if (ob_store_connect(&entry->conf, &store, &ignored) < 0)
			continue;
		ob_targets_init(&targets);
		ob_targets_note_newest(&targets, store);
		for (size_t t = 0; t < targets.count; t++) {
			if (!ob_target_is_read(targets.names[t], plan->config, store))
				ob_log(&w->log, OB_LOG_WARN,
				       "no relay reads this target, its messages wait",
				       OB_KV("target", targets.names[t]),
				       OB_KV("store", entry->name));
		}
		ob_targets_done(&targets);
		ob_store_free(store);
	}
}

static int work_with(struct ob_work *w, struct ob_work_plan *plan)
{
	if (w->cli->json && !w->args->silent && ob_work_plan_uses_stdout(plan))
		return ob_cli_usage(w->cli,
				    "--json writes to standard output, and so does a sink of type "
				    "stdout: use --silent, or another sink");
	w->mode = choose_mode(w, plan);
	w->plan = plan;
	int r = open_log(w, plan);
	if (!r)
		r = ob_work_set_open(&w->set, plan, w->args->once, &w->log);
	if (!r && !w->args->silent)
		warn_unread(w, plan);
	if (!r)
		r = w->args->once ? ob_work_once(&w->set, w->cli, w->args->silent, &w->signals)
				  : ob_work_loop(w);
	ob_work_set_done(&w->set);
	return r;
}

static int work_run(struct ob_cli *cli, const void *opts)
{
	struct ob_work w = { .cli = cli, .args = opts, .signals = { .fd = -1 } };
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);
	struct ob_work_plan *plan = NULL;
	struct ob_err err = OB_ERR_INIT;

	int r = ob_work_plan_load(cli, opts, &faults, &plan);
	if (r)
		ob_work_print_faults(cli, ob_buf_view(&faults));
	ob_buf_done(&faults);
	if (!r && ob_signals_init(&w.signals, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r)
		r = work_with(&w, plan);
	ob_work_plan_unref(plan);
	ob_held_log_free(w.held);
	free(w.shown);
	free(w.fds);
	if (w.signals.fd >= 0)
		ob_signals_done(&w.signals);
	return r;
}

#define OPTION(option, value, kind, member) \
	.name = (option), .arg = (value), .type = (kind), \
	.offset = offsetof(struct ob_work_args, member)

static const struct ob_cmd_opt options[] = {
	{
		OPTION("workers", "N", OB_CMD_INT, workers),
		.min = 1,
		.max = 256,
		.help = "Threads of each relay, instead of what the configuration says.",
	},
	{
		OPTION("once", NULL, OB_CMD_FLAG, once),
		.help = "Deliver what is due now, say how much it was, and exit.",
	},
	{
		OPTION("relay", "NAME", OB_CMD_LIST, relays),
		.help = "Only this relay of the configuration; may be given several times.",
	},
	{
		OPTION("sink", "SINK", OB_CMD_TEXT, sink),
		.help = "Where to, when --store names a database by its URL: a type such as "
			"stdout, "
			"file:PATH, or a URL.",
	},
	{
		OPTION("silent", NULL, OB_CMD_FLAG, silent),
		.help = "Show and log nothing but errors.",
	},
	{
		OPTION("interval-ms", "N", OB_CMD_INT, interval_ms),
		.min = 100,
		.max = 3600000,
		.dflt = "1000",
		.help = "Time between two frames of the dashboard, or two lines of --json.",
	},
	{
		OPTION("window", "S", OB_CMD_INT, window_s),
		.min = 1,
		.max = 86400,
		.dflt = "10",
		.help = "Seconds that one line of the log sums up.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox work",
	"outbox work --once",
	"outbox work --relay mail --workers 4 --json",
	"outbox --store sqlite:shop.db work --sink stdout",
	NULL,
};

const struct ob_cmd ob_cmd_work = {
	.name = "work",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "deliver: the relays of the configuration",
	.description =
		"Moves committed messages from stores to sinks until it is stopped. Each relay has "
		"a "
		"reader of its name in the log, made at the first start, and goes on where that "
		"stands; several relays that read one target each deliver all of it. On a terminal "
		"it shows a dashboard (q ends it); else it logs a line for each window and relay. "
		"With the URL of a database in --store, --sink says where its messages go; with "
		"--config as well, the relays of that file run on that database.\n\n"
		"Relays do not depend on each other. One that cannot go on ends with an error in "
		"the log and exit code 1 at the end, and the others go on; one whose store is away "
		"at the start waits for it. With --once such a store is an error.\n\n"
		"The first SIGTERM or SIGINT ends it after what is in flight is settled and the "
		"leases are given back; a second one, at least a second later, at once. SIGHUP "
		"reads the configuration again: "
		"with a fault in it nothing changes; else relays that changed are drained and "
		"started anew, the others go on.\n\n"
		"--json prints an object for each relay and interval: time, relay, span_ms; "
		"published, failed, retries, dead, down and rate in that span; the totals "
		"published_total, failed_total, dead_total; in_flight, backlog, oldest_ms, "
		"delayed, "
		"held_keys (null while the store does not answer; counting stops at 10,000, "
		"backlog_capped says so); backoff_ms, the longest wait "
		"between two reads while there is nothing to do, else 0; breaker, partitions, "
		"workers, last_error, last_error_at.\n\n"
		"--once exits with 0 when nothing failed, also when there was nothing to do, and "
		"with 1 when a message failed or the sink or store is down.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct ob_work_args),
	.run = work_run,
};
