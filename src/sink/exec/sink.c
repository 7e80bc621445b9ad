/* SPDX-License-Identifier: MIT */
/*
 * Lines to a program of the user's own (line.h says what is in them), which stays
 * running and answers each with one line:
 *
 *   ok ID              it has done what the message asks for
 *   retry ID REASON    not now: an attempt is counted
 *   reject ID REASON   never: the message is given up
 *
 * in any order. A message is confirmed by its "ok" alone. Whatever the program does
 * otherwise (an unknown or a repeated id, another word, its end) is the loss of the
 * connection: it is ended, all that is unconfirmed is DOWN, and open() starts it again,
 * later each time as long as it has not answered anything. The next one starts
 * only after the last is gone, so two never work on one key.
 */
#include "sink/exec/exec.h"

#include "base/utf8.h"
#include "sink/line.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { RESTART_MS = 100 };

enum stderr_mode { STDERR_INHERIT, STDERR_KEEP };

static int set_up(struct ob_exec_sink *sink, struct ob_err *err)
{
	if (sink->ready)
		return 0;
	int r = sink->argv ? 0 : ob_exec_split(sink->command, &sink->argv, err);
	if (r < 0)
		return r;
	if (!sink->sent)
		sink->sent = calloc(sink->window, sizeof(*sink->sent));
	if (!sink->outcomes)
		sink->outcomes = calloc(sink->window, sizeof(*sink->outcomes));
	if (!sink->sent || !sink->outcomes)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a window");
	sink->todo = OB_BUF_INIT(OB_LINE_BUF_MAX);
	sink->answers = OB_BUF_INIT((size_t)2 * OB_EXEC_ANSWER_MAX);
	sink->words = OB_BUF_INIT(OB_EXEC_REASON_CHARS);
	sink->child = OB_EXEC_CHILD_INIT;
	ob_backoff_init(&sink->backoff, RESTART_MS, sink->restart_max_ms);
	sink->ready = true;
	return 0;
}

static int watch(struct ob_exec_sink *sink)
{
	const struct ob_exec_child *child = &sink->child;
	const int fds[] = { child->in, child->out, child->err, child->pidfd };

	sink->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sink->epoll < 0)
		return -1;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		/* Its stdin: only its closing for now, room when there is something to write. */
		struct epoll_event event = { .events = i == 0 ? 0 : EPOLLIN, .data.fd = fds[i] };

		if (fds[i] >= 0 && epoll_ctl(sink->epoll, EPOLL_CTL_ADD, fds[i], &event) < 0) {
			(void)close(sink->epoll);
			return -1;
		}
	}
	return 0;
}

static int exec_open(struct ob_sink *base, struct ob_err *err)
{
	struct ob_exec_sink *sink = (struct ob_exec_sink *)base;
	int64_t wait_us = sink->restart_us - ob_exec_now_us(sink);
	int r;

	if (sink->open)
		return 0;
	r = set_up(sink, err);
	if (r < 0)
		return r;
	if (wait_us > 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "the handler ended before its first answer, it is started again "
				  "in %lld ms",
				  (long long)wait_us / 1000 + 1);
	ob_exec_end(&sink->child, sink->grace_ms);
	r = ob_exec_start(&sink->child, sink->argv, sink->stderr_mode == STDERR_KEEP, err);
	if (r < 0)
		return r;
	if (watch(sink) < 0) {
		r = ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "watching the handler");
		ob_exec_end(&sink->child, sink->grace_ms);
		return r;
	}
	sink->open = true;
	sink->answered = sink->wants_out = false;
	sink->base_end = 0;
	sink->last_word[0] = '\0';
	sink->progress_us = ob_exec_now_us(sink);
	return 0;
}

static int exec_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct ob_exec_sink *sink = (struct ob_exec_sink *)base;
	int64_t now = ob_exec_now_us(sink);

	if (!sink->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the handler does not run");
	if (sink->sent_count + sink->outcome_count == sink->window ||
	    sink->todo.len - sink->written >= OB_EXEC_PENDING_MAX)
		return OB_SINK_FULL;
	int r = ob_line_add(&sink->todo, delivery, err);
	if (r < 0)
		return r;
	sink->sent[sink->sent_count] = (struct ob_exec_sent){
		.tag = delivery->tag,
		.id = delivery->message->id,
		.end = sink->base_end + sink->todo.len,
		.since_us = now,
		/* each of those before it may take its time */
		.deadline_us = now + sink->timeout_ms * 1000 * (sink->sent_count + 1),
	};
	sink->sent_count++;
	return 0;
}

