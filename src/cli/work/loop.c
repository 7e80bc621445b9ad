/* SPDX-License-Identifier: MIT */
/* The main thread of outbox work: signals, keys, time, and relays that end. */
#include "cli/work/work.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	FAULTS_BYTES = 1 << 20,
	SECOND_US = 1000000,
	FDS_FIXED = 4, /* signals, sampler, the screen's two */
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- the sampler ------------------------------------------------------------ */

/* It borrows from the relays: gone before any of them is, made anew when they have changed. */
static void drop_sampler(struct ob_work *w)
{
	ob_sampler_free(w->sampler);
	w->sampler = NULL;
}

static void make_sampler(struct ob_work *w)
{
	struct ob_err err = OB_ERR_INIT;
	size_t count = w->set.count;

	if (w->mode == OB_WORK_SILENT || count == 0)
		return;
	struct ob_sample_job *jobs = calloc(count, sizeof(*jobs));
	for (size_t i = 0; jobs && i < count; i++) {
		const struct ob_work_relay *relay = &w->set.relays[i];

		jobs[i] = (struct ob_sample_job){
			.store = &relay->conf->store->conf,
			.reader = relay->conf->name,
			.own = relay->own,
			.own_count = ob_work_workers(relay),
		};
	}
	if (jobs && ob_sampler_new(jobs, count, &w->sampler, &err) == 0)
		ob_sampler_ask(w->sampler);
	else
		ob_log(&w->log, OB_LOG_WARN, "going on without backlog and oldest age",
		       OB_KV("error", err.msg));
	free(jobs);
}

static void read_sample(struct ob_work *w, size_t index, struct ob_sample *ret)
{
	if (w->sampler)
		ob_sampler_read(w->sampler, index, ret);
	else
		*ret = (struct ob_sample){ 0 };
}

/* ---- the screen --------------------------------------------------------------- */

static bool make_room(struct ob_work *w)
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

static const char *state_text(const struct ob_work *w)
{
	if (w->paused)
		return "paused";
	if (w->stopping == OB_STOP_DRAIN)
		return "draining";
	return w->stopping == OB_STOP_NOW ? "leaving" : "";
}

/* The store knows what a worker did as of its last heartbeat; of our own we know better. */
static void refresh_own(const struct ob_work_relay *relay, struct ob_sample *sample)
{
	uint32_t count = ob_work_workers(relay);

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

static void draw(struct ob_work *w)
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
			.sink = ob_work_sink(relay),
		};
		ob_work_metrics(relay, &shown->data);
		ob_rate_note(&relay->rate, shown->data.published, now_us());
		shown->rate = relay->rate;
		read_sample(w, i, &shown->sample);
		refresh_own(relay, &shown->sample);
	}
	dash.sorted = ob_dash_sort(w->shown, w->set.count, w->sort);
	dash.first = w->first;
	dash.help = w->help;
	dash.relays = w->shown;
	dash.relay_count = w->set.count;
	ob_dash_draw(&dash, &w->screen.style, &frame);
	if (!frame.failed)
		ob_screen_show(&w->screen, ob_buf_view(&frame));
	ob_buf_done(&frame);
}

/* ---- stopping ---------------------------------------------------------------------- */

static void stop_all(struct ob_work *w, enum ob_stop how)
{
	if (how <= w->stopping)
		return;
	w->stopping = how;
	ob_service_stopping(w);
	ob_log(&w->log, OB_LOG_INFO,
	       how == OB_STOP_DRAIN ? "stopping after what is in flight" : "leaving at once",
	       OB_KI("relays", (int64_t)w->set.count));
	ob_work_set_stop(&w->set, how);
}

/* ---- lines ---------------------------------------------------------------------- */

static bool reader_is_gone(void)
{
	struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR);
}

static void report(struct ob_work *w)
{
	int64_t now = now_us(), span = now - w->reported_us;
	int r = OB_EXIT_OK;

	for (size_t i = 0; i < w->set.count && !r; i++) {
		struct ob_sample sample;

		read_sample(w, i, &sample);
		/* A number of the window before would look as if nothing moved. */
		sample.valid = sample.valid && sample.taken_us > w->reported_us;
		if (w->mode == OB_WORK_JSON)
			r = ob_work_report_json(&w->set.relays[i], &sample, span,
						ob_clock_real_us(&ob_clock_system));
		else
			ob_work_report_line(&w->set.relays[i], &sample, span, &w->log);
	}
	if (r && reader_is_gone()) {
		/* Nobody would see it any more; `| head -1` has what it wanted. */
		ob_log(&w->log, OB_LOG_WARN, "the reader of the lines has gone away, stopping",
		       OB_KI("relays", (int64_t)w->set.count));
		w->mode = OB_WORK_SILENT;
		stop_all(w, OB_STOP_DRAIN);
	} else if (r) {
		/* Messages matter more than lines about them. */
		ob_log(&w->log, OB_LOG_WARN, "standard output is gone, going on without lines",
		       OB_KV("error", "it cannot be written to"));
		w->mode = OB_WORK_SILENT;
	}
	w->reported_us = now;
}

/* ---- signals ---------------------------------------------------------------------- */

static void log_faults(struct ob_work *w, struct ob_str faults)
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

