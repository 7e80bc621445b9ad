/* SPDX-License-Identifier: MIT */
#include "cli/monitor/stores.h"

int ob_cli_stores_load(struct ob_cli_stores *stores, const struct ob_cli *cli)
{
	struct ob_session session = { 0 };
	int r;

	*stores = (struct ob_cli_stores){ 0 };
	if (!cli->store)
		return ob_cli_load_config(cli, &stores->config);
	r = ob_session_load(&session, cli);
	stores->config = session.config;
	stores->only = session.entry;
	return r;
}

void ob_cli_stores_done(struct ob_cli_stores *stores)
{
	ob_config_free(stores->config);
	*stores = (struct ob_cli_stores){ 0 };
}
