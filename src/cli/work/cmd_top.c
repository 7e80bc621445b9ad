/* SPDX-License-Identifier: MIT */
/* outbox top: the dashboard without a relay, from any host that reaches the database. */
#include "cli/commands.h"
#include "cli/work/work.h"
#include "operate/readers.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOK_US = 10000000, FRAME_BYTES = 1 << 20 }; /* LOOK: how soon a new reader is seen */

struct top_args {
	const char *reader;
	int64_t interval_ms;
};

/* One reader over time. Workers tell their rate with each beat: what they must have published is
 * counted up by it, so that the picture does not jump with the beats. */
struct top_reader {
	char *name;
	struct ob_rate rate;
	double published;
	char sink[OB_WORKER_TEXT]; /* as its workers describe it */
};

struct top {
	const struct top_args *args;
	const struct ob_session *session;
	struct top_reader *readers;
	size_t count;
	struct ob_dash_relay *shown;
	struct ob_sampler *sampler;
	struct ob_screen screen;
	struct ob_signals signals;
	int64_t now_us, drawn_us, look_us;
	size_t first, sort;
	bool paused, help, quit;
};

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

/* ---- the readers ----------------------------------------------------- */

static void forget(struct top *t)
{
	ob_sampler_free(t->sampler);
	t->sampler = NULL;
	for (size_t i = 0; i < t->count; i++)
		free(t->readers[i].name);
	free(t->readers);
	free(t->shown);
	t->readers = NULL;
	t->shown = NULL;
	t->count = 0;
}

static bool is_same(const struct top *t, const struct ob_readers *readers)
{
	size_t at = 0;

	for (size_t i = 0; i < readers->count; i++) {
		if (t->args->reader && !ob_str_eq(readers->list[i].name, ob_str(t->args->reader)))
			continue;
		if (at == t->count ||
		    !ob_str_eq(ob_str(t->readers[at].name), readers->list[i].name))
			return false;
		at++;
	}
	return at == t->count;
}

static int begin_sampling(struct top *t, struct ob_err *err)
{
	struct ob_sample_job *jobs = calloc(t->count + 1, sizeof(*jobs));
	int r = jobs ? 0 : ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");

	for (size_t i = 0; r == 0 && i < t->count; i++)
		jobs[i] = (struct ob_sample_job){ .store = &t->session->entry->conf,
						  .reader = t->readers[i].name };
	if (r == 0)
		r = ob_sampler_new(jobs, t->count, &t->sampler, err);
	free(jobs);
	return r;
}

/* Readers come and go. One that is away for a moment is asked for the next time. */
static int look(struct top *t, struct ob_err *err)
{
	struct ob_readers readers;
	int r = ob_readers_load(&readers, t->session->store, err);

	t->look_us = now_us() + LOOK_US;
	if (r == 0 && (!t->sampler || !is_same(t, &readers))) {
		forget(t);
		t->readers = calloc(readers.count + 1, sizeof(*t->readers));
		t->shown = calloc(readers.count + 1, sizeof(*t->shown));
		for (size_t i = 0; t->readers && i < readers.count; i++) {
			struct ob_str name = readers.list[i].name;

			if (t->args->reader && !ob_str_eq(name, ob_str(t->args->reader)))
				continue;
			t->readers[t->count].name = strndup(name.p, name.n);
			t->count += t->readers[t->count].name != NULL;
		}
		r = t->readers && t->shown
			    ? begin_sampling(t, err)
			    : ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	}
	ob_readers_done(&readers);
	return r;
}

/* ---- drawing --------------------------------------------------------- */

static void show_reader(struct top *t, size_t index, int64_t span_us)
{
	struct ob_dash_relay *shown = &t->shown[index];
	struct top_reader *reader = &t->readers[index];
	double rate = 0;

	*shown = (struct ob_dash_relay){ .name = reader->name, .store = t->session->entry->name };
	ob_sampler_read(t->sampler, index, &shown->sample);
	ob_dash_gather(&shown->sample, &shown->data);
	for (size_t i = 0; i < shown->sample.worker_count && i < OB_DASH_WORKERS; i++) {
		rate += shown->sample.workers[i].report.rate;
		if (shown->sample.workers[i].report.sink_text[0])
			memcpy(reader->sink, shown->sample.workers[i].report.sink_text,
			       sizeof(reader->sink));
	}
	reader->published += rate * (double)span_us / 1e6;
	ob_rate_note(&reader->rate, (uint64_t)reader->published, t->now_us);
	shown->rate = reader->rate;
	shown->sink = reader->sink[0] ? reader->sink : "-";
}

static void draw(struct top *t)
{
	struct ob_buf frame = OB_BUF_INIT(FRAME_BYTES);
	struct ob_dash dash = { .title = "outbox top",
				.elsewhere = true,
				.now_us = ob_clock_real_us(&ob_clock_system),
				.state = t->paused       ? "paused"
					 : t->count == 0 ? "no reader yet"
							 : "",
				.first = t->first,
				.help = t->help };
	int64_t span_us = t->drawn_us ? now_us() - t->drawn_us : 0;

	t->now_us = t->drawn_us = now_us();
	for (size_t i = 0; i < t->count; i++)
		show_reader(t, i, span_us);
	dash.sorted = ob_dash_sort(t->shown, t->count, t->sort);
	dash.relays = t->shown;
	dash.relay_count = t->count;
	ob_dash_draw(&dash, &t->screen.style, &frame);
	if (!frame.failed)
		ob_screen_show(&t->screen, ob_buf_view(&frame));
	ob_buf_done(&frame);
}

