/* SPDX-License-Identifier: MIT */
/* From a file to a struct ob_config: read, parse, walk, report. */
#include "config/config.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "config/sections.h"

#include <stdlib.h>

enum { ARENA_MAX = 64 << 20 };

OB_DEFINE_CLEANUP(struct ob_config *, ob_config_free)

static int no_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "reading the configuration");
}

/* With every default; NULL when out of memory. */
static struct ob_config *config_new(void)
{
	OB_CLEANUP(ob_config_freep) struct ob_config *config = calloc(1, sizeof(*config));
	struct ob_err err = OB_ERR_INIT;

	if (!config)
		return NULL;
	config->arena = OB_ARENA_INIT(ARENA_MAX);
	ob_layout_default(&config->layout);
	/* The tables' own defaults are valid: a test reads them all. */
	if (ob_section_defaults(&ob_config_section, config, &err) < 0)
		return NULL;
	return OB_TAKE(config);
}

void ob_config_free(struct ob_config *config)
{
	if (!config)
		return;
	ob_arena_done(&config->arena);
	free(config->path);
	free(config);
}

static bool sends_snapshots(const struct ob_config_route *route)
{
	bool any = route->snapshot;

	for (size_t i = 0; i < route->rule_count; i++)
		any = any || route->rules[i].route.snapshot;
	return any;
}

/* The relays are read before the layout. */
static void note_layout(struct ob_walk *walk, const struct ob_yaml *root, struct ob_config *config)
{
	const char *written = ob_walk_written(walk, ob_yaml_get(root, "layout"));

	for (size_t i = 0; i < config->relay_count; i++)
		config->relays[i].layout_written = written;
	for (size_t i = 0; i < config->relay_count && config->layout.column[OB_COL_snapshot][0];
	     i++)
		config->layout.read_snapshot |= sends_snapshots(&config->relays[i].route);
	for (size_t i = 0; i < config->consumer_count; i++)
		config->consumers[i].layout_written = written;
}

static void read_root(struct ob_walk *walk, struct ob_yaml *root, struct ob_config *config)
{
	if (root && root->kind != OB_YAML_MAPPING && !ob_yaml_is_null(root))
		ob_diags_add(&walk->diags, root->at,
			     "the file must be a mapping such as 'stores: ...', not %s",
			     ob_yaml_kind_name(root));
	else
		ob_walk_fill(walk, root, "", &ob_config_section, config);
	note_layout(walk, root, config);
}

/* Print what was found; 0 when nothing was. */
static int conclude(struct ob_diags *diags, const char *name, struct ob_buf *faults,
		    struct ob_err *err)
{
	if (diags->failed)
		return no_memory(err);
	if (!diags->count)
		return 0;
	ob_diags_print(diags, name, faults);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "%.300s: %zu fault%s", name,
			  diags->count, diags->count == 1 ? "" : "s");
}

static int fill(struct ob_str text, const char *name, struct ob_buf *faults,
		struct ob_config *config, struct ob_err *err)
{
	struct ob_walk walk = { .arena = &config->arena };
	struct ob_arena tree = OB_ARENA_INIT(OB_YAML_ARENA_MAX);
	struct ob_yaml_pos at = { 0 };
	struct ob_yaml *root;
	int r;

	ob_diags_init(&walk.diags);
	r = ob_yaml_parse(text, &tree, &root, &at, err);
	if (r == OUTBOX_ECONFIG)
		ob_diags_add(&walk.diags, at, "%s", err->msg);
	else if (r == 0)
		read_root(&walk, root, config);
	if (r == 0 && walk.failed)
		r = no_memory(err);
	if (r != OUTBOX_ENOMEM)
		r = conclude(&walk.diags, name, faults, err);
	ob_diags_done(&walk.diags);
	ob_arena_done(&tree);
	return r;
}

int ob_config_parse(struct ob_str text, const char *name, struct ob_buf *faults,
		    struct ob_config **ret_config, struct ob_err *err)
{
	OB_CLEANUP(ob_config_freep) struct ob_config *config = config_new();

	if (!config)
		return no_memory(err);
	config->path = strdup(name);
	if (!config->path)
		return no_memory(err);
	int r = fill(text, name, faults, config, err);
	if (r < 0)
		return r;
	*ret_config = OB_TAKE(config);
	return 0;
}

int ob_config_load(const char *path, struct ob_buf *faults, struct ob_config **ret_config,
		   struct ob_err *err)
{
	struct ob_buf text = OB_BUF_INIT(OB_YAML_SIZE_MAX + 1);
	int r = ob_file_read(path, OB_YAML_SIZE_MAX, &text, err);

	if (r == OUTBOX_ECONFIG) {
		ob_buf_addf(faults, "%s: %s\n", path, err->msg);
		(void)ob_err_set(err, r, OB_ERR_FATAL, "%.300s: 1 fault", path);
	} else if (r == 0) {
		r = ob_config_parse(ob_buf_view(&text), path, faults, ret_config, err);
	}
	ob_buf_done(&text);
	return r;
}

int ob_config_of_store(const char *url, struct ob_config **ret_config, struct ob_err *err)
{
	OB_CLEANUP(ob_config_freep) struct ob_config *config = NULL;
	const struct ob_store_backend *backend;
	int r = ob_config_find_backend(url, &backend, err);

	if (r < 0)
		return ob_err_context(err, "the URL of the store");
	config = config_new();
	if (!config)
		return no_memory(err);
	config->stores = ob_arena_alloc(&config->arena, sizeof(*config->stores));
	const char *copy = ob_arena_strdup(&config->arena, url);
	if (!config->stores || !copy)
		return no_memory(err);
	config->stores[0] = (struct ob_config_store){
		.name = "main",
		.conf = { .url = copy, .layout = &config->layout },
	};
	ob_monitor_default(config);
	r = ob_retention_default(&config->stores[0].retention, err);
	if (r < 0)
		return r;
	config->store_count = 1;
	*ret_config = OB_TAKE(config);
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return ob_str_eq(ob_str(a), ob_str(b));
}

bool ob_config_same_relay(const struct ob_config_relay *a, const struct ob_config_relay *b)
{
	return same_text(a->name, b->name) && same_text(a->written, b->written) &&
	       same_text(a->layout_written, b->layout_written) &&
	       same_text(a->store->name, b->store->name) &&
	       same_text(a->store->written, b->store->written) &&
	       same_text(a->store->conf.url, b->store->conf.url) &&
	       same_text(a->sink->name, b->sink->name) &&
	       same_text(a->sink->written, b->sink->written);
}

bool ob_config_same_consumer(const struct ob_config_consumer *a, const struct ob_config_consumer *b)
{
	bool letters =
		!a->letter_sink == !b->letter_sink &&
		(!a->letter_sink || same_text(a->letter_sink->written, b->letter_sink->written));

	return same_text(a->name, b->name) && same_text(a->written, b->written) &&
	       same_text(a->layout_written, b->layout_written) &&
	       same_text(a->store->written, b->store->written) &&
	       same_text(a->store->conf.url, b->store->conf.url) && letters;
}

const struct ob_config_store *ob_config_find_store(const struct ob_config *config, const char *name)
{
	if (!name)
		return config->store_count == 1 ? &config->stores[0] : NULL;
	for (size_t i = 0; i < config->store_count; i++) {
		if (strcmp(config->stores[i].name, name) == 0)
			return &config->stores[i];
	}
	return NULL;
}
