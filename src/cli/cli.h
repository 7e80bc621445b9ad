/* SPDX-License-Identifier: MIT */
/* One run of the program: what the command line said, errors, and the session with a store. */
#ifndef OB_CLI_CLI_H
#define OB_CLI_CLI_H

#include "base/cleanup.h"
#include "cli/cmd.h"
#include "config/config.h"

struct ob_cli {
	/* the global options */
	const char *config, *store;
	bool json, help, version;

	bool config_given;        /* by option or environment, not by default */
	bool store_given;         /* by option, not by environment */
	const struct ob_cmd *cmd; /* NULL: none was named */
	const char *prefix;       /* no command, but the first word of some: "config" */
	const char **operands;
	size_t operand_count;
	char *hidden[4]; /* copies of values whose password was removed from the command line */
	size_t hidden_count;
	size_t given; /* how many of the command's own options were there */
};

/* Print "outbox: ..." as one safe line on stderr; returns OB_EXIT_FAILURE. */
int ob_cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print "outbox: warning: ..." the same way. */
void ob_cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same with the command's name before it; returns OB_EXIT_USAGE. */
int ob_cli_usage(const struct ob_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "no command 'lst'; did you mean 'list'?"; returns OB_EXIT_USAGE. */
int ob_cli_no_command(const struct ob_cli *cli, const char *name);

/*
 * Ask "`what`? [y/N]" on the terminal. OB_EXIT_OK is yes; everything else is printed: a no, or that
 * there is no terminal to ask on and --yes must say it.
 */
int ob_cli_confirm(const struct ob_cli *cli, const char *what);

/* A configuration and an open store that belong together. */
struct ob_session {
	struct ob_config *config;
	const struct ob_config_store *entry; /* the store's entry in the configuration */
	struct ob_store *store;              /* NULL until ob_session_connect() */
};

/*
 * Load the configuration that --config and --store name and find the store's
 * entry. Prints what is wrong and returns an exit code; OB_EXIT_OK is 0. The
 * caller ends the session in every case.
 */
int ob_session_load(struct ob_session *session, const struct ob_cli *cli);
/* Load and connect. */
int ob_session_connect(struct ob_session *session, const struct ob_cli *cli);
/* Load, connect, and check that the tables are there. */
int ob_session_open(struct ob_session *session, const struct ob_cli *cli);
void ob_session_done(struct ob_session *session);

/* Load --config, or print its faults; on OB_EXIT_OK the caller owns *ret_config. */
int ob_cli_load_config(const struct ob_cli *cli, struct ob_config **ret_config);

OB_DEFINE_CLEANUP(struct ob_config *, ob_config_free)

#endif
