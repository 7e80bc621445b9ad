/* SPDX-License-Identifier: MIT */
/* outbox work --once: one tick of each relay on a thread, while this one listens for signals. */
#include "cli/out/jprint.h"
#include "cli/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum { PROGRESS_MS = 500 };

struct tick {
	struct ob_relay *relay;
	bool show; /* progress, on the terminal */
	int fd;    /* eventfd: it is through */
	int result;
	struct ob_err err;
};

static void *tick_main(void *arg)
{
	struct tick *tick = arg;

	tick->result = ob_relay_once(tick->relay, &tick->err);
	(void)eventfd_write(tick->fd, 1);
	return NULL;
}

/* On a terminal somebody waits. */
static void show_progress(const struct tick *tick)
{
	struct ob_metrics_data data;

	ob_relay_metrics(tick->relay, &data);
	(void)fprintf(stderr, "\r\033[K%s: %" PRIu64 " published, %" PRIu64 " in flight",
		      ob_relay_name(tick->relay), data.published, data.in_flight);
}

/* Wait for the tick; a signal ends it after what is in flight. */
static void attend(const struct tick *tick, struct ob_signals *signals)
{
	struct pollfd fds[] = { { .fd = tick->fd, .events = POLLIN },
				{ .fd = signals->fd, .events = POLLIN } };

	while (!(fds[0].revents & POLLIN)) {
		int n = poll(fds, 2, tick->show ? PROGRESS_MS : -1);

		if (n < 0 && errno != EINTR)
			return;
		if (n == 0)
			show_progress(tick);
		if (fds[1].revents & POLLIN)
			ob_signals_read(signals);
		if (signals->stop != OB_STOP_NO)
			ob_relay_stop(tick->relay, signals->stop);
	}
	if (tick->show)
		(void)fputs("\r\033[K", stderr);
}

static int run_tick(struct tick *tick, struct ob_signals *signals)
{
	pthread_t thread;

	tick->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (tick->fd < 0 || pthread_create(&thread, NULL, tick_main, tick) != 0) {
		tick->result =
			ob_err_set(&tick->err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting a thread");
	} else {
		attend(tick, signals);
		(void)pthread_join(thread, NULL);
	}
	if (tick->fd >= 0)
		(void)close(tick->fd);
	return tick->result;
}

static int print_json(const struct ob_work_relay *relay, const struct ob_metrics_data *data,
		      const struct tick *tick)
{
	struct ob_jout j = OB_JOUT_INIT;

	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "relay", ob_str(relay->conf->name));
	ob_jout_int(&j, "published", (int64_t)data->published);
	ob_jout_int(&j, "failed", (int64_t)data->retries);
	ob_jout_int(&j, "dead", (int64_t)data->dead);
	ob_jout_int(&j, "down", (int64_t)data->down);
	ob_jout_text(&j, "error", tick->result < 0 ? ob_str(tick->err.msg) : OB_STR_NULL);
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static int tell(const struct ob_work_relay *relay, const struct ob_cli *cli,
		const struct tick *tick)
{
	const char *name = relay->conf->name;
	struct ob_metrics_data data;
	int r = OB_EXIT_OK;

	ob_relay_metrics(relay->relay, &data);
	if (cli->json)
		r = print_json(relay, &data, tick);
	else /* standard output may hold the messages themselves */
		(void)fprintf(ob_work_uses_stdout(relay->conf) ? stderr : stdout,
			      "%s: %" PRIu64 " published, %" PRIu64 " failed, %" PRIu64 " dead\n",
			      name, data.published, data.retries, data.dead);
	if (ob_relay_elsewhere(relay->relay))
		ob_cli_warn("relay %s: %" PRIu32
			    " partitions are leased by other workers: what "
			    "waits in them is left to these, and free when their leases end",
			    name, ob_relay_elsewhere(relay->relay));
	if (tick->result < 0)
		return ob_cli_fail("%s", tick->err.msg);
	if (data.failed == 0)
		return r;
	return ob_cli_fail("relay %s: %" PRIu64 " message%s failed: %s", name, data.failed,
			   data.failed == 1 ? "" : "s",
			   data.error_count ? data.errors[data.error_count - 1].text
					    : "see 'outbox list failed'");
}

int ob_work_once(struct ob_work_set *set, const struct ob_cli *cli, bool silent,
		 struct ob_signals *signals)
{
	int code = set->failed ? OB_EXIT_FAILURE : OB_EXIT_OK;

	for (size_t i = 0; i < set->count && signals->stop == OB_STOP_NO; i++) {
		struct tick tick = { .relay = set->relays[i].relay,
				     .show = isatty(STDERR_FILENO) && !silent &&
					     !(ob_work_uses_stdout(set->relays[i].conf) &&
					       isatty(STDOUT_FILENO)) };

		(void)run_tick(&tick, signals);
		int r = tell(&set->relays[i], cli, &tick);
		code = r ? r : code;
	}
	return code;
}
