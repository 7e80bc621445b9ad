/* SPDX-License-Identifier: MIT */
/* outbox work: the relays of a configuration in this process, and what is shown of them. */
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/work.h"
#include "relay/sdnotify.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum {
	FAULTS_BYTES = 1 << 20,
	SECOND_US = 1000000,
	FDS_FIXED = 4, /* signals, sampler, the screen's two */
	STALL_US = 60 * SECOND_US,
};

enum mode { MODE_SILENT, MODE_LINES, MODE_JSON, MODE_SCREEN };

struct work {
	const struct ob_cli *cli;
	const struct ob_work_args *args;
	enum mode mode;
	struct ob_log log;
	struct ob_held_log *held;
	struct ob_signals signals;
	enum ob_stop stopping; /* as far as it was acted upon */
	struct ob_work_set set;
	struct ob_sampler *sampler;
	struct ob_screen screen;
	struct ob_dash_relay *shown;
	size_t shown_count;
	struct pollfd *fds;                   /* of one turn */
	int64_t start_us, period_us, tick_us; /* boot clock: start; between ticks; the next tick */
	int64_t reported_us;                  /* the last line */
	bool asked;                           /* a line is due when the sampler answers */
	int64_t watchdog_us;                  /* between two signs of life; 0: nobody asks */
	int64_t alive_us;                     /* the next sign of life */
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- how to show it ------------------------------------------------------- */

static bool writes_stdout(const struct ob_work_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (ob_work_uses_stdout(plan->relays[i]))
			return true;
	}
	return false;
}

static enum mode choose_mode(const struct work *w, const struct ob_work_plan *plan)
{
	bool taken = writes_stdout(plan);

	if (w->args->silent)
		return MODE_SILENT;
	if (w->cli->json)
		return MODE_JSON;
	if (!taken && ob_screen_possible())
		return MODE_SCREEN;
	/* Messages on a terminal should not be mixed with lines about them. */
	return taken && isatty(STDERR_FILENO) ? MODE_SILENT : MODE_LINES;
}

static int64_t choose_period_us(const struct work *w)
{
	if (w->mode == MODE_LINES)
		return w->args->window_s * SECOND_US;
	return w->args->interval_ms * 1000;
}

/* ---- the sampler ------------------------------------------------------------ */

/* It borrows from the relays: gone before any of them is, made anew when they have changed. */
static void drop_sampler(struct work *w)
{
	ob_sampler_free(w->sampler);
	w->sampler = NULL;
}

static void make_sampler(struct work *w)
{
	struct ob_err err = OB_ERR_INIT;
	size_t count = w->set.count;

	if (w->mode == MODE_SILENT || count == 0)
		return;
	struct ob_sample_job *jobs = calloc(count, sizeof(*jobs));
	for (size_t i = 0; jobs && i < count; i++) {
		const struct ob_work_relay *relay = &w->set.relays[i];

		jobs[i] = (struct ob_sample_job){
			.store = &relay->conf->store->conf,
			.target = relay->conf->name,
			.own = relay->own,
			.own_count = ob_relay_workers(relay->relay),
		};
	}
	if (jobs && ob_sampler_new(jobs, count, &w->sampler, &err) == 0)
		ob_sampler_ask(w->sampler);
	else
		ob_log(&w->log, OB_LOG_WARN, "going on without backlog and oldest age",
		       OB_KV("error", err.msg));
	free(jobs);
}

static void read_sample(struct work *w, size_t index, struct ob_sample *ret)
{
	if (w->sampler)
		ob_sampler_read(w->sampler, index, ret);
	else
		*ret = (struct ob_sample){ 0 };
}

/* ---- the screen --------------------------------------------------------------- */

static bool make_room(struct work *w)
{
	struct ob_dash_relay *more;

	if (w->set.count <= w->shown_count)
		return true;
	more = realloc(w->shown, w->set.count * sizeof(*more));
	if (!more)
		return false;
	w->shown = more;
	w->shown_count = w->set.count;
	return true;
}

static const char *state_text(const struct work *w)
{
	if (w->stopping == OB_STOP_DRAIN)
		return "draining";
	return w->stopping == OB_STOP_NOW ? "leaving" : "";
}

/* The store knows what a worker did as of its last heartbeat; of our own we know better. */
static void refresh_own(const struct ob_work_relay *relay, struct ob_sample *sample)
{
	uint32_t count = ob_relay_workers(relay->relay);

	for (size_t i = 0; i < sample->worker_count && i < OB_DASH_WORKERS; i++) {
		struct ob_dash_worker *worker = &sample->workers[i];
		struct ob_metrics_data data;
		struct ob_uuid id;

		for (uint32_t own = 0; worker->mine && own < count; own++) {
			if (!ob_uuid_eq(&relay->own[own], &worker->id) ||
			    !ob_relay_worker_metrics(relay->relay, own, &id, &data))
				continue;
			worker->published = data.published;
			worker->failed = data.failed;
		}
	}
}

