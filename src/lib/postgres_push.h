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

/* The last insert that was written; see postgres_insert.c. */
struct ob_postgres_insert {
	char *sql;
	uint32_t columns; /* bits 1 << enum ob_column: named by it */
	uint32_t uses;    /* of this text */
	bool prepared;    /* on the server, by `name` */
	char name[32];
};

struct ob_postgres_driver {
	PGconn *conn; /* the caller's */
	struct ob_layout layout;
	struct ob_postgres_insert push, append; /* append: only at the expected version */
	bool nameless; /* prepared statements do not last on this connection: use none */
	char *find;    /* SQL */
	struct ob_pgarray arrays[OB_POSTGRES_FIELDS]; /* memory kept across calls */
	struct ob_postgres_values values;             /* of the statement that was given out */
	struct outbox_postgres_statement statement;
};

/* The rows of one statement, and where they stand in the call. */
struct ob_postgres_chunk {
	const struct ob_push_row *rows;
	size_t count;
	size_t first; /* index of the first row in the call */
	bool guarded; /* stored only if the stream has the version before the first row's */
};

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
/* The parameters of an insert that names these columns, or (0) of push_find; false when out of
 * memory. */
bool ob_postgres_bind(struct ob_postgres_driver *driver, const struct ob_postgres_chunk *chunk,
		      uint32_t columns, struct ob_postgres_values *ret);

/* Expand a template; *ret_sql is the caller's to free. */
int ob_postgres_expand(const struct ob_layout *layout, const char *tmpl, char **ret_sql,
		       struct outbox_error *err);
/* Write the insert that names these columns, where they are on. */
int ob_postgres_insert_write(struct ob_postgres_driver *driver, struct ob_postgres_insert *insert,
			     uint32_t columns, struct outbox_error *err);
/* Add it to the pipeline. */
bool ob_postgres_insert_send(struct ob_postgres_driver *driver, struct ob_postgres_insert *insert,
			     const struct ob_postgres_values *values);
/* What came of it, "" when it went well. True: it failed by its name alone; send it again. */
bool ob_postgres_insert_again(struct ob_postgres_driver *driver, struct ob_postgres_insert *insert,
			      const char *sqlstate);

/*
 * Store rows of one stream, which fit into one statement, if the stream is open and has the version
 * before that of the first row. *ret_stored false: it has not, and nothing was written.
 */
int ob_postgres_insert_expected(void *self, const struct ob_push_row *rows, size_t count,
				bool *ret_stored, struct outbox_error *err);

#endif
