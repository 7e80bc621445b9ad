/* SPDX-License-Identifier: MIT */
/* Starting and ending a private RabbitMQ. Root steps down to its user first. */
#include "rabbitmq_server.h"

#include "run.h"
#include "server.h"

#include <check.h>
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 120000, START_TRIES = 3, WORDS_MAX = 12 };

static const char user_name[] = "rabbitmq";

struct program {
	char path[320];
};

static struct program program(const char *name)
{
	const char *asked = getenv("OUTBOX_TEST_RABBITMQ");
	struct program found;

	/* Debian's scripts on PATH insist on the machine's own broker. */
	if (!asked)
		asked = strcmp(name, "epmd") == 0 ? "/usr/bin" : "/usr/lib/rabbitmq/bin";
	(void)snprintf(found.path, sizeof(found.path), "%s/%s", asked, name);
	return found;
}

const char *rabbitmq_server_missing(void)
{
	if (access(program("rabbitmq-server").path, X_OK) < 0 ||
	    access(program("epmd").path, X_OK) < 0)
		return "rabbitmq-server is not installed";
	return geteuid() == 0 && !getpwnam(user_name) ? "there is no user rabbitmq" : NULL;
}

/* ---- files ----------------------------------------------------------- */

/* The hashes are of "guest" and "secret", with a fixed salt. */
static const char definitions[] =
	"{\"vhosts\":[{\"name\":\"/\"},{\"name\":\"other\"}],"
	"\"users\":[{\"name\":\"guest\",\"tags\":\"administrator\","
	"\"hashing_algorithm\":\"rabbit_password_hashing_sha256\","
	"\"password_hash\":\"AQIDBEMMOXwY6PKx/JKP9PAqfsb4ozuD0Ta3pxxa9gEYBMmD\"},"
	"{\"name\":\"limited\",\"tags\":\"\","
	"\"hashing_algorithm\":\"rabbit_password_hashing_sha256\","
	"\"password_hash\":\"AQIDBDB9kM21iEUzN1lZ+6VReCsdNqS0sERdAQTcY6Xs3PMz\"}],"
	"\"permissions\":[{\"user\":\"guest\",\"vhost\":\"/"
	"\",\"configure\":\".*\",\"write\":\".*\","
	"\"read\":\".*\"},{\"user\":\"guest\",\"vhost\":\"other\",\"configure\":\".*\","
	"\"write\":\".*\",\"read\":\".*\"},{\"user\":\"limited\",\"vhost\":\"/\","
	"\"configure\":\"\",\"write\":\"^(open\\\\..*|amq\\\\.topic)$\",\"read\":\"\"}],"
	"\"topic_permissions\":[{\"user\":\"limited\",\"vhost\":\"/\",\"exchange\":\"amq.topic\","
	"\"write\":\"^open\\\\.\",\"read\":\"\"}]}";

static void write_file(const struct rabbitmq_server *s, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void write_config(const struct rabbitmq_server *s)
{
	char text[2000];
	int n = snprintf(text, sizeof(text),
			 "listeners.tcp.1 = 127.0.0.1:%d\n"
			 "loopback_users = none\n"
			 "load_definitions = %s/definitions.json\n"
			 "max_message_size = %d\n"
			 "disk_free_limit.absolute = 1MB\n"
			 "log.console = false\n"
			 "log.file.level = warning\n",
			 s->port, s->dir, RABBITMQ_MESSAGE_MAX);

	if (s->tls)
		(void)snprintf(text + n, sizeof(text) - (size_t)n,
			       "listeners.ssl.1 = 127.0.0.1:%d\n"
			       "ssl_options.cacertfile = %s/ca.crt\n"
			       "ssl_options.certfile = %s/server.crt\n"
			       "ssl_options.keyfile = %s/server.key\n",
			       s->tls_port, s->dir, s->dir, s->dir);
	write_file(s, "rabbitmq.conf", text);
	write_file(s, "env.conf", "");
	write_file(s, "enabled_plugins", "[].\n");
	write_file(s, "definitions.json", definitions);
}

static const struct passwd *owner;

static int give_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return lchown(path, owner->pw_uid, owner->pw_gid);
}

static void make_place(struct rabbitmq_server *s)
{
	ob_temp_dir(s->dir);
	if (s->tls)
		certs_make(s->dir, s->ca, s->other_ca);
	s->port = free_port();
	s->tls_port = free_port();
	s->dist_port = free_port();
	s->epmd_port = free_port();
	(void)snprintf(s->node, sizeof(s->node), "outbox%d@localhost", s->port);
	write_config(s);
	owner = geteuid() == 0 ? getpwnam(user_name) : NULL;
	if (owner)
		ck_assert_int_eq(nftw(s->dir, give_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- processes ------------------------------------------------------- */

static void set_path(const struct rabbitmq_server *s, const char *name, const char *file)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s%s%s", s->dir, *file ? "/" : "", file);
	(void)setenv(name, path, 1);
}

static void set_port(const char *name, int port)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "%d", port);
	(void)setenv(name, text, 1);
}

