/* SPDX-License-Identifier: MIT */
/* outbox completion: what a shell offers after TAB, from the same tables as the parser. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

/* Call `fn` for each option of the command, then for the shared ones it reads. */
static void each_opt(const struct ob_cmd *cmd,
		     void (*fn)(const struct ob_cmd *, const struct ob_cmd_opt *))
{
	for (const struct ob_cmd_opt *opt = cmd->options; opt && opt->name; opt++)
		fn(cmd, opt);
	for (const struct ob_cmd_opt *opt = ob_cmd_globals; opt->name; opt++) {
		if (ob_cmd_takes_global(cmd, opt))
			fn(cmd, opt);
	}
}

/* A help sentence inside single quotes: all three shells read them alike, but for the quote. */
static void print_quoted(const char *text)
{
	(void)fputc('\'', stdout);
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)fputc(*text, stdout);
	}
	(void)fputc('\'', stdout);
}

static const struct ob_cmd_operand *first_operand(const struct ob_cmd *cmd)
{
	return cmd->operands && cmd->operands[0].name ? &cmd->operands[0] : NULL;
}

/* ---- bash ------------------------------------------------------------ */

static void bash_opt(const struct ob_cmd *cmd, const struct ob_cmd_opt *opt)
{
	(void)cmd;
	if (opt->letter)
		printf("-%c ", opt->letter);
	printf("--%s ", opt->name);
}

/* Has an option of that name been seen before command `last`, or is it a shared one? */
static bool seen_before(const char *name, size_t last)
{
	for (size_t i = 0; i < last; i++) {
		for (const struct ob_cmd_opt *opt = ob_cmds[i]->options; opt && opt->name; opt++) {
			if (strcmp(opt->name, name) == 0)
				return true;
		}
	}
	return false;
}

static void bash_pattern(const struct ob_cmd_opt *opt, bool files, const char **bar)
{
	if (!opt->arg || (opt->complete == OB_COMPLETE_FILE) != files)
		return;
	printf("%s--%s", *bar, opt->name);
	*bar = "|";
	if (opt->letter)
		printf("|-%c", opt->letter);
}

/* A case pattern of the options whose value is a file, or of those whose value is anything else. */
static void bash_values(bool files)
{
	const char *bar = "";

	for (const struct ob_cmd_opt *opt = ob_cmd_globals; opt->name; opt++)
		bash_pattern(opt, files, &bar);
	for (size_t i = 0; ob_cmds[i]; i++) {
		for (const struct ob_cmd_opt *opt = ob_cmds[i]->options; opt && opt->name; opt++) {
			if (!seen_before(opt->name, i))
				bash_pattern(opt, files, &bar);
		}
	}
}

static void bash_command(const struct ob_cmd *cmd)
{
	const struct ob_cmd_operand *row = first_operand(cmd);

	printf("\t'%s')\n\t\topts='", cmd->name);
	each_opt(cmd, bash_opt);
	(void)fputs("'\n", stdout);
	if (row && row->complete == OB_COMPLETE_FILE)
		(void)fputs("\t\tfiles=1\n", stdout);
	if (row && row->complete == OB_COMPLETE_COMMAND)
		(void)fputs("\t\twords=$commands\n", stdout);
	if (row && row->choices) {
		(void)fputs("\t\twords='", stdout);
		for (size_t i = 0; row->choices[i]; i++)
			printf("%s ", row->choices[i]);
		(void)fputs("'\n", stdout);
	}
	(void)fputs("\t\t;;\n", stdout);
}

static int first_length(const struct ob_cmd *cmd)
{
	return (int)strcspn(cmd->name, " ");
}

static bool same_first_word(const struct ob_cmd *a, const struct ob_cmd *b)
{
	return first_length(a) == first_length(b) &&
	       strncmp(a->name, b->name, (size_t)first_length(a)) == 0;
}

/* Is it the first command whose name begins with that word? */
static bool opens_word(size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (same_first_word(ob_cmds[i], ob_cmds[index]))
			return false;
	}
	return true;
}

/* The first words of all commands, each once. */
static void print_first_words(void)
{
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (opens_word(i))
			printf("%.*s ", first_length(ob_cmds[i]), ob_cmds[i]->name);
	}
}

/* The second words of those that begin as this one does. */
static void print_second_words(const struct ob_cmd *cmd)
{
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (same_first_word(ob_cmds[i], cmd))
			printf(" %s", strchr(ob_cmds[i]->name, ' ') + 1);
	}
}

static void bash_prefixes(void)
{
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (!strchr(ob_cmds[i]->name, ' ') || !opens_word(i))
			continue;
		printf("\t'%.*s') words='", first_length(ob_cmds[i]), ob_cmds[i]->name);
		print_second_words(ob_cmds[i]);
		(void)fputs("' ;;\n", stdout);
	}
}

