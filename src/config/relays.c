/* SPDX-License-Identifier: MIT */
/* Reading relays: and giving every relay its store and its sink. */
#include "config/sections.h"

#include "base/when.h"

#include <stdio.h>

_Static_assert(offsetof(struct ob_relay_draft, relay) == 0, "the tables serve both structs");

struct names {
	const char *what; /* "store" */
	const char **list;
	size_t count;
};

/* The relays' only view of stores and sinks while they are resolved. */
struct resolver {
	struct names stores, sinks;
};

static bool gather(struct ob_walk *walk, const struct ob_config *config, struct resolver *r)
{
	r->stores = (struct names){ .what = "store", .count = config->store_count };
	r->sinks = (struct names){ .what = "sink", .count = config->sink_count };
	r->stores.list = ob_arena_alloc(walk->arena, config->store_count * sizeof(char *));
	r->sinks.list = ob_arena_alloc(walk->arena, config->sink_count * sizeof(char *));
	if (!r->stores.list || !r->sinks.list) {
		walk->failed = true;
		return false;
	}
	for (size_t i = 0; i < config->store_count; i++)
		r->stores.list[i] = config->stores[i].name;
	for (size_t i = 0; i < config->sink_count; i++)
		r->sinks.list[i] = config->sinks[i].name;
	return true;
}

/* The index of the name, of the only one when none is given, or -1 and reported. */
static int resolve(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		   const struct names *names, const char *name)
{
	struct ob_yaml *value = ob_yaml_get(node, names->what);

	if (value && (value->faulty || !name))
		return -1;
	for (size_t i = 0; i < names->count; i++) {
		if (name ? strcmp(names->list[i], name) == 0 : names->count == 1)
			return (int)i;
	}
	if (name) {
		const char *hint = ob_suggest(name, names->list, names->count);

		ob_walk_fault(walk, value, "%s.%s: no %s '%.80s' in '%ss'%s%s%s", path, names->what,
			      names->what, name, names->what, hint ? "; did you mean '" : "",
			      hint ? hint : "", hint ? "'?" : "");
	} else if (names->count) {
		ob_diags_add(&walk->diags, ob_walk_place(node),
			     "%s needs '%s': there are %zu to choose from", path, names->what,
			     names->count);
	} else {
		ob_diags_add(&walk->diags, ob_walk_place(node), "%s has no %s: '%ss' is empty",
			     path, names->what, names->what);
	}
	return -1;
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	}
	return false;
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Progress is kept under the name, so it must be the only one in its database. */
static bool same_database(const struct ob_config_store *a, const struct ob_config_store *b)
{
	return a == b ||
	       (a && b && a->conf.url && b->conf.url && strcmp(a->conf.url, b->conf.url) == 0);
}

static bool is_line(const char *text)
{
	return *text && characters(text) <= OUTBOX_TEXT_MAX && !has_control(text);
}

static void check_name(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct ob_config *config, const struct ob_config_store *store,
		       const char *name)
{
	struct ob_yaml *value = ob_yaml_get(node, "name");

	if (value && value->faulty)
		return;
	if (value && !is_line(name)) {
		ob_walk_fault(walk, value, "%s.name: must be 1 to %d characters on one line", path,
			      OUTBOX_TEXT_MAX);
		return;
	}
	for (size_t i = 0; i < config->relay_count; i++) {
		if (same_database(config->relays[i].store, store) && config->relays[i].name &&
		    strcmp(config->relays[i].name, name) == 0)
			ob_diags_add(&walk->diags, value ? value->at : ob_walk_place(node),
				     "%s: relays[%zu] has the name '%.80s' already%s", path, i,
				     name, value ? "" : "; give this one a name");
	}
}

static void read_reads(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		       const struct ob_relay_draft *draft, struct ob_config_relay *relay)
{
	struct ob_yaml *value = ob_yaml_get(node, "reads");

	if (value && !value->faulty && !is_line(draft->reads))
		ob_walk_fault(walk, value, "%s.reads: must be 1 to %d characters on one line", path,
			      OUTBOX_TEXT_MAX);
	relay->reads = ob_walk_keep(walk, draft->reads);
}

