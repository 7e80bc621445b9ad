/* SPDX-License-Identifier: MIT */
/* Reading monitor:, the web monitor: where it listens, who may do what, who sees payloads. */
#include "base/listen.h"
#include "config/sections.h"

enum { TOKEN_MIN = 16 };

static const char *const payload_names[] = { "shown", "masked", "hidden", NULL };

#define MEMBER(name) offsetof(struct ob_monitor_draft, name)

const struct ob_opt ob_monitor_opts[] = {
	{
		.name = "listen",
		.type = OB_OPT_STR,
		.offset = MEMBER(listen),
		.help = "Where `outbox work` serves the monitor, such as 127.0.0.1:8025 or "
			"unix:/run/outbox/monitor.sock; left out: it does not. Any address but "
			"loopback needs a token.",
	},
	{
		.name = "token",
		.type = OB_OPT_STR,
		.offset = MEMBER(token),
		.flags = OB_OPT_SECRET,
		.help = "Who has it may see and do everything; the same as tokens.operator.",
	},
	{
		.name = "title",
		.type = OB_OPT_STR,
		.offset = MEMBER(title),
		.dflt = "outbox",
		.help = "What the pages are called.",
	},
	{
		.name = "environment",
		.type = OB_OPT_STR,
		.offset = MEMBER(environment),
		.help = "Shown on every page, such as PRODUCTION.",
	},
	{
		.name = "base_path",
		.type = OB_OPT_STR,
		.offset = MEMBER(base_path),
		.dflt = "",
		.help = "The path in front of all pages, where a proxy serves more than this: "
			"/outbox.",
	},
	{
		.name = "hosts",
		.type = OB_OPT_STR,
		.offset = MEMBER(hosts),
		.help = "Names under which browsers reach it, separated by commas; addresses and "
			"localhost need none. Other names are refused.",
	},
	{
		.name = "trusted_proxies",
		.type = OB_OPT_STR,
		.offset = MEMBER(trusted_proxies),
		.help = "Addresses of proxies, separated by commas, whose X-Forwarded-For, "
			"X-Forwarded-Proto and X-Forwarded-User are believed; unix: those at a "
			"Unix socket.",
	},
	{
		.name = "mask",
		.type = OB_OPT_STR,
		.offset = MEMBER(mask),
		.dflt = "*password*,*secret*,*token*,*authorization*,*api_key*,*apikey*,*iban*,"
			"*card*,*cvv*,*ssn*",
		.help = "Patterns of JSON keys whose values are masked, separated by commas; * "
			"stands for any text, case does not matter.",
	},
	{
		.name = "connections",
		.type = OB_OPT_U32,
		.offset = MEMBER(connections),
		.dflt = "128",
		.min = 8,
		.max = 10000,
		.help = "Maximum connections of browsers.",
	},
	OB_OPT_END,
};

static const struct ob_opt token_opts[] = {
	{
		.name = "viewer",
		.type = OB_OPT_STR,
		.offset = MEMBER(viewer),
		.flags = OB_OPT_SECRET,
		.help = "Who has it may look and change nothing.",
	},
	{
		.name = "operator",
		.type = OB_OPT_STR,
		.offset = MEMBER(operator_),
		.flags = OB_OPT_SECRET,
		.help = "Who has it may also retry, skip and discard.",
	},
	OB_OPT_END,
};

static const struct ob_opt payload_opts[] = {
	{
		.name = "viewer",
		.type = OB_OPT_ENUM,
		.offset = MEMBER(payloads[OB_MONITOR_VIEWER]),
		.dflt = "masked",
		.choices = payload_names,
		.help = "What viewers see of payloads and headers.",
	},
	{
		.name = "operator",
		.type = OB_OPT_ENUM,
		.offset = MEMBER(payloads[OB_MONITOR_OPERATOR]),
		.dflt = "shown",
		.choices = payload_names,
		.help = "What operators see of them.",
	},
	OB_OPT_END,
};

const struct ob_section ob_monitor_sections[] = {
	{
		.name = "tokens",
		.opts = token_opts,
		.help = "One for each role, of at least 16 characters; make them with `openssl "
			"rand -hex 16`.",
	},
	{
		.name = "payloads",
		.opts = payload_opts,
		.help = "Who sees payloads: shown, masked by key, or hidden.",
	},
	OB_SECTION_END,
};

static void free_draft(const struct ob_section *section, struct ob_monitor_draft *draft)
{
	ob_opt_free(section->opts, draft);
	for (const struct ob_section *s = section->sections; s->name; s++)
		ob_opt_free(s->opts, draft);
}

