/* SPDX-License-Identifier: MIT */
/* A pseudo-terminal: what is typed is echoed, as people see it. */
#include "terminal.h"

#include "outbox.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCREEN_SIZE = 8192, QUIET_MS = 30000 };

static void child(const char *const *words)
{
	char *argv[32] = { getenv("OUTBOX_BIN") };

	for (size_t i = 0; words[i] && i < 30; i++)
		argv[i + 1] = strdup(words[i]);
	if (argv[0] && chdir(dir) == 0)
		execv(argv[0], argv);
	_exit(127);
}

/* Read until the program is gone; the answer goes in as soon as it is asked for. */
static void talk(int fd, const char *prompt, const char *answer, char *screen)
{
	bool answered = false;
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		ck_assert_msg(poll(&p, 1, QUIET_MS) == 1, "nothing happens after: %s", screen);
		ssize_t n = read(fd, screen + len, SCREEN_SIZE - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* EIO: the other side is closed */
		len += (size_t)n;
		screen[len] = '\0';
		if (!answered && strstr(screen, prompt)) {
			answered = true;
			ck_assert_int_eq(write(fd, answer, strlen(answer)),
					 (ssize_t)strlen(answer));
		}
	}
}

int at_terminal(const char *const *words, const char *prompt, const char *answer, const char *want)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	char screen[SCREEN_SIZE] = "";
	int fd, status;

	pid_t pid = forkpty(&fd, NULL, NULL, &size);
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(words);
	talk(fd, prompt, answer, screen);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(close(fd), 0);
	ck_assert_str_eq(screen, want);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}
