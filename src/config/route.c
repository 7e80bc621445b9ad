/* SPDX-License-Identifier: MIT */
/* Reading route: of a relay: templates, headers, and the rules that override them. */
#include "config/sections.h"

#include "base/template.h"

#include <stdio.h>

static const char *const envelope_names[] = { "none", "cloudevents-binary",
					      "cloudevents-structured", "debezium", NULL };

#define DRAFT(member) offsetof(struct ob_route_draft, member)

const struct ob_opt ob_route_opts[] = {
	{
		.name = "destination",
		.type = OB_OPT_STR,
		.offset = DRAFT(destination),
		.dflt = "{aggregate_type}",
		.help = "Topic, stream or subject, a template: text and fields such as "
			"{event_type}.",
	},
	{
		.name = "key",
		.type = OB_OPT_STR,
		.offset = DRAFT(key),
		.help = "The key that the sink gets, a template; without it the ordering key.",
	},
	{
		.name = "envelope",
		.type = OB_OPT_ENUM,
		.offset = DRAFT(envelope),
		.dflt = "none",
		.choices = envelope_names,
		.help = "What a message is wrapped in.",
	},
	{
		.name = "content_type",
		.type = OB_OPT_STR,
		.offset = DRAFT(content_type),
		.help = "The media type of the payload, a template; without it JSON where it is "
			"JSON.",
	},
	{
		.name = "source",
		.type = OB_OPT_STR,
		.offset = DRAFT(source),
		.dflt = "/outbox/{target}/{aggregate_type}",
		.help = "The source attribute of CloudEvents, a template.",
	},
	{
		.name = "snapshot",
		.type = OB_OPT_BOOL,
		.offset = DRAFT(snapshot),
		.dflt = "false",
		.help = "Also send the snapshot that is stored with a message.",
	},
	OB_OPT_END,
};

static const struct ob_opt backfill_opts[] = {
	{
		.name = "suffix",
		.type = OB_OPT_STR,
		.offset = DRAFT(suffix),
		.help = "What the destination of such a message ends with; none: no lane of its "
			"own.",
	},
	{
		.name = "below",
		.type = OB_OPT_I32,
		.offset = DRAFT(below),
		.dflt = "0",
		.min = -32768,
		.max = 32767,
		.help = "Messages of a lower priority go there.",
	},
	OB_OPT_END,
};

static const struct ob_opt rule_opts[] = {
	{
		.name = "event_type",
		.type = OB_OPT_STR,
		.offset = DRAFT(event_type),
		.help = "A pattern that the event's type must match; * stands for any text.",
	},
	{
		.name = "aggregate_type",
		.type = OB_OPT_STR,
		.offset = DRAFT(aggregate_type),
		.help = "A pattern that the aggregate's type must match.",
	},
	OB_OPT_END,
};

enum { HEADERS, BACKFILL, RULES };

const struct ob_section ob_route_sections[] = {
	[HEADERS] = {
		.name = "headers",
		.example = "tenant: \"{headers.tenant|public}\"\n",
		.help = "Headers that a message gets besides its own, each a template.",
	},
	[BACKFILL] = {
		.name = "backfill",
		.opts = backfill_opts,
		.help = "A lane of its own for what can wait.",
	},
	[RULES] = {
		.name = "rules",
		.opts = rule_opts,
		.example = "- { event_type: \"Invoice*\", destination: \"billing\" }\n",
		.help = "A list: the first rule whose patterns match overrides what it names.",
	},
	OB_SECTION_END,
};

static const struct ob_section rule_sections[] = { { .name = "headers" }, OB_SECTION_END };
static const struct ob_section rule_section = { .opts = rule_opts, .sections = rule_sections };

/* ---- templates ------------------------------------------------------- */

static void check_template(struct ob_walk *walk, struct ob_yaml *node, const char *path)
{
	struct ob_template template;
	struct ob_err err = OB_ERR_INIT;

	if (!node || node->faulty || !node->expanded)
		return;
	int r = ob_template_parse(node->expanded, walk->arena, &template, &err);
	if (r == OUTBOX_ENOMEM)
		walk->failed = true;
	else if (r < 0)
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
}

