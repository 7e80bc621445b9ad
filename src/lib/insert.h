/* SPDX-License-Identifier: MIT */
/* The multi-row INSERT of the databases that take one: which fields, and its text. */
#ifndef OB_LIB_INSERT_H
#define OB_LIB_INSERT_H

#include "base/buf.h"
#include "base/layout.h"
#include "lib/driver.h"

enum { OB_INSERT_FIELDS = 16 };

/* Which columns a statement names beside those that it always does; all four combinations exist. */
enum {
	OB_INSERT_OCCURRED = 1 << 0,
	OB_INSERT_DELAYED = 1 << 1,
	OB_INSERT_SHAPES = 1 << 2,
};

/* The fields of a row, in the order of the parameters in push.sql. */
extern const enum ob_column ob_insert_fields[OB_INSERT_FIELDS];

/* The templates of a database. */
struct ob_insert_sql {
	const char *head, *row;
	char quote; /* of names */
};

/* The smallest shape that holds these rows. */
unsigned ob_insert_shape(const struct ob_push_row *rows, size_t count);
/* Has a statement of this shape a parameter for the field? */
bool ob_insert_uses(const struct ob_layout *layout, unsigned shape, enum ob_column field);
/* Write the statement for that many rows. */
int ob_insert_build(const struct ob_insert_sql *sql, const struct ob_layout *layout, unsigned shape,
		    size_t rows, struct ob_buf *out, struct outbox_error *err);

#endif