static void go_over(struct ob_work *w, struct ob_work_plan *plan)
{
	struct ob_err err = OB_ERR_INIT;
	enum ob_log_level level = plan->config->log_level;

	if (w->mode != OB_WORK_SILENT && ob_work_plan_uses_stdout(plan) &&
	    (w->mode == OB_WORK_SCREEN || w->mode == OB_WORK_JSON)) {
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
	ob_work_monitor_start(w, plan);
	ob_log(&w->log, OB_LOG_INFO, "reloaded", OB_KV("config", w->cli->config),
	       OB_KI("relays", (int64_t)plan->count));
}

static void reload(struct ob_work *w)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);
	struct ob_work_plan *plan = NULL;

	w->signals.reload = false;
	if (w->stopping != OB_STOP_NO)
		return;
	ob_service_reloading(w);
	drop_sampler(w);
	if (ob_work_plan_load(w->cli, w->args, &faults, &plan) != OB_EXIT_OK)
		log_faults(w, ob_buf_view(&faults));
	else
		go_over(w, plan);
	ob_work_plan_unref(plan);
	ob_buf_done(&faults);
	make_sampler(w);
	ob_service_reloaded(w);
}

/* ---- the loop ------------------------------------------------------------------------ */

static void read_screen(struct ob_work *w)
{
	unsigned events = ob_screen_read(&w->screen);

	if (events & OB_SCREEN_QUIT) {
		w->paused = false;
		stop_all(w, w->stopping == OB_STOP_NO ? OB_STOP_DRAIN : OB_STOP_NOW);
	}
	if (events & OB_SCREEN_PAUSE)
		w->paused = !w->paused;
	if (events & OB_SCREEN_HELP)
		w->help = !w->help;
	if (events & OB_SCREEN_SORT)
		w->sort = (w->sort + 1) % OB_DASH_ORDERS;
	if (w->screen.scroll)
		w->first = ob_dash_scroll(w->first, w->set.count, w->screen.scroll);
	if (events)
		draw(w);
}

static void tick(struct ob_work *w)
{
	int64_t now = now_us();

	ob_service_tick(w);
	ob_work_monitor_tick(w);
	if (w->mode == OB_WORK_SILENT || now < w->tick_us)
		return;
	w->tick_us += w->period_us;
	if (w->tick_us <= now)
		w->tick_us = now + w->period_us;
	if (w->sampler)
		ob_sampler_ask(w->sampler);
	if (w->mode == OB_WORK_SCREEN && !w->paused)
		draw(w);
	else if (w->mode == OB_WORK_SCREEN)
		return;
	else if (w->sampler)
		w->asked = true; /* the line comes with the answer */
	else
		report(w);
}

static int timeout_ms(const struct ob_work *w)
{
	int64_t next = ob_service_next_us(w), told = ob_work_monitor_next_us(w), now = now_us();

	if (w->mode != OB_WORK_SILENT && w->tick_us < next)
		next = w->tick_us;
	if (told < next)
		next = told;
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000 + 1);
}

static struct pollfd wait_for(int fd)
{
	return (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Wait until something happens, and deal with all of it. False when that cannot be. */
static bool turn(struct ob_work *w)
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
		fds[FDS_FIXED + i] = wait_for(ob_work_fd(&w->set.relays[i]));
	if (poll(fds, (nfds_t)count, timeout_ms(w)) < 0)
		return errno == EINTR;
	if (fds[0].revents)
		ob_signals_read(&w->signals);
	if (fds[1].revents) {
		ob_sampler_consume(w->sampler);
		if (w->mode == OB_WORK_SCREEN && !w->paused)
			draw(w);
		else if (w->mode != OB_WORK_SCREEN && w->asked)
			report(w);
		w->asked = false;
	}
	if (fds[2].revents || fds[3].revents)
		read_screen(w);
	return true;
}

static void reap(struct ob_work *w)
{
	bool ended = false;

	for (size_t i = 0; i < w->set.count; i++) {
		struct pollfd fd = wait_for(ob_work_fd(&w->set.relays[i]));

		ended = ended || poll(&fd, 1, 0) == 1;
	}
	if (!ended)
		return;
	drop_sampler(w);
	ob_work_set_reap(&w->set);
	make_sampler(w);
}

static int loop(struct ob_work *w)
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

/* ---- beginning and end ----------------------------------------------------- */

static int64_t choose_period_us(const struct ob_work *w)
{
	if (w->mode == OB_WORK_LINES)
		return w->args->window_s * SECOND_US;
	return w->args->interval_ms * 1000;
}

static void begin(struct ob_work *w)
{
	w->start_us = w->reported_us = now_us();
	w->period_us = choose_period_us(w);
	/* The first frame at once, the first line after its time. */
	w->tick_us = w->start_us + (w->mode == OB_WORK_SCREEN ? 0 : w->period_us);
	ob_service_begin(w);
	make_sampler(w);
	ob_work_monitor_start(w, w->plan);
}

int ob_work_loop(struct ob_work *w)
{
	struct ob_err err = OB_ERR_INIT;

	if (w->mode == OB_WORK_SCREEN && ob_screen_open(&w->screen, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	int r = OB_EXIT_OK;
	if (ob_work_set_start(&w->set, &err) < 0) {
		ob_screen_close(&w->screen);
		return ob_cli_fail("%s", err.msg);
	}
	begin(w);
	r = loop(w);
	ob_work_monitor_stop(w);
	drop_sampler(w);
	ob_screen_close(&w->screen);
	if (w->held)
		ob_held_log_flush(w->held);
	/* The picture is gone: what it was about stays. */
	if (w->mode == OB_WORK_SCREEN)
		(void)fputs(ob_buf_str(&w->set.summary), stdout);
	return r;
}
