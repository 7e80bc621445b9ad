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
#include "base/backoff.h"
#include "base/utf8.h"
#include "sink/exec_child.h"
#include "sink/line.h"
#include "sink/sink.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ANSWER_MAX = 8 << 10,  /* of one line of the program */
	REASON_CHARS = 300,    /* of it in an error */
	PENDING_MAX = 4 << 20, /* bytes of lines, before one more makes the window full */
	KEEP_MAX = 16 << 20,   /* memory kept when nothing is pending */
	LAST_WORDS_MS = 200,   /* how long a program that closed its pipes may take to end */
	RESTART_MS = 100,
};

enum stderr_mode { STDERR_INHERIT, STDERR_KEEP };

struct sent {
	uint64_t tag;
	struct ob_uuid id;
	uint64_t end; /* of its line, in bytes since the program was started */
	int64_t since_us, deadline_us;
};

struct exec_sink {
	struct ob_sink base;
	char *command;
	int64_t timeout_ms, grace_ms, restart_max_ms;
	uint32_t window;
	int stderr_mode;

	bool ready; /* set up once */
	bool open;  /* the program runs and is spoken to; else it may still be ending */
	char **argv;
	struct ob_exec_child child;
	int epoll;                    /* counts when open */
	bool wants_out;               /* the epoll waits for room in its stdin */
	struct ob_buf todo;           /* lines */
	size_t written;               /* bytes of todo */
	uint64_t base_end;            /* bytes before todo */
	struct ob_buf answers, words; /* unfinished lines of its stdout and its stderr */
	char last_word[REASON_CHARS]; /* the last whole line of its stderr */
	struct sent *sent;            /* unconfirmed, in the order of sending */
	struct ob_ack *outcomes;
	uint32_t sent_count, outcome_count;
	int64_t progress_us; /* the last answer, or the start */
	bool answered;
	struct ob_backoff backoff;
	int64_t restart_us; /* not before */
};

static int64_t now_us(const struct exec_sink *sink)
{
	return ob_clock_boot_us(sink->base.clock);
}

/* ---- losing the program ---------------------------------------------- */

static void add_outcome(struct exec_sink *sink, uint64_t tag, const struct ob_err *err)
{
	assert(sink->outcome_count < sink->window);
	sink->outcomes[sink->outcome_count++] = (struct ob_ack){ tag, *err };
}

static void forget_lines(struct exec_sink *sink)
{
	if (sink->todo.cap > KEEP_MAX)
		ob_buf_done(&sink->todo);
	ob_buf_clear(&sink->todo);
	sink->written = 0;
}

/* Stop talking: the program is asked to end, and awaited by the next open() or close(). */
static void hang_up(struct exec_sink *sink)
{
	if (!sink->open)
		return;
	sink->open = false;
	(void)close(sink->epoll);
	ob_exec_hang_up(&sink->child);
	forget_lines(sink);
	ob_buf_clear(&sink->answers);
	ob_buf_clear(&sink->words);
}

/* All that is unconfirmed gets this outcome. */
static void lose(struct exec_sink *sink, const struct ob_err *err)
{
	for (uint32_t i = 0; i < sink->sent_count; i++)
		add_outcome(sink, sink->sent[i].tag, err);
	sink->sent_count = 0;
	if (sink->answered)
		ob_backoff_reset(&sink->backoff);
	int64_t wait_ms = sink->answered ? 0 : ob_backoff_next_ms(&sink->backoff);
	sink->restart_us = now_us(sink) + wait_ms * 1000;
	hang_up(sink);
}

static int down(struct ob_err *err, const char *what, const char *detail)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "%s%s%s", what, *detail ? ": " : "",
			  detail);
}

