/* SPDX-License-Identifier: MIT */
/* The handler of the exec sink as a process: its command line, its pipes, its end. */
#ifndef OB_SINK_EXEC_CHILD_H
#define OB_SINK_EXEC_CHILD_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Split a command line into arguments without a shell: spaces and tabs part them,
 * '...' is taken as it stands, "..." and the open text know the backslash. On
 * success the caller frees *ret_argv, which ends with NULL and is one piece. An open
 * quote, a backslash at the end and an empty command are OUTBOX_ECONFIG.
 */
int ob_exec_split(const char *command, char ***ret_argv, struct ob_err *err);

struct ob_exec_child {
	pid_t pid;        /* 0: none; also the number of its process group */
	int in, out, err; /* our ends of its pipes, not blocking; -1: closed */
	int pidfd;        /* readable once it has ended; -1: the system has none */
};

#define OB_EXEC_CHILD_INIT ((struct ob_exec_child){ 0, -1, -1, -1, -1 })

/*
 * Start it in a process group of its own, with no signal blocked or ignored and no
 * descriptor but 0, 1 and 2. Its stderr is ours, or a pipe. A program that cannot be
 * run is FATAL, a machine short of something DOWN.
 */
int ob_exec_start(struct ob_exec_child *child, char *const *argv, bool pipe_stderr,
		  struct ob_err *err);
/* Close the pipes and ask the group to end (SIGTERM). Never waits. */
void ob_exec_hang_up(struct ob_exec_child *child);
/* Has it ended, or does it within wait_ms? Its pipes stay and may hold its last words. */
bool ob_exec_is_over(const struct ob_exec_child *child, int64_t wait_ms);
/*
 * Has it ended, or does it within wait_ms? Then what is left of its group is killed,
 * the child is gone (pid 0) and *ret_status is what waitpid() says of it.
 */
bool ob_exec_wait(struct ob_exec_child *child, int64_t wait_ms, int *ret_status);
/* Hang up, wait up to grace_ms, then kill it: afterwards it is gone. None is allowed. */
void ob_exec_end(struct ob_exec_child *child, int64_t grace_ms);

#endif
