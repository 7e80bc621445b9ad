/* SPDX-License-Identifier: MIT */
/* Starting and ending a private PostgreSQL server. It refuses root, so root steps down first. */
#include "pg_server.h"

#include "server.h"

#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGS_MAX = 64 };

static void set_reason(struct pg_server *s, const char *text)
{
	(void)snprintf(s->reason, sizeof(s->reason), "%s", text);
}

/* The one that was asked for, or the newest that is installed; Debian keeps it off PATH. */
static bool find_programs(struct pg_server *s)
{
	const char *asked = getenv("OUTBOX_TEST_POSTGRES");

	if (asked) {
		char path[320];

		(void)snprintf(s->bin, sizeof(s->bin), "%s", asked);
		(void)snprintf(path, sizeof(path), "%s/postgres", s->bin);
		return access(path, X_OK) == 0;
	}
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

pid_t pg_server_run(const struct pg_server *s, const char *const *argv)
{
	return server_launch(&(struct server_home){ s->dir, "postgres", SIGQUIT }, argv);
}

static bool init_data(const struct pg_server *s)
{
	char program[320], data[96];
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

	(void)snprintf(program, sizeof(program), "%s/initdb", s->bin);
	(void)snprintf(data, sizeof(data), "%s/data", s->dir);
	return server_run(&(struct server_home){ s->dir, "postgres", SIGQUIT }, argv);
}

/* The eighth line of postmaster.pid says how far it is. */
static bool is_ready(const void *server)
{
	const struct pg_server *s = server;
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

bool pg_server_again(struct pg_server *s)
{
	char program[320], data[96], port[16], sockets[96];
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
	if (server_wait(s->pid, is_ready, s))
		return true;
	set_reason(s, "PostgreSQL does not start");
	return false;
}

bool pg_server_start(struct pg_server *s, const char *const *settings)
{
	*s = (struct pg_server){ .settings = settings, .dir = "/tmp/outbox-pg.XXXXXX" };
	if (!find_programs(s)) {
		set_reason(s,
			   getenv("OUTBOX_TEST_POSTGRES")
				   ? "OUTBOX_TEST_POSTGRES holds no PostgreSQL server"
				   : "no PostgreSQL server is installed (package postgresql-15)");
		return false;
	}
	if (geteuid() == 0 && !getpwnam("postgres")) {
		set_reason(s, "PostgreSQL refuses root and there is no user postgres");
		return false;
	}
	if (!server_make_dir(s->dir, "postgres")) {
		set_reason(s, "cannot make a directory for PostgreSQL");
		return false;
	}
	s->port = server_free_port();
	if (!init_data(s)) {
		set_reason(s, "initdb fails");
		return false;
	}
	return pg_server_again(s);
}

bool pg_server_crash(struct pg_server *s, bool kill9)
{
	return server_end(&s->pid, kill9 ? SIGKILL : SIGQUIT);
}

void pg_server_stop(struct pg_server *s)
{
	(void)pg_server_crash(s, false);
	server_remove_dir(s->dir);
}

void pg_server_url(const struct pg_server *s, const char *user, const char *database, char out[256])
{
	(void)snprintf(out, 256, "postgresql://%s@/%s?host=%s&port=%d", user, database, s->dir,
		       s->port);
}
