/* SPDX-License-Identifier: MIT */
/*
 * Build-time program: writes outbox.1 and a page for each command from the
 * tables of the commands.
 *
 * usage: gen-man DIRECTORY VERSION FILE...
 *
 * FILE... is what the build expects; anything else is an error, so the list in
 * meson.build cannot fall behind the tables.
 */
#include "cli/cmd.h"
#include "cli/help.h"
#include "outbox/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 64 };

/* roff reads backslashes anywhere, dots and quotes at the start of a line, and makes hyphens of
 * minus signs. */
static void put_text(FILE *out, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (text[0] == '\n' && text[1] == '\n') {
			(void)fputs("\n.PP\n", out);
			text++;
			line_start = true;
			continue;
		}
		if (line_start && (*text == '.' || *text == '\''))
			(void)fputs("\\&", out);
		if (*text == '\\')
			(void)fputs("\\e", out);
		else if (*text == '-')
			(void)fputs("\\-", out);
		else if (*text == '\'')
			(void)fputs("\\(aq", out);
		else
			(void)fputc(*text, out);
		line_start = *text == '\n';
	}
}

static void put_options(FILE *out, const struct ob_cmd_opt *table, const struct ob_cmd *cmd)
{
	for (const struct ob_cmd_opt *opt = table; opt && opt->name; opt++) {
		struct ob_buf text = OB_BUF_INIT(4096);

		if (cmd && table == ob_cmd_globals && !ob_cmd_takes_global(cmd, opt))
			continue;
		(void)fputs(".TP\n", out);
		if (opt->letter)
			(void)fprintf(out, "\\fB\\-%c\\fR, ", opt->letter);
		(void)fputs("\\fB\\-\\-", out);
		put_text(out, opt->name);
		(void)fputs("\\fR", out);
		if (opt->arg)
			(void)fprintf(out, " \\fI%s\\fR", opt->arg);
		(void)fputc('\n', out);
		ob_help_sentence(opt, &text);
		put_text(out, ob_buf_str(&text));
		(void)fputc('\n', out);
		ob_buf_done(&text);
	}
}

static void put_head(FILE *out, const char *page, const char *version, const char *summary)
{
	(void)fprintf(out, ".TH ");
	for (const char *p = page; *p; p++)
		(void)fputc(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p, out);
	(void)fprintf(out, " 1 \"\" \"outbox %s\" \"outbox\"\n.SH NAME\n", version);
	put_text(out, page);
	(void)fputs(" \\- ", out);
	put_text(out, summary);
	(void)fputc('\n', out);
}

static void put_exit_codes(FILE *out)
{
	(void)fputs(
		".SH EXIT STATUS\n"
		".TP\n0\nIt was done.\n"
		".TP\n1\nIt failed: the configuration, the database or the data; one line on "
		"standard error says why.\n"
		".TP\n2\nThe command line is wrong; one line on standard error names what.\n",
		out);
}

static void page_name(const struct ob_cmd *cmd, char out[NAME_SIZE])
{
	(void)snprintf(out, NAME_SIZE, "outbox-%s", cmd->name);
	for (char *p = out; *p; p++)
		*p = (char)(*p == ' ' ? '-' : *p);
}

