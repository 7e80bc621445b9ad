/* SPDX-License-Identifier: MIT */
/* A struct as a JSON object, by its table. */
#include "base/json.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "base/when.h"
#include "lib/fail.h"
#include "lib/serialize/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static int write_fields(const struct outbox_field *fields, const char *from, struct ob_buf *b,
			struct outbox_error *err);

static int64_t signed_at(const void *p, size_t size)
{
	switch (size) {
	case 1:
		return *(const int8_t *)p;
	case 2:
		return *(const int16_t *)p;
	case 4:
		return *(const int32_t *)p;
	default:
		return *(const int64_t *)p;
	}
}

static uint64_t unsigned_at(const void *p, size_t size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		return *(const uint16_t *)p;
	case 4:
		return *(const uint32_t *)p;
	default:
		return *(const uint64_t *)p;
	}
}

static int no_json(const struct outbox_field *field, const char *what, struct outbox_error *err)
{
	return ob_fail(err, OUTBOX_EPAYLOADJSON, OUTBOX_NO_INDEX, "member '%.60s' %s", field->name,
		       what);
}

static bool reads_as(const char *text, double value)
{
	double back = strtod(text, NULL);

	return !(back < value) && !(back > value);
}

/* The shortest text that reads as the same number. */
static int write_double(const struct outbox_field *field, double value, struct ob_buf *b,
			struct outbox_error *err)
{
	char text[40];

	if (!isfinite(value))
		return no_json(field, "is not a finite number: JSON has no other", err);
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (reads_as(text, value))
			break;
	}
	/* The locale of the program may have a comma. */
	char *comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	ob_buf_adds(b, text);
	return 0;
}

static int write_text(const struct outbox_field *field, struct ob_str text, struct ob_buf *b,
		      struct outbox_error *err)
{
	if (text.p && !ob_utf8_valid(text))
		return no_json(field, "is not valid UTF-8", err);
	ob_json_add_string(b, text);
	return 0;
}

static int write_json(const struct outbox_field *field, const char *json, struct ob_buf *b,
		      struct outbox_error *err)
{
	if (json && !ob_json_valid(ob_str(json), NULL))
		return no_json(field, "is not valid JSON", err);
	ob_buf_adds(b, json ? json : "null");
	return 0;
}

/* Texts that are made of numbers. */
static void write_made(const struct outbox_field *field, const void *at, struct ob_buf *b)
{
	char text[OB_UUID_TEXT_SIZE];

	if (field->kind == OUTBOX_TIME)
		ob_when_iso(*(const int64_t *)at, text);
	else
		ob_uuid_format(at, text);
	ob_json_add_string(b, ob_str(text));
}

static int write_value(const struct outbox_field *field, const void *at, struct ob_buf *b,
		       struct outbox_error *err)
{
	switch (field->kind) {
	case OUTBOX_TEXT:
		return write_text(field, ob_str(*(const char *const *)at), b, err);
	case OUTBOX_CHARS:
		return write_text(field, (struct ob_str){ at, strnlen(at, field->size) }, b, err);
	case OUTBOX_INTEGER:
		ob_buf_addf(b, "%" PRId64, signed_at(at, field->size));
		return 0;
	case OUTBOX_UNSIGNED:
		ob_buf_addf(b, "%" PRIu64, unsigned_at(at, field->size));
		return 0;
	case OUTBOX_DOUBLE:
		return write_double(field, *(const double *)at, b, err);
	case OUTBOX_BOOLEAN:
		ob_buf_adds(b, unsigned_at(at, field->size) ? "true" : "false");
		return 0;
	case OUTBOX_TIME:
	case OUTBOX_UUID:
		write_made(field, at, b);
		return 0;
	case OUTBOX_JSON:
		return write_json(field, *(const char *const *)at, b, err);
	case OUTBOX_STRUCT:
		return write_fields(field->fields, at, b, err);
	default:
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "member '%.60s' has an unknown kind", field->name);
	}
}

static int write_array(const struct outbox_field *field, const char *from, struct ob_buf *b,
		       struct outbox_error *err)
{
	const char *values = from + field->offset;
	size_t count = field->count;
	int r = 0;

	if (field->array == 1) {
		values = *(const char *const *)(const void *)values;
		count = *(const size_t *)(const void *)(from + field->count);
	}
	ob_buf_addc(b, '[');
	for (size_t i = 0; i < count && r == 0; i++) {
		if (i > 0)
			ob_buf_addc(b, ',');
		r = write_value(field, values + i * field->size, b, err);
	}
	ob_buf_addc(b, ']');
	return r;
}

static bool is_absent(const struct outbox_field *field, const char *from)
{
	if (field->optional == 1)
		return !*(const bool *)(const void *)(from + field->has);
	return field->optional == 2 && !*(const void *const *)(const void *)(from + field->offset);
}

static int write_fields(const struct outbox_field *fields, const char *from, struct ob_buf *b,
			struct outbox_error *err)
{
	bool first = true;
	int r = 0;

	ob_buf_addc(b, '{');
	for (const struct outbox_field *f = fields; f->name && r == 0; f++) {
		if (is_absent(f, from))
			continue;
		if (!first)
			ob_buf_addc(b, ',');
		first = false;
		ob_json_add_string(b, ob_str(f->name));
		ob_buf_addc(b, ':');
		r = f->array ? write_array(f, from, b, err)
			     : write_value(f, from + f->offset, b, err);
	}
	ob_buf_addc(b, '}');
	return r;
}

int outbox_struct_write(const struct outbox_field *fields, const void *from, outbox_text *out,
			struct outbox_error *err)
{
	struct outbox_error unused;

	if (!err)
		err = &unused;
	int r = write_fields(fields, from, &out->b, err);
	if (r == 0 && out->b.failed)
		r = ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	return r;
}
