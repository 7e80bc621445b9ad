/* SPDX-License-Identifier: MIT */
/* A JSON object into a struct, by its table. */
#include "base/json.h"
#include "base/json_read.h"
#include "base/uuid.h"
#include "base/when.h"
#include "lib/fail.h"
#include "lib/serialize/text.h"

#include <errno.h>
#include <stdlib.h>

static int read_fields(const struct outbox_field *fields, struct ob_str object, char *to,
		       struct ob_arena *arena, struct outbox_error *err);

static int wrong(const struct outbox_field *field, const char *what, struct outbox_error *err)
{
	return ob_fail(err, OUTBOX_EPAYLOADJSON, OUTBOX_NO_INDEX, "member '%.60s' %s", field->name,
		       what);
}

static int out_of_memory(struct outbox_error *err)
{
	return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
}

static bool is_null(struct ob_str raw)
{
	return ob_str_eq(raw, OB_STR("null"));
}

/* The string of a value, in the arena. */
static int read_string(const struct outbox_field *field, struct ob_str raw, struct ob_arena *arena,
		       struct ob_str *ret, struct outbox_error *err)
{
	if (raw.p[0] != '"')
		return wrong(field, "is not a string", err);
	char *text = ob_arena_alloc(arena, raw.n + 1);
	if (!text)
		return out_of_memory(err);
	*ret = (struct ob_str){ text, ob_json_decode(raw, text) };
	if (memchr(text, '\0', ret->n))
		return wrong(field, "has a NUL in it", err);
	return 0;
}

static void put_integer(void *at, size_t size, uint64_t bits)
{
	/* All our machines keep the low bytes first or have the size in the type. */
	switch (size) {
	case 1:
		*(uint8_t *)at = (uint8_t)bits;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)bits;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)bits;
		break;
	default:
		*(uint64_t *)at = bits;
	}
}

/* A number's text ends where the document goes on: a copy has a NUL. */
static bool copy_number(struct ob_str raw, char out[64])
{
	if (raw.n == 0 || raw.n >= 64 || !strchr("-0123456789", raw.p[0]))
		return false;
	memcpy(out, raw.p, raw.n);
	out[raw.n] = '\0';
	return true;
}

static int read_integer(const struct outbox_field *field, struct ob_str raw, void *at,
			struct outbox_error *err)
{
	unsigned bits = field->size < 8 ? (unsigned)field->size * 8 : 64;
	char text[64], *end = NULL;

	if (!copy_number(raw, text))
		return wrong(field, "is not a number", err);
	errno = 0;
	if (field->kind == OUTBOX_INTEGER) {
		int64_t v = strtoll(text, &end, 10);
		int64_t top = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;

		if (errno || *end || v > top || v < -top - 1)
			return wrong(field, "is not an integer that fits", err);
		put_integer(at, field->size, (uint64_t)v);
		return 0;
	}
	uint64_t v = strtoull(text, &end, 10);
	uint64_t top = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	if (errno || *end || text[0] == '-' || v > top)
		return wrong(field, "is not an unsigned integer that fits", err);
	put_integer(at, field->size, v);
	return 0;
}

/* The digits of JSON whatever the locale: strtod() would want its own decimal point. */
static int read_double(const struct outbox_field *field, struct ob_str raw, double *at,
		       struct outbox_error *err)
{
	char text[64], *end = NULL;

	if (!copy_number(raw, text))
		return wrong(field, "is not a number", err);
	*at = strtod(text, &end);
	if (*end == '.') {
		*end = ',';
		*at = strtod(text, &end);
	}
	return *end ? wrong(field, "is not a number", err) : 0;
}

static int read_boolean(const struct outbox_field *field, struct ob_str raw, void *at,
			struct outbox_error *err)
{
	bool yes = ob_str_eq(raw, OB_STR("true"));

	if (!yes && !ob_str_eq(raw, OB_STR("false")))
		return wrong(field, "is neither true nor false", err);
	put_integer(at, field->size, yes);
	return 0;
}

static int read_text(const struct outbox_field *field, struct ob_str raw, char *at,
		     struct ob_arena *arena, struct outbox_error *err)
{
	struct ob_str text;
	struct ob_uuid id;

	if (is_null(raw) && field->kind == OUTBOX_TEXT)
		return 0;
	int r = read_string(field, raw, arena, &text, err);
	if (r < 0)
		return r;
	if (field->kind == OUTBOX_TEXT) {
		memcpy(at, &text.p, sizeof(text.p));
	} else if (field->kind == OUTBOX_CHARS) {
		if (text.n >= field->size)
			return wrong(field, "is longer than its place", err);
		memcpy(at, text.p, text.n);
		at[text.n] = '\0';
	} else if (field->kind == OUTBOX_TIME) {
		int64_t us;

		if (!ob_when_parse(text, &us))
			return wrong(field, "is no time: 2026-05-01T12:00:00Z", err);
		memcpy(at, &us, sizeof(us));
	} else {
		if (!ob_uuid_parse(text, &id))
			return wrong(field, "is no UUID", err);
		memcpy(at, id.b, sizeof(id.b));
	}
	return 0;
}

