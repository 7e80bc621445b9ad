/* SPDX-License-Identifier: MIT */
/* outbox metrics: what /metrics of the monitor says, without HTTP. */
#include "cli/commands.h"
#include "cli/monitor/stores.h"

#include <stdio.h>

#if HAVE_MONITOR
static int metrics_run(struct ob_cli *cli, const void *args)
{
	struct ob_buf out = OB_BUF_INIT(64 << 20);
	struct ob_err err = OB_ERR_INIT;
	struct ob_cli_stores stores;
	int r = ob_cli_stores_load(&stores, cli);

	(void)args;
	if (!r) {
		const struct ob_log quiet = { .fd = STDERR_FILENO,
					      .level = OB_LOG_ERROR,
					      .clock = &ob_clock_system };
		const struct ob_monitor_conf conf = { .config = stores.config,
						      .store = stores.only,
						      .log = &quiet };

		if (ob_monitor_print_metrics(&conf, &out, &err) < 0)
			r = ob_cli_fail("%s", err.msg);
	}
	(void)fputs(ob_buf_str(&out), stdout);
	ob_buf_done(&out);
	ob_cli_stores_done(&stores);
	return r;
}
#else
static int metrics_run(struct ob_cli *cli, const void *args)
{
	(void)cli;
	(void)args;
	return ob_cli_fail("this build has no monitor: install libmicrohttpd-dev and build again");
}
#endif

static const char *const examples[] = {
	"outbox metrics",
	"outbox metrics > /var/lib/node_exporter/outbox.prom",
	NULL,
};

const struct ob_cmd ob_cmd_metrics = {
	.name = "metrics",
	.group = OB_GROUP_OPERATE,
	.flags = OB_CMD_USES_STORE,
	.summary = "what waits and who works, for Prometheus",
	.description =
		"Prints the metrics of the stores in the text format of Prometheus: what the "
		"monitor serves at /metrics, without the counters that only a running relay has. "
		"For the textfile collector of the node exporter, from cron. A store that does not "
		"answer is an error.",
	.examples = examples,
	.run = metrics_run,
};
