/* SPDX-License-Identifier: MIT */
/*
 * YAML as a small tree that knows where everything stood. A subset on
 * purpose: one document, no anchors, aliases, tags or merge keys.
 */
#ifndef OB_BASE_YAML_H
#define OB_BASE_YAML_H

#include "base/arena.h"
#include "base/err.h"

enum {
	OB_YAML_SIZE_MAX = 1 << 20, /* bytes of a file */
	OB_YAML_DEPTH_MAX = 32,
	OB_YAML_NODES_MAX = 20000,
	OB_YAML_ARENA_MAX = 16 << 20, /* what a tree within these limits may need */
};

/* From 1, columns in characters, as editors count; line 0: no place. */
struct ob_yaml_pos {
	uint32_t line, col;
};

enum ob_yaml_kind { OB_YAML_SCALAR, OB_YAML_LIST, OB_YAML_MAPPING };

struct ob_yaml {
	enum ob_yaml_kind kind;
	struct ob_yaml_pos at;
	const char *text; /* SCALAR: UTF-8 without NULs inside */
	bool plain;       /* SCALAR: without quotes */
	bool flow;        /* LIST, MAPPING: written as [] or {} */

	/* The reader's own: something is wrong with it; what it became after expansion. */
	bool faulty;
	const char *expanded;

	/* In a mapping: */
	const char *key;
	struct ob_yaml_pos key_at;
	const struct ob_yaml *earlier; /* a value before it with the same key, else NULL */

	struct ob_yaml *first, *next; /* LIST, MAPPING: children in the order of the file */
	size_t count;
};

/*
 * Build the tree of a document; everything in it is the arena's. A document
 * without content gives *ret_root NULL. A fault is OUTBOX_ECONFIG and *ret_at
 * says where; *ret_at is written on failure only. Duplicate keys are no fault
 * here: they are marked by `earlier`.
 */
int ob_yaml_parse(struct ob_str text, struct ob_arena *arena, struct ob_yaml **ret_root,
		  struct ob_yaml_pos *ret_at, struct ob_err *err);

/* The first value under `key`; NULL when there is none or `node` is no mapping (or NULL). */
struct ob_yaml *ob_yaml_get(const struct ob_yaml *node, const char *key);
/* Nothing, ~ or null, without quotes. */
bool ob_yaml_is_null(const struct ob_yaml *node);
/* "a mapping", "a list", "a text". */
const char *ob_yaml_kind_name(const struct ob_yaml *node);

#endif