static void draw(struct work *w)
{
	struct ob_buf frame = OB_BUF_INIT(1 << 20);
	struct ob_dash dash = {
		.now_us = ob_clock_real_us(&ob_clock_system),
		.up_us = now_us() - w->start_us,
		.state = state_text(w),
	};

	if (!make_room(w))
		return;
	for (size_t i = 0; i < w->set.count; i++) {
		struct ob_work_relay *relay = &w->set.relays[i];
		struct ob_dash_relay *shown = &w->shown[i];

		*shown = (struct ob_dash_relay){
			.name = relay->conf->name,
			.store = relay->conf->store->name,
			.sink = ob_relay_sink(relay->relay),
			.leasing = relay->conf->leasing.enabled,
		};
		ob_relay_metrics(relay->relay, &shown->data);
		ob_rate_note(&relay->rate, shown->data.published, now_us());
		shown->rate = relay->rate;
		read_sample(w, i, &shown->sample);
		refresh_own(relay, &shown->sample);
	}
	dash.relays = w->shown;
	dash.relay_count = w->set.count;
	ob_dash_draw(&dash, &w->screen.style, &frame);
	if (!frame.failed)
		ob_screen_show(&w->screen, ob_buf_view(&frame));
	ob_buf_done(&frame);
}

/* ---- lines ---------------------------------------------------------------------- */

static void report(struct work *w)
{
	int64_t now = now_us(), span = now - w->reported_us;
	int r = OB_EXIT_OK;

	for (size_t i = 0; i < w->set.count && !r; i++) {
		struct ob_sample sample;

		read_sample(w, i, &sample);
		if (w->mode == MODE_JSON)
			r = ob_work_report_json(&w->set.relays[i], &sample, span,
						ob_clock_real_us(&ob_clock_system));
		else
			ob_work_report_line(&w->set.relays[i], &sample, span, &w->log);
	}
	if (r) {
		/* Messages matter more than lines about them. */
		ob_log(&w->log, OB_LOG_WARN, "standard output is gone, going on without lines",
		       OB_KV("error", "its reader has gone away"));
		w->mode = MODE_SILENT;
	}
	w->reported_us = now;
}

/* ---- signals ---------------------------------------------------------------------- */

static void stop_all(struct work *w, enum ob_stop how)
{
	if (how <= w->stopping)
		return;
	w->stopping = how;
	(void)ob_sd_notify("STOPPING=1");
	ob_log(&w->log, OB_LOG_INFO,
	       how == OB_STOP_DRAIN ? "stopping after what is in flight" : "leaving at once",
	       OB_KI("relays", (int64_t)w->set.count));
	ob_work_set_stop(&w->set, how);
}

static void log_faults(struct work *w, struct ob_str faults)
{
	while (faults.n) {
		const char *nl = memchr(faults.p, '\n', faults.n);
		size_t n = nl ? (size_t)(nl - faults.p) : faults.n;

		ob_log(&w->log, OB_LOG_ERROR, "not reloaded, going on as before",
		       OB_KS("error", ((struct ob_str){ faults.p, n })));
		n += nl ? 1 : 0;
		faults.p += n;
		faults.n -= n;
	}
}

static void go_over(struct work *w, struct ob_work_plan *plan)
{
	struct ob_err err = OB_ERR_INIT;
	enum ob_log_level level = plan->config->log_level;

	if (w->mode != MODE_SILENT && writes_stdout(plan) &&
	    (w->mode == MODE_SCREEN || w->mode == MODE_JSON)) {
		log_faults(w, OB_STR("a sink on standard output cannot be added while this process "
				     "shows something else there; restart it"));
		return;
	}
	if (ob_work_set_change(&w->set, plan, &err) < 0) {
		log_faults(w, ob_str(err.msg));
		return;
	}
	if (!w->args->silent && level != w->log.level) {
		ob_log_set_level(&w->log, level);
		ob_log(&w->log, OB_LOG_INFO, "log level changed", OB_KI("level", level));
	}
	ob_log(&w->log, OB_LOG_INFO, "reloaded", OB_KV("config", w->cli->config),
	       OB_KI("relays", (int64_t)plan->count));
}

static void reload(struct work *w)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);
	struct ob_work_plan *plan = NULL;
	char text[64];

	w->signals.reload = false;
	if (w->stopping != OB_STOP_NO)
		return;
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, now_us());
	(void)ob_sd_notify(text);
	drop_sampler(w);
	if (ob_work_plan_load(w->cli, w->args, &faults, &plan) != OB_EXIT_OK)
		log_faults(w, ob_buf_view(&faults));
	else
		go_over(w, plan);
	ob_work_plan_unref(plan);
	ob_buf_done(&faults);
	make_sampler(w);
	(void)ob_sd_notify("READY=1");
}

