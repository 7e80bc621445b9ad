/* SPDX-License-Identifier: MIT */
/* How errors are printed, and how a command gets its configuration and store. */
#include "cli/cli.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_CHARS = 1000, LINE_BYTES = 8192, FAULTS_BYTES = 1 << 20 };

/* What users, files and databases gave us may stand in it: one safe line comes out. */
__attribute__((format(printf, 2, 0))) static void print_error(const char *where, const char *fmt,
							      va_list ap)
{
	struct ob_buf safe = OB_BUF_INIT(LINE_BYTES);
	char text[2048];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	ob_utf8_sanitize(&safe, ob_str(text), LINE_CHARS);
	(void)fprintf(stderr, "outbox: %s%s%s\n", where, *where ? ": " : "", ob_buf_str(&safe));
	ob_buf_done(&safe);
}

int ob_cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_error("", fmt, ap);
	va_end(ap);
	return OB_EXIT_FAILURE;
}

void ob_cli_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_error("warning", fmt, ap);
	va_end(ap);
}

int ob_cli_usage(const struct ob_cli *cli, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_error(cli->cmd ? cli->cmd->name : "", fmt, ap);
	va_end(ap);
	return OB_EXIT_USAGE;
}

int ob_cli_no_command(const struct ob_cli *cli, const char *name)
{
	const char *names[64];
	size_t count = 0;

	for (size_t i = 0; ob_cmds[i] && count < 64; i++)
		names[count++] = ob_cmds[i]->name;
	const char *near = ob_suggest(name, names, count);
	if (near)
		return ob_cli_usage(cli, "no command '%s'; did you mean '%s'?", name, near);
	return ob_cli_usage(cli, "no command '%s'; 'outbox help' lists them", name);
}

/* Only a person at a terminal can say yes; everything else is no. */
int ob_cli_confirm(const struct ob_cli *cli, const char *what)
{
	struct ob_buf safe = OB_BUF_INIT(LINE_BYTES);
	char answer[16] = "";

	if (!isatty(STDIN_FILENO))
		return ob_cli_usage(cli, "would %s: stdin is no terminal to ask on, so say --yes",
				    what);
	ob_utf8_sanitize(&safe, ob_str(what), LINE_CHARS);
	(void)fprintf(stderr, "%s? [y/N] ", ob_buf_str(&safe));
	ob_buf_done(&safe);
	if (!fgets(answer, sizeof(answer), stdin))
		(void)fputc('\n', stderr); /* the shell's prompt begins a line */
	if (answer[0] != 'y' && answer[0] != 'Y')
		return ob_cli_fail("nothing was changed");
	return OB_EXIT_OK;
}

/* The faults are lines of ours, but they quote the file. */
static void print_faults(struct ob_str faults)
{
	while (faults.n) {
		const char *nl = memchr(faults.p, '\n', faults.n);
		size_t n = nl ? (size_t)(nl - faults.p) : faults.n;
		struct ob_buf safe = OB_BUF_INIT(LINE_BYTES);

		ob_utf8_sanitize(&safe, (struct ob_str){ faults.p, n }, LINE_CHARS);
		(void)fprintf(stderr, "%s\n", ob_buf_str(&safe));
		ob_buf_done(&safe);
		n += nl ? 1 : 0;
		faults.p += n;
		faults.n -= n;
	}
}

int ob_cli_load_config(const struct ob_cli *cli, struct ob_config **ret_config)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_BYTES);
	struct ob_err err = OB_ERR_INIT;
	int r = OB_EXIT_OK;

	if (!cli->config_given && access(cli->config, F_OK) != 0) {
		(void)ob_cli_fail(
			"no %s here: 'outbox init' writes one, --config names another, "
			"--store takes the URL of a database",
			cli->config);
		return OB_EXIT_USAGE;
	}
	if (ob_config_load(cli->config, &faults, ret_config, &err) < 0) {
		if (faults.len)
			print_faults(ob_buf_view(&faults));
		else
			(void)ob_cli_fail("%s", err.msg);
		r = OB_EXIT_FAILURE;
	}
	ob_buf_done(&faults);
	return r;
}

static int unknown_store(const struct ob_cli *cli, const struct ob_config *config)
{
	struct ob_buf names = OB_BUF_INIT(400);
	assert(config && (config->stores || config->store_count == 0));
	for (size_t i = 0; i < config->store_count; i++)
		ob_buf_addf(&names, "%s%s", i ? ", " : "", config->stores[i].name);
	if (cli->store)
		(void)ob_cli_fail("%s has no store '%s'; it has %s", cli->config, cli->store,
				  ob_buf_str(&names));
	else
		(void)ob_cli_fail("%s has %zu stores: choose one of %s with --store", cli->config,
				  config->store_count, ob_buf_str(&names));
	ob_buf_done(&names);
	return OB_EXIT_USAGE;
}

/* A URL beside a configuration that was asked for: that file's table names, this database. */
static int load_url(struct ob_session *session, const struct ob_cli *cli)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_config_of_store(cli->store, &session->config, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	session->entry = &session->config->stores[0];
	if (!cli->config_given)
		return OB_EXIT_OK;

	OB_CLEANUP(ob_config_freep) struct ob_config *file = NULL;
	int r = ob_cli_load_config(cli, &file);
	if (r)
		return r;
	session->config->layout = file->layout;
	session->config->writer_flags = file->writer_flags;
	return OB_EXIT_OK;
}

int ob_session_load(struct ob_session *session, const struct ob_cli *cli)
{
	*session = (struct ob_session){ 0 };
	if (cli->store && strchr(cli->store, ':'))
		return load_url(session, cli);

	int r = ob_cli_load_config(cli, &session->config);
	if (r)
		return r;
	if (cli->store)
		session->entry = ob_config_find_store(session->config, cli->store);
	else if (session->config->store_count == 1)
		session->entry = &session->config->stores[0];
	if (!session->entry)
		return unknown_store(cli, session->config);
	return OB_EXIT_OK;
}

int ob_session_connect(struct ob_session *session, const struct ob_cli *cli)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_session_load(session, cli);

	if (r)
		return r;
	if (ob_store_connect(&session->entry->conf, &session->store, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	session->store->writer_flags = session->config->writer_flags;
	session->store->looks_only = cli->cmd->flags & OB_CMD_LOOKS;
	return OB_EXIT_OK;
}

int ob_session_open(struct ob_session *session, const struct ob_cli *cli)
{
	struct ob_err err = OB_ERR_INIT;
	int r = ob_session_connect(session, cli);

	if (r)
		return r;
	if (ob_store_check(session->store, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	return OB_EXIT_OK;
}

void ob_session_done(struct ob_session *session)
{
	ob_store_free(session->store);
	ob_config_free(session->config);
	*session = (struct ob_session){ 0 };
}
