/* SPDX-License-Identifier: MIT */
/*
 * Text with fields of a message in it, for routes:
 *
 *   orders.{event_type}        a field
 *   {headers.tenant|public}    a stored header, or this text when the message has none
 *   {{literal}}                doubled braces stand for themselves
 */
#ifndef OB_BASE_TEMPLATE_H
#define OB_BASE_TEMPLATE_H

#include "base/err.h"
#include "base/headers.h"

enum { OB_TEMPLATE_PARTS = 32 };

/* All fields by name; headers.NAME comes on top. */
#define OB_FIELD_MAP(X) \
	X(ID, "id") \
	X(AGGREGATE_TYPE, "aggregate_type") \
	X(AGGREGATE_ID, "aggregate_id") \
	X(EVENT_TYPE, "event_type") \
	X(REVISION, "revision") \
	X(SEQUENCE_NUMBER, "sequence_number") \
	X(TARGET, "target") \
	X(PARTITION_KEY, "partition_key") \
	X(KEY, "key") \
	X(PRIORITY, "priority") \
	X(CORRELATION_ID, "correlation_id") \
	X(CAUSATION_ID, "causation_id") \
	X(SEQ, "seq") \
	X(OCCURRED_AT, "occurred_at")

enum ob_field {
#define X(name, text) OB_FIELD_##name,
	OB_FIELD_MAP(X)
#undef X
		OB_FIELD_COUNT,
	OB_FIELD_HEADER = OB_FIELD_COUNT,
	OB_FIELD_LITERAL,
};

/* Their names, NULL at the end. */
extern const char *const ob_field_names[];

struct ob_template_part {
	enum ob_field field;
	struct ob_str text;     /* LITERAL: itself; else the name, "headers.tenant" */
	struct ob_str fallback; /* p NULL: none */
};

struct ob_template {
	struct ob_template_part *parts; /* NULL: no template */
	size_t count;
	bool reads_headers;
};

/*
 * Take a text apart. The parts are the arena's and borrow from `text`, which must outlive
 * them. OUTBOX_ECONFIG says what is wrong, with the closest name of a field; OUTBOX_ENOMEM.
 */
int ob_template_parse(const char *text, struct ob_arena *arena, struct ob_template *ret,
		      struct ob_err *err);

/* What a template is filled from: the stored headers one by one, where one reads them. */
struct ob_template_input {
	const struct ob_message *message;
	const struct ob_header *headers;
	size_t header_count;
};

/*
 * Fill it. *ret is borrowed from the message, the template or the arena. When a field
 * has no value and no fallback, *ret is absent and *ret_missing is the field's name. False
 * when out of memory.
 */
bool ob_template_fill(const struct ob_template *template, const struct ob_template_input *input,
		      struct ob_arena *arena, struct ob_str *ret, struct ob_str *ret_missing);

#endif
