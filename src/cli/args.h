/* SPDX-License-Identifier: MIT */
/* The command line, read by the tables of the commands. */
#ifndef OB_CLI_ARGS_H
#define OB_CLI_ARGS_H

#include "cli/cli.h"

/*
 * Read argv into *cli, whose memory for operands and *ret_args is the
 * caller's to free with ob_args_done(). Prints the one thing that is wrong and
 * returns OB_EXIT_USAGE, or OB_EXIT_OK. With --help or --version nothing
 * beyond them is demanded.
 */
int ob_args_parse(struct ob_cli *cli, int argc, char **argv, void **ret_args);
void ob_args_done(struct ob_cli *cli, void *args);

#endif
