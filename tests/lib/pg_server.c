/* SPDX-License-Identifier: MIT */
/* Starting and ending a private PostgreSQL server. It refuses root, so root steps down first. */
#include "pg_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
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

enum { ARGS_MAX = 64, START_MS = 60000, STOP_MS = 30000 };

static void set_reason(struct pg_server *s, const char *text)
{
	(void)snprintf(s->reason, sizeof(s->reason), "%s", text);
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* The newest version that is installed; Debian keeps it off PATH. */
static bool find_programs(struct pg_server *s)
{
	glob_t found = { 0 };
	bool any = glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0;

	if (any) {
		const char *path = found.gl_pathv[found.gl_pathc - 1];

		(void)snprintf(s->bin, sizeof(s->bin), "%.*s",
			       (int)(strlen(path) - strlen("/postgres")), path);
	}
	globfree(&found);
	return any;
}

int pg_server_free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int port = 0;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 &&
	    getsockname(fd, (struct sockaddr *)&at, &size) == 0)
		port = ntohs(at.sin_port);
	if (fd >= 0)
		(void)close(fd);
	return port;
}

/* In the child: the user `postgres` if we are root, output into the log, then the program. */
static void become(const struct pg_server *s, const char *const *argv)
{
	char log[128];
	const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;

	(void)snprintf(log, sizeof(log), "%s/log", s->dir);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (geteuid() == 0 && (!user || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
		_exit(126);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(s->dir) < 0)
		_exit(126);
	/* After the change of user, which would clear it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
	closefrom(3);
	(void)unsetenv("LD_PRELOAD");
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): execv() changes none of them */
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

pid_t pg_server_run(const struct pg_server *s, const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0)
		become(s, argv);
	return pid;
}

static bool init_data(const struct pg_server *s)
{
	char program[160], data[96];
	const char *const argv[] = {
		program,
		"-D",
		data,
		"-U",
		"postgres",
		"-A",
		"trust",
		"-E",
		"UTF8",
		"--locale=C",
		"-N",
		"--no-instructions",
		"--data-checksums",
		NULL,
	};
	int status;

	(void)snprintf(program, sizeof(program), "%s/initdb", s->bin);
	(void)snprintf(data, sizeof(data), "%s/data", s->dir);
	pid_t pid = pg_server_run(s, argv);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The eighth line of postmaster.pid says how far it is. */
static bool is_ready(const struct pg_server *s)
{
	char path[128], line[256] = "";
	long pid = 0;

	(void)snprintf(path, sizeof(path), "%s/data/postmaster.pid", s->dir);
	FILE *file = fopen(path, "re");
	for (int i = 0; file && i < 8; i++) {
		if (!fgets(line, sizeof(line), file))
			line[0] = '\0';
		if (i == 0)
			pid = strtol(line, NULL, 10);
	}
	if (file)
		(void)fclose(file);
	return pid == s->pid && strncmp(line, "ready", 5) == 0;
}

static bool is_gone(const struct pg_server *s)
{
	return waitpid(s->pid, NULL, WNOHANG) != 0;
}

static void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

bool pg_server_again(struct pg_server *s)
{
	char program[160], data[96], port[16], sockets[96];
	const char *argv[ARGS_MAX] = {
		program,
		"-D",
		data,
		"-p",
		port,
		"-c",
		sockets,
		"-c",
		"listen_addresses=127.0.0.1",
		"-c",
		"fsync=off",
		"-c",
		"max_connections=60",
		"-c",
		"shared_buffers=32MB",
		"-c",
		"log_min_messages=warning",
		"-c",
		"full_page_writes=off",
		"-c",
		"max_prepared_transactions=4",
	};
	size_t argc = 0;
	int64_t end = now_ms() + START_MS;

	while (argv[argc])
		argc++;
	for (size_t i = 0; s->settings && s->settings[i] && argc + 2 < ARGS_MAX; i++) {
		argv[argc++] = "-c";
		argv[argc++] = s->settings[i];
	}
	(void)snprintf(program, sizeof(program), "%s/postgres", s->bin);
	(void)snprintf(data, sizeof(data), "%s/data", s->dir);
	(void)snprintf(port, sizeof(port), "%d", s->port);
	(void)snprintf(sockets, sizeof(sockets), "unix_socket_directories=%s", s->dir);
	s->pid = pg_server_run(s, argv);
	while (s->pid > 0 && now_ms() < end) {
		if (is_ready(s))
			return true;
		if (is_gone(s))
			break;
		pause_ms(5);
	}
	set_reason(s, "PostgreSQL does not start");
	return false;
}

bool pg_server_start(struct pg_server *s, const char *const *settings)
{
	const struct passwd *user = getpwnam("postgres");

	*s = (struct pg_server){ .settings = settings, .dir = "/tmp/outbox-pg.XXXXXX" };
	if (!find_programs(s)) {
		set_reason(s, "no PostgreSQL server is installed (package postgresql-15)");
		return false;
	}
	if (geteuid() == 0 && !user) {
		set_reason(s, "PostgreSQL refuses root and there is no user postgres");
		return false;
	}
	if (!mkdtemp(s->dir) || (geteuid() == 0 && chown(s->dir, user->pw_uid, user->pw_gid) < 0)) {
		set_reason(s, "cannot make a directory for PostgreSQL");
		return false;
	}
	/* Its socket is for the tests, which may run as another user. */
	(void)chmod(s->dir, 0755);
	s->port = pg_server_free_port();
	if (!init_data(s)) {
		set_reason(s, "initdb fails");
		return false;
	}
	return pg_server_again(s);
}

bool pg_server_crash(struct pg_server *s, bool kill9)
{
	int64_t end = now_ms() + STOP_MS;

	if (s->pid <= 0 || kill(s->pid, kill9 ? SIGKILL : SIGQUIT) < 0)
		return false;
	while (!is_gone(s)) {
		if (now_ms() > end)
			(void)kill(s->pid, SIGKILL);
		pause_ms(2);
	}
	s->pid = 0;
	return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void pg_server_stop(struct pg_server *s)
{
	(void)pg_server_crash(s, false);
	if (strncmp(s->dir, "/tmp/outbox-pg.", 15) == 0 && !strstr(s->dir, "XXXXXX"))
		(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void pg_server_url(const struct pg_server *s, const char *user, const char *database, char out[256])
{
	(void)snprintf(out, 256, "postgresql://%s@/%s?host=%s&port=%d", user, database, s->dir,
		       s->port);
}
