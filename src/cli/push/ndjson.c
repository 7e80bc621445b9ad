/* SPDX-License-Identifier: MIT */
/* Values that must reach the consumer unchanged are cut out of the line, never rewritten. */
#include "cli/push/ndjson.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/opt.h"
#include "base/utf8.h"
#include "base/when.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum kind { TEXT, RAW, OBJECT, BASE64, INT32, INT64, DURATION, INSTANT, TOMBSTONE };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;      /* in struct outbox_message */
	size_t size_offset; /* of the size beside it: RAW, OBJECT, BASE64 */
	int64_t min, max;   /* INT32, INT64 */
	const char *help;
};

#define AT(member) offsetof(struct outbox_message, member)

static const struct field fields[] = {
	{ "aggregate_type", TEXT, AT(aggregate_type), 0, 0, 0, "The stream. Required." },
	{ "aggregate_id", TEXT, AT(aggregate_id), 0, 0, 0, "Which one of the stream." },
	{ "event_type", TEXT, AT(event_type), 0, 0, 0, "What happened. Required." },
	{ "payload", RAW, AT(payload), AT(payload_size), 0, 0,
	  "Any JSON value, stored byte for byte. Required, unless tombstone is true." },
	{ "payload_base64", BASE64, AT(payload), AT(payload_size), 0, 0,
	  "The payload as bytes in Base64, instead of payload." },
	{ "tombstone", TOMBSTONE, AT(flags), 0, 0, 0, "true: there is no payload on purpose." },
	{ "headers", OBJECT, AT(headers), AT(headers_size), 0, 0, "An object for the consumer." },
	{ "id", TEXT, AT(id), 0, 0, 0, "A UUID; one is made when it is left out." },
	{ "partition_key", TEXT, AT(partition_key), 0, 0, 0,
	  "The ordering key instead of type and id." },
	{ "target", TEXT, AT(target), 0, 0, 0,
	  "What it is for: the relays that read this target deliver it." },
	{ "correlation_id", TEXT, AT(correlation_id), 0, 0, 0, "For tracing." },
	{ "causation_id", TEXT, AT(causation_id), 0, 0, 0, "For tracing." },
	{ "sequence_number", INT64, AT(sequence_number), 0, 1, INT64_MAX,
	  "The position in the aggregate, from 1." },
	{ "revision", INT32, AT(revision), 0, 1, INT32_MAX,
	  "The version of the payload's schema, from 1." },
	{ "priority", INT32, AT(priority), 0, -32768, 32767,
	  "From -32768 to 32767, higher first." },
	{ "delay", DURATION, AT(delay_ms), 0, 0, OB_DELAY_MAX_MS,
	  "Deliver no sooner than this: \"5s\", or a number of milliseconds." },
	{ "occurred_at", INSTANT, AT(occurred_at_us), 0, 1, INT64_MAX,
	  "RFC 3339, or microseconds since 1970 UTC." },
	{ "snapshot", RAW, AT(snapshot), AT(snapshot_size), 0, 0,
	  "Any JSON value: the aggregate's state at this event." },
};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

struct reader {
	struct ob_arena *arena;
	struct outbox_message message;
	bool seen[FIELD_COUNT];
	struct ob_err *err;
};

static int fail(struct reader *r, const char *key, const char *what)
{
	return ob_err_set(r->err, OUTBOX_EINVAL, OB_ERR_REJECT, "%s: %s", key, what);
}

