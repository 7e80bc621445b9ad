/* SPDX-License-Identifier: MIT */
/* Starting, killing and asking a private Redis server. */
#include "redis_server.h"

#include "certs.h"
#include "run.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 64, START_TRIES = 400 };

static const char *program(void)
{
	const char *asked = getenv("OUTBOX_TEST_REDIS");

	return asked ? asked : "/usr/bin/redis-server";
}

const char *redis_server_missing(void)
{
	return access(program(), X_OK) == 0 ? NULL : "redis-server is not installed";
}

/* ---- the process ----------------------------------------------------- */

static void child(const struct redis_server *s)
{
	char port[8], tls_port[8], bus_port[8];
	const char *argv[ARGS_MAX] = { program(),   "--port",    port,  "--bind",
				       "127.0.0.1", "--save",    "",    "--unixsocket",
				       s->socket,   "--logfile", "log", "--daemonize",
				       "no" };
	const char *tls[] = { "--tls-port",         tls_port,
			      "--tls-cert-file",    "server.crt",
			      "--tls-key-file",     "server.key",
			      "--tls-ca-cert-file", "ca.crt",
			      "--tls-auth-clients", "no" };
	const char *cluster[] = { "--cluster-enabled", "yes", "--cluster-port", bus_port };
	size_t n = 0;

	(void)snprintf(port, sizeof(port), "%d", s->port);
	(void)snprintf(tls_port, sizeof(tls_port), "%d", s->tls_port);
	(void)snprintf(bus_port, sizeof(bus_port), "%d", s->bus_port);
	while (argv[n])
		n++;
	for (size_t i = 0; s->tls && i < sizeof(tls) / sizeof(tls[0]); i++)
		argv[n++] = tls[i];
	for (size_t i = 0; s->cluster && i < sizeof(cluster) / sizeof(cluster[0]); i++)
		argv[n++] = cluster[i];
	for (size_t i = 0; s->args && s->args[i]; i++) {
		ck_assert_uint_lt(n, ARGS_MAX - 1);
		argv[n++] = s->args[i];
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(s->dir) < 0)
		_exit(126);
	int null = open("/dev/null", O_RDWR);
	(void)dup2(null, 0);
	(void)dup2(null, 1);
	(void)dup2(null, 2);
	closefrom(3);
	/* execv() promises not to write. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static bool answers(struct redis_server *s)
{
	redisContext *client = redisConnectUnix(s->socket);
	bool ok = client && !client->err;
	redisReply *reply = ok ? redisCommand(client, "PING") : NULL;

	/* An error other than "I am loading" is an answer, too: a password may be needed. */
	ok = reply && !(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0);
	freeReplyObject(reply);
	if (ok)
		s->client = client;
	else if (client)
		redisFree(client);
	return ok;
}

void redis_server_restart(struct redis_server *s)
{
	ck_assert_int_eq(s->pid, 0);
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid == 0)
		child(s);
	for (int i = 0; !answers(s); i++) {
		int status;

		ck_assert_msg(i < START_TRIES && waitpid(s->pid, &status, WNOHANG) == 0,
			      "redis-server does not start, see %s/log", s->dir);
		(void)poll(NULL, 0, 10); /* there is nothing to wait on */
	}
}

void redis_server_start(struct redis_server *s)
{
	ob_temp_dir(s->dir);
	s->port = free_port();
	s->tls_port = free_port();
	s->bus_port = free_port();
	(void)snprintf(s->socket, sizeof(s->socket), "%s/redis.sock", s->dir);
	if (s->tls)
		certs_make(s->dir, s->ca, s->other_ca);
	redis_server_restart(s);
}

void redis_server_kill(struct redis_server *s)
{
	if (s->client)
		redisFree(s->client);
	s->client = NULL;
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		ck_assert_int_eq(waitpid(s->pid, NULL, 0), s->pid);
	}
	s->pid = 0;
}

void redis_server_end(struct redis_server *s)
{
	redis_server_kill(s);
	ob_temp_dir_remove(s->dir);
}

/* ---- asking ---------------------------------------------------------- */

static redisReply *ask(struct redis_server *s, va_list words)
{
	const char *argv[ARGS_MAX];
	int n = 0;

	do {
		ck_assert_int_lt(n, ARGS_MAX);
		/* clang 14 loses sight of va_start.
		 * NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
		argv[n] = va_arg(words, const char *);
	} while (argv[n++]);
	redisReply *reply = redisCommandArgv(s->client, n - 1, argv, NULL);
	ck_assert_msg(reply != NULL, "%s: %s", argv[0], s->client->errstr);
	return reply;
}

redisReply *redis_ask(struct redis_server *s, ...)
{
	va_list words;

	va_start(words, s);
	redisReply *reply = ask(s, words);
	va_end(words);
	return reply;
}

void redis_do(struct redis_server *s, ...)
{
	va_list words;

	va_start(words, s);
	redisReply *reply = ask(s, words);
	va_end(words);
	ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s", reply->str);
	freeReplyObject(reply);
}

long long redis_count(struct redis_server *s, ...)
{
	va_list words;

	va_start(words, s);
	redisReply *reply = ask(s, words);
	va_end(words);
	ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
	long long n = reply->integer;
	freeReplyObject(reply);
	return n;
}