/* A default means that it cannot do without. */
static void check_templates(struct ob_walk *walk, const struct ob_yaml *node, const char *path)
{
	char full[OB_PATH_SIZE];

	for (const struct ob_opt *opt = ob_route_opts; opt->name; opt++) {
		struct ob_yaml *value = ob_yaml_get(node, opt->name);

		if (!value || opt->type != OB_OPT_STR)
			continue;
		ob_walk_path(full, path, opt->name);
		check_template(walk, value, full);
		if (opt->dflt && !value->faulty && value->expanded && !*value->expanded)
			ob_walk_fault(walk, value, "%s: must not be empty", full);
	}
}

static const char *keep_or_none(struct ob_walk *walk, const char *text)
{
	return text && *text ? ob_walk_keep(walk, text) : NULL;
}

/* ---- headers --------------------------------------------------------- */

/* Those of `from` first, then those of the file; equal names override. */
static void read_headers(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			 const struct ob_config_route *from, struct ob_config_route *route)
{
	size_t more = node && node->kind == OB_YAML_MAPPING ? node->count : 0;
	struct ob_config_header *list =
		ob_arena_alloc(walk->arena, (from->header_count + more + 1) * sizeof(*list));
	size_t count = from->header_count;
	char full[OB_PATH_SIZE];

	if (!list) {
		walk->failed = true;
		return;
	}
	if (count)
		memcpy(list, from->headers, count * sizeof(*list));
	if (!ob_walk_header_names(walk, node, path))
		more = 0;
	for (struct ob_yaml *child = more ? node->first : NULL; child; child = child->next) {
		const char *text;
		size_t i = 0;

		ob_walk_path(full, path, child->key);
		if (child->earlier || !ob_walk_text(walk, child, full, "a text", &text))
			continue;
		check_template(walk, child, full);
		while (i < count && strcasecmp(list[i].name, child->key) != 0)
			i++;
		count += i == count;
		list[i] = (struct ob_config_header){ ob_walk_keep(walk, child->key),
						     ob_walk_keep(walk, text) };
	}
	route->headers = list;
	route->header_count = count;
	if (node && count > OB_CONFIG_HEADERS_MAX)
		ob_walk_fault(walk, node, "%s: at most %d headers", path, OB_CONFIG_HEADERS_MAX);
}

/* ---- what a route and a rule have in common -------------------------- */

/*
 * Take over what the file names, the rest from `from`. Debezium's own names are the default of
 * whoever asks for its envelope.
 */
static void read_output(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			const struct ob_route_draft *draft, const struct ob_config_route *from,
			struct ob_config_route *route)
{
	char full[OB_PATH_SIZE];
	bool debezium = ob_yaml_get(node, "envelope") && draft->envelope == OB_ENVELOPE_DEBEZIUM;

	check_templates(walk, node, path);
	route->destination = debezium ? "outbox.event.{aggregate_type}" : from->destination;
	route->key = debezium ? "{aggregate_id}" : from->key;
	route->content_type = from->content_type;
	route->source = from->source;
	if (ob_yaml_get(node, "destination"))
		route->destination = ob_walk_keep(walk, draft->destination);
	if (ob_yaml_get(node, "key"))
		route->key = keep_or_none(walk, draft->key);
	if (ob_yaml_get(node, "content_type"))
		route->content_type = keep_or_none(walk, draft->content_type);
	if (ob_yaml_get(node, "source"))
		route->source = ob_walk_keep(walk, draft->source);
	route->envelope = ob_yaml_get(node, "envelope") ? draft->envelope : from->envelope;
	route->snapshot = ob_yaml_get(node, "snapshot") ? draft->snapshot : from->snapshot;
	ob_walk_path(full, path, "headers");
	read_headers(walk, ob_yaml_get(node, "headers"), full, from, route);
}

/* ---- rules ----------------------------------------------------------- */

static void read_rule(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		      const struct ob_config_route *from, struct ob_config_rule *rule)
{
	struct ob_route_draft draft = { 0 };

	if (!ob_walk_is_mapping(walk, node, path)) {
		if (ob_yaml_is_null(node))
			ob_walk_fault(walk, node, "%s is empty", path);
		return;
	}
	ob_walk_keys(walk, node, path, &rule_section, ob_route_opts);
	ob_walk_options(walk, node, path, rule_opts, &draft);
	ob_walk_options(walk, node, path, ob_route_opts, &draft);
	if (!ob_yaml_get(node, "event_type") && !ob_yaml_get(node, "aggregate_type"))
		ob_walk_fault(walk, node, "%s needs 'event_type' or 'aggregate_type'", path);
	rule->event_type = ob_walk_keep(walk, draft.event_type);
	rule->aggregate_type = ob_walk_keep(walk, draft.aggregate_type);
	read_output(walk, node, path, &draft, from, &rule->route);
	ob_opt_free(rule_opts, &draft);
	ob_opt_free(ob_route_opts, &draft);
}

