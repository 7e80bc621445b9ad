/* SPDX-License-Identifier: MIT */
/* Reading failures: of a relay: what an error of the sink means. */
#include "config/sections.h"

#include <stdio.h>

static const char *const verdict_names[] = { "retry", "reject", "down", NULL };

struct draft {
	char *code, *error;
	int then; /* of verdict_names */
};

const struct ob_opt ob_failure_opts[] = {
	{
		.name = "code",
		.type = OB_OPT_STR,
		.offset = offsetof(struct draft, code),
		.help = "A pattern that the error's code must match: an HTTP status, a broker's "
			"code.",
	},
	{
		.name = "error",
		.type = OB_OPT_STR,
		.offset = offsetof(struct draft, error),
		.help = "A pattern that the error's text must match; * stands for any text.",
	},
	{
		.name = "then",
		.type = OB_OPT_ENUM,
		.offset = offsetof(struct draft, then),
		.choices = verdict_names,
		.flags = OB_OPT_REQUIRED,
		.help = "What it means.",
	},
	OB_OPT_END,
};

static const struct ob_section failure_section = { .opts = ob_failure_opts };

/* A pattern that says nothing. */
static bool is_any(const char *pattern)
{
	return !pattern || pattern[strspn(pattern, "*")] == '\0';
}

static void read_failure(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			 struct ob_config_failure *failure)
{
	static const enum ob_err_kind kinds[] = { OB_ERR_RETRY, OB_ERR_REJECT, OB_ERR_DOWN };
	struct draft draft = { 0 };

	if (!ob_walk_is_mapping(walk, node, path)) {
		if (ob_yaml_is_null(node))
			ob_walk_fault(walk, node, "%s is empty", path);
		return;
	}
	ob_walk_keys(walk, node, path, &failure_section, NULL);
	ob_walk_options(walk, node, path, ob_failure_opts, &draft);
	/* It would take an outage for the fault of the messages that meet it. */
	if (is_any(draft.code) && is_any(draft.error))
		ob_walk_fault(walk, node,
			      "%s matches every error: name a 'code' or a part of the 'error'",
			      path);
	failure->code = ob_walk_keep(walk, draft.code);
	failure->error = ob_walk_keep(walk, draft.error);
	failure->then = kinds[draft.then];
	ob_opt_free(ob_failure_opts, &draft);
}

void ob_read_failures(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		      const struct ob_section *section, void *base)
{
	struct ob_config_relay *relay = &((struct ob_relay_draft *)base)->relay;

	(void)section;
	ob_read_failure_list(walk, node, path, &relay->failures, &relay->failure_count);
}

void ob_read_failure_list(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			  struct ob_config_failure **ret_rules, size_t *ret_count)
{
	char full[OB_PATH_SIZE];

	if (!node || ob_yaml_is_null(node) || !ob_walk_is_list(walk, node, path, "rule"))
		return;
	*ret_rules = ob_arena_alloc(walk->arena, (node->count + 1) * sizeof(**ret_rules));
	if (!*ret_rules) {
		walk->failed = true;
		return;
	}
	for (struct ob_yaml *item = node->first; item; item = item->next) {
		(void)snprintf(full, sizeof(full), "%.230s[%zu]", path, *ret_count);
		read_failure(walk, item, full, &(*ret_rules)[(*ret_count)++]);
	}
}