static void set_end(const struct exec_sink *sink, int status, struct ob_err *err)
{
	bool killed = WIFSIGNALED(status);
	int number = killed ? WTERMSIG(status) : WEXITSTATUS(status);

	(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the handler ended %s %d%s%s",
			 killed ? "by signal" : "with exit code", number,
			 sink->last_word[0] ? ": " : "", sink->last_word);
	(void)snprintf(err->native, sizeof(err->native), "%s %d", killed ? "signal" : "exit",
		       number);
}

/* ---- what it says ---------------------------------------------------- */

static void clean(char *out, size_t size, struct ob_str text)
{
	struct ob_buf line = OB_BUF_INIT(REASON_CHARS * 4 + 1);

	ob_utf8_sanitize(&line, text, size / 4 - 1);
	(void)snprintf(out, size, "%s", ob_buf_str(&line));
	ob_buf_done(&line);
}

static struct ob_str take_word(struct ob_str *line)
{
	const char *space = memchr(line->p, ' ', line->n);
	struct ob_str word = { line->p, space ? (size_t)(space - line->p) : line->n };
	size_t used = word.n + (space ? 1 : 0);

	*line = (struct ob_str){ line->p + used, line->n - used };
	return word;
}

/* Its place among the unconfirmed whose lines are wholly written; else sent_count. */
static uint32_t find_sent(const struct exec_sink *sink, struct ob_str id_text)
{
	uint64_t written = sink->base_end + sink->written;
	struct ob_uuid id;
	uint32_t i = 0;

	if (!ob_uuid_parse(id_text, &id))
		return sink->sent_count;
	while (i < sink->sent_count &&
	       (!ob_uuid_eq(&sink->sent[i].id, &id) || sink->sent[i].end > written))
		i++;
	return i;
}

static void remove_sent(struct exec_sink *sink, uint32_t at)
{
	sink->sent_count--;
	memmove(sink->sent + at, sink->sent + at + 1,
		(sink->sent_count - at) * sizeof(*sink->sent));
}

/* One answer; false with the reason when it is none. */
static bool take_answer(struct exec_sink *sink, struct ob_str line, struct ob_err *err)
{
	struct ob_err outcome = OB_ERR_INIT;
	char text[REASON_CHARS];
	struct ob_str rest = line;
	struct ob_str verb = take_word(&rest);
	struct ob_str id = take_word(&rest);
	bool ok = ob_str_eq(verb, OB_STR("ok")) && rest.n == 0;
	bool retry = ob_str_eq(verb, OB_STR("retry"));
	uint32_t at = find_sent(sink, id);

	if (!ok && !retry && !ob_str_eq(verb, OB_STR("reject"))) {
		clean(text, sizeof(text), line);
		(void)down(err, "the handler wrote a line that is no answer", text);
		return false;
	}
	if (at == sink->sent_count) {
		clean(text, sizeof(text), line);
		(void)down(err, "the handler answered a message that it was not asked about", text);
		return false;
	}
	if (!ok) {
		clean(text, sizeof(text), rest);
		(void)ob_err_set(&outcome, OUTBOX_ESINK, retry ? OB_ERR_RETRY : OB_ERR_REJECT,
				 "the handler says %s%s%s", retry ? "retry" : "reject",
				 text[0] ? ": " : "", text);
	}
	add_outcome(sink, sink->sent[at].tag, &outcome);
	remove_sent(sink, at);
	sink->progress_us = now_us(sink);
	sink->answered = true;
	return true;
}

/* Every whole line of `answers`. */
static bool take_answers(struct exec_sink *sink, struct ob_err *err)
{
	struct ob_str text = ob_buf_view(&sink->answers);
	size_t at = 0;

	for (;;) {
		const char *end = memchr(text.p + at, '\n', text.n - at);
		size_t n = end ? (size_t)(end - text.p) - at : 0;

		if (!end)
			break;
		bool cr = n > 0 && text.p[at + n - 1] == '\r';
		if (!take_answer(sink, (struct ob_str){ text.p + at, n - cr }, err))
			return false;
		at += n + 1;
	}
	if (at > 0) {
		memmove(sink->answers.data, sink->answers.data + at, text.n - at + 1);
		sink->answers.len -= at;
	}
	if (sink->answers.len < ANSWER_MAX)
		return true;
	(void)down(err, "the handler wrote a line without an end", "");
	return false;
}

