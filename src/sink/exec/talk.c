/* SPDX-License-Identifier: MIT */
/* Lines to the program, its answers, and what it means when it says something else. */
#include "base/utf8.h"
#include "sink/exec/exec.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	KEEP_MAX = 16 << 20, /* memory kept when nothing is pending */
	LAST_WORDS_MS = 200, /* how long a program that closed its pipes may take to end */
};

/* ---- losing the program ---------------------------------------------- */

static void add_outcome(struct ob_exec_sink *sink, uint64_t tag, const struct ob_err *err)
{
	assert(sink->outcome_count < sink->window);
	sink->outcomes[sink->outcome_count++] = (struct ob_ack){ tag, *err };
}

static void forget_lines(struct ob_exec_sink *sink)
{
	if (sink->todo.cap > KEEP_MAX)
		ob_buf_done(&sink->todo);
	ob_buf_clear(&sink->todo);
	sink->written = 0;
}

void ob_exec_talk_end(struct ob_exec_sink *sink)
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
static void lose(struct ob_exec_sink *sink, const struct ob_err *err)
{
	for (uint32_t i = 0; i < sink->sent_count; i++)
		add_outcome(sink, sink->sent[i].tag, err);
	sink->sent_count = 0;
	if (sink->answered)
		ob_backoff_reset(&sink->backoff);
	int64_t wait_ms = sink->answered ? 0 : ob_backoff_next_ms(&sink->backoff);
	sink->restart_us = ob_exec_now_us(sink) + wait_ms * 1000;
	ob_exec_talk_end(sink);
}

static int down(struct ob_err *err, const char *what, const char *detail)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "%s%s%s", what, *detail ? ": " : "",
			  detail);
}

static void set_end(const struct ob_exec_sink *sink, int status, struct ob_err *err)
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
	struct ob_buf line = OB_BUF_INIT(OB_EXEC_REASON_CHARS * 4 + 1);

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
static uint32_t find_sent(const struct ob_exec_sink *sink, struct ob_str id_text)
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

static void remove_sent(struct ob_exec_sink *sink, uint32_t at)
{
	sink->sent_count--;
	memmove(sink->sent + at, sink->sent + at + 1,
		(sink->sent_count - at) * sizeof(*sink->sent));
}

/* One answer; false with the reason when it is none. */
static bool take_answer(struct ob_exec_sink *sink, struct ob_str line, struct ob_err *err)
{
	struct ob_err outcome = OB_ERR_INIT;
	char text[OB_EXEC_REASON_CHARS];
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
	sink->progress_us = ob_exec_now_us(sink);
	sink->answered = true;
	return true;
}

/* Every whole line of `answers`. */
static bool take_answers(struct ob_exec_sink *sink, struct ob_err *err)
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
	if (sink->answers.len < OB_EXEC_ANSWER_MAX)
		return true;
	(void)down(err, "the handler wrote a line without an end", "");
	return false;
}

enum told { TOLD_NOTHING, TOLD_SOME, TOLD_END, TOLD_WRONG };

/* One piece of its stdout. */
static enum told read_answers(struct ob_exec_sink *sink, struct ob_err *err)
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
static void take_words(struct ob_exec_sink *sink, struct ob_str piece)
{
	for (size_t i = 0; i < piece.n; i++) {
		if (piece.p[i] != '\n') {
			if (sink->words.len < OB_EXEC_REASON_CHARS)
				ob_buf_addc(&sink->words, piece.p[i]);
			continue;
		}
		if (sink->words.len > 0)
			clean(sink->last_word, sizeof(sink->last_word), ob_buf_view(&sink->words));
		ob_buf_clear(&sink->words);
	}
}

static void read_words(struct ob_exec_sink *sink)
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

static void want_out(struct ob_exec_sink *sink, bool wanted)
{
	struct epoll_event event = { .events = wanted ? EPOLLOUT : 0, .data.fd = sink->child.in };

	if (wanted != sink->wants_out)
		(void)epoll_ctl(sink->epoll, EPOLL_CTL_MOD, sink->child.in, &event);
	sink->wants_out = wanted;
}

/* A pipe without a reader, even when there is nothing to write. */
static bool is_deaf(const struct ob_exec_sink *sink)
{
	struct pollfd pfd = { .fd = sink->child.in };

	return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLERR);
}

static void compact(struct ob_exec_sink *sink)
{
	size_t left = sink->todo.len - sink->written;

	if (left > 0 && (sink->written < OB_EXEC_PENDING_MAX || sink->written < sink->todo.len / 2))
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
static bool write_lines(struct ob_exec_sink *sink)
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
static void part(struct ob_exec_sink *sink, const char *what)
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
	err.hung_up = true;
	lose(sink, &err);
}

void ob_exec_talk_move(struct ob_exec_sink *sink)
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
	if (told == TOLD_WRONG) {
		err.hung_up = true; /* what it said is no answer, and it is ended over that */
		lose(sink, &err);
	} else if (over || told == TOLD_END)
		part(sink, "the handler closed its output");
	else
		read_words(sink);
}

/* When the oldest is to be answered: a program that takes one after the other is busy till then. */
static int64_t oldest_due_us(const struct ob_exec_sink *sink)
{
	int64_t since = sink->sent[0].since_us;

	return (since > sink->progress_us ? since : sink->progress_us) + sink->timeout_ms * 1000;
}

/* The one that is late, or sent_count. */
static uint32_t find_late(const struct ob_exec_sink *sink)
{
	int64_t now = ob_exec_now_us(sink);
	uint32_t i = 0;

	if (sink->sent_count > 0 && now >= oldest_due_us(sink))
		return 0;
	while (i < sink->sent_count && now < sink->sent[i].deadline_us)
		i++;
	return i;
}

void ob_exec_talk_check(struct ob_exec_sink *sink)
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

void ob_exec_talk_wait(const struct ob_exec_sink *sink, int64_t end_us)
{
	struct epoll_event event;
	int64_t until = oldest_due_us(sink);

	for (uint32_t i = 0; i < sink->sent_count; i++)
		until = sink->sent[i].deadline_us < until ? sink->sent[i].deadline_us : until;
	until = end_us < until ? end_us : until;
	int64_t left_ms = (until - ob_exec_now_us(sink) + 999) / 1000;
	if (left_ms > 0)
		(void)epoll_wait(sink->epoll, &event, 1, (int)(left_ms < 1000 ? left_ms : 1000));
}