static void print_bash(void)
{
	(void)fputs(
		"# bash completion for outbox; made by 'outbox completion bash'\n"
		"_outbox()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tlocal i word cmd= opts= words= files= skip=\n"
		"\tlocal commands='",
		stdout);
	print_first_words();
	(void)fputs("'\n\tlocal prefixes='", stdout);
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (strchr(ob_cmds[i]->name, ' ') && opens_word(i))
			printf("%.*s ", first_length(ob_cmds[i]), ob_cmds[i]->name);
	}
	(void)fputs(
		"'\n\tCOMPREPLY=()\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tword=${COMP_WORDS[i]}\n"
		"\t\tif [[ $skip ]]; then skip=; continue; fi\n"
		"\t\tcase $word in\n\t\t",
		stdout);
	bash_values(true);
	(void)fputs("|", stdout);
	bash_values(false);
	(void)fputs(
		") skip=1 ;;\n\t\t-*) ;;\n"
		"\t\t*) [[ $cmd && $prefixes != *\"$cmd \"* ]] || cmd=${cmd:+$cmd }$word ;;\n"
		"\t\tesac\n\tdone\n\tcase $prev in\n\t",
		stdout);
	bash_values(true);
	(void)fputs(
		")\n\t\tcompopt -o filenames\n"
		"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\t\treturn ;;\n\t",
		stdout);
	bash_values(false);
	(void)fputs(")\n\t\treturn ;;\n\tesac\n\tcase $cmd in\n\t'') words=$commands opts='",
		    stdout);
	for (const struct ob_cmd_opt *opt = ob_cmd_globals; opt->name; opt++)
		bash_opt(NULL, opt);
	(void)fputs("' ;;\n", stdout);
	bash_prefixes();
	for (size_t i = 0; ob_cmds[i]; i++)
		bash_command(ob_cmds[i]);
	(void)fputs(
		"\tesac\n"
		"\tif [[ $cur == -* ]]; then words=$opts files=; fi\n"
		"\tif [[ $files ]]; then\n"
		"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
		"\telse\n"
		"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		"\tfi\n}\ncomplete -F _outbox outbox\n",
		stdout);
}

/* ---- zsh ------------------------------------------------------------- */

/* Inside an _arguments specification brackets and colons have a meaning. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			(void)fputc('\\', stdout);
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)fputc(*text, stdout);
	}
}

static void zsh_opt(const struct ob_cmd *cmd, const struct ob_cmd_opt *opt)
{
	(void)cmd;
	for (int form = opt->letter ? 0 : 1; form < 2; form++) {
		if (form == 0)
			printf("\t\t\t'-%c", opt->letter);
		else
			printf("\t\t\t'--%s", opt->name);
		(void)fputc('[', stdout);
		zsh_text(opt->help);
		(void)fputc(']', stdout);
		if (opt->arg) {
			(void)fputc(':', stdout);
			zsh_text(opt->arg);
			(void)fputs(opt->complete == OB_COMPLETE_FILE ? ":_files" : ":", stdout);
		}
		(void)fputs("' \\\n", stdout);
	}
}

static void zsh_operand(const struct ob_cmd_operand *row)
{
	printf("\t\t\t'%s%s", row->many ? "*" : "", row->optional && !row->many ? "::" : ":");
	zsh_text(row->name);
	if (row->complete == OB_COMPLETE_FILE)
		(void)fputs(":_files", stdout);
	else if (row->complete == OB_COMPLETE_COMMAND || row->choices)
		(void)fputs(":(", stdout);
	else
		(void)fputc(':', stdout);
	if (row->complete == OB_COMPLETE_COMMAND)
		print_first_words();
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		printf("%s ", row->choices[i]);
	(void)fputs(row->complete == OB_COMPLETE_COMMAND || row->choices ? ")' \\\n" : "' \\\n",
		    stdout);
}

static void print_zsh(void)
{
	(void)fputs(
		"#compdef outbox\n# zsh completion for outbox; made by 'outbox completion zsh'\n"
		"_outbox()\n{\n\tlocal -a commands\n\tlocal cmd\n\tcommands=(\n",
		stdout);
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (!opens_word(i))
			continue;
		printf("\t\t'%.*s:", first_length(ob_cmds[i]), ob_cmds[i]->name);
		zsh_text(ob_cmds[i]->summary);
		(void)fputs("'\n", stdout);
	}
	(void)fputs(
		"\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n"
		"\t\treturn\n\tfi\n\tcmd=${words[2]}\n\tshift words\n\t((CURRENT--))\n",
		stdout);
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (!strchr(ob_cmds[i]->name, ' ') || !opens_word(i))
			continue;
		printf("\tif [[ $cmd == %.*s ]]; then\n"
		       "\t\tif ((CURRENT == 2)); then compadd",
		       first_length(ob_cmds[i]), ob_cmds[i]->name);
		print_second_words(ob_cmds[i]);
		(void)fputs(
			"; return; fi\n"
			"\t\tcmd=\"$cmd ${words[2]}\"\n\t\tshift words\n\t\t((CURRENT--))\n"
			"\tfi\n",
			stdout);
	}
	(void)fputs("\tcase $cmd in\n", stdout);
	for (size_t i = 0; ob_cmds[i]; i++) {
		printf("\t'%s')\n\t\t_arguments \\\n", ob_cmds[i]->name);
		each_opt(ob_cmds[i], zsh_opt);
		for (const struct ob_cmd_operand *row = ob_cmds[i]->operands; row && row->name;
		     row++)
			zsh_operand(row);
		(void)fputs("\t\t\t&& return\n\t\t;;\n", stdout);
	}
	(void)fputs(
		"\tesac\n}\nif [[ $funcstack[1] == _outbox ]]; then\n\t_outbox \"$@\"\nelse\n"
		"\tcompdef _outbox outbox\nfi\n",
		stdout);
}

/* ---- fish ------------------------------------------------------------ */