enum told { TOLD_NOTHING, TOLD_SOME, TOLD_END, TOLD_WRONG };

/* One piece of its stdout. */
static enum told read_answers(struct exec_sink *sink, struct ob_err *err)
{
	char chunk[4096];
	ssize_t n = read(sink->child.out, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? TOLD_NOTHING : TOLD_END;
	if (n == 0)
		return TOLD_END;
	ob_buf_add(&sink->answers, (struct ob_str){ chunk, (size_t)n });
	if (sink->answers.failed) {
		(void)down(err, "no memory for the handler's answers", "");
		return TOLD_WRONG;
	}
	return take_answers(sink, err) ? TOLD_SOME : TOLD_WRONG;
}

/* Keep the last whole line; a line that never ends is cut. */
static void take_words(struct exec_sink *sink, struct ob_str piece)
{
	for (size_t i = 0; i < piece.n; i++) {
		if (piece.p[i] != '\n') {
			if (sink->words.len < REASON_CHARS)
				ob_buf_addc(&sink->words, piece.p[i]);
			continue;
		}
		if (sink->words.len > 0)
			clean(sink->last_word, sizeof(sink->last_word), ob_buf_view(&sink->words));
		ob_buf_clear(&sink->words);
	}
}

static void read_words(struct exec_sink *sink)
{
	char chunk[4096];
	ssize_t n = 1;

	for (int i = 0; i < 16 && n > 0 && sink->child.err >= 0; i++) {
		n = read(sink->child.err, chunk, sizeof(chunk));
		if (n > 0)
			take_words(sink, (struct ob_str){ chunk, (size_t)n });
	}
	if (n == 0) { /* closed: else the epoll would report it for ever */
		(void)close(sink->child.err);
		sink->child.err = -1;
	}
}

/* ---- moving bytes ---------------------------------------------------- */

static void want_out(struct exec_sink *sink, bool wanted)
{
	struct epoll_event event = { .events = wanted ? EPOLLOUT : 0, .data.fd = sink->child.in };

	if (wanted != sink->wants_out)
		(void)epoll_ctl(sink->epoll, EPOLL_CTL_MOD, sink->child.in, &event);
	sink->wants_out = wanted;
}

/* A pipe without a reader, even when there is nothing to write. */
static bool is_deaf(const struct exec_sink *sink)
{
	struct pollfd pfd = { .fd = sink->child.in };

	return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLERR);
}

static void compact(struct exec_sink *sink)
{
	size_t left = sink->todo.len - sink->written;

	if (left > 0 && (sink->written < PENDING_MAX || sink->written < sink->todo.len / 2))
		return;
	sink->base_end += sink->written;
	if (left == 0) {
		forget_lines(sink);
		return;
	}
	memmove(sink->todo.data, sink->todo.data + sink->written, left + 1);
	sink->todo.len = left;
	sink->written = 0;
}

/* False when the program does not read any more. */
static bool write_lines(struct exec_sink *sink)
{
	while (sink->written < sink->todo.len) {
		ssize_t n = write(sink->child.in, sink->todo.data + sink->written,
				  sink->todo.len - sink->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n <= 0)
			break;
		sink->written += (size_t)n;
	}
	compact(sink);
	want_out(sink, sink->todo.len > 0);
	return true;
}

/* It ended, or closed a pipe: what it said before counts, and its end says why. */
static void part(struct exec_sink *sink, const char *what)
{
	struct ob_err err = OB_ERR_INIT;
	bool over = ob_exec_is_over(&sink->child, LAST_WORDS_MS);
	enum told told = TOLD_SOME;
	int status = 0;

	while (told == TOLD_SOME)
		told = read_answers(sink, &err);
	read_words(sink);
	if (told == TOLD_WRONG)
		(void)ob_err_context(&err, "the handler was ended");
	else if (over && ob_exec_wait(&sink->child, 0, &status))
		set_end(sink, status, &err);
	else
		(void)down(&err, what, sink->last_word);
	lose(sink, &err);
}

