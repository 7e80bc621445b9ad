/* SPDX-License-Identifier: MIT */
/* Option tables: one row is the parser, the default, the check, the help and the manual page. */
#ifndef OB_BASE_OPT_H
#define OB_BASE_OPT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The C type of the field at `offset` stands behind each. */
enum ob_opt_type {
	OB_OPT_STR,         /* char *, owned by the struct; NULL when there is no default */
	OB_OPT_BOOL,        /* bool: true, false, yes, no, on, off */
	OB_OPT_U32,         /* uint32_t in min..max */
	OB_OPT_I32,         /* int32_t in min..max, which must be given */
	OB_OPT_SIZE,        /* int64_t bytes in min..max: 512, 64KB, 16MB, 1GB (powers of 1024) */
	OB_OPT_DURATION_MS, /* int64_t ms in min..max: 250ms, 15s, 5m, 168h, 7d; a bare number is ms
			     */
	OB_OPT_DOUBLE,      /* double in min..max */
	OB_OPT_ENUM,        /* int: the index in choices */
};

enum {
	OB_OPT_START = 1 << 0,  /* read at the start only: a reload does not change it */
	OB_OPT_SECRET = 1 << 1, /* never printed */
	OB_OPT_NEVER = 1 << 2,  /* a duration that may be "never", stored as OB_NEVER_MS */
	OB_OPT_REQUIRED = 1 << 3,
};

#define OB_NEVER_MS INT64_C(-1)

struct ob_opt {
	const char *name;
	enum ob_opt_type type;
	unsigned flags;
	size_t offset;
	const char *dflt;           /* text, parsed by the same code as the file's; NULL: zero */
	int64_t min, max;           /* both 0: the type's own range */
	const char *const *choices; /* ENUM: names, ending with NULL */
	const char *help;           /* one sentence */
};

/* The last row of a table has no name. */
/* clang-format off */
#define OB_OPT_END { .name = NULL }
/* clang-format on */

/* An option as text, before a table gives it meaning. */
struct ob_opt_value {
	const char *name, *value;
};

/*
 * Set `name` in the struct at `base`; the message names the option, what was
 * given and what may stand there.
 */
int ob_opt_set(const struct ob_opt *table, void *base, const char *name, const char *value,
	       struct ob_err *err);
/* The default of every row. */
int ob_opt_defaults(const struct ob_opt *table, void *base, struct ob_err *err);
/* Free the strings of a struct. */
void ob_opt_free(const struct ob_opt *table, void *base);
/* The row of that name, or NULL. */
const struct ob_opt *ob_opt_find(const struct ob_opt *table, const char *name);
/* The closest of the table's names within two edits, or NULL. */
const char *ob_opt_suggest(const struct ob_opt *table, const char *name);
/* Write what may stand there ("a duration from 1s to 24h, or never") into `out`. */
void ob_opt_describe(const struct ob_opt *opt, char *out, size_t size);

/* The closest of `count` names within two edits (a third of short names), or NULL. */
const char *ob_suggest(const char *name, const char *const *names, size_t count);

#endif