/* True in fish when this command is on the line. */
static void fish_condition(const struct ob_cmd *cmd)
{
	const char *space = strchr(cmd->name, ' ');

	printf("complete -c outbox -n '__fish_seen_subcommand_from %.*s",
	       (int)strcspn(cmd->name, " "), cmd->name);
	if (space)
		printf("; and __fish_seen_subcommand_from %s", space + 1);
	(void)fputc('\'', stdout);
}

static void fish_opt(const struct ob_cmd *cmd, const struct ob_cmd_opt *opt)
{
	fish_condition(cmd);
	if (opt->letter)
		printf(" -s %c", opt->letter);
	printf(" -l %s", opt->name);
	if (opt->arg)
		(void)fputs(opt->complete == OB_COMPLETE_FILE ? " -r -F" : " -x", stdout);
	(void)fputs(" -d ", stdout);
	print_quoted(opt->help);
	(void)fputc('\n', stdout);
}

static void fish_operand(const struct ob_cmd *cmd, const struct ob_cmd_operand *row)
{
	if (row->complete == OB_COMPLETE_NONE)
		return;
	fish_condition(cmd);
	if (row->complete == OB_COMPLETE_FILE) {
		(void)fputs(" -F\n", stdout);
		return;
	}
	(void)fputs(" -a '", stdout);
	if (row->complete == OB_COMPLETE_COMMAND)
		print_first_words();
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		printf("%s ", row->choices[i]);
	(void)fputs("'\n", stdout);
}

static void print_fish(void)
{
	(void)fputs(
		"# fish completion for outbox; made by 'outbox completion fish'\n"
		"complete -c outbox -f\n",
		stdout);
	for (size_t i = 0; ob_cmds[i]; i++) {
		const struct ob_cmd *cmd = ob_cmds[i];
		const char *space = strchr(cmd->name, ' ');

		if (opens_word(i)) {
			printf("complete -c outbox -n __fish_use_subcommand -a %.*s -d ",
			       first_length(cmd), cmd->name);
			print_quoted(cmd->summary);
			(void)fputc('\n', stdout);
		}
		if (space)
			printf("complete -c outbox -n '__fish_seen_subcommand_from %.*s' -a %s\n",
			       (int)(space - cmd->name), cmd->name, space + 1);
		each_opt(cmd, fish_opt);
		if (first_operand(cmd))
			fish_operand(cmd, first_operand(cmd));
	}
}

/* ---- the command ----------------------------------------------------- */

struct shell {
	const char *name;
	void (*print)(void);
};

static const struct shell shells[] = {
	{ "bash", print_bash },
	{ "zsh", print_zsh },
	{ "fish", print_fish },
};

static const char *const shell_names[] = { "bash", "zsh", "fish", NULL };

static int completion_run(struct ob_cli *cli, const void *args)
{
	(void)args;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, cli->operands[0]) == 0)
			shells[i].print();
	}
	return OB_EXIT_OK;
}

static const struct ob_cmd_operand operands[] = {
	{ .name = "SHELL", .complete = OB_COMPLETE_CHOICES, .choices = shell_names },
	OB_CMD_OPERAND_END,
};

static const char *const examples[] = {
	"outbox completion bash > ~/.local/share/bash-completion/completions/outbox",
	"outbox completion fish > ~/.config/fish/completions/outbox.fish",
	NULL,
};

const struct ob_cmd ob_cmd_completion = {
	.name = "completion",
	.group = OB_GROUP_PROGRAM,
	.summary = "the completion script of a shell",
	.description =
		"Prints the script that makes bash, zsh or fish complete the commands, "
		"options, states and files of outbox. An installed outbox has them already.",
	.examples = examples,
	.operands = operands,
	.run = completion_run,
};
