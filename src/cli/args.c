/* SPDX-License-Identifier: MIT */
/* Reads argv word by word; every decision comes from a table. */
#include "cli/args.h"

#include "base/opt.h"
#include "base/url.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct args {
	struct ob_cli *cli;
	void *values; /* the command's struct */
	char **argv;
	int argc, next;
	bool only_words; /* "--" was seen */
};

static bool parse_int(const struct ob_cmd_opt *opt, const char *text, int64_t *ret)
{
	char *end;

	if (!(text[0] >= '0' && text[0] <= '9') && !(text[0] == '-' && text[1]))
		return false;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno || *end || v < opt->min || v > opt->max)
		return false;
	*ret = v;
	return true;
}

static int add_word(struct args *a, const struct ob_cmd_opt *opt, struct ob_cmd_list *list,
		    const char *text)
{
	if (!*text)
		return ob_cli_usage(a->cli, "--%s: the value is empty", opt->name);
	if (list->count == OB_CMD_LIST_MAX)
		return ob_cli_usage(a->cli, "--%s: more than %d of them", opt->name,
				    OB_CMD_LIST_MAX);
	list->words[list->count++] = text;
	return OB_EXIT_OK;
}

/* Store `text`; the message names the option. */
static int store_value(struct args *a, const struct ob_cmd_opt *opt, void *base, const char *text)
{
	void *field = (char *)base + opt->offset;
	struct ob_err err = OB_ERR_INIT;
	const struct ob_opt duration[] = {
		{ .name = opt->name, .type = OB_OPT_DURATION_MS, .min = opt->min, .max = opt->max },
		OB_OPT_END,
	};

	assert(base && text); /* a command with options has a struct for them */
	switch (opt->type) {
	case OB_CMD_FLAG:
		*(bool *)field = true;
		return OB_EXIT_OK;
	case OB_CMD_TEXT:
		if (!*text)
			return ob_cli_usage(a->cli, "--%s: the value is empty", opt->name);
		*(const char **)field = text;
		return OB_EXIT_OK;
	case OB_CMD_INT:
		if (parse_int(opt, text, field))
			return OB_EXIT_OK;
		return ob_cli_usage(a->cli,
				    "--%s: '%s' is not a number from %" PRId64 " to %" PRId64,
				    opt->name, text, opt->min, opt->max);
	case OB_CMD_DURATION:
		if (ob_opt_set(duration, field, opt->name, text, &err) == 0)
			return OB_EXIT_OK;
		return ob_cli_usage(a->cli, "--%s", err.msg);
	case OB_CMD_LIST:
		return add_word(a, opt, field, text);
	}
	return OB_EXIT_USAGE;
}

/* Defaults, then the environment. */
static int set_defaults(struct args *a, const struct ob_cmd_opt *table, void *base)
{
	for (const struct ob_cmd_opt *opt = table; opt && opt->name; opt++) {
		const char *env = opt->env ? getenv(opt->env) : NULL;
		const char *text = env && *env ? env : opt->dflt;
		struct ob_cmd_opt row = *opt;

		row.offset = 0;
		int r = text ? store_value(a, &row, (char *)base + opt->offset, text) : 0;
		if (r)
			return r;
		if (env && *env && opt->offset == offsetof(struct ob_cli, config) &&
		    table == ob_cmd_globals)
			a->cli->config_given = true;
	}
	return OB_EXIT_OK;
}

/* A lone "-" is a word, and so is -5: no option is a digit, but a priority may be. */
static bool looks_like_option(const char *word)
{
	return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]);
}

static const struct ob_cmd_opt *find_opt(const struct ob_cmd_opt *table, const char *name, size_t n,
					 char letter)
{
	for (const struct ob_cmd_opt *opt = table; opt && opt->name; opt++) {
		if (letter ? opt->letter == letter
			   : strlen(opt->name) == n && memcmp(opt->name, name, n) == 0)
			return opt;
	}
	return NULL;
}

static size_t collect_names(const struct ob_cmd_opt *table, const char **names, size_t max)
{
	size_t count = 0;

	for (const struct ob_cmd_opt *opt = table; opt && opt->name && count < max; opt++)
		names[count++] = opt->name;
	return count;
}

