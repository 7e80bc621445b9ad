/* SPDX-License-Identifier: MIT */
/* outbox init: a commented configuration to begin with. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct init_args {
	const char *sink;
	bool force;
};

static int write_all(int fd, struct ob_str text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text.p += n;
		text.n -= (size_t)n;
	}
	return 0;
}

/* O_EXCL decides: two that start at once cannot both believe the file is new. */
static int write_sample(const char *path, bool force, struct ob_str sample)
{
	OB_AUTOCLOSE int fd =
		open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);

	if (fd < 0 && errno == EEXIST)
		return ob_cli_fail("%s is there already; --force writes over it", path);
	if (fd < 0 || write_all(fd, sample) < 0)
		return ob_cli_fail("%s: %m", path);
	if (fsync(fd) < 0 && errno != EINVAL) /* a pipe or a device has nothing to sync */
		return ob_cli_fail("%s: %m", path);
	return OB_EXIT_OK;
}

/* "postgres", or a URL: of that the kind alone, since it may hold a password. */
static int find_store(const struct ob_cli *cli, const struct ob_store_backend **ret_backend)
{
	const char *wanted = cli->store_given ? cli->store : "sqlite";
	struct ob_err err = OB_ERR_INIT;
	char url[64];

	(void)snprintf(url, sizeof(url), "%.*s:", (int)strcspn(wanted, ":"), wanted);
	return ob_store_find(url, ret_backend, &err) == 0
		       ? OB_EXIT_OK
		       : ob_cli_usage(cli, "--store: %s", err.msg);
}

static int find_sink(const struct ob_cli *cli, const char *wanted,
		     const struct ob_sink_backend **ret_backend)
{
	struct ob_err err = OB_ERR_INIT;

	return ob_sink_find(wanted ? wanted : "file", ret_backend, &err) == 0
		       ? OB_EXIT_OK
		       : ob_cli_usage(cli, "--sink: %s", err.msg);
}

static int init_run(struct ob_cli *cli, const void *opts)
{
	const struct init_args *args = opts;
	const char *path = cli->operand_count ? cli->operands[0] : cli->config;
	struct ob_buf sample = OB_BUF_INIT(1 << 20);
	const struct ob_store_backend *store = NULL;
	const struct ob_sink_backend *sink = NULL;
	int r = find_store(cli, &store);

	if (!r)
		r = find_sink(cli, args->sink, &sink);
	if (!r)
		ob_config_sample(store, sink, &sample);
	if (r) {
		ob_buf_done(&sample);
		return r;
	}
	if (sample.failed)
		r = ob_cli_fail("out of memory");
	else
		r = write_sample(path, args->force, ob_buf_view(&sample));
	ob_buf_done(&sample);
	if (r)
		return r;
	if (!cli->json) {
		bool plain = strcmp(path, "outbox.yaml") == 0;
		printf("wrote %s: review it, then run 'outbox%s%s setup'\n", path,
		       plain ? "" : " -c ", plain ? "" : path);
		return OB_EXIT_OK;
	}
	struct ob_jout j = OB_JOUT_INIT;
	ob_jout_begin(&j, NULL, '{');
	ob_jout_text(&j, "path", ob_str(path));
	ob_jout_end(&j, '}');
	r = ob_jout_print(&j);
	ob_jout_done(&j);
	return r;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "PATH", .optional = true, .complete = OB_COMPLETE_FILE },
	OB_CMD_OPERAND_END,
};

static const struct ob_cmd_opt options[] = {
	{
		.name = "sink",
		.arg = "TYPE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct init_args, sink),
		.help = "The sink: redis, kafka, ... as 'outbox backends' lists them; left out: "
			"file.",
	},
	{
		.name = "force",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct init_args, force),
		.help = "Write over a file that is there.",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = { "outbox init", "outbox init --store postgres --sink redis",
					"outbox init /etc/outbox.yaml", NULL };

const struct ob_cmd ob_cmd_init = {
	.name = "init",
	.group = OB_GROUP_START,
	.flags = OB_CMD_USES_CONFIG | OB_CMD_USES_STORE | OB_CMD_JSON,
	.summary = "write a commented configuration",
	.description =
		"Writes a configuration that works as it is: an SQLite database beside it "
		"and a sink that is a file, or of the kinds that --store (sqlite, postgres, mysql) "
		"and --sink name. Every option stands in it with its default "
		"and a word on what it does. An existing file is left alone.",
	.examples = examples,
	.operands = operands,
	.options = options,
	.args_size = sizeof(struct init_args),
	.run = init_run,
};
