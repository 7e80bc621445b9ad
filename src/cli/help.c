/* SPDX-License-Identifier: MIT */
/* Lays the tables out as text: words are wrapped, nothing passes column 80. */
#include "cli/help.h"

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 80, TEXT_MAX = 4096 };

/* Print `text` from column `at` on; later lines begin at column `indent`. */
static void wrap(FILE *out, const char *text, int at, int indent)
{
	int column = at;

	while (*text) {
		size_t n = strcspn(text, " \n");
		size_t newlines = 0;

		if (column > indent && column + 1 + (int)n > WIDTH) {
			(void)fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent && n) {
			(void)fputc(' ', out);
			column++;
		}
		(void)fwrite(text, 1, n, out);
		column += (int)n;
		text += n;
		for (; *text == ' ' || *text == '\n'; text++)
			newlines += *text == '\n';
		if (newlines > 1 && *text) {
			(void)fprintf(out, "\n\n%*s", indent, "");
			column = indent;
		}
	}
	(void)fputc('\n', out);
}

static void heading(FILE *out, const char *text)
{
	const char *no_color = getenv("NO_COLOR");
	bool bold = out == stdout && isatty(STDOUT_FILENO) && !(no_color && *no_color);

	(void)fprintf(out, "\n%s%s:%s\n", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

void ob_help_option(const struct ob_cmd_opt *opt, struct ob_buf *out)
{
	if (opt->letter)
		ob_buf_addf(out, "-%c, ", opt->letter);
	ob_buf_addf(out, "--%s", opt->name);
	if (opt->arg)
		ob_buf_addf(out, " %s", opt->arg);
}

void ob_help_sentence(const struct ob_cmd_opt *opt, struct ob_buf *out)
{
	ob_buf_adds(out, opt->help);
	if (opt->dflt && opt->env)
		ob_buf_addf(out, " [$%s, %s]", opt->env, opt->dflt);
	else if (opt->env || opt->dflt)
		ob_buf_addf(out, " [%s%s]", opt->env ? "$" : "", opt->env ? opt->env : opt->dflt);
}

void ob_help_synopsis(const struct ob_cmd *cmd, struct ob_buf *out)
{
	ob_buf_addf(out, "outbox %s", cmd->name);
	if (cmd->options)
		ob_buf_adds(out, " [OPTION]...");
	for (const struct ob_cmd_operand *row = cmd->operands; row && row->name; row++)
		ob_buf_addf(out, " %s%s%s%s", row->optional ? "[" : "", row->name,
			    row->optional ? "]" : "", row->many ? "..." : "");
}

/* The column of the help texts: behind the longest option, but not past the middle. */
static int option_column(const struct ob_cmd *cmd)
{
	const struct ob_cmd_opt *const tables[] = { cmd ? cmd->options : NULL, ob_cmd_globals };
	size_t longest = 0;

	for (size_t t = 0; t < 2; t++) {
		for (const struct ob_cmd_opt *opt = tables[t]; opt && opt->name; opt++) {
			size_t n = strlen(opt->name) + (opt->arg ? strlen(opt->arg) + 1 : 0);
			longest = n > longest ? n : longest;
		}
	}
	return (int)(longest > 22 ? 22 : longest) + 10;
}

static void print_option(FILE *out, const struct ob_cmd_opt *opt, int column)
{
	struct ob_buf name = OB_BUF_INIT(TEXT_MAX), text = OB_BUF_INIT(TEXT_MAX);

	/* Options without a letter stand below the long names of the others. */
	ob_buf_adds(&name, opt->letter ? "  " : "      ");
	ob_help_option(opt, &name);
	ob_help_sentence(opt, &text);
	(void)fprintf(out, "%-*s", column, ob_buf_str(&name));
	if ((int)name.len >= column)
		(void)fprintf(out, "\n%*s", column, "");
	wrap(out, ob_buf_str(&text), column, column);
	ob_buf_done(&name);
	ob_buf_done(&text);
}

static void print_summaries(FILE *out, int group, const char *prefix)
{
	size_t n = prefix ? strlen(prefix) : 0;

	for (size_t i = 0; ob_cmds[i]; i++) {
		const struct ob_cmd *cmd = ob_cmds[i];

		if (prefix ? strncmp(cmd->name, prefix, n) == 0 && cmd->name[n] == ' '
			   : (int)cmd->group == group)
			(void)fprintf(out, "  %-14s  %s\n", cmd->name, cmd->summary);
	}
}

void ob_help_overview(FILE *out)
{
	int column = option_column(NULL);

	(void)fputs(
		"outbox: messages that commit with your data\n\n"
		"Usage: outbox [OPTION]... COMMAND [ARGUMENT]...\n",
		out);
	for (int group = 0; group < OB_GROUP_COUNT; group++) {
		heading(out, ob_cmd_group_titles[group]);
		print_summaries(out, group, NULL);
	}
	heading(out, "Options of every command");
	for (const struct ob_cmd_opt *opt = ob_cmd_globals; opt->name; opt++)
		print_option(out, opt, column);
	(void)fputs("\n'outbox help COMMAND' says more about one of them.\n", out);
}

void ob_help_prefix(const char *word, FILE *out)
{
	(void)fprintf(out, "Usage: outbox %s COMMAND\n", word);
	heading(out, "Commands");
	print_summaries(out, -1, word);
}

static void print_topic(const struct ob_cmd *cmd, FILE *out)
{
	const char *word, *text;

	if (!cmd->topic)
		return;
	heading(out, cmd->topic_title);
	for (size_t i = 0; (word = cmd->topic(i, &text)) != NULL; i++) {
		(void)fprintf(out, "  %-16s  ", word);
		wrap(out, text, 20, 20);
	}
}

void ob_help_command(const struct ob_cmd *cmd, FILE *out)
{
	struct ob_buf usage = OB_BUF_INIT(TEXT_MAX);
	int column = option_column(cmd);

	ob_help_synopsis(cmd, &usage);
	(void)fprintf(out, "outbox %s: %s\n\nUsage: ", cmd->name, cmd->summary);
	wrap(out, ob_buf_str(&usage), 7, 7);
	ob_buf_done(&usage);
	(void)fputc('\n', out);
	wrap(out, cmd->description, 0, 0);
	if (cmd->options) {
		heading(out, "Options");
		for (const struct ob_cmd_opt *opt = cmd->options; opt->name; opt++)
			print_option(out, opt, column);
	}
	print_topic(cmd, out);
	heading(out, "Options of every command");
	for (const struct ob_cmd_opt *opt = ob_cmd_globals; opt->name; opt++) {
		if (ob_cmd_takes_global(cmd, opt))
			print_option(out, opt, column);
	}
	if (cmd->examples)
		heading(out, "Examples");
	for (size_t i = 0; cmd->examples && cmd->examples[i]; i++)
		(void)fprintf(out, "  %s\n", cmd->examples[i]);
}
