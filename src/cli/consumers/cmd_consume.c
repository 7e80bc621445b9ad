/* SPDX-License-Identifier: MIT */
/* outbox consume: run one consumer of the configuration. */
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/consumers/consumers.h"
#include "cli/consumers/status.h"
#include "cli/monitor/inside.h"
#include "cli/out/jprint.h"
#include "consume/setup.h"
#include "relay/sdnotify.h"

#include <poll.h>

enum {
	STEP_MS = 200,
	NAP_MS = 20, /* when there is nothing to wait on */
	FAULTS_BYTES = 1 << 20,
	RETRY_MS = 1000, /* between two tries to reach the database at the start */
	ONCE_MS = 10000, /* --once waits no longer than this for what is away */
};

struct consume_args {
	bool once, silent;
	int64_t interval_ms;
};

struct run {
	struct ob_cli *cli;
	const struct consume_args *args;
	const char *name;
	struct ob_config *config;
	struct ob_signals signals;
	struct ob_log log;
	struct ob_consume_setup setup;
	struct ob_consume_status status;
	struct ob_inside inside;
	bool ready;
	int64_t tick_us, drain_until_us, began_us;
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

static int no_consumer(const struct run *run, const struct ob_config *config)
{
	if (run->name)
		return ob_cli_fail("no consumer '%s' in '%s'", run->name, config->path);
	if (config->consumer_count == 0)
		return ob_cli_fail("'%s' has no consumers: see `consumers` in outbox.yaml(5)",
				   config->path);
	return ob_cli_usage(run->cli, "which consumer? The configuration has %zu",
			    config->consumer_count);
}

/* Wait for a signal, or a while. */
static void nap(struct run *run, int ms)
{
	struct pollfd fd = { .fd = run->signals.fd, .events = POLLIN };

	(void)poll(&fd, 1, ms);
	ob_signals_read(&run->signals);
}

/* ---- making it ------------------------------------------------------- */

/* The database may be away at the start: wait for it, unless --once. 0: it is there. */
static int make(struct run *run, const struct ob_config_consumer *conf)
{
	struct ob_err err = OB_ERR_INIT;
	bool told = false;

	for (;;) {
		int r = ob_consume_setup(&run->setup, conf, NULL, &run->log, &err);

		if (r == 0) {
			run->ready = true;
			return OB_EXIT_OK;
		}
		ob_consume_setup_done(&run->setup);
		if (err.kind != OB_ERR_DOWN || run->args->once)
			return ob_cli_fail("%s", err.msg);
		if (!told)
			ob_log(&run->log, OB_LOG_WARN, "the database is away, waiting for it",
			       OB_KV("consumer", conf->name), OB_KV("error", err.msg));
		told = true;
		nap(run, RETRY_MS);
		ob_consume_status_alive(&run->status);
		if (ob_inside_is_due(&run->inside))
			ob_inside_tell(&run->inside, NULL, 0, false);
		if (run->signals.stop != OB_STOP_NO)
			return OB_EXIT_OK;
	}
}

/* ---- showing it ------------------------------------------------------ */

int ob_consume_print(const char *consumer, const struct ob_consume_metrics *m)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_when(&j, "time", ob_clock_real_us(&ob_clock_system));
	ob_jout_text(&j, "consumer", ob_str(consumer));
	ob_jout_bool(&j, "owner", m->owner);
#define X(name, help) ob_jout_int(&j, #name, (int64_t)m->name);
	OB_CONSUME_COUNTER_MAP(X)
#undef X
	ob_jout_int(&j, "in_memory", (int64_t)m->in_memory);
	ob_jout_int(&j, "in_flight", (int64_t)m->in_flight);
	ob_jout_int(&j, "parked_now", (int64_t)m->parked_now);
	ob_jout_int(&j, "dead_now", (int64_t)m->dead_now);
	ob_jout_int(&j, "held_keys", (int64_t)m->held_keys);
	ob_jout_int(&j, "lag", m->lag);
	ob_jout_int(&j, "oldest_ms", m->oldest_us < 0 ? -1 : m->oldest_us / 1000);
	ob_jout_bool(&j, "source_up", m->source.up);
	ob_jout_bool(&j, "handler_up", m->handler.up);
	ob_jout_bool(&j, "store_up", m->store_up);
	ob_jout_bool(&j, "full", m->full);
	ob_jout_text(&j, "last_error", m->last_error[0] ? ob_str(m->last_error) : OB_STR_NULL);
	ob_jout_when(&j, "last_error_at", m->last_error_us);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	(void)fflush(stdout);
	return r;
}

