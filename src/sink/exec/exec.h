/* SPDX-License-Identifier: MIT */
/* The exec sink's own state, and its talk with the program that runs. */
#ifndef OB_SINK_EXEC_H
#define OB_SINK_EXEC_H

#include "base/backoff.h"
#include "sink/exec/child.h"
#include "sink/sink.h"

enum {
	OB_EXEC_ANSWER_MAX = 8 << 10,  /* of one line of the program */
	OB_EXEC_REASON_CHARS = 300,    /* of it in an error */
	OB_EXEC_PENDING_MAX = 4 << 20, /* bytes of lines, before one more makes the window full */
};

struct ob_exec_sent {
	uint64_t tag;
	struct ob_uuid id;
	uint64_t end; /* of its line, in bytes since the program was started */
	int64_t since_us, deadline_us;
};

struct ob_exec_sink {
	struct ob_sink base;
	char *command;
	int64_t timeout_ms, grace_ms, restart_max_ms;
	uint32_t window;
	int stderr_mode;

	bool ready; /* set up once */
	bool open;  /* the program runs and is spoken to; else it may still be ending */
	char **argv;
	struct ob_exec_child child;
	int epoll;                            /* counts when open */
	bool wants_out;                       /* the epoll waits for room in its stdin */
	struct ob_buf todo;                   /* lines */
	size_t written;                       /* bytes of todo */
	uint64_t base_end;                    /* bytes before todo */
	struct ob_buf answers, words;         /* unfinished lines of its stdout and its stderr */
	char last_word[OB_EXEC_REASON_CHARS]; /* the last whole line of its stderr */
	struct ob_exec_sent *sent;            /* unconfirmed, in the order of sending */
	struct ob_ack *outcomes;
	uint32_t sent_count, outcome_count;
	int64_t progress_us; /* the last answer, or the start */
	bool answered;
	struct ob_backoff backoff;
	int64_t restart_us; /* not before */
};

static inline int64_t ob_exec_now_us(const struct ob_exec_sink *sink)
{
	return ob_clock_boot_us(sink->base.clock);
}

/* Move bytes out and in, and take what it answers; when it is lost, so is all that is unconfirmed.
 */
void ob_exec_talk_move(struct ob_exec_sink *sink);
/* End it when an answer is late: only a program that is gone cannot act on it after the retry. */
void ob_exec_talk_check(struct ob_exec_sink *sink);
/* Until something happens, a message is late, or the caller's time is over. */
void ob_exec_talk_wait(const struct ob_exec_sink *sink, int64_t end_us);
/* Stop talking: the program is asked to end, and awaited by the next open() or close(). */
void ob_exec_talk_end(struct ob_exec_sink *sink);

#endif
