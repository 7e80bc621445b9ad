/* SPDX-License-Identifier: MIT */
/* outbox config check: every fault of the configuration at once. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/out/jprint.h"
#include "operate/sink_faults.h"
#include "operate/targets.h"

#include <stdio.h>
#include <stdlib.h>

/* What --json needs of "file:line:col: message"; file names may hold colons. */
struct fault {
	struct ob_str file, message;
	long line, col; /* 0: the fault is about the whole file */
};

static struct fault split_fault(struct ob_str text, const char *path)
{
	struct fault fault = { .file = ob_str(path), .message = text };
	size_t n = fault.file.n;
	char *end;

	if (text.n <= n + 1 || memcmp(text.p, path, n) != 0 || text.p[n] != ':')
		return fault;
	fault.message = (struct ob_str){ text.p + n + 1, text.n - n - 1 };
	/* The buffer ends with a NUL and the line with a break: both stop strtol(). */
	long line = strtol(fault.message.p, &end, 10);
	if (end != fault.message.p && *end == ':') {
		fault.line = line;
		fault.col = strtol(end + 1, &end, 10);
		fault.message.n -= (size_t)(end - fault.message.p);
		fault.message.p = end;
	}
	while (fault.message.n && (*fault.message.p == ':' || *fault.message.p == ' ')) {
		fault.message.p++;
		fault.message.n--;
	}
	return fault;
}

/* Not wrong, but not what somebody wanted. */
static const char unread_default[] =
	"no relay reads target 'default', where messages go that name none";

static bool reads_default(const struct ob_config *config)
{
	return ob_target_is_read("default", config, NULL);
}

static void faults_json(struct ob_jout *j, struct ob_str faults, const char *path)
{
	while (faults.n) {
		const char *nl = memchr(faults.p, '\n', faults.n);
		size_t n = nl ? (size_t)(nl - faults.p) : faults.n;
		struct fault fault = split_fault((struct ob_str){ faults.p, n }, path);

		ob_jout_begin(j, NULL, '{');
		ob_jout_text(j, "file", fault.file);
		ob_jout_int(j, "line", fault.line);
		ob_jout_int(j, "col", fault.col);
		ob_jout_text(j, "message", fault.message);
		ob_jout_end(j, '}');
		n += nl ? 1 : 0;
		faults.p += n;
		faults.n -= n;
	}
}

static void config_json(struct ob_jout *j, const struct ob_config *config)
{
	ob_jout_begin(j, "stores", '[');
	for (size_t i = 0; i < config->store_count; i++)
		ob_jout_text(j, NULL, ob_str(config->stores[i].name));
	ob_jout_end(j, ']');
	ob_jout_begin(j, "sinks", '[');
	for (size_t i = 0; i < config->sink_count; i++)
		ob_jout_text(j, NULL, ob_str(config->sinks[i].name));
	ob_jout_end(j, ']');
	ob_jout_begin(j, "relays", '[');
	for (size_t i = 0; i < config->relay_count; i++)
		ob_jout_text(j, NULL, ob_str(config->relays[i].name));
	ob_jout_end(j, ']');
	ob_jout_begin(j, "warnings", '[');
	if (!reads_default(config))
		ob_jout_text(j, NULL, ob_str(unread_default));
	ob_jout_end(j, ']');
}

/* Each behind the name of the file, like the others. */
static void add_sink_faults(const struct ob_cli *cli, const struct ob_config *config,
			    struct ob_buf *faults)
{
	for (size_t i = 0; i < config->sink_count; i++) {
		struct ob_buf one = OB_BUF_INIT(8192);

		ob_sink_faults(&config->sinks[i], &one);
		for (char *line = one.len ? one.data : NULL, *nl; line && (nl = strchr(line, '\n'));
		     line = nl + 1)
			ob_buf_addf(faults, "%s: %.*s\n", cli->config, (int)(nl - line), line);
		ob_buf_done(&one);
	}
}

/* On stdout also when it fails: the faults are the data that was asked for. */
static int check_json(const struct ob_cli *cli)
{
	struct ob_buf faults = OB_BUF_INIT(1 << 20);
	struct ob_jout j = OB_JOUT_INIT;
	OB_CLEANUP(ob_config_freep) struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;
	bool ok = ob_config_load(cli->config, &faults, &config, &err) == 0;

	if (ok) {
		add_sink_faults(cli, config, &faults);
		ok = faults.len == 0;
	}
	if (!ok && !faults.len)
		ob_buf_addf(&faults, "%s: %s\n", cli->config, err.msg);
	ob_jout_begin(&j, NULL, '{');
	ob_jout_bool(&j, "ok", ok);
	ob_jout_text(&j, "file", ob_str(cli->config));
	if (ok)
		config_json(&j, config);
	ob_jout_begin(&j, "faults", '[');
	faults_json(&j, ob_buf_view(&faults), cli->config);
	ob_jout_end(&j, ']');
	ob_jout_end(&j, '}');
	int r = ob_jout_print(&j);
	ob_jout_done(&j);
	ob_buf_done(&faults);
	return ok ? r : OB_EXIT_FAILURE;
}

static int config_check_run(struct ob_cli *cli, const void *args)
{
	OB_CLEANUP(ob_config_freep) struct ob_config *config = NULL;

	(void)args;
	if (cli->json)
		return check_json(cli);
	int r = ob_cli_load_config(cli, &config);
	if (r)
		return r;
	struct ob_buf faults = OB_BUF_INIT(1 << 16);
	add_sink_faults(cli, config, &faults);
	(void)fputs(ob_buf_str(&faults), stderr);
	bool bad = faults.len > 0;
	ob_buf_done(&faults);
	if (bad)
		return OB_EXIT_FAILURE;
	if (!reads_default(config))
		ob_cli_warn("%s: %s", cli->config, unread_default);
	printf("%s: ok\n", cli->config);
	for (size_t i = 0; i < config->store_count; i++) {
		const struct ob_store_backend *backend = NULL;
		struct ob_err err = OB_ERR_INIT;

		/* not the URL itself: it may hold a password */
		(void)ob_store_find(config->stores[i].conf.url, &backend, &err);
		printf("  store  %s (%s)\n", config->stores[i].name,
		       backend ? backend->name : "unknown");
	}
	for (size_t i = 0; i < config->sink_count; i++)
		printf("  sink   %s (%s)\n", config->sinks[i].name, config->sinks[i].ops->name);
	for (size_t i = 0; i < config->relay_count; i++) {
		const struct ob_config_relay *relay = &config->relays[i];
		printf("  relay  %s: %s to %s\n", relay->name, relay->store->name,
		       relay->sink->name);
	}
	return OB_EXIT_OK;
}

const struct ob_cmd ob_cmd_config_check = {
	.name = "config check",
	.group = OB_GROUP_START,
	.flags = OB_CMD_USES_CONFIG | OB_CMD_JSON,
	.summary = "find every fault of the configuration",
	.description =
		"Reads the configuration and checks every key, type, range and name in it, "
		"and of each sink what would make it fail: a program that is not there, a "
		"private address that will be refused. Nothing is connected to. All faults are "
		"printed at once, one a "
		"line, with file, line and column. With --json the faults are the data: "
		"they go to standard output.",
	.run = config_check_run,
};
