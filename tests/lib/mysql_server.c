/* SPDX-License-Identifier: MIT */
/* Starting and ending a private MariaDB or MySQL server; root steps down to the user mysql. */
#include "mysql_server.h"

#include "server.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ARGS_MAX = 64, INSTALL_TRIES = 3 };

static const char *server_program(void)
{
	const char *asked = getenv("OUTBOX_TEST_MYSQLD");

	return asked ? asked : "/usr/sbin/mariadbd";
}

/* NULL: the server does it. */
static const char *install_program(const struct mysql_server *s)
{
	const char *asked = getenv("OUTBOX_TEST_MYSQL_INSTALL");

	return asked ? asked : s->mariadb ? "/usr/bin/mariadb-install-db" : NULL;
}

/* What the program says of its version names MariaDB, or it is MySQL. */
static bool is_mariadb(void)
{
	char command[512], line[512] = "";

	(void)snprintf(command, sizeof(command), "'%s' --no-defaults --version", server_program());
	/* NOLINTNEXTLINE(cert-env33-c): the path is the caller's own */
	FILE *answer = popen(command, "re");
	if (answer && !fgets(line, sizeof(line), answer))
		line[0] = '\0';
	if (answer)
		(void)pclose(answer);
	return strstr(line, "MariaDB") != NULL;
}

static bool refuse(struct mysql_server *s, const char *text)
{
	(void)snprintf(s->reason, sizeof(s->reason), "%s", text);
	return false;
}

static bool init_data(const struct mysql_server *s)
{
	char data[96];
	const char *const mysql[] = {
		server_program(), "--no-defaults", "--initialize-insecure", data, NULL,
	};
	const char *const argv[] = {
		install_program(s),
		"--no-defaults",
		data,
		"--auth-root-authentication-method=normal",
		"--skip-test-db",
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-flush-method=nosync",
		"--innodb-use-native-aio=0",
		NULL,
	};

	(void)snprintf(data, sizeof(data), "--datadir=%s/data", s->dir);
	return server_run(&(struct server_home){ s->dir, "mysql", SIGKILL },
			  argv[0] ? argv : mysql);
}

const char *mysql_server_socket(const struct mysql_server *s, char out[128])
{
	(void)snprintf(out, 128, "%s/socket", s->dir);
	return out;
}

/* It listens when it is ready for clients. */
static bool is_ready(const void *server)
{
	const struct mysql_server *s = server;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char path[128];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%.107s", mysql_server_socket(s, path));
	bool ready = fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
	if (fd >= 0)
		(void)close(fd);
	return ready;
}

bool mysql_server_again(struct mysql_server *s)
{
	char data[96], port[32], path[128], sock[144], pid_file[96];
	/* MySQL needs its performance schema: the store reads which statements run. */
	static const char *const mariadb[] = { "--innodb-log-file-size=64M",
					       "--performance-schema=off" };
	static const char *const mysql[] = { "--innodb-redo-log-capacity=64M", "--mysqlx=OFF",
					     "--log-bin-trust-function-creators=ON",
					     "--secure-file-priv=" };
	const char *argv[ARGS_MAX] = {
		server_program(),
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
		"--innodb-fast-shutdown=2",
		"--max-connections=100",
	};
	size_t argc = 0;

	while (argv[argc])
		argc++;
	for (size_t i = 0; i < (s->mariadb ? 2 : 4); i++)
		argv[argc++] = s->mariadb ? mariadb[i] : mysql[i];
	for (size_t i = 0; s->settings && s->settings[i] && argc + 1 < ARGS_MAX; i++)
		argv[argc++] = s->settings[i];
	(void)snprintf(data, sizeof(data), "--datadir=%s/data", s->dir);
	(void)snprintf(port, sizeof(port), "--port=%d", s->port);
	(void)snprintf(sock, sizeof(sock), "--socket=%s", mysql_server_socket(s, path));
	(void)snprintf(pid_file, sizeof(pid_file), "--pid-file=%s/pid", s->dir);
	(void)unlink(path);
	s->pid = server_launch(&(struct server_home){ s->dir, "mysql", SIGKILL }, argv);
	if (server_wait(s->pid, is_ready, s))
		return true;
	return refuse(s, "the MySQL server does not start");
}

static bool start(struct mysql_server *s)
{
	if (access(server_program(), X_OK) < 0)
		return refuse(s,
			      getenv("OUTBOX_TEST_MYSQLD")
				      ? "OUTBOX_TEST_MYSQLD is not there"
				      : "no MariaDB server is installed (package mariadb-server)");
	s->mariadb = is_mariadb();
	if (install_program(s) && access(install_program(s), X_OK) < 0)
		return refuse(s, "there is no mariadb-install-db (package mariadb-server)");
	if (geteuid() == 0 && !getpwnam("mysql"))
		return refuse(s, "there is no user mysql for the server");
	if (!server_make_dir(s->dir, "mysql"))
		return refuse(s, "cannot make a directory for the server");
	s->port = server_free_port();
	/* On a busy machine its bootstrap fails now and then; what it left does no harm. */
	for (int tries = 1; !init_data(s); tries++) {
		if (tries == INSTALL_TRIES)
			return refuse(s, "making the data directory fails");
	}
	return mysql_server_again(s);
}

bool mysql_server_start_on_disk(struct mysql_server *s, const char *const *settings)
{
	*s = (struct mysql_server){ .settings = settings, .dir = "/tmp/outbox-my.XXXXXX" };
	return start(s);
}

bool mysql_server_start(struct mysql_server *s, const char *const *settings)
{
	/* In memory if there is any: the files are a hundred megabytes. */
	bool memory = access("/dev/shm", W_OK) == 0;

	*s = (struct mysql_server){ .settings = settings };
	(void)snprintf(s->dir, sizeof(s->dir), "%s/outbox-my.XXXXXX", memory ? "/dev/shm" : "/tmp");
	return start(s);
}

bool mysql_server_crash(struct mysql_server *s)
{
	return server_end(&s->pid, SIGKILL);
}

bool mysql_server_crashed(struct mysql_server *s)
{
	return server_has_ended(&s->pid);
}

void mysql_server_stop(struct mysql_server *s)
{
	/* What it holds goes with the directory, so nothing is lost by a hard end. */
	(void)mysql_server_crash(s);
	server_remove_dir(s->dir);
}

void mysql_server_url(const struct mysql_server *s, const char *user, const char *database,
		      char out[256])
{
	char path[128];

	(void)snprintf(out, 256, "mysql://%s@/%s?socket=%s", user, database,
		       mysql_server_socket(s, path));
}
