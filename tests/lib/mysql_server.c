/* SPDX-License-Identifier: MIT */
/* Starting and ending a private MariaDB server; root steps down to the user mysql. */
#include "mysql_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 64, START_MS = 60000, STOP_MS = 30000, INSTALL_TRIES = 3 };

static const char server_program[] = "/usr/sbin/mariadbd";
static const char install_program[] = "/usr/bin/mariadb-install-db";

static bool refuse(struct mysql_server *s, const char *text)
{
	(void)snprintf(s->reason, sizeof(s->reason), "%s", text);
	return false;
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static int free_port(void)
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

/* In the child: the user mysql if we are root, output into the log, then the program. */
static void become(const struct mysql_server *s, const char *const *argv)
{
	char log[128];
	const struct passwd *user = geteuid() == 0 ? getpwnam("mysql") : NULL;

	(void)snprintf(log, sizeof(log), "%s/log", s->dir);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (geteuid() == 0 && (!user || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
		_exit(126);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(s->dir) < 0)
		_exit(126);
	/* After the change of user, which would clear it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	closefrom(3);
	(void)unsetenv("LD_PRELOAD");
	/* A server that starts removes the temporary tables of all others in the same place. */
	(void)setenv("TMPDIR", s->dir, 1);
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static pid_t launch(const struct mysql_server *s, const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0)
		become(s, argv);
	return pid;
}

static bool init_data(const struct mysql_server *s)
{
	char data[96];
	const char *const argv[] = {
		install_program,
		"--no-defaults",
		data,
		"--auth-root-authentication-method=normal",
		"--skip-test-db",
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-flush-method=nosync",
		"--innodb-use-native-aio=0",
		NULL,
	};
	int status;

	(void)snprintf(data, sizeof(data), "--datadir=%s/data", s->dir);
	pid_t pid = launch(s, argv);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

const char *mysql_server_socket(const struct mysql_server *s, char out[128])
{
	(void)snprintf(out, 128, "%s/socket", s->dir);
	return out;
}

/* It listens when it is ready for clients. */
static bool is_ready(const struct mysql_server *s)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char path[128];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%.107s", mysql_server_socket(s, path));
	bool ready = fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
	if (fd >= 0)
		(void)close(fd);
	return ready;
}

static bool is_gone(const struct mysql_server *s)
{
	return waitpid(s->pid, NULL, WNOHANG) != 0;
}

bool mysql_server_again(struct mysql_server *s)
{
	char data[96], port[32], path[128], sock[144], pid_file[96];
	const char *argv[ARGS_MAX] = {
		server_program,
		"--no-defaults",
		data,
		sock,
		port,
		pid_file,
		"--bind-address=127.0.0.1",
		"--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-flush-method=nosync",
		"--innodb-use-native-aio=0",
		"--innodb-buffer-pool-size=64M",
		"--innodb-log-file-size=64M",
		"--performance-schema=off",
		"--innodb-fast-shutdown=2",
		"--max-connections=100",
	};
	size_t argc = 0;
	int64_t end = now_ms() + START_MS;

	while (argv[argc])
		argc++;
	for (size_t i = 0; s->settings && s->settings[i] && argc + 1 < ARGS_MAX; i++)
		argv[argc++] = s->settings[i];
	(void)snprintf(data, sizeof(data), "--datadir=%s/data", s->dir);
	(void)snprintf(port, sizeof(port), "--port=%d", s->port);
	(void)snprintf(sock, sizeof(sock), "--socket=%s", mysql_server_socket(s, path));
	(void)snprintf(pid_file, sizeof(pid_file), "--pid-file=%s/pid", s->dir);
	(void)unlink(path);
	s->pid = launch(s, argv);
	while (s->pid > 0 && now_ms() < end) {
		if (is_ready(s))
			return true;
		if (is_gone(s))
			break;
		pause_ms(5);
	}
	return refuse(s, "MariaDB does not start");
}

bool mysql_server_start(struct mysql_server *s, const char *const *settings)
{
	const struct passwd *user = getpwnam("mysql");

	*s = (struct mysql_server){ .settings = settings, .dir = "/tmp/outbox-my.XXXXXX" };
	if (access(server_program, X_OK) < 0 || access(install_program, X_OK) < 0)
		return refuse(s, "no MariaDB server is installed (package mariadb-server)");
	if (geteuid() == 0 && !user)
		return refuse(s, "there is no user mysql for MariaDB");
	/* In memory if there is any: the files are a hundred megabytes. */
	if (access("/dev/shm", W_OK) == 0)
		(void)snprintf(s->dir, sizeof(s->dir), "/dev/shm/outbox-my.XXXXXX");
	if (!mkdtemp(s->dir) || (geteuid() == 0 && chown(s->dir, user->pw_uid, user->pw_gid) < 0))
		return refuse(s, "cannot make a directory for MariaDB");
	/* Its socket is for the tests, which may run as another user. */
	(void)chmod(s->dir, 0755);
	s->port = free_port();
	/* On a busy machine its bootstrap fails now and then; what it left does no harm. */
	for (int tries = 1; !init_data(s); tries++) {
		if (tries == INSTALL_TRIES)
			return refuse(s, "mariadb-install-db fails");
	}
	return mysql_server_again(s);
}

bool mysql_server_crash(struct mysql_server *s)
{
	if (s->pid <= 0 || kill(s->pid, SIGKILL) < 0)
		return false;
	while (!is_gone(s))
		pause_ms(2);
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

void mysql_server_stop(struct mysql_server *s)
{
	/* What it holds goes with the directory, so nothing is lost by a hard end. */
	(void)mysql_server_crash(s);
	if (strstr(s->dir, "/outbox-my.") && !strstr(s->dir, ".XXXXXX"))
		(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void mysql_server_url(const struct mysql_server *s, const char *user, const char *database,
		      char out[256])
{
	char path[128];

	(void)snprintf(out, 256, "mysql://%s@/%s?socket=%s", user, database,
		       mysql_server_socket(s, path));
}
