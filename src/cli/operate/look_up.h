/* SPDX-License-Identifier: MIT */
/* The message that a command's operand names. */
#ifndef OB_CLI_OPERATE_LOOK_UP_H
#define OB_CLI_OPERATE_LOOK_UP_H

#include "cli/cli.h"
#include "operate/lookup.h"

/*
 * Check the first operand, open the store, find the rows: see ob_lookup_find(). Prints what is
 * wrong; an exit code. The caller ends *lookup and *session in every case.
 */
int ob_cli_look_up(struct ob_lookup *lookup, const struct ob_cli *cli, struct ob_session *session,
		   const char *reader, const char *gone);

#endif
