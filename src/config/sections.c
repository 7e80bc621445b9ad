/* SPDX-License-Identifier: MIT */
/* Reading stores: and sinks:, whose options are their backends' own. */
#include "config/sections.h"

#include "base/url.h"

#include <stdlib.h>

static bool keep_option(struct ob_walk *walk, const struct ob_opt *opt, struct ob_yaml *node,
			struct ob_backend_options *options)
{
	const char *text;

	if (node->faulty || !ob_walk_text(walk, node, opt->name, "a text", &text))
		return true;
	const char *copy = ob_arena_strdup(walk->arena, text);
	if (!copy)
		return false;
	options->values[options->count++] = (struct ob_opt_value){ opt->name, copy };
	return true;
}

void ob_read_backend_options(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			     const struct ob_opt *opts, size_t size,
			     struct ob_backend_options *options)
{
	void *scratch = calloc(1, size ? size : 1);
	size_t rows = 0;

	while (opts && opts[rows].name)
		rows++;
	options->values = ob_arena_alloc(walk->arena, (rows + 1) * sizeof(*options->values));
	if (!scratch || !options->values) {
		walk->failed = true;
		free(scratch);
		return;
	}
	ob_walk_options(walk, node, path, opts, scratch);
	ob_opt_free(opts, scratch);
	free(scratch);
	for (const struct ob_opt *opt = opts; opt && opt->name; opt++) {
		struct ob_yaml *child = ob_yaml_get(node, opt->name);

		if (child && !keep_option(walk, opt, child, options))
			walk->failed = true;
	}
}

/* Space for one entry per key; the first of duplicates counts. */
static void *make_entries(struct ob_walk *walk, const struct ob_yaml *node, size_t size)
{
	void *entries = ob_arena_alloc(walk->arena, node->count * size);

	if (!entries)
		walk->failed = true;
	return entries;
}

/* ---- stores ---------------------------------------------------------- */

int ob_config_find_backend(const char *url, const struct ob_store_backend **ret_backend,
			   struct ob_err *err)
{
	int r = ob_store_find(url, ret_backend, err);

	if (r == 0 && strchr(url, ':')[1] == '\0')
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "nothing stands behind '%s'; write for example sqlite:outbox.db",
				  url);
	return r < 0 ? r : ob_url_check(url, err);
}

int ob_retention_default(struct ob_config_retention *retention, struct ob_err *err)
{
	struct ob_store_draft draft = { 0 };
	int r = ob_section_defaults(ob_store_entry_sections, &draft, err);

	*retention = draft.retention;
	return r;
}

static void read_retention(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
			   struct ob_store_draft *draft)
{
	const struct ob_section *section = ob_store_entry_sections;
	struct ob_yaml *child = ob_yaml_get(node, section->name);
	char full[OB_PATH_SIZE];

	ob_walk_path(full, path, section->name);
	ob_walk_fill(walk, child, full, section, draft);
}

static void read_store(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct ob_section *section, struct ob_config_store *store)
{
	struct ob_store_draft draft = { 0 };
	const struct ob_store_backend *backend;
	struct ob_backend_options options = { 0 };
	struct ob_err err = OB_ERR_INIT;

	if (!ob_walk_is_mapping(walk, node, path) && !ob_yaml_is_null(node))
		return;
	walk->failed |= ob_retention_default(&draft.retention, &err) < 0;
	ob_walk_options(walk, node, path, section->opts, &draft);
	read_retention(walk, node, path, &draft);
	store->retention = draft.retention;
	struct ob_yaml *url = ob_yaml_get(node, "url");
	if (!url || url->faulty || !draft.url) {
		/* Without a backend nothing is known about the other keys. */
	} else if (ob_config_find_backend(draft.url, &backend, &err) < 0) {
		ob_walk_fault(walk, url, "%s.url: %s", path, err.msg);
	} else {
		ob_walk_keys(walk, node, path, section, backend->ops->opts);
		ob_read_backend_options(walk, node, path, backend->ops->opts, backend->ops->size,
					&options);
		store->conf.url = ob_arena_strdup(walk->arena, draft.url);
		walk->failed |= !store->conf.url;
	}
	store->conf.options = options.values;
	store->conf.option_count = options.count;
	ob_opt_free(section->opts, &draft);
}

