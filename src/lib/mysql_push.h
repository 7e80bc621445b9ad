/* SPDX-License-Identifier: MIT */
/* What the files of the MySQL driver share. */
#ifndef OB_LIB_MYSQL_PUSH_H
#define OB_LIB_MYSQL_PUSH_H

#include "lib/insert.h"

#include <mysql.h>

struct ob_mysql_driver {
	MYSQL *db; /* the caller's */
	struct ob_layout layout;
	size_t packet;                     /* the largest statement the server takes, in bytes */
	MYSQL_STMT *one[OB_INSERT_SHAPES]; /* inserts of one row, made when first needed */
	MYSQL_STMT *many;                  /* the last insert of several rows */
	size_t many_rows;
	unsigned many_shape;
	MYSQL_STMT *look; /* at a stream: every append runs it; made when first needed */
};

/* The rows of one statement, and where they stand in the call. */
struct ob_mysql_chunk {
	const struct ob_push_row *rows;
	size_t count;
	size_t first; /* index of the first row in the call */
};

/* What the library or the server reports, kept before another statement overwrites it. */
struct ob_mysql_failure {
	unsigned code;
	char text[200];
	const char *doing;
};

/* Bytes as a parameter; *size must live until the statement was run. */
MYSQL_BIND ob_mysql_bind_bytes(struct ob_str value, unsigned long *size);
/* A row's id as the parameter of push_id in sql/mysql/push.sql; in `text`. */
struct ob_str ob_mysql_id(const struct ob_mysql_driver *driver, const struct ob_uuid *id,
			  char text[OB_UUID_TEXT_SIZE]);
/* Expand a template and prepare it. */
int ob_mysql_prepare(const struct ob_mysql_driver *driver, const char *tmpl, MYSQL_STMT **ret_stmt,
		     struct outbox_error *err);

struct ob_mysql_failure ob_mysql_stmt_failure(MYSQL_STMT *stmt, const char *doing);
struct ob_mysql_failure ob_mysql_db_failure(MYSQL *db, const char *doing);

/*
 * Turn a failure into *err: the one place that knows the server's numbers. It looks
 * into the table, so call it before anything is rolled back. `chunk` NULL: not about
 * rows. Returns a negative status, or OB_DRIVER_CHECK.
 */
int ob_mysql_fail(struct ob_mysql_driver *driver, const struct ob_mysql_chunk *chunk,
		  const struct ob_mysql_failure *failure, struct outbox_error *err);

/* Is the table there, with every column that a push needs? Else OUTBOX_ESCHEMA says what is not. */
int ob_mysql_check_table(struct ob_mysql_driver *driver, struct outbox_error *err);

#endif