static int no_memory(struct reader *r)
{
	return ob_err_set(r->err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
}

/* Decode a string with its quotes. No text column of any database can hold a NUL. */
static int decode(struct reader *r, const char *key, struct ob_str raw, struct ob_str *ret)
{
	char *out = ob_arena_alloc(r->arena, raw.n);

	if (!out)
		return no_memory(r);
	size_t n = ob_json_decode(raw, out);
	if (memchr(out, '\0', n))
		return fail(r, key, "the text contains a NUL");
	out[n] = '\0';
	*ret = (struct ob_str){ out, n };
	return 0;
}

static int set_text(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	struct ob_str text;

	if (*raw.p != '"')
		return fail(r, f->name, "it is not a string");
	int s = decode(r, f->name, raw, &text);
	if (s < 0)
		return s;
	*(const char **)at = text.p;
	return 0;
}

static void set_bytes(struct reader *r, const struct field *f, struct ob_str bytes, void *at)
{
	*(const char **)at = bytes.p;
	*(size_t *)((char *)&r->message + f->size_offset) = bytes.n;
}

static int set_raw(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	struct ob_str copy;

	if (f->kind == OBJECT && *raw.p != '{')
		return fail(r, f->name, "it is not an object");
	if (!ob_arena_copy(r->arena, raw, &copy))
		return no_memory(r);
	set_bytes(r, f, copy, at);
	return 0;
}

static int set_base64(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	struct ob_str text;
	size_t n;

	if (*raw.p != '"')
		return fail(r, f->name, "it is not a string");
	int s = decode(r, f->name, raw, &text);
	if (s < 0)
		return s;
	char *out = ob_arena_alloc(r->arena, OB_BASE64_DECODED_MAX(text.n) + 1);
	if (!out)
		return no_memory(r);
	if (!ob_base64_decode(text, out, &n))
		return fail(r, f->name, "it is not Base64");
	out[n] = '\0';
	set_bytes(r, f, (struct ob_str){ out, n }, at);
	return 0;
}

/* A whole number without fraction or exponent. */
static bool parse_int(struct ob_str raw, int64_t *ret)
{
	char text[24];
	char *end;

	if (raw.n >= sizeof(text))
		return false;
	memcpy(text, raw.p, raw.n);
	text[raw.n] = '\0';
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno || *end || end == text)
		return false;
	*ret = v;
	return true;
}

static int set_int(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	int64_t v;

	if (!parse_int(raw, &v) || v < f->min || v > f->max)
		return ob_err_set(r->err, OUTBOX_EINVAL, OB_ERR_REJECT,
				  "%s: %.*s is not a number from %" PRId64 " to %" PRId64, f->name,
				  raw.n < 40 ? (int)raw.n : 40, raw.p, f->min, f->max);
	if (f->kind == INT32)
		*(int32_t *)at = (int32_t)v;
	else
		*(int64_t *)at = v;
	return 0;
}

static int set_duration(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	const struct ob_opt row[] = {
		{ .name = f->name, .type = OB_OPT_DURATION_MS, .min = f->min, .max = f->max },
		OB_OPT_END,
	};
	struct ob_str text = raw, copy;
	int64_t ms;
	int s = *raw.p == '"' ? decode(r, f->name, raw, &text) : 0;

	if (s < 0)
		return s;
	if (!ob_arena_copy(r->arena, text, &copy))
		return no_memory(r);
	if (ob_opt_set(row, &ms, f->name, copy.p, r->err) < 0) {
		r->err->status = OUTBOX_EINVAL;
		r->err->kind = OB_ERR_REJECT;
		return OUTBOX_EINVAL;
	}
	*(uint64_t *)at = (uint64_t)ms;
	return 0;
}

static int set_instant(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	struct ob_str text;

	if (*raw.p != '"')
		return set_int(r, f, raw, at);
	int s = decode(r, f->name, raw, &text);
	if (s < 0)
		return s;
	if (!ob_when_parse(text, at))
		return fail(r, f->name, "it is not a time such as 2026-05-01T12:00:00Z");
	return 0;
}

static int set_tombstone(struct reader *r, const struct field *f, struct ob_str raw, void *at)
{
	if (*raw.p != 't' && *raw.p != 'f')
		return fail(r, f->name, "it is not true or false");
	if (*raw.p == 't')
		*(unsigned *)at |= OUTBOX_TOMBSTONE;
	return 0;
}