/* Two tokens that are the same would be one role. */
static void check_tokens(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			 const struct ob_config_monitor *m)
{
	for (int role = 0; role < OB_MONITOR_ROLES; role++) {
		if (m->tokens[role] && strlen(m->tokens[role]) < TOKEN_MIN)
			ob_diags_add(&walk->diags, ob_walk_place(node),
				     "%s: a token has fewer than %d characters; make one with "
				     "'openssl rand -hex 16'",
				     path, TOKEN_MIN);
	}
	if (m->tokens[0] && m->tokens[1] && strcmp(m->tokens[0], m->tokens[1]) == 0)
		ob_diags_add(&walk->diags, ob_walk_place(node),
			     "%s.tokens: viewer and operator have the same token", path);
}

static void check_monitor(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			  const struct ob_config_monitor *m)
{
	struct ob_yaml *listen = ob_yaml_get(node, "listen"),
		       *base = ob_yaml_get(node, "base_path");
	struct ob_err err = OB_ERR_INIT;

	if (m->listen && listen && !listen->faulty &&
	    ob_config_monitor_check(m, m->listen, &err) < 0)
		ob_walk_fault(walk, listen, "%s.listen: %s", path, err.msg);
	size_t n = strlen(m->base_path);
	if (n && base &&
	    (m->base_path[0] != '/' || m->base_path[n - 1] == '/' ||
	     strspn(m->base_path,
		    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		    "0123456789_-./") != n))
		ob_walk_fault(walk, base,
			      "%s.base_path: it begins with / and does not end with one, such as "
			      "/outbox",
			      path);
	check_tokens(walk, node, path, m);
}

int ob_config_monitor_check(const struct ob_config_monitor *m, const char *listen,
			    struct ob_err *err)
{
	struct ob_listen at;
	int r = ob_listen_parse(listen, &at, err);

	if (r == 0 && !at.loopback && !m->tokens[OB_MONITOR_VIEWER] &&
	    !m->tokens[OB_MONITOR_OPERATOR])
		r = ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			       "others can reach %.100s, so monitor.token must be set; without one "
			       "listen at 127.0.0.1",
			       listen);
	return r;
}

static void keep_draft(struct ob_walk *walk, const struct ob_monitor_draft *draft,
		       struct ob_config_monitor *m)
{
	*m = (struct ob_config_monitor){
		.listen = ob_walk_keep(walk, draft->listen),
		.title = ob_walk_keep(walk, draft->title),
		.environment = ob_walk_keep(walk, draft->environment),
		.base_path = ob_walk_keep(walk, draft->base_path),
		.hosts = ob_walk_keep(walk, draft->hosts),
		.trusted_proxies = ob_walk_keep(walk, draft->trusted_proxies),
		.mask = ob_walk_keep(walk, draft->mask),
		.tokens[OB_MONITOR_VIEWER] = ob_walk_keep(walk, draft->viewer),
		.tokens[OB_MONITOR_OPERATOR] =
			ob_walk_keep(walk, draft->operator_ ? draft->operator_ : draft->token),
		.connections = draft->connections,
	};
	memcpy(m->payloads, draft->payloads, sizeof(m->payloads));
}

void ob_read_monitor(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		     const struct ob_section *section, void *base)
{
	struct ob_config_monitor *m = &((struct ob_config *)base)->monitor;
	struct ob_monitor_draft draft = { 0 };
	const struct ob_section own = { .opts = section->opts, .sections = section->sections };
	struct ob_err err = OB_ERR_INIT;

	if (ob_section_defaults(&own, &draft, &err) < 0) {
		walk->failed = true;
		return;
	}
	if (node)
		ob_walk_fill(walk, node, path, section, &draft);
	keep_draft(walk, &draft, m);
	if (draft.operator_ && draft.token)
		ob_diags_add(&walk->diags, ob_walk_place(ob_yaml_get(node, "token")),
			     "%s: token and tokens.operator are the same; keep one", path);
	if (m->base_path && m->title)
		check_monitor(walk, node, path, m);
	free_draft(section, &draft);
}

void ob_monitor_default(struct ob_config *config)
{
	const struct ob_section own = { .opts = ob_monitor_opts, .sections = ob_monitor_sections };
	struct ob_walk walk = { .arena = &config->arena };

	ob_diags_init(&walk.diags);
	ob_read_monitor(&walk, NULL, "monitor", &own, config);
	ob_diags_done(&walk.diags);
}
