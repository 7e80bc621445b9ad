/* SPDX-License-Identifier: MIT */
/* outbox monitor: the web monitor by itself, for the stores of a configuration. */
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/monitor/stores.h"
#include "config.h"

#include <poll.h>
#include <stdio.h>

#define LISTEN "127.0.0.1:8025"

struct monitor_args {
	const char *listen;
};

#if HAVE_MONITOR
static int serve(struct ob_monitor *monitor, struct ob_signals *signals)
{
	printf("monitor at %s\n", ob_monitor_address(monitor));
	if (fflush(stdout) != 0)
		return OB_EXIT_FAILURE;
	while (signals->stop == OB_STOP_NO) {
		struct pollfd fd = { .fd = signals->fd, .events = POLLIN };

		if (poll(&fd, 1, -1) > 0)
			ob_signals_read(signals);
	}
	return OB_EXIT_OK;
}

static int monitor_stores(const struct ob_cli_stores *stores, const struct monitor_args *args,
			  struct ob_signals *signals)
{
	const struct ob_config *config = stores->config;
	const struct ob_log log = { .fd = STDERR_FILENO,
				    .level = config->log_level,
				    .format = config->log_format,
				    .clock = &ob_clock_system };
	const struct ob_monitor_conf conf = {
		.config = config,
		.store = stores->only,
		.listen = args->listen             ? args->listen
			  : config->monitor.listen ? config->monitor.listen
						   : LISTEN,
		.log = &log,
	};
	struct ob_err err = OB_ERR_INIT;
	struct ob_monitor *monitor;

	if (ob_monitor_new(&conf, &monitor, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	int r = serve(monitor, signals);
	ob_monitor_free(monitor);
	return r;
}

static int monitor_run(struct ob_cli *cli, const void *args)
{
	struct ob_signals signals = { .fd = -1 };
	struct ob_cli_stores stores;
	struct ob_err err = OB_ERR_INIT;
	int r = ob_cli_stores_load(&stores, cli);

	if (!r && ob_signals_init(&signals, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	if (!r)
		r = monitor_stores(&stores, args, &signals);
	if (signals.fd >= 0)
		ob_signals_done(&signals);
	ob_cli_stores_done(&stores);
	return r;
}
#else
static int monitor_run(struct ob_cli *cli, const void *args)
{
	(void)cli;
	(void)args;
	return ob_cli_fail("this build has no monitor: install libmicrohttpd-dev and build again");
}
#endif

static const struct ob_cmd_opt options[] = {
	{
		.name = "listen",
		.arg = "ADDRESS",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct monitor_args, listen),
		.help = "Where: 127.0.0.1:8025, [::1]:8025, unix:PATH; left out: monitor.listen of "
			"the configuration, else " LISTEN ".",
	},
	OB_CMD_OPT_END,
};

static const char *const examples[] = {
	"outbox monitor",
	"outbox monitor --listen 127.0.0.1:9000",
	"outbox --store sqlite:shop.db monitor",
	NULL,
};

const struct ob_cmd ob_cmd_monitor = {
	.name = "monitor",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE,
	.summary = "the web monitor: pages, API, metrics, health",
	.description =
		"Serves the web monitor until it is stopped: what waits, what failed and why, who "
		"works; retry, skip and discard; the same as JSON below /api/v1/, metrics for "
		"Prometheus at /metrics, and /healthz, /readyz and /startupz. 'outbox work' serves "
		"the same inside its own process when monitor.listen is set.\n\n"
		"By default only this machine can reach it, and whoever can may do everything. Any "
		"other address needs tokens, see monitor in outbox.yaml(5). Behind a proxy set "
		"base_path, hosts and trusted_proxies.",
	.examples = examples,
	.options = options,
	.args_size = sizeof(struct monitor_args),
	.run = monitor_run,
};
