/* SPDX-License-Identifier: MIT */
/* The walker. It knows tables and trees, and nothing of what they are about. */
#include "config/walk.h"

#include "base/expand.h"

#include <stdarg.h>
#include <stdio.h>

int ob_section_defaults(const struct ob_section *section, void *base, struct ob_err *err)
{
	int r = ob_opt_defaults(section->opts, base, err);

	for (const struct ob_section *s = section->sections; r == 0 && s && s->name; s++) {
		if (!s->read)
			r = ob_section_defaults(s, base, err);
	}
	return r;
}

struct ob_yaml_pos ob_walk_place(const struct ob_yaml *node)
{
	if (!node)
		return (struct ob_yaml_pos){ 1, 1 };
	return node->key ? node->key_at : node->at;
}

void ob_walk_path(char out[OB_PATH_SIZE], const char *path, const char *name)
{
	(void)snprintf(out, OB_PATH_SIZE, "%.160s%s%.80s", path, *path ? "." : "", name);
}

void ob_walk_fault(struct ob_walk *walk, struct ob_yaml *node, const char *fmt, ...)
{
	va_list ap;

	node->faulty = true;
	va_start(ap, fmt);
	/* clang 14 loses sight of va_start. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	(void)vsnprintf(walk->text, sizeof(walk->text), fmt, ap);
	va_end(ap);
	ob_diags_add(&walk->diags, node->at, "%s", walk->text);
}

bool ob_walk_is_mapping(struct ob_walk *walk, struct ob_yaml *node, const char *path)
{
	if (!node || ob_yaml_is_null(node))
		return false;
	if (node->kind == OB_YAML_MAPPING)
		return true;
	ob_walk_fault(walk, node, "%s expects a mapping, not %s", path, ob_yaml_kind_name(node));
	return false;
}

enum { WRITTEN_MAX = 16 << 20 };

static void report_duplicate(struct ob_walk *walk, const struct ob_yaml *child, const char *path)
{
	ob_diags_add(&walk->diags, child->key_at,
		     "duplicate key '%.80s'%s%s; the first is in line %u", child->key,
		     *path ? " in " : "", path, child->earlier->key_at.line);
}

static bool knows(const struct ob_section *section, const struct ob_opt *more, const char *name)
{
	if (ob_opt_find(section->opts, name) || ob_opt_find(more, name))
		return true;
	for (const struct ob_section *s = section->sections; s && s->name; s++) {
		if (strcmp(s->name, name) == 0)
			return true;
	}
	return false;
}

/* The closest name of the options and sections, or NULL. */
static const char *closest(const struct ob_section *section, const struct ob_opt *more,
			   const char *name)
{
	const char *names[128];
	size_t n = 0;

	for (const struct ob_opt *o = section->opts; o && o->name && n < 64; o++)
		names[n++] = o->name;
	for (const struct ob_opt *o = more; o && o->name && n < 112; o++)
		names[n++] = o->name;
	for (const struct ob_section *s = section->sections; s && s->name && n < 128; s++)
		names[n++] = s->name;
	return ob_suggest(name, names, n);
}

static bool report_gone(struct ob_walk *walk, const struct ob_yaml *child, const char *path,
			const struct ob_section *section)
{
	for (const struct ob_gone *g = section->gone; g && g->name; g++) {
		if (strcmp(g->name, child->key) != 0)
			continue;
		ob_diags_add(&walk->diags, child->key_at, "%s%s%s is gone: %s", path,
			     *path ? "." : "", child->key, g->instead);
		return true;
	}
	return false;
}

static void report_unknown(struct ob_walk *walk, const struct ob_yaml *child, const char *path,
			   const struct ob_section *section, const struct ob_opt *more)
{
	const char *hint = closest(section, more, child->key);
	char tail[120] = "";

	/* The most common mistake after a typo: one level too high. */
	for (const struct ob_section *s = section->sections; s && s->name; s++) {
		if (ob_opt_find(s->opts, child->key))
			(void)snprintf(tail, sizeof(tail), "; it belongs into '%s'", s->name);
	}
	if (hint)
		(void)snprintf(tail, sizeof(tail), "; did you mean '%s'?", hint);
	ob_diags_add(&walk->diags, child->key_at, "unknown key '%.80s'%s%s%s", child->key,
		     *path ? " in " : "", path, tail);
}

void ob_walk_keys(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		  const struct ob_section *section, const struct ob_opt *more)
{
	for (const struct ob_yaml *child = node->first; child; child = child->next) {
		if (child->earlier)
			report_duplicate(walk, child, path);
		else if (!knows(section, more, child->key) &&
			 !report_gone(walk, child, path, section))
			report_unknown(walk, child, path, section, more);
	}
}

bool ob_walk_few_enough(struct ob_walk *walk, struct ob_yaml *node, const char *path)
{
	if (node->count <= OB_WALK_ENTRIES_MAX)
		return true;
	ob_walk_fault(walk, node, "%s has more than %d entries", path, OB_WALK_ENTRIES_MAX);
	return false;
}

bool ob_walk_is_list(struct ob_walk *walk, struct ob_yaml *node, const char *path, const char *what)
{
	if (node->kind == OB_YAML_LIST)
		return ob_walk_few_enough(walk, node, path);
	ob_walk_fault(walk, node, "%s expects a list, not %s; begin each %s with '- '", path,
		      ob_yaml_kind_name(node), what);
	return false;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789_-"
#define ANY   LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ."

static bool check_names(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			const char *allowed, size_t max, const char *rule)
{
	if (!ob_walk_is_mapping(walk, node, path) || !ob_walk_few_enough(walk, node, path))
		return false;
	for (const struct ob_yaml *child = node->first; child; child = child->next) {
		size_t n = strspn(child->key, allowed);

		if (child->earlier)
			report_duplicate(walk, child, path);
		else if (n == 0 || n > max || child->key[n])
			ob_diags_add(&walk->diags, child->key_at,
				     "'%.80s' is not a name in %s: use %s, at most %zu characters",
				     child->key, path, rule, max);
	}
	return true;
}

bool ob_walk_names(struct ob_walk *walk, struct ob_yaml *node, const char *path)
{
	return check_names(walk, node, path, LOWER, 64, "a-z, 0-9, '_' and '-'");
}

bool ob_walk_header_names(struct ob_walk *walk, struct ob_yaml *node, const char *path)
{
	return check_names(walk, node, path, ANY, 128, "letters, digits, '_', '-' and '.'");
}

bool ob_walk_text(struct ob_walk *walk, struct ob_yaml *node, const char *path, const char *what,
		  const char **ret_text)
{
	struct ob_err err = OB_ERR_INIT;

	if (node->kind != OB_YAML_SCALAR) {
		/* destination: {event_type} is a mapping to YAML. */
		const char *hint =
			node->flow && strcmp(what, "a text") == 0 ? "; put it in quotes" : "";
		ob_walk_fault(walk, node, "%s expects %s, not %s%s", path, what,
			      ob_yaml_kind_name(node), hint);
		return false;
	}
	if (ob_yaml_is_null(node)) {
		ob_walk_fault(walk, node, "%s expects %s, but nothing is there", path, what);
		return false;
	}
	int r = node->expanded ? 0 : ob_expand(node->text, walk->arena, &node->expanded, &err);
	if (r == OUTBOX_ENOMEM)
		walk->failed = true;
	else if (r < 0)
		ob_walk_fault(walk, node, "%s: %s", path, err.msg);
	if (r < 0)
		return false;
	*ret_text = node->expanded;
	return true;
}

const char *ob_walk_keep(struct ob_walk *walk, const char *text)
{
	const char *copy = text ? ob_arena_strdup(walk->arena, text) : NULL;

	walk->failed |= text && !copy;
	return copy;
}

/* ---- what is written -------------------------------------------------- */

static void add_written(struct ob_buf *out, const struct ob_yaml *node);

/* By name: the order of keys has no meaning. Each comes with its length, so that none looks like
 * two. */
static void add_keys(struct ob_buf *out, const struct ob_yaml *node)
{
	const char *last = "";

	for (size_t i = 0; i < node->count; i++) {
		const struct ob_yaml *next = NULL;

		for (const struct ob_yaml *child = node->first; child; child = child->next) {
			if (!child->earlier && strcmp(child->key, last) > 0 &&
			    (!next || strcmp(child->key, next->key) < 0))
				next = child;
		}
		if (!next)
			return;
		ob_buf_addf(out, "%zu:%s=", strlen(next->key), next->key);
		add_written(out, next);
		last = next->key;
	}
}

static void add_written(struct ob_buf *out, const struct ob_yaml *node)
{
	const char *text;

	switch (node->kind) {
	case OB_YAML_SCALAR:
		text = node->expanded ? node->expanded : node->text;
		ob_buf_addf(out, "%s%zu:%s;", ob_yaml_is_null(node) ? "~" : "", strlen(text), text);
		return;
	case OB_YAML_LIST:
		ob_buf_addc(out, '[');
		for (const struct ob_yaml *child = node->first; child; child = child->next)
			add_written(out, child);
		ob_buf_addc(out, ']');
		return;
	case OB_YAML_MAPPING:
		ob_buf_addc(out, '{');
		add_keys(out, node);
		ob_buf_addc(out, '}');
		return;
	}
}

const char *ob_walk_written(struct ob_walk *walk, const struct ob_yaml *node)
{
	struct ob_buf out = OB_BUF_INIT(WRITTEN_MAX);

	if (node)
		add_written(&out, node);
	walk->failed |= out.failed;

	const char *copy = ob_walk_keep(walk, ob_buf_str(&out));

	ob_buf_done(&out);
	return copy;
}

/* ---- options ----------------------------------------------------------- */

static const char *expectation(const struct ob_opt *opt)
{
	switch (opt->type) {
	case OB_OPT_BOOL:
		return "true or false";
	case OB_OPT_U32:
	case OB_OPT_I32:
	case OB_OPT_DOUBLE:
		return "a number";
	case OB_OPT_SIZE:
		return "a size";
	case OB_OPT_DURATION_MS:
		return "a duration";
	case OB_OPT_STR:
	case OB_OPT_ENUM:
		break;
	}
	return "a text";
}

static void read_option(struct ob_walk *walk, struct ob_yaml *node, const char *path,
			const struct ob_opt *opt, void *base)
{
	struct ob_err err = OB_ERR_INIT;
	char full[OB_PATH_SIZE];
	const char *text;

	ob_walk_path(full, path, opt->name);
	if (!ob_walk_text(walk, node, full, expectation(opt), &text))
		return;
	int r = ob_opt_set(opt, base, opt->name, text, &err);
	if (r == OUTBOX_ENOMEM)
		walk->failed = true;
	else if (r < 0)
		ob_walk_fault(walk, node, "%s%s%s", path, *path ? "." : "", err.msg);
	else if ((opt->flags & OB_OPT_REQUIRED) && !*text)
		ob_walk_fault(walk, node, "%s must not be empty", full);
}

void ob_walk_options(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		     const struct ob_opt *opts, void *base)
{
	for (const struct ob_opt *opt = opts; opt && opt->name; opt++) {
		struct ob_yaml *child = ob_yaml_get(node, opt->name);

		if (child)
			read_option(walk, child, path, opt, base);
		else if (opt->flags & OB_OPT_REQUIRED)
			ob_diags_add(&walk->diags, ob_walk_place(node), "%s needs '%s'", path,
				     opt->name);
	}
}

void ob_walk_fill(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		  const struct ob_section *section, void *base)
{
	bool mapping = ob_walk_is_mapping(walk, node, path);

	if (mapping)
		ob_walk_keys(walk, node, path, section, NULL);
	if (mapping || !node || ob_yaml_is_null(node))
		ob_walk_options(walk, node, path, section->opts, base);
	/* In the table's order, not the file's: relays need to know stores and sinks. */
	for (const struct ob_section *s = section->sections; s && s->name; s++) {
		struct ob_yaml *child = mapping ? ob_yaml_get(node, s->name) : NULL;
		char full[OB_PATH_SIZE];

		ob_walk_path(full, path, s->name);
		if (s->read)
			s->read(walk, child, full, s, base);
		else if (child)
			ob_walk_fill(walk, child, full, s, base);
	}
}
