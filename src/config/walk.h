/* SPDX-License-Identifier: MIT */
/*
 * Filling structs from YAML by tables. A section is a mapping with options and
 * further sections; everything that is wrong goes into the faults, nothing stops.
 */
#ifndef OB_CONFIG_WALK_H
#define OB_CONFIG_WALK_H

#include "base/opt.h"
#include "config/diag.h"

struct ob_walk {
	struct ob_diags diags;
	struct ob_arena *arena; /* what the result keeps */
	bool failed;            /* out of memory */
	char text[512];         /* the fault being written */
};

enum {
	OB_PATH_SIZE = 256,
	OB_WALK_ENTRIES_MAX = 1000, /* of a list, or of a mapping of names */
};

struct ob_section;

/* Read a section that is more than options into `base`. `node` is NULL when the file has none. */
typedef void ob_section_read_fn(struct ob_walk *walk, struct ob_yaml *node, const char *path,
				const struct ob_section *section, void *base);

/* A key of an earlier version: what to write instead. */
struct ob_gone {
	const char *name, *instead;
};

struct ob_section {
	const char *name;
	const struct ob_opt *opts;         /* may be NULL */
	const struct ob_section *sections; /* may be NULL; the last has no name */
	const struct ob_gone *gone;        /* may be NULL; the last has no name */
	ob_section_read_fn *read;          /* NULL: ob_walk_fill() */
	const char *example;               /* lines of YAML, for what is no plain mapping */
	const char *help;                  /* one sentence */
};

#define OB_SECTION_END \
	{ \
		.name = NULL \
	}

/* The default of every option of a section and of the plain sections in it. */
int ob_section_defaults(const struct ob_section *section, void *base, struct ob_err *err);

/* A fault of a value, at its place; marks the node. */
void ob_walk_fault(struct ob_walk *walk, struct ob_yaml *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Where a value is missed: at its key, or where it starts. NULL: the start of the file. */
struct ob_yaml_pos ob_walk_place(const struct ob_yaml *node);
/* "path.name", or "name" at the top. */
void ob_walk_path(char out[OB_PATH_SIZE], const char *path, const char *name);

/*
 * Is it a mapping? Nothing (NULL or an empty value) is an empty one: then and
 * on a fault, which is reported, false.
 */
bool ob_walk_is_mapping(struct ob_walk *walk, struct ob_yaml *node, const char *path);
/* Report duplicate keys, and keys that neither the section nor `more` (may be NULL) knows. */
void ob_walk_keys(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		  const struct ob_section *section, const struct ob_opt *more);
/* Report what has more entries than OB_WALK_ENTRIES_MAX. */
bool ob_walk_few_enough(struct ob_walk *walk, struct ob_yaml *node, const char *path);
/* Report duplicate keys and names that are not [a-z0-9_-]{1,64}; false: none can be read. */
bool ob_walk_names(struct ob_walk *walk, struct ob_yaml *node, const char *path);
/* The same for names of headers: letters of any case, digits, '-', '_', '.', at most 128. */
bool ob_walk_header_names(struct ob_walk *walk, struct ob_yaml *node, const char *path);
/* Is it a list, and not too long? Reported when not; `what` is what its entries are: "relay". */
bool ob_walk_is_list(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		     const char *what);
/*
 * What stands in the file below `node`, expanded, whatever its order, quotes and comments: two
 * readings with the same text configure the same. "" for nothing; may hold secrets.
 */
const char *ob_walk_written(struct ob_walk *walk, const struct ob_yaml *node);
/* A copy that the result keeps; NULL stays NULL. */
const char *ob_walk_keep(struct ob_walk *walk, const char *text);
/* Read a whole section: keys, options, required options, sections. */
void ob_walk_fill(struct ob_walk *walk, struct ob_yaml *node, const char *path,
		  const struct ob_section *section, void *base);
/* Read the options of a table; keys are not checked. */
void ob_walk_options(struct ob_walk *walk, const struct ob_yaml *node, const char *path,
		     const struct ob_opt *opts, void *base);
/*
 * The value of one scalar, expanded, in *ret_text (the walk's arena, or the
 * tree's). False and reported when it is no scalar or cannot be expanded.
 * `what` is what is expected: "a text". May be asked again.
 */
bool ob_walk_text(struct ob_walk *walk, struct ob_yaml *node, const char *path, const char *what,
		  const char **ret_text);

#endif