/* ---- the loop -------------------------------------------------------- */

static void read_screen(struct top *t)
{
	unsigned events = ob_screen_read(&t->screen);

	t->quit = t->quit || (events & OB_SCREEN_QUIT);
	if (events & OB_SCREEN_PAUSE)
		t->paused = !t->paused;
	if (events & OB_SCREEN_HELP)
		t->help = !t->help;
	if (events & OB_SCREEN_SORT)
		t->sort = (t->sort + 1) % OB_DASH_ORDERS;
	if (t->screen.scroll)
		t->first = ob_dash_scroll(t->first, t->count, t->screen.scroll);
	if (events)
		draw(t);
}

/* False when nothing can be waited for. */
static bool turn(struct top *t, int64_t until_us)
{
	struct pollfd fds[] = {
		{ .fd = t->signals.fd, .events = POLLIN },
		{ .fd = t->screen.signal_fd, .events = POLLIN },
		{ .fd = t->screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = t->sampler ? ob_sampler_fd(t->sampler) : -1, .events = POLLIN },
	};
	int64_t left = until_us - now_us();

	if (poll(fds, 4, left > 0 ? (int)(left / 1000 + 1) : 0) < 0)
		return errno == EINTR;
	if (fds[0].revents)
		ob_signals_read(&t->signals);
	t->quit = t->quit || t->signals.stop != OB_STOP_NO;
	if (fds[1].revents || fds[2].revents)
		read_screen(t);
	if (fds[3].revents) {
		ob_sampler_consume(t->sampler);
		if (!t->paused)
			draw(t);
	}
	return true;
}

static int loop(struct top *t)
{
	int64_t tick_us = now_us();

	while (!t->quit) {
		struct ob_err ignored = OB_ERR_INIT;
		int64_t now = now_us();

		if (now >= t->look_us)
			(void)look(t, &ignored);
		if (now >= tick_us) {
			tick_us = now + t->args->interval_ms * 1000;
			if (t->sampler)
				ob_sampler_ask(t->sampler);
			if (!t->paused)
				draw(t);
		}
		if (!turn(t, tick_us))
			return ob_cli_fail("waiting for events: %m");
	}
	return OB_EXIT_OK;
}

static int run_screen(struct top *t)
{
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	if (ob_signals_init(&t->signals, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	/* Before the sampler's thread, which must not get its signals. */
	if (ob_screen_open(&t->screen, &err) < 0 || look(t, &err) < 0) {
		ob_screen_close(&t->screen);
		r = ob_cli_fail("%s", err.msg);
	}
	if (!r)
		r = loop(t);
	forget(t);
	ob_screen_close(&t->screen);
	ob_signals_done(&t->signals);
	return r;
}

static int top_run(struct ob_cli *cli, const void *opts)
{
	struct ob_session session;
	struct top t = { .args = opts, .session = &session, .signals = { .fd = -1 } };

	if (!ob_screen_possible())
		return ob_cli_usage(cli,
				    "it draws on a terminal, and standard output is none; "
				    "'outbox status' prints the same once");
	int r = ob_session_open(&session, cli);
	if (!r && t.args->reader) {
		struct ob_readers readers;
		struct ob_err err = OB_ERR_INIT;

		if (ob_readers_load(&readers, session.store, &err) < 0 ||
		    (!ob_readers_find(&readers, t.args->reader) &&
		     ob_readers_unknown(&readers, t.args->reader, &err) < 0))
			r = ob_cli_fail("%s", err.msg);
		ob_readers_done(&readers);
	}
	if (!r)
		r = run_screen(&t);
	ob_session_done(&session);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "reader",
		.arg = "NAME",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct top_args, reader),
		.help = "Only this reader.",
	},
	{
		.name = "interval",
		.arg = "DURATION",
		.type = OB_CMD_DURATION,
		.offset = offsetof(struct top_args, interval_ms),
		.dflt = "1s",
		.min = 200,
		.max = 3600000,
		.help = "How often the database is asked.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox top",
	"outbox top --store postgresql://ops@db/shop --reader mail",
	NULL,
};

const struct ob_cmd ob_cmd_top = {
	.name = "top",
	.group = OB_GROUP_MESSAGES,
	.flags = OB_CMD_USES_STORE | OB_CMD_LOOKS,
	.summary = "the dashboard of relays that run elsewhere",
	.description =
		"Draws the dashboard of `outbox work` without running a relay, for every reader of "
		"the log: what waits and since when, rate, errors, the state of the sinks, workers "
		"and partitions. It is fed by the database alone, so it can run on any host that "
		"reaches it; what relays tell of their sinks is as old as their last heartbeat, a "
		"few seconds. It changes nothing: q ends the dashboard, not the relays.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct top_args),
	.run = top_run,
};
