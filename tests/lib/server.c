/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_MS = 60000, STOP_MS = 30000 };

int64_t server_now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

void server_pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* ---- its directory --------------------------------------------------- */

bool server_make_dir(char *dir, const char *user)
{
	const struct passwd *who = geteuid() == 0 ? getpwnam(user) : NULL;

	if (!mkdtemp(dir) || (who && chown(dir, who->pw_uid, who->pw_gid) < 0))
		return false;
	/* Its socket is for the tests, which may run as another user. */
	return chmod(dir, 0755) == 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void server_remove_dir(const char *dir)
{
	if (strstr(dir, "/outbox-") && !strstr(dir, "XXXXXX"))
		(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- its processes --------------------------------------------------- */

/* In the child: another user if we are root, output into the log, then the program. */
static void become(const struct server_home *home, const char *const *argv)
{
	char log[128];
	const struct passwd *user = geteuid() == 0 ? getpwnam(home->user) : NULL;

	(void)snprintf(log, sizeof(log), "%s/log", home->dir);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (geteuid() == 0 && (!user || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
		_exit(126);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(home->dir) < 0)
		_exit(126);
	/* After the change of user, which would clear it. */
	(void)prctl(PR_SET_PDEATHSIG, home->end_with);
	closefrom(3);
	(void)unsetenv("LD_PRELOAD");
	/* MariaDB removes the temporary tables of all others in the same place when it starts. */
	(void)setenv("TMPDIR", home->dir, 1);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): execv() changes none of them */
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

pid_t server_launch(const struct server_home *home, const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0)
		become(home, argv);
	return pid;
}

bool server_run(const struct server_home *home, const char *const *argv)
{
	int status;
	pid_t pid = server_launch(home, argv);

	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool is_gone(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) != 0;
}

bool server_wait(pid_t pid, bool (*is_ready)(const void *server), const void *server)
{
	int64_t end = server_now_ms() + START_MS;

	while (pid > 0 && server_now_ms() < end) {
		if (is_ready(server))
			return true;
		if (is_gone(pid))
			break;
		server_pause_ms(5);
	}
	return false;
}

bool server_has_ended(pid_t *pid)
{
	if (*pid > 0 && is_gone(*pid))
		*pid = 0;
	return *pid == 0;
}

bool server_end(pid_t *pid, int sig)
{
	int64_t end = server_now_ms() + STOP_MS;

	if (*pid <= 0 || kill(*pid, sig) < 0)
		return false;
	while (!is_gone(*pid)) {
		if (server_now_ms() > end)
			(void)kill(*pid, SIGKILL);
		server_pause_ms(2);
	}
	*pid = 0;
	return true;
}
