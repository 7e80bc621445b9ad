/* SPDX-License-Identifier: MIT */
#include "cli/operate/look_up.h"

int ob_cli_look_up(struct ob_lookup *l, const struct ob_cli *cli, struct ob_session *session,
		   const char *reader, const char *gone)
{
	const char *text = cli->operands[0];
	struct ob_err err = OB_ERR_INIT;

	*l = (struct ob_lookup){ 0 };
	*session = (struct ob_session){ 0 };
	/* What is wrong with the command line is said before anything is opened. */
	if (ob_lookup_check(text, &err) < 0)
		return ob_cli_usage(cli, "%s", err.msg);
	int r = ob_session_open(session, cli);

	if (!r && ob_lookup_find(l, session->store, text, reader, gone, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	return r;
}