static int set_field(struct reader *r, const struct field *f, struct ob_str raw)
{
	void *at = (char *)&r->message + f->offset;

	/* null is "left out", but as a payload or snapshot it is a value like any other */
	if (*raw.p == 'n' && f->kind != RAW)
		return 0;
	switch (f->kind) {
	case TEXT:
		return set_text(r, f, raw, at);
	case RAW:
	case OBJECT:
		return set_raw(r, f, raw, at);
	case BASE64:
		return set_base64(r, f, raw, at);
	case INT32:
	case INT64:
		return set_int(r, f, raw, at);
	case DURATION:
		return set_duration(r, f, raw, at);
	case INSTANT:
		return set_instant(r, f, raw, at);
	case TOMBSTONE:
		return set_tombstone(r, f, raw, at);
	}
	return 0;
}

static int unknown_key(struct reader *r, struct ob_str key)
{
	const char *names[FIELD_COUNT];

	for (size_t i = 0; i < FIELD_COUNT; i++)
		names[i] = fields[i].name;
	const char *near = ob_suggest(key.p, names, FIELD_COUNT);
	return ob_err_set(r->err, OUTBOX_EINVAL, OB_ERR_REJECT, "unknown key '%.80s'%s%s%s", key.p,
			  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int read_member(struct reader *r, const struct ob_json_member *member)
{
	struct ob_str key = OB_STR("");
	size_t i = 0;

	int s = decode(r, "a key", member->name, &key);
	if (s < 0)
		return s;
	while (i < FIELD_COUNT && strcmp(fields[i].name, key.p) != 0)
		i++;
	if (i == FIELD_COUNT)
		return unknown_key(r, key);
	if (r->seen[i])
		return fail(r, key.p, "it is given twice");
	r->seen[i] = true;
	return set_field(r, &fields[i], member->value);
}

/* What must be there, and a payload that is given in one way only. */
static int check_whole(struct reader *r)
{
	const struct outbox_message *m = &r->message;
	bool json = false, base64 = false;

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		json |= r->seen[i] && strcmp(fields[i].name, "payload") == 0;
		base64 |= r->seen[i] && fields[i].kind == BASE64;
	}
	if (json && base64)
		return fail(r, "payload_base64", "there is a payload already");
	if ((m->flags & OUTBOX_TOMBSTONE) && m->payload)
		return fail(r, "tombstone", "there is a payload");
	if (!m->aggregate_type || !m->event_type)
		return ob_err_set(r->err, OUTBOX_EINVAL, OB_ERR_REJECT, "%s is missing",
				  m->aggregate_type ? "event_type" : "aggregate_type");
	if (!m->payload && !(m->flags & OUTBOX_TOMBSTONE))
		return ob_err_set(r->err, OUTBOX_EINVAL, OB_ERR_REJECT,
				  "payload is missing; \"tombstone\": true says there is none");
	return 0;
}

const char *ob_ndjson_key(size_t index, const char **ret_help)
{
	if (index >= FIELD_COUNT)
		return NULL;
	*ret_help = fields[index].help;
	return fields[index].name;
}

static int read_object(struct reader *r, struct ob_str line)
{
	struct ob_json_cursor cursor;
	struct ob_json_member member;

	ob_json_begin(&cursor, line);
	while (ob_json_next(&cursor, &member)) {
		int s = read_member(r, &member);
		if (s < 0)
			return s;
	}
	return check_whole(r);
}

/* The message quotes the line, and a line can hold anything: make it one safe line. */
static void make_safe(struct ob_err *err)
{
	struct ob_buf safe = OB_BUF_INIT(sizeof(err->msg) * 4);

	ob_utf8_sanitize(&safe, ob_str(err->msg), sizeof(err->msg));
	(void)snprintf(err->msg, sizeof(err->msg), "%s", ob_buf_str(&safe));
	ob_buf_done(&safe);
}

int ob_ndjson_read(struct ob_str line, struct ob_arena *arena, struct outbox_message *ret,
		   struct ob_err *err)
{
	struct reader r = { .arena = arena, .err = err };
	struct ob_json_fault fault;

	if (!ob_json_valid_object(line, &fault))
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_REJECT, "column %zu: %s",
				  fault.offset + 1, fault.what);
	int s = read_object(&r, line);
	if (s < 0)
		make_safe(err);
	else
		*ret = r.message;
	return s;
}
