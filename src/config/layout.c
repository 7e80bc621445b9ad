/* SPDX-License-Identifier: MIT */
/* Reading layout:, the names of the user's own tables and columns. */
#include "config/sections.h"

static const char *const column_names[] = {
#define X(name, optional) #name,
	OB_COLUMN_MAP(X)
#undef X
};

static const char *const source_names[] = {
#define X(name, there) #name,
	OB_SOURCE_MAP(X)
#undef X
};

/* A mapping of our names to the user's: which there are, and where they go. */
struct names {
	const char *const *known;
	size_t count;
	int (*set)(struct ob_layout *layout, const char *column, const char *name,
		   struct ob_err *err);
};

static const struct names of_columns = { column_names, OB_COL_COUNT, ob_layout_set_column };
static const struct names of_source = { source_names,
					sizeof(source_names) / sizeof(source_names[0]),
					ob_layout_set_source_column };

static void read_column(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			const struct names *names, struct ob_layout *layout)
{
	struct ob_err err = OB_ERR_INIT;
	char full[OB_PATH_SIZE];
	const char *name = NULL;

	ob_walk_path(full, path, node->key);
	if (!ob_yaml_is_null(node) && !ob_walk_text(walk, node, full, "a text", &name))
		return;
	if (names->set(layout, node->key, name, &err) < 0)
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
}

static bool is_known(const struct names *names, const char *key)
{
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->known[i], key) == 0)
			return true;
	}
	return false;
}

static void report_unknown_column(struct ob_walk *walk, const struct ob_yaml *node,
				  const char *path, const struct names *names)
{
	const char *hint = ob_suggest(node->key, names->known, names->count);

	ob_diags_add(&walk->diags, node->key_at, "unknown key '%.80s' in %s%s%s%s", node->key, path,
		     hint ? "; did you mean '" : "", hint ? hint : "", hint ? "'?" : "");
}

static void read_names(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		       const struct names *names, struct ob_layout *layout)
{
	for (struct ob_yaml *child = node->first; child; child = child->next) {
		if (child->earlier)
			ob_diags_add(&walk->diags, child->key_at,
				     "duplicate key '%.80s' in %s; the first is in line %u",
				     child->key, path, child->earlier->key_at.line);
		else if (!is_known(names, child->key))
			report_unknown_column(walk, child, path, names);
		else
			read_column(walk, child, path, names, layout);
	}
}

void ob_read_columns(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		     const struct ob_section *section, void *base)
{
	struct ob_layout *layout = ((struct ob_layout_draft *)base)->layout;
	struct ob_err err = OB_ERR_INIT;
	size_t before = walk->diags.count;

	(void)section;
	if (!ob_walk_is_mapping(walk, node, path))
		return;
	read_names(walk, node, path, &of_columns, layout);
	/* A name that was refused leaves the default behind, which may clash with nothing real. */
	if (walk->diags.count == before && ob_layout_check(layout, &err) < 0)
		ob_diags_add(&walk->diags, ob_walk_place(node), "%s: %s", path, err.msg);
}

void ob_read_source_columns(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			    const struct ob_section *section, void *base)
{
	(void)section;
	if (ob_walk_is_mapping(walk, node, path))
		read_names(walk, node, path, &of_source, ((struct ob_source_draft *)base)->layout);
}

/* The table comes first, because it brings the names that `columns` changes. */
void ob_read_debezium(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		      const struct ob_section *section, void *base)
{
	struct ob_source_draft draft = { .layout = ((struct ob_layout_draft *)base)->layout };
	struct ob_err err = OB_ERR_INIT;
	const char *name;

	if (!ob_walk_is_mapping(walk, node, path))
		return;
	struct ob_yaml *table = ob_yaml_get(node, "table");
	if (table && table->kind == OB_YAML_SCALAR &&
	    ob_walk_text(walk, table, path, "a text", &name) && *name &&
	    ob_layout_set_source(draft.layout, name, &err) < 0)
		ob_walk_fault(walk, table, "%s: %s", path, err.msg);
	ob_walk_fill(walk, node, path, section, &draft);
	ob_opt_free(section->opts, &draft);
}

void ob_read_layout(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		    const struct ob_section *section, void *base)
{
	struct ob_config *config = base;
	struct ob_layout_draft draft = { .layout = &config->layout };
	struct ob_yaml *table = ob_yaml_get(node, "table");
	struct ob_err err = OB_ERR_INIT;
	size_t before = walk->diags.count;

	if (ob_opt_defaults(section->opts, &draft, &err) < 0) {
		walk->failed = true;
	} else {
		ob_walk_fill(walk, node, path, section, &draft);
		if (table && !table->faulty &&
		    ob_layout_set_table(&config->layout, draft.table, &err) < 0)
			ob_walk_fault(walk, table, "%s: %s", path, err.msg);
	}
	struct ob_yaml *source = ob_yaml_get(node, "debezium");
	if (config->layout.source.table[0] && walk->diags.count == before &&
	    ob_layout_check(&config->layout, &err) < 0)
		ob_diags_add(&walk->diags, ob_walk_place(source), "%s.debezium: %s", path, err.msg);
	config->layout.string_id = draft.id_type == 1;
	config->layout.binary_payload = draft.payload_type == 1;
	config->writer_flags = (draft.validate_payload ? 0 : OUTBOX_NO_PAYLOAD_CHECK) |
			       (draft.validate_headers ? 0 : OUTBOX_NO_HEADERS_CHECK) |
			       (config->layout.string_id ? OUTBOX_STRING_ID : 0) |
			       (config->layout.binary_payload ? OUTBOX_BINARY_PAYLOAD : 0);
	ob_opt_free(section->opts, &draft);
}
