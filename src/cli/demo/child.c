/* SPDX-License-Identifier: MIT */
/* fork and exec; only calls that are safe in a child of a program with threads. */
#include "cli/demo/child.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { LOOK_MS = 2, CANNOT_RUN = 127 };

static void become(const struct ob_child_conf *conf, int log, pid_t parent)
{
	char *const *argv;
	sigset_t nothing;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it ended before the call above */
		_exit(CANNOT_RUN);
	(void)sigemptyset(&nothing);
	(void)sigprocmask(SIG_SETMASK, &nothing, NULL);
	int null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
	    chdir(conf->dir) < 0)
		_exit(CANNOT_RUN);
	/* execv() promises not to write, but its type does not say so */
	memcpy((void *)&argv, (const void *)&conf->argv, sizeof(argv));
	(void)execv(conf->program, argv);
	_exit(CANNOT_RUN);
}

int ob_child_start(struct ob_child *child, const struct ob_child_conf *conf, struct ob_err *err)
{
	OB_AUTOCLOSE int log = open(conf->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	pid_t parent = getpid();

	if (log < 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "opening '%s'", conf->log);
	pid_t pid = fork();
	if (pid < 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "starting a process");
	if (pid == 0)
		become(conf, log, parent);
	*child = (struct ob_child){ .pid = pid, .state = OB_CHILD_RUNS };
	return 0;
}

enum ob_child_state ob_child_look(struct ob_child *child)
{
	int status;

	if (child->state == OB_CHILD_NONE || child->state == OB_CHILD_ENDED)
		return child->state;
	while (waitpid(child->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child->pid) {
		if (WIFSTOPPED(status)) {
			child->state = OB_CHILD_STOPPED;
		} else if (WIFCONTINUED(status)) {
			child->state = OB_CHILD_RUNS;
		} else {
			child->state = OB_CHILD_ENDED;
			child->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
			break;
		}
	}
	return child->state;
}

void ob_child_signal(const struct ob_child *child, int signal_number)
{
	/* until we have seen its end its number cannot belong to another */
	if (child->state == OB_CHILD_RUNS || child->state == OB_CHILD_STOPPED)
		(void)kill(child->pid, signal_number);
}

static bool wait_for(struct ob_child *child, enum ob_child_state state, int timeout_ms)
{
	int64_t end = ob_clock_boot_us(&ob_clock_system) + timeout_ms * INT64_C(1000);

	while (ob_child_look(child) != state) {
		if (child->state == OB_CHILD_NONE || child->state == OB_CHILD_ENDED ||
		    ob_clock_boot_us(&ob_clock_system) >= end)
			return false;
		(void)poll(NULL, 0, LOOK_MS);
	}
	return true;
}

bool ob_child_wait_end(struct ob_child *child, int timeout_ms)
{
	return wait_for(child, OB_CHILD_ENDED, timeout_ms);
}

bool ob_child_wait_stop(struct ob_child *child, int timeout_ms)
{
	return wait_for(child, OB_CHILD_STOPPED, timeout_ms);
}

void ob_child_done(struct ob_child *child)
{
	int status;

	if (ob_child_look(child) != OB_CHILD_RUNS && child->state != OB_CHILD_STOPPED)
		return;
	(void)kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	child->state = OB_CHILD_ENDED;
	child->code = -SIGKILL;
}