/* ---- the loop ------------------------------------------------------------------------ */

static void read_screen(struct work *w)
{
	unsigned events = ob_screen_read(&w->screen);

	if (events & OB_SCREEN_QUIT)
		stop_all(w, w->stopping == OB_STOP_NO ? OB_STOP_DRAIN : OB_STOP_NOW);
	if (events & (OB_SCREEN_REDRAW | OB_SCREEN_QUIT))
		draw(w);
}

/* Only while every worker still turns its loop. */
static void say_alive(struct work *w)
{
	for (size_t i = 0; i < w->set.count; i++) {
		if (ob_relay_stalled_us(w->set.relays[i].relay) > STALL_US)
			return;
	}
	(void)ob_sd_notify("WATCHDOG=1");
}

static void tick(struct work *w)
{
	int64_t now = now_us();

	if (w->watchdog_us && now >= w->alive_us) {
		w->alive_us = now + w->watchdog_us;
		say_alive(w);
	}
	if (w->mode == MODE_SILENT || now < w->tick_us)
		return;
	w->tick_us += w->period_us;
	if (w->tick_us <= now)
		w->tick_us = now + w->period_us;
	if (w->sampler)
		ob_sampler_ask(w->sampler);
	if (w->mode == MODE_SCREEN)
		draw(w);
	else if (w->sampler)
		w->asked = true; /* the line comes with the answer */
	else
		report(w);
}

static int timeout_ms(const struct work *w)
{
	int64_t next = INT64_MAX, now = now_us();

	if (w->mode != MODE_SILENT)
		next = w->tick_us;
	if (w->watchdog_us && w->alive_us < next)
		next = w->alive_us;
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000 + 1);
}