void ob_read_stores(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_section *section, void *base)
{
	struct ob_config *config = base;
	char full[OB_PATH_SIZE];

	if (!node || ob_yaml_is_null(node) || (node->kind == OB_YAML_MAPPING && !node->count)) {
		ob_diags_add(&walk->diags, ob_walk_place(node),
			     "no store: write for example 'stores: { main: { url: "
			     "\"sqlite:outbox.db\" } }'");
		return;
	}
	if (!ob_walk_names(walk, node, path))
		return;
	config->stores = make_entries(walk, node, sizeof(*config->stores));
	if (!config->stores)
		return;
	for (struct ob_yaml *child = node->first; child; child = child->next) {
		struct ob_config_store *store = &config->stores[config->store_count];

		if (child->earlier)
			continue;
		store->name = ob_arena_strdup(walk->arena, child->key);
		store->conf.layout = &config->layout;
		if (!store->name) {
			walk->failed = true;
			return;
		}
		config->store_count++;
		ob_walk_path(full, path, child->key);
		read_store(walk, child, full, section, store);
		store->written = ob_walk_written(walk, child);
	}
}

/* ---- sinks ----------------------------------------------------------- */

static const struct ob_sink_ops *find_sink(struct ob_walk *walk, struct ob_yaml *node,
					   const char *path, const char *type)
{
	const struct ob_sink_backend *backend;
	struct ob_err err = OB_ERR_INIT;

	if (ob_sink_find(type, &backend, &err) == 0)
		return backend->ops;
	ob_walk_fault(walk, node, "%s.type: %s", path, err.msg);
	return NULL;
}

static void read_sink(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		      const struct ob_section *section, struct ob_config_sink *sink)
{
	struct ob_sink_draft draft = { 0 };
	struct ob_backend_options options = { 0 };
	struct ob_err err = OB_ERR_INIT;
	size_t faults = walk->diags.count;

	if (!ob_walk_is_mapping(walk, node, path) && !ob_yaml_is_null(node))
		return;
	ob_walk_options(walk, node, path, section->opts, &draft);
	struct ob_yaml *type = ob_yaml_get(node, "type");
	if (type && !type->faulty && draft.type)
		sink->ops = find_sink(walk, type, path, draft.type);
	if (sink->ops) {
		ob_walk_keys(walk, node, path, section, sink->ops->opts);
		ob_read_backend_options(walk, node, path, sink->ops->opts, sink->ops->size,
					&options);
	}
	sink->options = options.values;
	sink->option_count = options.count;
	/* They passed one by one; do they pass together? */
	if (sink->ops && walk->diags.count == faults && !walk->failed &&
	    ob_sink_check(sink->ops, sink->options, sink->option_count, &err) < 0)
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
	ob_opt_free(section->opts, &draft);
}

void ob_read_sinks(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		   const struct ob_section *section, void *base)
{
	struct ob_config *config = base;
	char full[OB_PATH_SIZE];

	if (!ob_walk_names(walk, node, path))
		return;
	config->sinks = make_entries(walk, node, sizeof(*config->sinks));
	if (!config->sinks)
		return;
	for (struct ob_yaml *child = node->first; child; child = child->next) {
		struct ob_config_sink *sink = &config->sinks[config->sink_count];

		if (child->earlier)
			continue;
		sink->name = ob_arena_strdup(walk->arena, child->key);
		if (!sink->name) {
			walk->failed = true;
			return;
		}
		config->sink_count++;
		ob_walk_path(full, path, child->key);
		read_sink(walk, child, full, section, sink);
		sink->written = ob_walk_written(walk, child);
	}
}
