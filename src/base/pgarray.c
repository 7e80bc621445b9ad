/* SPDX-License-Identifier: MIT */
/* Header of five numbers (dimensions, has NULL, type, count, lower bound), then length and bytes of
 * each element. */
#include "base/pgarray.h"

enum { HEADER_SIZE = 20, EMPTY_SIZE = 12 };

static const uint32_t null_length = UINT32_MAX;

void ob_pg_put32(char *out, uint32_t value)
{
	for (int i = 3; i >= 0; i--, value >>= 8)
		out[i] = (char)(value & 0xff);
}

void ob_pg_put64(char *out, uint64_t value)
{
	ob_pg_put32(out, (uint32_t)(value >> 32));
	ob_pg_put32(out + 4, (uint32_t)value);
}

int64_t ob_pg_get(const char *in, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | (unsigned char)in[i];
	switch (size) {
	case 2:
		return (int16_t)value;
	case 4:
		return (int32_t)value;
	case 8:
		return (int64_t)value;
	default:
		return 0;
	}
}

uint32_t ob_pgarray_type(enum ob_pgtype type)
{
	switch (type) {
	case OB_PG_BYTEA:
		return 1001;
	case OB_PG_INT8:
		return 1016;
	case OB_PG_TEXT:
		return 1009;
	case OB_PG_JSON:
		return 199;
	case OB_PG_UUID:
		return 2951;
	}
	return 0; /* the server finds out */
}

void ob_pgarray_begin(struct ob_pgarray *array, enum ob_pgtype type)
{
	char header[HEADER_SIZE];

	array->data.max = (size_t)1 << 30; /* PostgreSQL takes no larger value */
	ob_buf_clear(&array->data);
	array->count = 0;
	array->has_null = false;
	ob_pg_put32(header, 1);
	ob_pg_put32(header + 4, 0);
	ob_pg_put32(header + 8, (uint32_t)type);
	ob_pg_put32(header + 12, 0);
	ob_pg_put32(header + 16, 1);
	ob_buf_add(&array->data, (struct ob_str){ header, sizeof(header) });
}

void ob_pgarray_str(struct ob_pgarray *array, struct ob_str value)
{
	char size[4];

	if (!value.p) {
		ob_pgarray_null(array);
		return;
	}
	ob_pg_put32(size, (uint32_t)value.n);
	ob_buf_add(&array->data, (struct ob_str){ size, sizeof(size) });
	ob_buf_add(&array->data, value);
	array->count++;
}

void ob_pgarray_int(struct ob_pgarray *array, int64_t value)
{
	char bytes[8];

	ob_pg_put64(bytes, (uint64_t)value);
	ob_pgarray_str(array, (struct ob_str){ bytes, sizeof(bytes) });
}

void ob_pgarray_uuid(struct ob_pgarray *array, const struct ob_uuid *value)
{
	ob_pgarray_str(array, (struct ob_str){ (const char *)value->b, sizeof(value->b) });
}

void ob_pgarray_null(struct ob_pgarray *array)
{
	char size[4];

	ob_pg_put32(size, null_length);
	ob_buf_add(&array->data, (struct ob_str){ size, sizeof(size) });
	array->has_null = true;
	array->count++;
}

bool ob_pgarray_end(struct ob_pgarray *array)
{
	if (array->data.failed)
		return false;
	ob_pg_put32(array->data.data, array->count > 0);
	ob_pg_put32(array->data.data + 4, array->has_null);
	if (array->count > 0)
		ob_pg_put32(array->data.data + 12, array->count);
	else
		array->data.len = EMPTY_SIZE; /* no dimension, no bounds */
	return true;
}

void ob_pgarray_done(struct ob_pgarray *array)
{
	ob_buf_done(&array->data);
}