static struct pollfd wait_for(int fd)
{
	return (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Wait until something happens, and deal with all of it. False when that cannot be. */
static bool turn(struct work *w)
{
	size_t count = FDS_FIXED + w->set.count;
	struct pollfd *fds = realloc(w->fds, count * sizeof(*fds));

	if (!fds)
		return false;
	w->fds = fds;
	fds[0] = wait_for(w->signals.fd);
	fds[1] = wait_for(w->sampler ? ob_sampler_fd(w->sampler) : -1);
	fds[2] = wait_for(w->screen.open ? w->screen.signal_fd : -1);
	fds[3] = wait_for(w->screen.open && w->screen.has_keys ? STDIN_FILENO : -1);
	for (size_t i = 0; i < w->set.count; i++)
		fds[FDS_FIXED + i] = wait_for(ob_relay_done_fd(w->set.relays[i].relay));
	if (poll(fds, (nfds_t)count, timeout_ms(w)) < 0)
		return errno == EINTR;
	if (fds[0].revents)
		ob_signals_read(&w->signals);
	if (fds[1].revents) {
		ob_sampler_consume(w->sampler);
		if (w->asked && w->mode != MODE_SCREEN)
			report(w);
		w->asked = false;
	}
	if (fds[2].revents || fds[3].revents)
		read_screen(w);
	return true;
}

static void reap(struct work *w)
{
	bool ended = false;

	for (size_t i = 0; i < w->set.count; i++) {
		struct pollfd fd = wait_for(ob_relay_done_fd(w->set.relays[i].relay));

		ended = ended || poll(&fd, 1, 0) == 1;
	}
	if (!ended)
		return;
	drop_sampler(w);
	ob_work_set_reap(&w->set);
	if (w->set.failed)
		stop_all(w, OB_STOP_DRAIN);
	make_sampler(w);
}

static int loop(struct work *w)
{
	while (w->set.count) {
		if (!turn(w))
			return ob_cli_fail("waiting for events: %m");
		stop_all(w, w->signals.stop);
		if (w->signals.reload)
			reload(w);
		reap(w);
		tick(w);
	}
	return w->set.failed ? OB_EXIT_FAILURE : OB_EXIT_OK;
}

/* ---- beginning and end ----------------------------------------------------------------- */

static void begin(struct work *w)
{
	w->start_us = w->reported_us = now_us();
	w->period_us = choose_period_us(w);
	/* The first frame at once, the first line after its time. */
	w->tick_us = w->start_us + (w->mode == MODE_SCREEN ? 0 : w->period_us);
	w->watchdog_us = ob_sd_watchdog_us() / 3;
	w->alive_us = w->start_us;
	(void)ob_sd_notify("READY=1");
	make_sampler(w);
}

static int run_relays(struct work *w)
{
	struct ob_err err = OB_ERR_INIT;

	if (w->mode == MODE_SCREEN && ob_screen_open(&w->screen, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	int r = OB_EXIT_OK;
	if (ob_work_set_start(&w->set, &err) < 0) {
		ob_screen_close(&w->screen);
		return ob_cli_fail("%s", err.msg);
	}
	begin(w);
	r = loop(w);
	drop_sampler(w);
	ob_screen_close(&w->screen);
	if (w->held)
		ob_held_log_flush(w->held);
	return r;
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
static int open_log(struct work *w, const struct ob_work_plan *plan)
{
	struct ob_err err = OB_ERR_INIT;

	w->log = (struct ob_log){
		.fd = STDERR_FILENO,
		.level = choose_level(w->args, plan),
		.format = plan->config->log_format,
		.clock = &ob_clock_system,
	};
	if (w->mode != MODE_SCREEN || w->args->once || !isatty(STDERR_FILENO))
		return OB_EXIT_OK;
	if (ob_held_log_new(&w->held, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	w->log.hook = ob_held_log_hook;
	w->log.hook_arg = w->held;
	return OB_EXIT_OK;
}

/* A fault of the file stands behind its place there; all others behind our name. */
static void print_faults(const struct ob_cli *cli, struct ob_str faults)
{
	size_t path = strlen(cli->config);

	while (faults.n) {
		const char *nl = memchr(faults.p, '\n', faults.n);
		size_t n = nl ? (size_t)(nl - faults.p) : faults.n;
		struct ob_buf safe = OB_BUF_INIT(8192);

		ob_utf8_sanitize(&safe, (struct ob_str){ faults.p, n }, 1000);
		if (n > path && memcmp(faults.p, cli->config, path) == 0 && faults.p[path] == ':')
			(void)fprintf(stderr, "%s\n", ob_buf_str(&safe));
		else
			(void)ob_cli_fail("%s", ob_buf_str(&safe));
		ob_buf_done(&safe);
		n += nl ? 1 : 0;
		faults.p += n;
		faults.n -= n;
	}
}

static int work_with(struct work *w, struct ob_work_plan *plan)
{
	if (w->cli->json && !w->args->silent && writes_stdout(plan))
		return ob_cli_usage(w->cli,
				    "--json writes to standard output, and so does a sink of type "
				    "stdout: use --silent, or another sink");
	w->mode = choose_mode(w, plan);
	int r = open_log(w, plan);
	if (!r)
		r = ob_work_set_open(&w->set, plan, &w->log);
	if (!r)
		r = w->args->once ? ob_work_once(&w->set, w->cli, &w->signals) : run_relays(w);
	ob_work_set_done(&w->set);
	return r;
}

static int work_run(struct ob_cli *cli, const void *opts)
{
	struct work w = { .cli = cli, .args = opts, .signals = { .fd = -1 } };
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);
	struct ob_work_plan *plan = NULL;
	struct ob_err err = OB_ERR_INIT;

	int r = ob_work_plan_load(cli, opts, &faults, &plan);
	if (r)
		print_faults(cli, ob_buf_view(&faults));
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
		OPTION("no-leasing", NULL, OB_CMD_FLAG, no_leasing),
		.help = "Claim rows instead of partitions: no order, any number of workers.",
	},
	{
		OPTION("relay", "NAME", OB_CMD_LIST, relays),
		.help = "Only this relay of the configuration; may be given several times.",
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
	"outbox --store sqlite:shop.db work",
	NULL,
};

const struct ob_cmd ob_cmd_work = {
	.name = "work",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "deliver: the relays of the configuration",
	.description =
		"Moves committed messages from stores to sinks until it is stopped. On a terminal "
		"it shows a dashboard (q ends it); else it logs a line for each window and relay. "
		"With the URL of a database instead of a configuration, messages go to standard "
		"output.\n\n"
		"The first SIGTERM or SIGINT ends it after what is in flight is settled and the "
		"leases are given back; the second at once. SIGHUP reads the configuration again: "
		"with a fault in it nothing changes; else relays that changed are drained and "
		"started anew, the others go on.\n\n"
		"--json prints an object for each relay and interval: time, relay, span_ms; "
		"published, failed, retries, dead, down and rate in that span; the totals "
		"published_total, failed_total, dead_total; in_flight, backlog, oldest_ms, "
		"delayed, "
		"held_keys (null while the store does not answer); backoff_ms, the longest wait "
		"between two looks while there is nothing to do, else 0; breaker, partitions, "
		"workers, last_error, last_error_at.\n\n"
		"--once exits with 0 when nothing failed, also when there was nothing to do, and "
		"with 1 when a message failed or the sink or store is down.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct ob_work_args),
	.run = work_run,
};