static int read_raw(struct ob_str raw, char *at, struct ob_arena *arena, struct outbox_error *err)
{
	struct ob_str copy;

	if (!ob_arena_copy(arena, raw, &copy))
		return out_of_memory(err);
	memcpy(at, &copy.p, sizeof(copy.p));
	return 0;
}

static int read_value(const struct outbox_field *field, struct ob_str raw, char *at,
		      struct ob_arena *arena, struct outbox_error *err)
{
	switch (field->kind) {
	case OUTBOX_INTEGER:
	case OUTBOX_UNSIGNED:
		return read_integer(field, raw, at, err);
	case OUTBOX_DOUBLE:
		return read_double(field, raw, (double *)(void *)at, err);
	case OUTBOX_BOOLEAN:
		return read_boolean(field, raw, at, err);
	case OUTBOX_JSON:
		return read_raw(raw, at, arena, err);
	case OUTBOX_STRUCT:
		if (raw.p[0] != '{')
			return wrong(field, "is not an object", err);
		return read_fields(field->fields, raw, at, arena, err);
	case OUTBOX_TEXT:
	case OUTBOX_CHARS:
	case OUTBOX_TIME:
	case OUTBOX_UUID:
	default:
		return read_text(field, raw, at, arena, err);
	}
}

static size_t count_items(struct ob_str array)
{
	struct ob_json_cursor c;
	struct ob_str item;
	size_t n = 0;

	ob_json_begin(&c, array);
	while (ob_json_next_item(&c, &item))
		n++;
	return n;
}

static int read_array(const struct outbox_field *field, struct ob_str raw, char *to,
		      struct ob_arena *arena, struct outbox_error *err)
{
	if (raw.p[0] != '[')
		return wrong(field, "is not a list", err);
	size_t count = count_items(raw), i = 0;
	char *values = to + field->offset;
	if (field->array == 1) {
		values = ob_arena_alloc(arena, (count + 1) * field->size);
		if (!values)
			return out_of_memory(err);
		memcpy(to + field->offset, &values, sizeof(values));
		memcpy(to + field->count, &count, sizeof(count));
	} else if (count > field->count) {
		return wrong(field, "has more values than there is room for", err);
	}
	struct ob_json_cursor c;
	struct ob_str item;
	int r = 0;

	ob_json_begin(&c, raw);
	while (r == 0 && ob_json_next_item(&c, &item))
		r = read_value(field, item, values + i++ * field->size, arena, err);
	return r;
}

/* The last of several with one name, as most readers of JSON have it. */
static bool find_member(struct ob_str object, const char *name, struct ob_arena *arena,
			struct ob_str *ret)
{
	struct ob_json_cursor c;
	struct ob_json_member m;
	bool found = false;

	ob_json_begin(&c, object);
	while (ob_json_next(&c, &m)) {
		char *plain = ob_arena_alloc(arena, m.name.n + 1);
		size_t n = plain ? ob_json_decode(m.name, plain) : 0;

		if (plain && n == strlen(name) && memcmp(plain, name, n) == 0) {
			*ret = m.value;
			found = true;
		}
	}
	return found;
}

static int read_fields(const struct outbox_field *fields, struct ob_str object, char *to,
		       struct ob_arena *arena, struct outbox_error *err)
{
	int r = 0;

	for (const struct outbox_field *f = fields; f->name && r == 0; f++) {
		struct ob_str raw;
		bool found = find_member(object, f->name, arena, &raw);

		if (f->optional && (!found || is_null(raw)))
			continue;
		if (!found)
			return wrong(f, "is missing", err);
		if (f->optional == 1)
			*(bool *)(void *)(to + f->has) = true;
		r = f->array ? read_array(f, raw, to, arena, err)
			     : read_value(f, raw, to + f->offset, arena, err);
	}
	return r;
}

int outbox_struct_read(const struct outbox_field *fields, const void *json, size_t size, void *to,
		       outbox_text *memory, struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_json_fault fault = { 0, "there is no text" };
	const struct ob_str text = { json, size ? size : json ? strlen(json) : 0 };

	if (!err)
		err = &unused;
	if (!json || !ob_json_valid_object(text, &fault))
		return ob_fail(err, OUTBOX_EPAYLOADJSON, OUTBOX_NO_INDEX,
			       "this is no JSON object: %s at byte %zu", fault.what, fault.offset);
	return read_fields(fields, text, to, &memory->arena, err);
}
