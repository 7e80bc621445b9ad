/* SPDX-License-Identifier: MIT */
/*
 * The members of a report that one process writes into the database and others read: a table gives
 * each its name and its place in a struct. What is zero is not written; what is unknown is passed
 * over, so that versions that differ can read each other.
 */
#ifndef OB_BASE_REPORT_FIELD_H
#define OB_BASE_REPORT_FIELD_H

#include "base/jout.h"
#include "base/json_read.h"

enum ob_field_kind {
	OB_FIELD_TEXT,   /* char[] */
	OB_FIELD_NUMBER, /* int64_t or uint64_t */
	OB_FIELD_KNOWN,  /* int64_t; -1: unknown, and not written */
	OB_FIELD_WHEN,   /* int64_t: microseconds since 1970; its name ends in _us */
	OB_FIELD_RATE,   /* double */
	OB_FIELD_FLAG,   /* bool */
};

struct ob_field {
	const char *name;
	enum ob_field_kind kind;
	size_t offset, size;
};

#define OB_FIELD(type, member, as) \
	{ \
		.name = #member, .kind = OB_FIELD_##as, .offset = offsetof(type, member), \
		.size = sizeof(((type *)0)->member) \
	}

/* Append what is set, as members of the open object. Texts are safe as they are. */
void ob_fields_write(struct ob_jout *j, const struct ob_field *fields, size_t count,
		     const void *from);
/* Read them out of an object's text; what is not in it is zero, or unknown. False: it is none. */
bool ob_fields_read(const struct ob_field *fields, size_t count, struct ob_str text, void *to);
/* Append all of them for programs: an empty text is null, a time is ISO 8601 (and its name
 * has no _us), unknown is -1. */
void ob_fields_json(struct ob_jout *j, const struct ob_field *fields, size_t count,
		    const void *from);

/* Single values, for reports that nest. What does not fit the type leaves 0 or "". */
bool ob_field_is(const struct ob_json_member *member, const char *name);
void ob_field_read_text(char *out, size_t size, struct ob_str raw);
int64_t ob_field_read_number(struct ob_str raw);
double ob_field_read_rate(struct ob_str raw);
void ob_field_write_rate(struct ob_jout *j, const char *key, double rate);

#endif
