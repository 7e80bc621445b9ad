/* SPDX-License-Identifier: MIT */
/* The stores that a command of the monitor is about: one, or all of the configuration. */
#ifndef OB_CLI_MONITOR_STORES_H
#define OB_CLI_MONITOR_STORES_H

#include "cli/cli.h"
#include "config.h"

#if HAVE_MONITOR
#include "monitor/monitor.h"
#endif

struct ob_cli_stores {
	struct ob_config *config;
	const struct ob_config_store *only; /* NULL: all */
};

/* An exit code; what is wrong is printed. The caller ends it in every case. */
int ob_cli_stores_load(struct ob_cli_stores *stores, const struct ob_cli *cli);
void ob_cli_stores_done(struct ob_cli_stores *stores);

#endif
