/* SPDX-License-Identifier: MIT */
/* A program as a child process that can be killed, paused and waited for. */
#ifndef OB_CLI_DEMO_CHILD_H
#define OB_CLI_DEMO_CHILD_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

enum ob_child_state {
	OB_CHILD_NONE, /* all zero: never started */
	OB_CHILD_RUNS,
	OB_CHILD_STOPPED, /* by SIGSTOP */
	OB_CHILD_ENDED,
};

struct ob_child {
	pid_t pid;
	enum ob_child_state state;
	int code; /* ENDED: exit code, or -signal */
};

struct ob_child_conf {
	const char *program;     /* a path */
	const char *const *argv; /* ends with NULL */
	const char *dir;         /* working directory */
	const char *log;         /* a file that its outputs are appended to */
};

/*
 * Start it in a process group of its own, so that Ctrl-C does not reach it, with no
 * signal blocked. It is killed when the thread that started it ends. A program
 * that cannot be run ends with code 127.
 */
int ob_child_start(struct ob_child *child, const struct ob_child_conf *conf, struct ob_err *err);
/* What became of it, without waiting; returns the state. */
enum ob_child_state ob_child_look(struct ob_child *child);
/* Send a signal, unless it has ended. */
void ob_child_signal(const struct ob_child *child, int signal_number);
/* Wait until it has ended, or has been stopped; false after timeout_ms. */
bool ob_child_wait_end(struct ob_child *child, int timeout_ms);
bool ob_child_wait_stop(struct ob_child *child, int timeout_ms);
/* Kill it if it still runs. All zero is allowed. */
void ob_child_done(struct ob_child *child);

#endif