static void show(struct run *run)
{
	const struct ob_consume_metrics *m = ob_consumer_metrics(run->setup.consumer);

	if (run->args->silent || now_us() < run->tick_us)
		return;
	run->tick_us = now_us() + run->args->interval_ms * 1000;
	if (run->cli->json)
		(void)ob_consume_print(run->setup.conf->name, m);
	else if (!run->args->once && m->owner)
		ob_log(&run->log, OB_LOG_INFO, "consuming",
		       OB_KV("consumer", run->setup.conf->name),
		       OB_KI("handled", (int64_t)m->handled),
		       OB_KI("duplicates", (int64_t)m->duplicates),
		       OB_KI("failed", (int64_t)m->failed), OB_KI("parked", (int64_t)m->parked_now),
		       OB_KI("dead", (int64_t)m->dead_now), OB_KI("lag", m->lag));
}

/* The service manager, a terminal, and the monitor of this process. */
static void tell(struct run *run)
{
	bool stopping = run->signals.stop != OB_STOP_NO;

	ob_consume_status_tick(&run->status, run->setup.conf->name,
			       ob_consumer_metrics(run->setup.consumer), stopping);
	if (ob_inside_is_due(&run->inside))
		ob_inside_tell(&run->inside, NULL, 0, stopping);
}

/* ---- reloading ------------------------------------------------------- */

/* With a fault in the new one nothing changes. */
static int take_new_config(struct run *run)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);
	const struct ob_config_consumer *conf = NULL;
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;
	int r = ob_config_load(run->config->path, &faults, &config, &err);

	run->signals.reload = false;
	if (r == 0)
		conf = ob_consume_find(config, run->setup.conf->name);
	if (!conf || ob_config_same_consumer(conf, run->setup.conf)) {
		ob_log(&run->log, conf ? OB_LOG_INFO : OB_LOG_ERROR,
		       conf ? "the configuration is as it was"
			    : "the new configuration is not taken",
		       OB_KV("consumer", run->setup.conf->name),
		       OB_KV("error", r < 0  ? err.msg
				      : conf ? ""
					     : "the consumer is not in it"));
		ob_config_free(config);
		ob_buf_done(&faults);
		return OB_EXIT_OK;
	}
	ob_buf_done(&faults);
	ob_log(&run->log, OB_LOG_INFO, "the consumer is started anew with a new configuration",
	       OB_KV("consumer", conf->name));
	/* What is under way comes again: it is not acknowledged. */
	ob_consume_setup_done(&run->setup);
	ob_inside_stop(&run->inside); /* it borrows from the old configuration */
	run->ready = false;
	ob_config_free(run->config);
	run->config = config;
	ob_log_set_level(&run->log, config->log_level);
	ob_inside_start(&run->inside, config, conf->name, &run->log);
	return make(run, conf);
}

static int reload(struct run *run)
{
	(void)ob_sd_reloading();
	int code = take_new_config(run);
	(void)ob_sd_notify("READY=1");
	return code;
}

/* ---- running --------------------------------------------------------- */

/* Is a stop under way, and over? */
static bool is_stopped(struct run *run)
{
	const struct ob_consumer *c = run->setup.consumer;

	if (run->signals.stop == OB_STOP_NO)
		return false;
	if (run->signals.stop == OB_STOP_NOW)
		return true;
	if (!run->drain_until_us) {
		(void)ob_sd_notify("STOPPING=1");
		ob_consumer_drain(run->setup.consumer);
		run->drain_until_us = now_us() + run->setup.conf->shutdown_timeout_ms * 1000;
	}
	return ob_consumer_is_drained(c) || now_us() >= run->drain_until_us;
}

/* --once: all that is there is done, or something is away. */
static bool is_finished(const struct run *run)
{
	const struct ob_consume_metrics *m = ob_consumer_metrics(run->setup.consumer);

	if (!run->args->once)
		return false;
	return ob_consumer_is_idle(run->setup.consumer) ||
	       (now_us() - run->began_us > (int64_t)ONCE_MS * 1000 &&
		(!m->owner || !m->source.up || !m->store_up));
}

static int conclude(const struct run *run)
{
	const struct ob_consume_metrics *m = ob_consumer_metrics(run->setup.consumer);

	if (run->cli->json)
		return ob_consume_print(run->setup.conf->name, m);
	if (!run->args->once || run->args->silent)
		return OB_EXIT_OK;
	printf("%llu handled, %llu duplicates, %llu failed, %llu parked\n",
	       (unsigned long long)m->handled, (unsigned long long)m->duplicates,
	       (unsigned long long)m->failed, (unsigned long long)m->parked_now);
	return OB_EXIT_OK;
}