static void read_rules(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       struct ob_config_route *route)
{
	char full[OB_PATH_SIZE];

	if (!node || ob_yaml_is_null(node) || !ob_walk_is_list(walk, node, path, "rule"))
		return;
	route->rules = ob_arena_alloc(walk->arena, (node->count + 1) * sizeof(*route->rules));
	if (!route->rules) {
		walk->failed = true;
		return;
	}
	for (struct ob_yaml *item = node->first; item; item = item->next) {
		(void)snprintf(full, sizeof(full), "%.230s[%zu]", path, route->rule_count);
		read_rule(walk, item, full, route, &route->rules[route->rule_count++]);
	}
}

/* ---- the whole ------------------------------------------------------- */

static void read_backfill(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			  struct ob_route_draft *draft, struct ob_config_route *route)
{
	ob_walk_fill(walk, node, path, &ob_route_sections[BACKFILL], draft);
	if (ob_yaml_get(node, "below") && !ob_yaml_get(node, "suffix"))
		ob_walk_fault(walk, node, "%s needs 'suffix', such as \".backfill\"", path);
	route->backfill.below = draft->below;
	route->backfill.suffix = keep_or_none(walk, draft->suffix);
}

static struct ob_yaml *read_part(struct ob_yaml *node, const char *path, int part,
				 char full[OB_PATH_SIZE])
{
	ob_walk_path(full, path, ob_route_sections[part].name);
	return ob_yaml_get(node, ob_route_sections[part].name);
}

void ob_read_route(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		   const struct ob_section *section, void *base)
{
	struct ob_config_route *route = &((struct ob_relay_draft *)base)->relay.route;
	struct ob_route_draft draft = { 0 };
	struct ob_config_route dflt = { 0 };
	struct ob_err err = OB_ERR_INIT;
	char full[OB_PATH_SIZE];
	struct ob_yaml *child;

	if (ob_opt_defaults(section->opts, &draft, &err) < 0 ||
	    ob_opt_defaults(backfill_opts, &draft, &err) < 0)
		walk->failed = true;
	dflt.destination = ob_walk_keep(walk, draft.destination);
	dflt.source = ob_walk_keep(walk, draft.source);
	if (ob_walk_is_mapping(walk, node, path)) {
		ob_walk_keys(walk, node, path, section, NULL);
		ob_walk_options(walk, node, path, section->opts, &draft);
	} else {
		node = NULL;
	}
	read_output(walk, node, path, &draft, &dflt, route);
	child = read_part(node, path, BACKFILL, full);
	read_backfill(walk, child, full, &draft, route);
	child = read_part(node, path, RULES, full);
	read_rules(walk, child, full, route);
	ob_opt_free(section->opts, &draft);
	ob_opt_free(backfill_opts, &draft);
}

/* ---- with the sink --------------------------------------------------- */

static void check_binding(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			  const struct ob_config_sink *sink, int envelope)
{
	struct ob_yaml *value = ob_yaml_get(node, "envelope");
	struct ob_err err = OB_ERR_INIT;

	if (value && !value->faulty && envelope == OB_ENVELOPE_CE_BINARY &&
	    ob_sink_check_binary(sink->ops, sink->options, sink->option_count, &err) < 0 &&
	    err.status == OUTBOX_ECONFIG)
		ob_walk_fault(walk, value, "%s.envelope: %s", path, err.msg);
}

void ob_route_check(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_config_relay *relay)
{
	struct ob_yaml *route = ob_yaml_get(node, "route");
	struct ob_yaml *rules = ob_yaml_get(route, "rules");
	char full[OB_PATH_SIZE];
	size_t i = 0;

	if (!relay->sink || !relay->sink->ops)
		return;
	ob_walk_path(full, path, "route");
	check_binding(walk, route, full, relay->sink, relay->route.envelope);
	if (relay->route.rule_count == 0)
		return;
	for (struct ob_yaml *item = rules->first; item; item = item->next, i++) {
		(void)snprintf(full, sizeof(full), "%.200s.route.rules[%zu]", path, i);
		check_binding(walk, item, full, relay->sink, relay->route.rules[i].route.envelope);
	}
}
