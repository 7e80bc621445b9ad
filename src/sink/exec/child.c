/* SPDX-License-Identifier: MIT */
/* posix_spawn() and pipes: nothing here runs between fork and exec, so threads do no harm. */
#include "sink/exec/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 2, FIRST_FD = 3 };

extern char **environ; /* NOLINT(readability-redundant-declaration): not in every unistd.h */

/* ---- the command line ------------------------------------------------ */

/* One argument from *from to *to, both moved on; false: a quote or a backslash is left open. */
static bool take_word(const char **from, char **to)
{
	const char *p = *from;
	char *out = *to, quote = '\0';

	for (; *p && (quote || (*p != ' ' && *p != '\t')); p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"') {
			quote = (char)(quote ? '\0' : *p);
			continue;
		}
		if (*p == '\\' && quote != '\'' && !*++p)
			return false;
		*out++ = *p;
	}
	*out++ = '\0';
	*from = p;
	*to = out;
	return !quote;
}

int ob_exec_split(const char *command, char ***ret_argv, struct ob_err *err)
{
	size_t size = strlen(command) + 1;
	size_t most = size / 2 + 1; /* arguments, and the NULL behind them */
	char **argv = calloc(1, most * sizeof(*argv) + size);
	size_t count = 0;

	if (!argv)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a command");
	char *to = (char *)(argv + most);
	for (command += strspn(command, " \t"); *command; command += strspn(command, " \t")) {
		argv[count++] = to;
		if (take_word(&command, &to))
			continue;
		free((void *)argv);
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "command: a quote or a backslash is left open");
	}
	if (count == 0 || !argv[0][0]) {
		free((void *)argv);
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "command: it names no program");
	}
	*ret_argv = argv;
	return 0;
}

/* ---- starting -------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void close_pipes(struct ob_exec_child *child)
{
	close_fd(&child->in);
	close_fd(&child->out);
	close_fd(&child->err);
}

/* The ends that the child gets; 0: stdin, 1: stdout, 2: stderr. */
struct far_ends {
	int fd[3];
};

static void close_far(struct far_ends *far)
{
	for (int i = 0; i < 3; i++)
		close_fd(&far->fd[i]);
}

/* Ours does not block; the child's does, as every program expects of its stdin and stdout. */
static int make_pipe(int *ret_near, int *ret_far, bool child_reads)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*ret_near = ends[child_reads ? 1 : 0];
	*ret_far = ends[child_reads ? 0 : 1];
	return fcntl(*ret_near, F_SETFL, O_NONBLOCK);
}

static int make_pipes(struct ob_exec_child *child, bool pipe_stderr, struct far_ends *far)
{
	int r = make_pipe(&child->in, &far->fd[0], true);

	if (r == 0)
		r = make_pipe(&child->out, &far->fd[1], false);
	if (r == 0 && pipe_stderr)
		r = make_pipe(&child->err, &far->fd[2], false);
	return r;
}

/* The relay blocks signals and ignores SIGPIPE: a handler starts with a clean slate. */
static int set_attributes(posix_spawnattr_t *attr)
{
	const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	r = posix_spawnattr_setflags(attr, flags);
	r = r ? r : posix_spawnattr_setpgroup(attr, 0);
	r = r ? r : posix_spawnattr_setsigmask(attr, &none);
	return r ? r : posix_spawnattr_setsigdefault(attr, &all);
}

static int set_files(posix_spawn_file_actions_t *files, const struct far_ends *far)
{
	int r = 0;

	for (int i = 0; i < 3 && r == 0; i++) {
		if (far->fd[i] >= 0)
			r = posix_spawn_file_actions_adddup2(files, far->fd[i], i);
	}
	return r ? r : posix_spawn_file_actions_addclosefrom_np(files, FIRST_FD);
}

/* 0 or an errno value. */
static int spawn(pid_t *ret_pid, char *const *argv, const struct far_ends *far)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int r = posix_spawnattr_init(&attr);

	if (r != 0)
		return r;
	r = posix_spawn_file_actions_init(&files);
	if (r == 0) {
		r = set_attributes(&attr);
		r = r ? r : set_files(&files, far);
		r = r ? r : posix_spawnp(ret_pid, argv[0], &files, &attr, argv, environ);
		(void)posix_spawn_file_actions_destroy(&files);
	}
	(void)posix_spawnattr_destroy(&attr);
	return r;
}

/* The one place that knows which failures pass by themselves. */
static int start_err(const char *program, struct ob_err *err)
{
	switch (errno) {
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case ETXTBSY:
	case EIO:
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "starting '%.200s'", program);
	default:
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_FATAL,
				    "starting '%.200s' (install the program, or correct the sink's "
				    "command)",
				    program);
	}
}

int ob_exec_start(struct ob_exec_child *child, char *const *argv, bool pipe_stderr,
		  struct ob_err *err)
{
	struct ob_exec_child fresh = OB_EXEC_CHILD_INIT;
	struct far_ends far = { { -1, -1, -1 } };
	int r = make_pipes(&fresh, pipe_stderr, &far);

	if (r == 0) {
		int failure = spawn(&fresh.pid, argv, &far);

		if (failure != 0) {
			errno = failure;
			r = -1;
		}
	}
	if (r < 0) {
		r = start_err(argv[0], err);
		close_far(&far);
		close_pipes(&fresh);
		return r;
	}
	close_far(&far);
	fresh.pidfd = (int)syscall(SYS_pidfd_open, fresh.pid, 0); /* sets close-on-exec */
	*child = fresh;
	return 0;
}

/* ---- ending ---------------------------------------------------------- */

void ob_exec_hang_up(struct ob_exec_child *child)
{
	close_pipes(child);
	/* Not waited for yet, so its number cannot belong to another. */
	if (child->pid > 0)
		(void)kill(-child->pid, SIGTERM);
}

/* Ended, but not yet waited for. */
static bool is_over(const struct ob_exec_child *child)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0
		       ? errno == ECHILD
		       : info.si_pid == child->pid;
}

bool ob_exec_is_over(const struct ob_exec_child *child, int64_t wait_ms)
{
	int64_t end = ob_clock_boot_us(&ob_clock_system) + wait_ms * 1000;
	struct pollfd pfd = { .fd = child->pidfd, .events = POLLIN };

	while (!is_over(child)) {
		int64_t left_ms = (end - ob_clock_boot_us(&ob_clock_system) + 999) / 1000;

		if (left_ms <= 0)
			return false;
		if (child->pidfd < 0 && left_ms > LOOK_MS)
			left_ms = LOOK_MS;
		(void)poll(&pfd, 1, (int)(left_ms < 1000 ? left_ms : 1000));
	}
	return true;
}

bool ob_exec_wait(struct ob_exec_child *child, int64_t wait_ms, int *ret_status)
{
	int status = 0;

	if (!ob_exec_is_over(child, wait_ms))
		return false;
	/* What it left running could still do the work of messages that go elsewhere now. */
	(void)kill(-child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	close_pipes(child);
	close_fd(&child->pidfd);
	child->pid = 0;
	*ret_status = status;
	return true;
}

void ob_exec_end(struct ob_exec_child *child, int64_t grace_ms)
{
	int status;

	if (child->pid == 0)
		return;
	ob_exec_hang_up(child);
	if (ob_exec_wait(child, grace_ms, &status))
		return;
	(void)kill(-child->pid, SIGKILL);
	/* Only a process stuck in the kernel outlives this; it is left to init then. */
	(void)ob_exec_wait(child, 10000, &status);
	close_fd(&child->pidfd);
	child->pid = 0;
}