static int unknown_opt(const struct args *a, const char *word, const char *name, size_t n)
{
	const char *names[64], *near;
	char given[64];
	size_t count = collect_names(ob_cmd_globals, names, 32);

	if (a->cli->cmd)
		count += collect_names(a->cli->cmd->options, names + count, 32);
	(void)snprintf(given, sizeof(given), "%.*s", n < 60 ? (int)n : 60, name);
	near = word[1] == '-' ? ob_suggest(given, names, count) : NULL;
	if (near)
		return ob_cli_usage(a->cli, "no option '--%s'; did you mean '--%s'?", given, near);
	if (word[1] == '-')
		return ob_cli_usage(a->cli, "no option '--%s'", given);
	return ob_cli_usage(a->cli, "no option '-%c'", word[1]);
}

/*
 * `ps` shows the command line to everyone on the machine: what is read here is taken out of it.
 * *value is of the word read last and becomes a copy.
 */
static int hide_password(struct args *a, const struct ob_cmd_opt *opt, const char **value)
{
	char *word = a->argv[a->next - 1] + (*value - a->argv[a->next - 1]);
	size_t at, n = ob_url_password(word, &at);

	if (n == 0 || a->cli->hidden_count == sizeof(a->cli->hidden) / sizeof(a->cli->hidden[0]))
		return OB_EXIT_OK;
	char *copy = strdup(word);
	if (!copy)
		return ob_cli_fail("out of memory");
	a->cli->hidden[a->cli->hidden_count++] = copy;
	memset(word + at, '*', n);
	*value = copy;
	ob_cli_warn(
		"--%s holds a password, which 'ps' and the history of the shell may show: put "
		"the URL into %s, or the password into a configuration",
		opt->name, opt->env ? opt->env : "a configuration");
	return OB_EXIT_OK;
}

/* Of a global option: the command line said it, not a default. */
static void note_given(struct ob_cli *cli, const struct ob_cmd_opt *opt)
{
	cli->config_given |= opt->offset == offsetof(struct ob_cli, config);
	cli->store_given |= opt->offset == offsetof(struct ob_cli, store);
}

/* --name, --name=value, --name value, -c value, -cvalue, -h */
static int read_option(struct args *a, const char *word)
{
	const bool is_long = word[1] == '-';
	const char *name = word + (is_long ? 2 : 1);
	const char *value = is_long ? strchr(name, '=') : name[1] ? name + 1 : NULL;
	size_t n = is_long && value ? (size_t)(value - name) : strlen(name);
	char letter = (char)(is_long ? 0 : name[0]);
	void *base = a->cli;
	const struct ob_cmd_opt *opt = find_opt(ob_cmd_globals, name, n, letter);

	if (!opt && a->cli->cmd) {
		opt = find_opt(a->cli->cmd->options, name, n, letter);
		base = a->values;
		a->cli->given++;
	}
	if (!opt)
		return unknown_opt(a, word, name, n);
	if (is_long && value)
		value++;
	if (opt->type == OB_CMD_FLAG && value)
		return ob_cli_usage(a->cli, "--%s takes no value", opt->name);
	if (opt->type != OB_CMD_FLAG && !value) {
		if (a->next >= a->argc)
			return ob_cli_usage(a->cli, "--%s needs a value: %s", opt->name, opt->arg);
		value = a->argv[a->next++];
	}
	if (base == a->cli)
		note_given(a->cli, opt);
	int r = value && opt->type == OB_CMD_TEXT ? hide_password(a, opt, &value) : OB_EXIT_OK;
	return r ? r : store_value(a, opt, base, value ? value : "");
}

/* The first word, or the second behind a prefix, names the command. */
static int read_command(struct args *a, const char *word)
{
	char name[128];

	if (!a->cli->prefix && ob_cmd_is_prefix(word)) {
		a->cli->prefix = word;
		return OB_EXIT_OK;
	}
	(void)snprintf(name, sizeof(name), "%s%s%s", a->cli->prefix ? a->cli->prefix : "",
		       a->cli->prefix ? " " : "", word);
	const struct ob_cmd *cmd = ob_cmd_find(name);
	if (!cmd)
		return ob_cli_no_command(a->cli, name);
	a->cli->prefix = NULL;
	if (cmd->args_size) {
		a->values = calloc(1, cmd->args_size);
		if (!a->values)
			return ob_cli_fail("out of memory");
	}
	a->cli->cmd = cmd;
	return set_defaults(a, cmd->options, a->values);
}