static void read_start(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		       const struct ob_relay_draft *draft, struct ob_config_relay *relay)
{
	struct ob_yaml *value = ob_yaml_get(node, "start");

	if (strcmp(draft->start, "beginning") == 0)
		relay->start = OB_START_BEGINNING;
	else if (strcmp(draft->start, "end") == 0)
		relay->start = OB_START_END;
	else if (ob_when_parse(ob_str(draft->start), &relay->start_at))
		relay->start = OB_START_TIME;
	else if (value && !value->faulty)
		ob_walk_fault(walk, value,
			      "%s.start: '%.80s' is not beginning, end, or a time such as "
			      "2026-05-01T00:00:00Z",
			      path, draft->start);
}

void ob_read_patterns(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		      const struct ob_section *section, void *base)
{
	struct ob_config_relay *relay = &((struct ob_relay_draft *)base)->relay;
	bool types = strcmp(section->name, "types") == 0;
	const char **list;
	size_t count = 0;
	char full[OB_PATH_SIZE];

	if (!node || ob_yaml_is_null(node) || !ob_walk_is_list(walk, node, path, "pattern"))
		return;
	list = ob_arena_alloc(walk->arena, (node->count + 1) * sizeof(*list));
	if (!list) {
		walk->failed = true;
		return;
	}
	for (struct ob_yaml *item = node->first; item; item = item->next, count++) {
		const char *text = NULL;

		(void)snprintf(full, sizeof(full), "%.230s[%zu]", path, count);
		if (ob_walk_text(walk, item, full, "a text", &text) && !*text)
			ob_walk_fault(walk, item, "%s must not be empty", full);
		list[count] = ob_walk_keep(walk, text);
	}
	*(types ? &relay->types : &relay->aggregates) = list;
	*(types ? &relay->type_count : &relay->aggregate_count) = count;
}

/* Fill the next free relay. `node` NULL: all defaults. */
static void read_relay(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct resolver *resolver, struct ob_config *config)
{
	struct ob_relay_draft draft = { 0 };
	struct ob_err err = OB_ERR_INIT;

	if (ob_section_defaults(&ob_relay_section, &draft, &err) < 0) {
		walk->failed = true;
	} else {
		ob_walk_fill(walk, node, path, &ob_relay_section, &draft);
		/* Without any store that is the fault already reported. */
		int store = resolver->stores.count
				    ? resolve(walk, node, path, &resolver->stores, draft.store)
				    : -1;
		int sink = resolve(walk, node, path, &resolver->sinks, draft.sink);
		draft.relay.store = store < 0 ? NULL : &config->stores[store];
		draft.relay.sink = sink < 0 ? NULL : &config->sinks[sink];
		check_name(walk, node, path, config, draft.relay.store, draft.name);
		draft.relay.name = ob_arena_strdup(walk->arena, draft.name);
		walk->failed |= !draft.relay.name;
		read_reads(walk, node, path, &draft, &draft.relay);
		read_start(walk, node, path, &draft, &draft.relay);
		if (draft.master_keys && *draft.master_keys)
			draft.relay.master_keys = ob_walk_keep(walk, draft.master_keys);
		ob_relay_check(walk, node, path, &draft.relay);
		draft.relay.written = ob_walk_written(walk, node);
	}
	ob_opt_free(ob_relay_opts, &draft);
	config->relays[config->relay_count++] = draft.relay;
}

void ob_read_relays(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_section *section, void *base)
{
	struct ob_config *config = base;
	struct resolver resolver;
	size_t index = 0;
	bool given = node && !ob_yaml_is_null(node);

	(void)section;
	if (given ? !ob_walk_is_list(walk, node, path, "relay")
		  : config->store_count != 1 || config->sink_count != 1)
		return;
	config->relays =
		ob_arena_alloc(walk->arena, (given ? node->count : 1) * sizeof(*config->relays));
	if (!config->relays || !gather(walk, config, &resolver)) {
		walk->failed = true;
		return;
	}
	if (!given) {
		read_relay(walk, NULL, "relays[0]", &resolver, config);
		return;
	}
	for (struct ob_yaml *item = node->first; item; item = item->next, index++) {
		char full[OB_PATH_SIZE];

		(void)snprintf(full, sizeof(full), "%s[%zu]", path, index);
		if (item->kind == OB_YAML_MAPPING || ob_yaml_is_null(item))
			read_relay(walk, item, full, &resolver, config);
		else
			(void)ob_walk_is_mapping(walk, item, full); /* reports it */
	}
}
