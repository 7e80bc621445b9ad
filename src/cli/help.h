/* SPDX-License-Identifier: MIT */
/* Help for people at a terminal, made from the tables; at most 80 columns wide. */
#ifndef OB_CLI_HELP_H
#define OB_CLI_HELP_H

#include "base/buf.h"
#include "cli/cmd.h"

#include <stdio.h>

/* What `outbox` alone prints: the commands by group and the shared options. */
void ob_help_overview(FILE *out);
/* One command's page. */
void ob_help_command(const struct ob_cmd *cmd, FILE *out);
/* The commands whose name begins with that word. */
void ob_help_prefix(const char *word, FILE *out);

/* "outbox list [OPTION]... [STATE]...", for the help and the manual page. */
void ob_help_synopsis(const struct ob_cmd *cmd, struct ob_buf *out);
/* "-c, --config FILE" */
void ob_help_option(const struct ob_cmd_opt *opt, struct ob_buf *out);
/* The help sentence with the default and the environment variable behind it. */
void ob_help_sentence(const struct ob_cmd_opt *opt, struct ob_buf *out);

#endif
