/* SPDX-License-Identifier: MIT */
/* PostgreSQL's binary form of a one-dimensional array, for a parameter of a statement. */
#ifndef OB_BASE_PGARRAY_H
#define OB_BASE_PGARRAY_H

#include "base/uuid.h"

/* The types that we send; their numbers are the same in every PostgreSQL. */
enum ob_pgtype {
	OB_PG_BYTEA = 17,
	OB_PG_INT8 = 20,
	OB_PG_TEXT = 25,
	OB_PG_JSON = 114,
	OB_PG_UUID = 2950,
};

struct ob_pgarray {
	struct ob_buf data; /* complete after ob_pgarray_end(); failed: out of memory */
	uint32_t count;
	bool has_null;
};

/* The type of an array of these. */
uint32_t ob_pgarray_type(enum ob_pgtype type);
void ob_pgarray_begin(struct ob_pgarray *array, enum ob_pgtype type);
void ob_pgarray_int(struct ob_pgarray *array, int64_t value);
void ob_pgarray_uuid(struct ob_pgarray *array, const struct ob_uuid *value);
/* Text, json or bytes; absent is NULL. */
void ob_pgarray_str(struct ob_pgarray *array, struct ob_str value);
void ob_pgarray_null(struct ob_pgarray *array);
/* Write the counts; false when out of memory. May be called again. */
bool ob_pgarray_end(struct ob_pgarray *array);
void ob_pgarray_done(struct ob_pgarray *array);

/* Numbers as PostgreSQL sends them. */
void ob_pg_put32(char *out, uint32_t value);
void ob_pg_put64(char *out, uint64_t value);
/* A signed integer of 2, 4 or 8 bytes; other sizes give 0. */
int64_t ob_pg_get(const char *in, size_t size);

#endif