/* Nothing of the machine's own broker, nor of the test's environment. */
static void set_environment(const struct rabbitmq_server *s)
{
	(void)clearenv();
	(void)setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin", 1);
	(void)setenv("LANG", "C.UTF-8", 1);
	set_path(s, "HOME", "");
	set_path(s, "RABBITMQ_MNESIA_BASE", "mnesia");
	set_path(s, "RABBITMQ_LOG_BASE", "log");
	set_path(s, "RABBITMQ_CONFIG_FILE", "rabbitmq.conf");
	set_path(s, "RABBITMQ_CONF_ENV_FILE", "env.conf");
	set_path(s, "RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins");
	set_path(s, "RABBITMQ_PID_FILE", "pid");
	/* With it the script becomes the server, instead of watching over it. */
	set_path(s, "NOTIFY_SOCKET", "nobody-listens");
	(void)setenv("RABBITMQ_NODENAME", s->node, 1);
	set_port("RABBITMQ_DIST_PORT", s->dist_port);
	set_port("ERL_EPMD_PORT", s->epmd_port);
	(void)setenv("ERL_EPMD_ADDRESS", "127.0.0.1", 1);
	(void)setenv("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
		     "-kernel inet_dist_use_interface {127,0,0,1}", 1);
}

static void become(const struct rabbitmq_server *s, const char *const *argv)
{
	const struct passwd *user = geteuid() == 0 ? getpwnam(user_name) : NULL;

	if (geteuid() == 0 && (!user || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0))
		_exit(126);
	set_environment(s);
	if (chdir(s->dir) < 0)
		_exit(126);
	int null = open("/dev/null", O_RDONLY);
	int log = open("output", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(126);
	/* After the change of user, which would clear it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	closefrom(3);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): execv() changes none of them */
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static pid_t run(const struct rabbitmq_server *s, const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0)
		become(s, argv);
	return pid;
}

static void end(pid_t *pid)
{
	if (*pid > 0) {
		(void)kill(*pid, SIGKILL);
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*pid = 0;
}

static bool answers(const struct rabbitmq_server *s)
{
	amqp_connection_state_t client = rabbitmq_try_connect(s->port);

	rabbitmq_disconnect(client);
	return client != NULL;
}

/* False when it ended by itself: someone may have taken a port before it could. */
static bool try_again(struct rabbitmq_server *s)
{
	const struct program broker = program("rabbitmq-server");
	const char *const argv[] = { broker.path, NULL };
	int64_t until = server_now_ms() + START_MS;

	s->pid = run(s, argv);
	ck_assert_int_gt(s->pid, 0);
	while (!answers(s)) {
		ck_assert_msg(server_now_ms() < until, "RabbitMQ does not start, see %s/log",
			      s->dir);
		if (waitpid(s->pid, NULL, WNOHANG) != 0) {
			s->pid = 0;
			return false;
		}
		server_pause_ms(50);
	}
	return true;
}

void rabbitmq_server_again(struct rabbitmq_server *s)
{
	ck_assert_msg(try_again(s), "RabbitMQ does not start again, see %s/log", s->dir);
}

void rabbitmq_server_start(struct rabbitmq_server *s)
{
	for (int i = 0; i < START_TRIES; i++) {
		char port[8];
		const struct program mapper = program("epmd");
		const char *const epmd[] = { mapper.path, "-port",     port,
					     "-address",  "127.0.0.1", NULL };

		make_place(s);
		(void)snprintf(port, sizeof(port), "%d", s->epmd_port);
		s->epmd = run(s, epmd);
		if (try_again(s))
			return;
		rabbitmq_server_stop(s);
	}
	ck_abort_msg("RabbitMQ does not start");
}

void rabbitmq_server_kill(struct rabbitmq_server *s)
{
	end(&s->pid);
}

void rabbitmq_server_stop(struct rabbitmq_server *s)
{
	end(&s->pid);
	end(&s->epmd);
	if (s->dir[0])
		ob_temp_dir_remove(s->dir);
	s->dir[0] = '\0';
}

void rabbitmq_ctl(const struct rabbitmq_server *s, const char *const *words)
{
	const struct program ctl = program("rabbitmqctl");
	const char *argv[WORDS_MAX] = { ctl.path, "-n", s->node };
	int status;

	for (size_t i = 0; words[i]; i++) {
		ck_assert_uint_lt(i + 4, WORDS_MAX);
		argv[i + 3] = words[i];
	}
	pid_t pid = run(s, argv);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "rabbitmqctl %s failed, see %s/output", words[0], s->dir);
}

/* By the debug interface of the process that is the queue. */
static void tell_queue(const struct rabbitmq_server *s, const char *verb, const char *name)
{
	char text[300];
	const char *const words[] = { "eval", text, NULL };

	(void)snprintf(
		text, sizeof(text),
		"{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"%s\">>)), "
		"sys:%s(amqqueue:get_pid(Q)).",
		name, verb);
	rabbitmq_ctl(s, words);
}

void rabbitmq_suspend_queue(const struct rabbitmq_server *s, const char *name)
{
	tell_queue(s, "suspend", name);
}

void rabbitmq_resume_queue(const struct rabbitmq_server *s, const char *name)
{
	tell_queue(s, "resume", name);
}