static void move_bytes(struct exec_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;
	enum told told = TOLD_SOME;
	bool over = ob_exec_is_over(&sink->child, 0); /* asked first: what it said is there then */

	if (!over && (!write_lines(sink) || is_deaf(sink))) {
		part(sink, "the handler closed its input");
		return;
	}
	while (told == TOLD_SOME)
		told = read_answers(sink, &err);
	if (told == TOLD_WRONG)
		lose(sink, &err);
	else if (over || told == TOLD_END)
		part(sink, "the handler closed its output");
	else
		read_words(sink);
}

/* When the oldest is to be answered: a program that takes one after the other is busy till then. */
static int64_t oldest_due_us(const struct exec_sink *sink)
{
	int64_t since = sink->sent[0].since_us;

	return (since > sink->progress_us ? since : sink->progress_us) + sink->timeout_ms * 1000;
}

/* The one that is late, or sent_count. */
static uint32_t find_late(const struct exec_sink *sink)
{
	int64_t now = now_us(sink);
	uint32_t i = 0;

	if (sink->sent_count > 0 && now >= oldest_due_us(sink))
		return 0;
	while (i < sink->sent_count && now < sink->sent[i].deadline_us)
		i++;
	return i;
}

/* Only a program that is gone cannot act on the late message after its retry. */
static void check_time(struct exec_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;
	uint32_t late = find_late(sink);

	if (late == sink->sent_count)
		return;
	(void)ob_err_set(&err, OUTBOX_ESINK, OB_ERR_RETRY,
			 "the handler did not answer within %lld ms (the sink's timeout)",
			 (long long)sink->timeout_ms);
	add_outcome(sink, sink->sent[late].tag, &err);
	remove_sent(sink, late);
	(void)down(&err, "the handler was ended: it did not answer another message in time",
		   sink->last_word);
	lose(sink, &err);
}

/* ---- the operations -------------------------------------------------- */

static int set_up(struct exec_sink *sink, struct ob_err *err)
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
	sink->answers = OB_BUF_INIT((size_t)2 * ANSWER_MAX);
	sink->words = OB_BUF_INIT(REASON_CHARS);
	sink->child = OB_EXEC_CHILD_INIT;
	ob_backoff_init(&sink->backoff, RESTART_MS, sink->restart_max_ms);
	sink->ready = true;
	return 0;
}

static int watch(struct exec_sink *sink)
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
	struct exec_sink *sink = (struct exec_sink *)base;
	int64_t wait_us = sink->restart_us - now_us(sink);
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
	sink->progress_us = now_us(sink);
	return 0;
}

