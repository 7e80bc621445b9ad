/* SPDX-License-Identifier: MIT */
/*
 * A command of the `outbox` program as a table. The parser, the help, the
 * manual pages and the shell completion all read it; only run() is code.
 */
#ifndef OB_CLI_CMD_H
#define OB_CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ob_cli;

/* What the process returns. */
enum { OB_EXIT_OK = 0, OB_EXIT_FAILURE = 1, OB_EXIT_USAGE = 2 };

/* The C type of the field at `offset` stands behind each. */
enum ob_cmd_type {
	OB_CMD_FLAG,     /* bool; the option takes no value */
	OB_CMD_TEXT,     /* const char *, the command line's own memory; never empty */
	OB_CMD_INT,      /* int64_t in min..max */
	OB_CMD_DURATION, /* int64_t ms in min..max: 250ms, 15s, 5m */
	OB_CMD_LIST,     /* struct ob_cmd_list; the option may be given several times */
};

/* Words of the command line, in its order; each as a TEXT. */
enum { OB_CMD_LIST_MAX = 64 };
struct ob_cmd_list {
	const char *words[OB_CMD_LIST_MAX];
	size_t count;
};

/* What a shell offers where a value or an operand stands. */
enum ob_cmd_complete {
	OB_COMPLETE_NONE,
	OB_COMPLETE_FILE,
	OB_COMPLETE_COMMAND, /* the names of our commands */
	OB_COMPLETE_CHOICES, /* the row's choices */
};

struct ob_cmd_opt {
	const char *name; /* without the dashes */
	const char *arg;  /* what stands for the value in the help; NULL for a flag */
	size_t offset;
	const char *env;  /* the environment variable that sets it too, or NULL */
	const char *dflt; /* parsed by the same code; NULL: zero */
	int64_t min, max; /* INT and DURATION */
	const char *help; /* one sentence */
	enum ob_cmd_type type;
	enum ob_cmd_complete complete;
	char letter; /* 'c' for -c; 0: none */
};

#define OB_CMD_OPT_END \
	{ \
		.name = NULL \
	}

/* A word that is not an option. */
struct ob_cmd_operand {
	const char *name; /* "ID" */
	bool optional;
	bool many; /* takes all words that are left; the last row only */
	enum ob_cmd_complete complete;
	const char *const
		*choices; /* CHOICES: names, ending with NULL; any other word is refused */
};

#define OB_CMD_OPERAND_END \
	{ \
		.name = NULL \
	}

enum {
	OB_CMD_USES_CONFIG = 1 << 0, /* reads --config */
	OB_CMD_USES_STORE = 1 << 1,  /* reads --config and --store */
	OB_CMD_JSON = 1 << 2,        /* prints data: takes --json */
	OB_CMD_LOOKS = 1 << 3,       /* changes nothing: the right to read the tables must do */
};

/* The sections of the overview, in this order. */
#define OB_CMD_GROUP_MAP(X) \
	X(START, "Start here") \
	X(MESSAGES, "Messages") \
	X(OPERATE, "When you must step in") \
	X(PROGRAM, "This program")

enum ob_cmd_group {
#define X(name, title) OB_GROUP_##name,
	OB_CMD_GROUP_MAP(X)
#undef X
		OB_GROUP_COUNT
};

struct ob_cmd {
	const char *name; /* "list", "config check": at most two words */
	enum ob_cmd_group group;
	unsigned flags;
	const char *summary; /* for the overview: lower case, no full stop, at most 56 columns */
	const char *description; /* sentences; a blank line makes a paragraph */
	/* A list of words below the options, or NULL: the word of that number and its help. */
	const char *topic_title;
	const char *(*topic)(size_t index, const char **ret_help);
	const char *const *examples;           /* command lines, ending with NULL; or NULL */
	const struct ob_cmd_operand *operands; /* or NULL */
	const struct ob_cmd_opt *options;      /* or NULL */
	size_t args_size;                      /* of the struct that the options are stored in */
	/* Do it; returns an exit code. `args`: the struct; the words are in cli->operands. */
	int (*run)(struct ob_cli *cli, const void *args);
};

/* All commands in the order of the overview, ending with NULL. */
extern const struct ob_cmd *const ob_cmds[];
/* The options of every command; stored in struct ob_cli. */
extern const struct ob_cmd_opt ob_cmd_globals[];
extern const char *const ob_cmd_group_titles[OB_GROUP_COUNT];

/* The command of that full name, or NULL. */
const struct ob_cmd *ob_cmd_find(const char *name);
/* Is `word` the first of a name of two words? */
bool ob_cmd_is_prefix(const char *word);
/* Does this command read that global option? Always for help and version. */
bool ob_cmd_takes_global(const struct ob_cmd *cmd, const struct ob_cmd_opt *opt);

#endif
