/* SPDX-License-Identifier: MIT */
/* outbox health: asks /healthz or /readyz of a running process, for probes without curl. */
#include "base/listen.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/monitor/stores.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN "127.0.0.1:8025"

enum { WAIT_S = 5, ANSWER_MAX = 16 << 10 };

struct health_args {
	bool ready, startup;
	const char *listen;
};

static int connect_to(const struct ob_listen *at)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(at->port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(at->port) };
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	const struct timeval wait = { .tv_sec = WAIT_S };
	/* What listens at all addresses is asked at one. */
	bool any = strcmp(at->host, "0.0.0.0") == 0 || strcmp(at->host, "::") == 0;
	int r;

	(void)snprintf(path.sun_path, sizeof(path.sun_path), "%s", at->path);
	(void)inet_pton(AF_INET, any ? "127.0.0.1" : at->host, &four.sin_addr);
	(void)inet_pton(AF_INET6, any ? "::1" : at->host, &six.sin6_addr);
	int fd = socket(at->path[0] ? AF_UNIX
			: at->v6    ? AF_INET6
				    : AF_INET,
			SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (at->path[0])
		r = connect(fd, (const struct sockaddr *)&path, sizeof(path));
	else if (at->v6)
		r = connect(fd, (const struct sockaddr *)&six, sizeof(six));
	else
		r = connect(fd, (const struct sockaddr *)&four, sizeof(four));
	if (r < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* The whole answer, up to its end or ANSWER_MAX. */
static bool ask(int fd, const char *path, struct ob_buf *out)
{
	char line[256], part[1024];
	ssize_t n;
	int size =
		snprintf(line, sizeof(line),
			 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);

	if (send(fd, line, (size_t)size, MSG_NOSIGNAL) != size)
		return false;
	while ((n = recv(fd, part, sizeof(part), 0)) > 0)
		ob_buf_add(out, (struct ob_str){ part, (size_t)n });
	return n == 0 && !out->failed;
}

static int judge(const struct ob_buf *answer, const char *address)
{
	const char *text = ob_buf_str(answer), *body = strstr(text, "\r\n\r\n");
	struct ob_buf safe = OB_BUF_INIT(ANSWER_MAX);
	int r = OB_EXIT_FAILURE;

	if (strncmp(text, "HTTP/1.1 ", 9) != 0 || !body) {
		(void)ob_cli_fail("%s does not answer as a monitor", address);
	} else {
		ob_utf8_sanitize(&safe, ob_str(body + 4), 1000);
		printf("%s\n", ob_buf_str(&safe));
		r = strncmp(text + 9, "200", 3) == 0 ? OB_EXIT_OK : OB_EXIT_FAILURE;
	}
	ob_buf_done(&safe);
	return r;
}

static int ask_health(const struct ob_config *config, const struct health_args *args)
{
	const char *address = args->listen;
	const char *path = args->ready ? "/readyz" : args->startup ? "/startupz" : "/healthz";
	struct ob_buf answer = OB_BUF_INIT(ANSWER_MAX);
	struct ob_err err = OB_ERR_INIT;
	struct ob_listen at;
	char url[200];

	if (!address)
		address = config && config->monitor.listen ? config->monitor.listen : LISTEN;
	if (ob_listen_parse(address, &at, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	(void)snprintf(url, sizeof(url), "%s%s", config ? config->monitor.base_path : "", path);
	int fd = connect_to(&at);
	int r = OB_EXIT_FAILURE;
	if (fd < 0 || !ask(fd, url, &answer))
		(void)ob_cli_fail("no answer from %s: %m", address);
	else
		r = judge(&answer, address);
	if (fd >= 0)
		(void)close(fd);
	ob_buf_done(&answer);
	return r;
}

static int health_run(struct ob_cli *cli, const void *opts)
{
	const struct health_args *args = opts;
	struct ob_config *config = NULL;
	/* With an address nothing else is needed. */
	int r = args->listen ? OB_EXIT_OK : ob_cli_load_config(cli, &config);

	if (!r)
		r = ask_health(config, args);
	ob_config_free(config);
	return r;
}

static const struct ob_cmd_opt options[] = {
	{
		.name = "ready",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct health_args, ready),
		.help = "Ask whether it is ready, and what is degraded.",
	},
	{
		.name = "startup",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct health_args, startup),
		.help = "Ask whether it has started.",
	},
	{
		.name = "listen",
		.arg = "ADDRESS",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct health_args, listen),
		.help = "Where it listens; left out: monitor.listen of the configuration, "
			"else " LISTEN ".",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox health",
	"outbox health --ready --listen 127.0.0.1:8025",
	NULL,
};

const struct ob_cmd ob_cmd_health = {
	.name = "health",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_CONFIG,
	.summary = "is a running process alive, or ready?",
	.description =
		"Asks a process that serves the monitor ('outbox work' with monitor.listen, or "
		"'outbox monitor') whether it is alive: that no worker is stuck. It asks no "
		"database and no destination. With --ready, whether it has started and does not "
		"stop; what is degraded is printed, and it is ready nevertheless. For probes of "
		"containers. The exit code is 0 for yes, 1 for no or no answer.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct health_args),
	.run = health_run,
};