static int exec_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct exec_sink *sink = (struct exec_sink *)base;
	int64_t now = now_us(sink);

	if (!sink->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the handler does not run");
	if (sink->sent_count + sink->outcome_count == sink->window ||
	    sink->todo.len - sink->written >= PENDING_MAX)
		return OB_SINK_FULL;
	int r = ob_line_add(&sink->todo, delivery, err);
	if (r < 0)
		return r;
	sink->sent[sink->sent_count] = (struct sent){
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

static int take_outcomes(struct exec_sink *sink, struct ob_ack *acks, size_t max)
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

/* Until something happens, a message is late, or the caller's time is over. */
static void wait_for_it(const struct exec_sink *sink, int64_t end_us)
{
	struct epoll_event event;
	int64_t until = oldest_due_us(sink);

	for (uint32_t i = 0; i < sink->sent_count; i++)
		until = sink->sent[i].deadline_us < until ? sink->sent[i].deadline_us : until;
	until = end_us < until ? end_us : until;
	int64_t left_ms = (until - now_us(sink) + 999) / 1000;
	if (left_ms > 0)
		(void)epoll_wait(sink->epoll, &event, 1, (int)(left_ms < 1000 ? left_ms : 1000));
}

static int exec_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		     struct ob_err *err)
{
	struct exec_sink *sink = (struct exec_sink *)base;
	int64_t end_us = now_us(sink) + timeout_ms * INT64_C(1000);

	(void)err; /* whatever happens to the program, it can be started again */
	while (sink->open) {
		move_bytes(sink);
		check_time(sink);
		if (!sink->open || sink->outcome_count > 0 || sink->sent_count == 0 ||
		    now_us(sink) >= end_us)
			break;
		wait_for_it(sink, end_us);
	}
	return take_outcomes(sink, acks, max);
}

static void exec_reset(struct ob_sink *base)
{
	struct exec_sink *sink = (struct exec_sink *)base;

	/* Also what it has read already must not be worked on any longer. */
	if (sink->sent_count > 0)
		hang_up(sink);
	sink->sent_count = sink->outcome_count = 0;
}

static int exec_fd(struct ob_sink *base)
{
	const struct exec_sink *sink = (const struct exec_sink *)base;

	return sink->open ? sink->epoll : -1;
}

static void exec_close(struct ob_sink *base)
{
	struct exec_sink *sink = (struct exec_sink *)base;

	hang_up(sink);
	if (sink->ready)
		ob_exec_end(&sink->child, sink->grace_ms);
	ob_buf_done(&sink->todo);
	ob_buf_done(&sink->answers);
	ob_buf_done(&sink->words);
	free(sink->sent);
	free(sink->outcomes);
	free((void *)sink->argv);
}

static void exec_describe(struct ob_sink *base, struct ob_buf *out)
{
	const struct exec_sink *sink = (const struct exec_sink *)base;

	ob_buf_adds(out, "exec ");
	ob_utf8_sanitize(out, ob_str(sink->command), REASON_CHARS);
}

static const char *const stderr_modes[] = { "inherit", "keep", NULL };

static const struct ob_opt exec_opts[] = {
	{
		.name = "command",
		.type = OB_OPT_STR,
		.offset = offsetof(struct exec_sink, command),
		.flags = OB_OPT_REQUIRED,
		.help = "The program and its arguments, split at spaces; quotes and backslashes "
			"work, a shell is not involved.",
	},
	{
		.name = "timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct exec_sink, timeout_ms),
		.dflt = "30s",
		.min = 10,
		.max = 3600000,
		.help = "Time for one message; then the program is ended and the message tried "
			"again later.",
	},
	{
		.name = "window",
		.type = OB_OPT_U32,
		.offset = offsetof(struct exec_sink, window),
		.dflt = "64",
		.min = 1,
		.max = 1024,
		.help = "Messages that the program may have at a time.",
	},
	{
		.name = "grace",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct exec_sink, grace_ms),
		.dflt = "5s",
		.max = 60000,
		.help = "Time to end after SIGTERM, before SIGKILL.",
	},
	{
		.name = "restart_max",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct exec_sink, restart_max_ms),
		.dflt = "30s",
		.min = 100,
		.max = 3600000,
		.help = "The longest wait before a program that ends without any answer is "
			"started again.",
	},
	{
		.name = "stderr",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct exec_sink, stderr_mode),
		.dflt = "inherit",
		.choices = stderr_modes,
		.help = "Its stderr is the relay's own, or kept: the last line is in the error "
			"when it ends.",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_exec = {
	.name = "exec",
	.size = sizeof(struct exec_sink),
	.opts = exec_opts,
	.open = exec_open,
	.send = exec_send,
	.poll = exec_poll,
	.reset = exec_reset,
	.fd = exec_fd,
	.close = exec_close,
	.describe = exec_describe,
};
