/* SPDX-License-Identifier: MIT */
/* What a check of a database, a destination or a configuration found, as data. */
#ifndef OB_BASE_FINDING_H
#define OB_BASE_FINDING_H

#include "base/arena.h"

/* In this order: the worst decides. */
enum ob_level {
	OB_LEVEL_OK,
	OB_LEVEL_WARNING, /* works, and yet weakens a promise or will bite later */
	OB_LEVEL_ERROR,   /* does not work */
};

/* One check. Who makes findings has a table of these; the manual reads it too. */
struct ob_check {
	const char *code;   /* for programs: stable */
	const char *what;   /* what is checked, for the manual: one sentence */
	const char *advice; /* what to do when it is not ok: lower case, no full stop */
};

/* The last row of a table has no code. */
/* clang-format off */
#define OB_CHECK_END { .code = NULL }
/* clang-format on */

struct ob_finding {
	const struct ob_check *check;
	enum ob_level level;
	struct ob_str subject; /* a store, a sink, a reader ...; "": what is being checked */
	struct ob_str text;    /* one lowercase line without a full stop */
};

enum { OB_FINDINGS_MAX = 4096 };

/* A growing list. A failed add sets `failed` and turns every later one into a no-op. */
struct ob_findings {
	struct ob_arena arena;
	struct ob_finding *list; /* the arena's */
	size_t count, room;
	const char *subject; /* of findings that name none; borrowed */
	bool failed;
};

void ob_findings_init(struct ob_findings *findings);
void ob_findings_done(struct ob_findings *findings);
/* One about findings->subject. */
void ob_finding_add(struct ob_findings *findings, const struct ob_check *check, enum ob_level level,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The worst of them; OK when there is none. */
enum ob_level ob_findings_worst(const struct ob_findings *findings);
/* How many have that level. */
size_t ob_findings_count(const struct ob_findings *findings, enum ob_level level);
/* "ok", "warning", "error" */
const char *ob_level_name(enum ob_level level);

#endif