static void put_command(FILE *out, const struct ob_cmd *cmd, const char *version)
{
	struct ob_buf synopsis = OB_BUF_INIT(4096);
	char page[NAME_SIZE];
	const char *word, *text;

	page_name(cmd, page);
	put_head(out, page, version, cmd->summary);
	ob_help_synopsis(cmd, &synopsis);
	(void)fputs(".SH SYNOPSIS\n.nf\n", out);
	put_text(out, ob_buf_str(&synopsis));
	(void)fputs("\n.fi\n.SH DESCRIPTION\n", out);
	ob_buf_done(&synopsis);
	put_text(out, cmd->description);
	(void)fputs("\n.SH OPTIONS\n", out);
	put_options(out, cmd->options, cmd);
	put_options(out, ob_cmd_globals, cmd);
	for (size_t i = 0; cmd->topic && (word = cmd->topic(i, &text)) != NULL; i++) {
		if (i == 0)
			(void)fprintf(out, ".SH \"%s\"\n", cmd->topic_title);
		(void)fprintf(out, ".TP\n\\fB%s\\fR\n", word);
		put_text(out, text);
		(void)fputc('\n', out);
	}
	put_exit_codes(out);
	for (size_t i = 0; cmd->examples && cmd->examples[i]; i++) {
		(void)fputs(i ? "" : ".SH EXAMPLES\n.nf\n", out);
		put_text(out, cmd->examples[i]);
		(void)fputs(cmd->examples[i + 1] ? "\n" : "\n.fi\n", out);
	}
	(void)fputs(".SH SEE ALSO\n.BR outbox (1)\n", out);
}

static void put_overview(FILE *out, const char *version)
{
	put_head(out, "outbox", version, "messages that commit with your data");
	(void)fputs(
		".SH SYNOPSIS\n.nf\noutbox [OPTION]... COMMAND [ARGUMENT]...\n.fi\n"
		".SH DESCRIPTION\n",
		out);
	put_text(out,
		 "An application writes a message into its own database, in its own "
		 "transaction; a relay delivers it once that transaction has committed. This "
		 "program makes the tables, stores and shows messages.");
	(void)fputs("\n.SH COMMANDS\n", out);
	for (size_t i = 0; ob_cmds[i]; i++) {
		char page[NAME_SIZE];

		page_name(ob_cmds[i], page);
		(void)fputs(".TP\n.BR ", out);
		put_text(out, page);
		(void)fputs(" (1)\n", out);
		put_text(out, ob_cmds[i]->summary);
		(void)fputc('\n', out);
	}
	(void)fputs(".SH OPTIONS\n", out);
	put_options(out, ob_cmd_globals, NULL);
	(void)fputs(".SH ENVIRONMENT\n", out);
	for (const struct ob_cmd_opt *opt = ob_cmd_globals; opt->name; opt++) {
		if (opt->env)
			(void)fprintf(out, ".TP\n\\fB%s\\fR\nStands for \\fB\\-\\-%s\\fR.\n",
				      opt->env, opt->name);
	}
	put_exit_codes(out);
}

static FILE *open_page(const char *directory, const char *page)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s.1", directory, page);
	FILE *out = fopen(path, "w");
	if (!out)
		(void)fprintf(stderr, "gen-man: %s: %m\n", path);
	return out;
}

/* The name of the page number `i`: 0 is the overview. */
static void nth_page(size_t i, char out[NAME_SIZE])
{
	if (i == 0)
		(void)snprintf(out, NAME_SIZE, "outbox");
	else
		page_name(ob_cmds[i - 1], out);
}

static bool expected(const char *page, char **files, size_t count)
{
	char file[NAME_SIZE + 2];

	(void)snprintf(file, sizeof(file), "%s.1", page);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(files[i], file) == 0)
			return true;
	}
	(void)fprintf(stderr, "gen-man: %s is not in the list of src/cli/meson.build\n", file);
	return false;
}

int main(int argc, char **argv)
{
	size_t pages = 1;

	if (argc < 4)
		return EXIT_FAILURE;
	while (ob_cmds[pages - 1])
		pages++;
	if ((size_t)argc - 3 != pages) {
		(void)fprintf(stderr, "gen-man: %d pages are expected, there are %zu\n", argc - 3,
			      pages);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < pages; i++) {
		char page[NAME_SIZE];

		nth_page(i, page);
		if (!expected(page, argv + 3, pages))
			return EXIT_FAILURE;
		FILE *out = open_page(argv[1], page);
		if (!out)
			return EXIT_FAILURE;
		if (i == 0)
			put_overview(out, argv[2]);
		else
			put_command(out, ob_cmds[i - 1], argv[2]);
		if (fclose(out) != 0)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