static int loop(struct run *run)
{
	struct ob_err err = OB_ERR_INIT;

	run->began_us = now_us();
	ob_consume_status_begin(&run->status,
				!run->args->once && !run->args->silent && !run->cli->json);
	while (run->ready && !is_stopped(run)) {
		int64_t began = now_us();
		int r = ob_consumer_step(run->setup.consumer, STEP_MS, &err);

		if (r < 0)
			return ob_cli_fail("consumer %s: %s", run->setup.conf->name, err.msg);
		ob_signals_read(&run->signals);
		/* It had nothing to wait on: no lease, or something is away. */
		if (r == 0 && now_us() - began < (int64_t)NAP_MS * 1000)
			nap(run, NAP_MS);
		if (run->signals.reload && reload(run) != OB_EXIT_OK)
			return OB_EXIT_FAILURE;
		if (!run->ready)
			break;
		show(run);
		tell(run);
		if (is_finished(run))
			break;
	}
	ob_consume_status_end(&run->status);
	if (!run->ready)
		return OB_EXIT_OK;
	int code = conclude(run);
	const struct ob_consume_metrics *m = ob_consumer_metrics(run->setup.consumer);
	if (run->args->once && !ob_consumer_is_idle(run->setup.consumer) &&
	    run->signals.stop == OB_STOP_NO)
		return ob_cli_fail("consumer %s: %s", run->setup.conf->name,
				   m->last_error[0] ? m->last_error : "another process has it");
	return run->args->once && m->failed ? OB_EXIT_FAILURE : code;
}

static int consume_run(struct ob_cli *cli, const void *args)
{
	struct run run = { .cli = cli, .args = args, .signals = { .fd = -1 } };
	struct ob_err err = OB_ERR_INIT;

	run.name = cli->operand_count ? cli->operands[0] : NULL;
	int code = ob_cli_load_config(cli, &run.config);
	const struct ob_config_consumer *conf = code ? NULL : ob_consume_find(run.config, run.name);
	if (!code && !conf)
		code = no_consumer(&run, run.config);
	if (!code && ob_signals_init(&run.signals, &err) < 0)
		code = ob_cli_fail("%s", err.msg);
	if (!code) {
		run.log = (struct ob_log){ .fd = STDERR_FILENO,
					   .level = run.args->silent ? OB_LOG_ERROR
						    : run.args->once && run.config->log_level ==
										OB_LOG_INFO
							    ? OB_LOG_WARN
							    : run.config->log_level,
					   .format = run.config->log_format,
					   .clock = &ob_clock_system };
		if (!run.args->once)
			ob_inside_start(&run.inside, run.config, conf->name, &run.log);
		code = make(&run, conf);
	}
	if (!code && run.ready)
		code = loop(&run);
	if (run.ready)
		ob_consume_setup_done(&run.setup);
	ob_inside_stop(&run.inside);
	ob_config_free(run.config);
	if (run.signals.fd >= 0)
		ob_signals_done(&run.signals);
	return code;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "once",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct consume_args, once),
		.help = "Handle what is there now, say how much it was, and exit.",
	},
	{
		.name = "silent",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct consume_args, silent),
		.help = "Show and log nothing but errors.",
	},
	{
		.name = "interval-ms",
		.arg = "N",
		.type = OB_CMD_INT,
		.offset = offsetof(struct consume_args, interval_ms),
		.min = 100,
		.max = 3600000,
		.dflt = "10000",
		.help = "Time between two lines of the log, or of --json.",
	},
	OB_CMD_OPT_END,
};

static const struct ob_cmd_operand operands[] = {
	{ .name = "NAME", .optional = true },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox consume billing",
	"outbox consume billing --once",
	"outbox consume billing --json --interval-ms 1000",
	NULL,
};

const struct ob_cmd ob_cmd_consume = {
	.name = "consume",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_CONFIG | OB_CMD_JSON,
	.summary = "handle messages of a source, each counted once",
	.description =
		"Runs a consumer of the configuration until it is stopped: it reads a source, "
		"hands "
		"each message to the handler, and acknowledges it after the handler's work, or a "
		"parked copy of the message, is committed in the consumer's own database. Messages "
		"of one key are handled in order. One that fails is parked in that database with "
		"everything after it that has its key, and comes again when it is due; other keys "
		"go on. `outbox dlq` shows what is parked, and decides.\n\n"
		"With `ordering: key` one process at a time consumes; others of the same name "
		"stand "
		"by and take over when it ends or falls silent. The name may be left out when "
		"there "
		"is one consumer.\n\n"
		"The first SIGTERM or SIGINT ends it after the handler has finished what it has; a "
		"second one, at least a second later, at once. SIGHUP reads the configuration "
		"again: "
		"with a fault in it nothing changes.\n\n"
		"--json prints an object for each interval: time, consumer, owner; the counters "
		"since the start read, handled, duplicates, failed, parked, retried, dead, "
		"unreadable, lost, down, acked, letters, takeovers, errors; and in_memory, "
		"in_flight, parked_now, dead_now, held_keys, lag, oldest_ms, source_up, "
		"handler_up, "
		"store_up, full, last_error, last_error_at. -1 is unknown.\n\n"
		"--once exits with 1 when a message failed, or when the source, the database or "
		"the "
		"lease could not be had within ten seconds.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct consume_args),
	.run = consume_run,
};