static int take_outcomes(struct ob_exec_sink *sink, struct ob_ack *acks, size_t max)
{
	uint32_t n = sink->outcome_count < max ? sink->outcome_count : (uint32_t)max;

	for (uint32_t i = 0; i < n; i++)
		acks[i] = sink->outcomes[i];
	sink->outcome_count -= n;
	if (n > 0)
		memmove(sink->outcomes, sink->outcomes + n,
			sink->outcome_count * sizeof(*sink->outcomes));
	return (int)n;
}

static int exec_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		     struct ob_err *err)
{
	struct ob_exec_sink *sink = (struct ob_exec_sink *)base;
	int64_t end_us = ob_exec_now_us(sink) + timeout_ms * INT64_C(1000);

	(void)err; /* whatever happens to the program, it can be started again */
	while (sink->open) {
		ob_exec_talk_move(sink);
		ob_exec_talk_check(sink);
		if (!sink->open || sink->outcome_count > 0 || sink->sent_count == 0 ||
		    ob_exec_now_us(sink) >= end_us)
			break;
		ob_exec_talk_wait(sink, end_us);
	}
	return take_outcomes(sink, acks, max);
}

static void exec_reset(struct ob_sink *base)
{
	struct ob_exec_sink *sink = (struct ob_exec_sink *)base;

	/* Also what it has read already must not be worked on any longer. */
	if (sink->sent_count > 0)
		ob_exec_talk_end(sink);
	sink->sent_count = sink->outcome_count = 0;
}

static int exec_fd(struct ob_sink *base)
{
	const struct ob_exec_sink *sink = (const struct ob_exec_sink *)base;

	return sink->open ? sink->epoll : -1;
}

static void exec_close(struct ob_sink *base)
{
	struct ob_exec_sink *sink = (struct ob_exec_sink *)base;

	ob_exec_talk_end(sink);
	if (sink->ready)
		ob_exec_end(&sink->child, sink->grace_ms);
	ob_buf_done(&sink->todo);
	ob_buf_done(&sink->answers);
	ob_buf_done(&sink->words);
	free(sink->sent);
	free(sink->outcomes);
	free((void *)sink->argv);
}

/* Without the arguments, among which may be a token. */
static void exec_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct ob_exec_sink *sink = (const struct ob_exec_sink *)base;
	struct ob_err ignored = OB_ERR_INIT;
	char **argv;

	ob_buf_adds(out, "exec ");
	if (ob_exec_split(sink->command, &argv, &ignored) < 0)
		return;
	ob_utf8_sanitize(out, ob_str(argv[0]), OB_EXEC_REASON_CHARS);
	free((void *)argv);
}

static const char *const stderr_modes[] = { "inherit", "keep", NULL };

static const struct ob_opt exec_opts[] = {
	{
		.name = "command",
		.type = OB_OPT_STR,
		.offset = offsetof(struct ob_exec_sink, command),
		.flags = OB_OPT_REQUIRED,
		.help = "The program and its arguments, split at spaces; quotes and backslashes "
			"work, a shell is not involved.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct ob_exec_sink, timeout_ms),
		.dflt = "30s",
		.min = 10,
		.max = 3600000,
		.help = "Time for one message; then the program is ended and the message tried "
			"again later.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct ob_exec_sink, window),
		.dflt = "64",
		.min = 1,
		.max = 1024,
		.help = "Messages that the program may have at a time.",
	},
	{
		.name = "grace",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct ob_exec_sink, grace_ms),
		.dflt = "5s",
		.max = 60000,
		.help = "Time to end after SIGTERM, before SIGKILL.",
	},
	{
		.name = "restart_max",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct ob_exec_sink, restart_max_ms),
		.dflt = "30s",
		.min = 100,
		.max = 3600000,
		.help = "The longest wait before a program that ends without any answer is "
			"started again.",
	},
	{
		.name = "stderr",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct ob_exec_sink, stderr_mode),
		.dflt = "inherit",
		.choices = stderr_modes,
		.help = "Its stderr is the relay's own, or kept: the last line is in the error "
			"when it ends.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_exec = {
	.name = "exec",
	.size = sizeof(struct ob_exec_sink),
	.opts = exec_opts,
	.open = exec_open,
	.send = exec_send,
	.poll = exec_poll,
	.reset = exec_reset,
	.fd = exec_fd,
	.close = exec_close,
	.describe = exec_describe,
};