/* The table writes STATE, a sentence says state. */
static const char *lower(const char *name, char out[32])
{
	(void)snprintf(out, 32, "%s", name);
	for (char *p = out; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return out;
}

static int check_choice(const struct ob_cli *cli, const struct ob_cmd_operand *row,
			const char *word)
{
	size_t count = 0;
	char what[32];

	assert(word);
	for (; row->choices[count]; count++) {
		if (strcmp(row->choices[count], word) == 0)
			return OB_EXIT_OK;
	}
	const char *near = ob_suggest(word, row->choices, count);
	if (near)
		return ob_cli_usage(cli, "no %s '%s'; did you mean '%s'?", lower(row->name, what),
				    word, near);

	struct ob_buf all = OB_BUF_INIT(400);
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&all, "%s%s", i ? ", " : "", row->choices[i]);
	int r = ob_cli_usage(cli, "no %s '%s'; it is one of %s", lower(row->name, what), word,
			     ob_buf_str(&all));
	ob_buf_done(&all);
	return r;
}

static int check_operands(const struct ob_cli *cli)
{
	const struct ob_cmd_operand *row = cli->cmd->operands;

	for (size_t i = 0; i < cli->operand_count; i++) {
		if (!row || !row->name)
			return ob_cli_usage(cli, "one word too many: '%s'", cli->operands[i]);
		int r = row->choices ? check_choice(cli, row, cli->operands[i]) : OB_EXIT_OK;
		if (r)
			return r;
		if (!row->many)
			row++;
	}
	/* "many" stays at its row: it is satisfied as soon as it took one word. */
	if (row && row->name && !row->optional && !(row->many && cli->operand_count))
		return ob_cli_usage(cli, "%s is missing", row->name);
	return OB_EXIT_OK;
}

static int check_whole(const struct ob_cli *cli)
{
	if (cli->help || cli->version)
		return OB_EXIT_OK;
	if (cli->prefix) {
		for (size_t i = 0; ob_cmds[i]; i++) {
			size_t n = strlen(cli->prefix);
			if (strncmp(ob_cmds[i]->name, cli->prefix, n) == 0 &&
			    ob_cmds[i]->name[n] == ' ')
				return ob_cli_usage(cli,
						    "'%s' alone is no command; did you mean '%s'?",
						    cli->prefix, ob_cmds[i]->name);
		}
	}
	if (!cli->cmd)
		return OB_EXIT_OK;
	if (cli->json && !(cli->cmd->flags & OB_CMD_JSON))
		return ob_cli_usage(cli, "--json has no meaning here");
	return check_operands(cli);
}

int ob_args_parse(struct ob_cli *cli, int argc, char **argv, void **ret_args)
{
	struct args a = { .cli = cli, .argv = argv, .argc = argc, .next = 1 };

	cli->operands = calloc((size_t)argc + 1, sizeof(*cli->operands));
	if (!cli->operands)
		return ob_cli_fail("out of memory");
	int r = set_defaults(&a, ob_cmd_globals, cli);
	while (!r && a.next < argc) {
		const char *word = argv[a.next++];

		if (!a.only_words && strcmp(word, "--") == 0)
			a.only_words = true;
		else if (!a.only_words && looks_like_option(word))
			r = read_option(&a, word);
		else if (!cli->cmd)
			r = read_command(&a, word);
		else
			cli->operands[cli->operand_count++] = word;
	}
	*ret_args = a.values;
	return r ? r : check_whole(cli);
}

void ob_args_done(struct ob_cli *cli, void *args)
{
	free(cli->operands);
	cli->operands = NULL;
	while (cli->hidden_count) {
		char *copy = cli->hidden[--cli->hidden_count];

		explicit_bzero(copy, strlen(copy));
		free(copy);
	}
	free(args);
}
