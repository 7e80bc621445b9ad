/* SPDX-License-Identifier: MIT */
/* What the files of the PostgreSQL driver share. */
#ifndef OB_LIB_POSTGRES_PUSH_H
#define OB_LIB_POSTGRES_PUSH_H

#include "base/layout.h"
#include "base/pgarray.h"
#include "lib/driver.h"
#include "outbox/postgres.h"

#include <libpq-fe.h>

enum { OB_POSTGRES_FIELDS = 16, OB_POSTGRES_FIND_FIELDS = 5 };

/* Parameters, pointing into the driver's arrays. */
struct ob_postgres_values {
	const char *values[OB_POSTGRES_FIELDS];
	int lengths[OB_POSTGRES_FIELDS], formats[OB_POSTGRES_FIELDS];
	Oid types[OB_POSTGRES_FIELDS];
};

struct ob_postgres_driver {
	PGconn *conn; /* the caller's */
	struct ob_layout layout;
	char *insert, *find;                          /* SQL */
	uint32_t insert_columns;                      /* bits 1 << enum ob_column: named by it */
	struct ob_pgarray arrays[OB_POSTGRES_FIELDS]; /* memory kept across calls */
	struct ob_postgres_values values;             /* of the statement that was given out */
	struct outbox_postgres_statement statement;
};

/* The rows of one statement, and where they stand in the call. */
struct ob_postgres_chunk {
	const struct ob_push_row *rows;
	size_t count;
	size_t first; /* index of the first row in the call */
};

/* Write the insert that names these columns, where they are on; the last one written is kept. */
int ob_postgres_name_columns(struct ob_postgres_driver *driver, uint32_t columns,
			     struct outbox_error *err);
/* Messages are UTF-8, whatever else the connection is for. */
int ob_postgres_check_encoding(const struct ob_postgres_driver *driver, struct outbox_error *err);
/* The driver's operation. */
int ob_postgres_statement(void *self, const struct ob_push_row *rows, size_t count,
			  const struct outbox_postgres_statement **ret, struct outbox_error *err);

/* How many of the rows go into one statement. */
size_t ob_postgres_fit(const struct ob_push_row *rows, size_t count);
/* Bits of the columns that an insert of these rows must name. */
uint32_t ob_postgres_columns(const struct ob_push_row *rows, size_t count);
/* The same for any rows. */
uint32_t ob_postgres_all_columns(void);
/* The parameters of push, or (find) of push_find; false when out of memory. */
bool ob_postgres_bind(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
		      bool find, struct ob_postgres_values *ret);

#endif
