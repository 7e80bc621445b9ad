/* SPDX-License-Identifier: MIT */
/*
 * Lines on standard output (line.h says what is in them). A message is
 * confirmed when write() took the last byte of its line; what becomes of it
 * behind that is the reader's affair, hence OB_SINK_VOLATILE.
 *
 * Standard output is shared with others, so it is never switched to
 * non-blocking: we wait until it is writable and then write no more than a pipe
 * takes without blocking. Lines of several sinks of this process never mix.
 */
#include "sink/sink.h"
#include "sink/window.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct stdout_sink {
	struct ob_sink base;
	bool open;
	bool regular; /* a file: takes any amount at once */
	struct ob_window window;
};

/* Who may write. A sink keeps its turn while it is inside a line. */
static struct {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t freed;
	const struct stdout_sink *owner;
	bool torn; /* someone left inside a line: the next begins with a line break */
} turn = { .lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER };

/* The one place that knows which failures pass by themselves. */
static int stdout_err(struct ob_err *err)
{
	switch (errno) {
	case EPIPE:
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_FATAL,
				    "standard output: its reader has gone away");
	case EBADF:
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_FATAL,
				    "standard output is closed: redirect it, or use a file sink");
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case ENOMEM:
	case ENOBUFS:
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "writing to standard output");
	default:
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_FATAL, "writing to standard output");
	}
}

/* False when another sink is inside a line and did not finish it in time. */
static bool take_turn(const struct stdout_sink *sink, int timeout_ms, bool *ret_torn)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	(void)pthread_mutex_lock(&turn.lock);
	while (turn.owner && turn.owner != sink && r == 0)
		r = pthread_cond_clockwait(&turn.freed, &turn.lock, CLOCK_MONOTONIC, &until);
	bool mine = !turn.owner || turn.owner == sink;
	if (mine) {
		turn.owner = sink;
		*ret_torn = turn.torn;
	}
	(void)pthread_mutex_unlock(&turn.lock);
	return mine;
}

static void give_turn(const struct stdout_sink *sink, bool torn)
{
	(void)pthread_mutex_lock(&turn.lock);
	if (turn.owner == sink) {
		turn.owner = NULL;
		turn.torn = torn;
		(void)pthread_cond_broadcast(&turn.freed);
	}
	(void)pthread_mutex_unlock(&turn.lock);
}

static int stdout_open(struct ob_sink *base, struct ob_err *err)
{
	struct stdout_sink *sink = (struct stdout_sink *)base;
	struct stat st;

	if (sink->open)
		return 0;
	if (fstat(STDOUT_FILENO, &st) < 0)
		return stdout_err(err);
	sink->regular = S_ISREG(st.st_mode);
	sink->open = true;
	return 0;
}

static int stdout_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct stdout_sink *sink = (struct stdout_sink *)base;

	if (!sink->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "standard output is not open");
	return ob_window_add(&sink->window, delivery, err);
}

/* Whole lines where they fit: a pipe takes PIPE_BUF bytes in one piece. */
static size_t piece_size(const struct stdout_sink *sink)
{
	size_t rest = ob_window_rest(&sink->window).n;

	if (sink->regular || rest <= PIPE_BUF)
		return rest;
	size_t lines = ob_window_fit(&sink->window, PIPE_BUF);
	return lines ? lines : PIPE_BUF;
}

/* Like write(), but waits until it would not block: 0 when it would. */
static ssize_t write_some(const void *bytes, size_t n, int timeout_ms)
{
	struct pollfd pfd = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int r = poll(&pfd, 1, timeout_ms);

	if (r == 0 || (r < 0 && errno == EINTR))
		return 0;
	if (r < 0)
		return -1;
	ssize_t w = write(STDOUT_FILENO, bytes, n);
	return w < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : w;
}

/* Write one piece: 1 when bytes moved, 0 when not in time. A DOWN has become outcomes. */
static int write_piece(struct stdout_sink *sink, int timeout_ms, struct ob_err *err)
{
	struct ob_window *w = &sink->window;
	bool torn = false;

	if (!take_turn(sink, timeout_ms, &torn))
		return 0;
	ssize_t n = torn ? write_some("\n", 1, timeout_ms) : 0;
	if (n >= 0 && torn == (n == 1)) {
		torn = false;
		n = write_some(ob_window_rest(w).p, piece_size(sink), timeout_ms);
		if (n > 0)
			ob_window_confirm(w, (size_t)n);
	}
	int r = n < 0 ? stdout_err(err) : n > 0;
	if (r < 0 || !w->mid_line)
		give_turn(sink, torn || w->mid_line);
	if (r < 0 && err->kind == OB_ERR_DOWN) {
		ob_window_fail(w, err);
		r = 0;
	}
	return r;
}

/* Of the time given to a poll(), how much is left; never more, whatever the clock says. */
static int time_left(const struct stdout_sink *sink, int64_t start_us, int timeout_ms)
{
	int64_t passed_ms = (ob_clock_boot_us(sink->base.clock) - start_us) / 1000;

	return passed_ms >= timeout_ms ? 0 : timeout_ms - (int)passed_ms;
}

static int stdout_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		       struct ob_err *err)
{
	struct stdout_sink *sink = (struct stdout_sink *)base;
	int64_t start_us = ob_clock_boot_us(base->clock);
	int r = 1;

	while (r > 0 && ob_window_waiting(&sink->window) > 0) {
		bool wait = timeout_ms > 0 && !ob_window_has_outcomes(&sink->window);

		r = write_piece(sink, wait ? time_left(sink, start_us, timeout_ms) : 0, err);
	}
	/* What is written is written: a fatal error waits for the next call. */
	if (r < 0 && !ob_window_has_outcomes(&sink->window))
		return r;
	return ob_window_take(&sink->window, acks, max);
}

static void stdout_reset(struct ob_sink *base)
{
	struct stdout_sink *sink = (struct stdout_sink *)base;

	give_turn(sink, sink->window.mid_line);
	ob_window_clear(&sink->window);
}

static void stdout_close(struct ob_sink *base)
{
	struct stdout_sink *sink = (struct stdout_sink *)base;

	give_turn(sink, sink->window.mid_line);
	ob_window_done(&sink->window);
}

static void stdout_describe(struct ob_sink *base, struct ob_buf *out)
{
	(void)base;
	ob_buf_adds(out, "standard output");
}

static const struct ob_opt stdout_opts[] = { OB_OPT_END };

const struct ob_sink_ops ob_sink_stdout = {
	.name = "stdout",
	.caps = OB_SINK_ORDERED | OB_SINK_VOLATILE,
	.size = sizeof(struct stdout_sink),
	.opts = stdout_opts,
	.open = stdout_open,
	.send = stdout_send,
	.poll = stdout_poll,
	.reset = stdout_reset,
	.close = stdout_close,
	.describe = stdout_describe,
};
