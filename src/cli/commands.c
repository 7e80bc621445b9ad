/* SPDX-License-Identifier: MIT */
/* The list of all commands and the options they share. A new command is one line here. */
#include "cli/commands.h"

#include "cli/cli.h"

#include <string.h>

const struct ob_cmd *const ob_cmds[] = {
	&ob_cmd_demo,
	&ob_cmd_init,
	&ob_cmd_config_check,
	&ob_cmd_setup,
	&ob_cmd_push,
	&ob_cmd_work,
	&ob_cmd_consume,
	&ob_cmd_list,
	&ob_cmd_show,
	&ob_cmd_status,
	&ob_cmd_top,
	&ob_cmd_why,
	&ob_cmd_events_streams,
	&ob_cmd_events_show,
	&ob_cmd_events_read,
	&ob_cmd_doctor,
	&ob_cmd_failures,
	&ob_cmd_audit,
	&ob_cmd_monitor,
	&ob_cmd_metrics,
	&ob_cmd_health,
	&ob_cmd_retry,
	&ob_cmd_skip,
	&ob_cmd_discard,
	&ob_cmd_replay,
	&ob_cmd_consumers,
	&ob_cmd_dlq_list,
	&ob_cmd_dlq_show,
	&ob_cmd_dlq_why,
	&ob_cmd_dlq_retry,
	&ob_cmd_dlq_skip,
	&ob_cmd_dlq_discard,
	&ob_cmd_dlq_replay,
	&ob_cmd_dlq_purge,
	&ob_cmd_readers_list,
	&ob_cmd_readers_show,
	&ob_cmd_readers_seek,
	&ob_cmd_readers_remove,
	&ob_cmd_wait,
	&ob_cmd_reconcile,
	&ob_cmd_events_forget,
	&ob_cmd_cleanup,
	&ob_cmd_maintain,
	&ob_cmd_partitions,
	&ob_cmd_adopt,
	&ob_cmd_bench,
	&ob_cmd_backends,
	&ob_cmd_version,
	&ob_cmd_completion,
	&ob_cmd_help,
	NULL,
};

const char *const ob_cmd_group_titles[OB_GROUP_COUNT] = {
#define X(name, title) [OB_GROUP_##name] = (title),
	OB_CMD_GROUP_MAP(X)
#undef X
};

const struct ob_cmd_opt ob_cmd_globals[] = {
	{
		.name = "config",
		.letter = 'c',
		.arg = "FILE",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_cli, config),
		.env = "OUTBOX_CONFIG",
		.dflt = "outbox.yaml",
		.complete = OB_COMPLETE_FILE,
		.help = "The configuration file.",
	},
	{
		.name = "store",
		.arg = "NAME|URL",
		.type = OB_CMD_TEXT,
		.offset = offsetof(struct ob_cli, store),
		.env = "OUTBOX_STORE",
		.help = "A store of the configuration, or the URL of a database; with a URL no "
			"configuration is needed.",
	},
	{
		.name = "json",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_cli, json),
		.help = "Print JSON for programs instead of text for people.",
	},
	{
		.name = "help",
		.letter = 'h',
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_cli, help),
		.help = "Print help and exit.",
	},
	{
		.name = "version",
		.type = OB_CMD_FLAG,
		.offset = offsetof(struct ob_cli, version),
		.help = "Print the version and exit.",
	},
	OB_CMD_OPT_END,
};

const struct ob_cmd *ob_cmd_find(const char *name)
{
	for (size_t i = 0; ob_cmds[i]; i++) {
		if (strcmp(ob_cmds[i]->name, name) == 0)
			return ob_cmds[i];
	}
	return NULL;
}

bool ob_cmd_is_prefix(const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; ob_cmds[i]; i++) {
		if (strncmp(ob_cmds[i]->name, word, n) == 0 && ob_cmds[i]->name[n] == ' ')
			return true;
	}
	return false;
}

bool ob_cmd_takes_global(const struct ob_cmd *cmd, const struct ob_cmd_opt *opt)
{
	switch (opt->offset) {
	case offsetof(struct ob_cli, config):
		return cmd->flags & (OB_CMD_USES_CONFIG | OB_CMD_USES_STORE);
	case offsetof(struct ob_cli, store):
		return cmd->flags & OB_CMD_USES_STORE;
	case offsetof(struct ob_cli, json):
		return cmd->flags & OB_CMD_JSON;
	default:
		return true;
	}
}
