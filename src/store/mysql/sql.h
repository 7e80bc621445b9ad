/* SPDX-License-Identifier: MIT */
/*
 * SQL of the MySQL store: templates with values in them, sent as one packet of several statements,
 * and their answers. One packet is one round trip, and a process that is stopped between two calls
 * holds no lock.
 *
 * A template's :name becomes a literal: a number, a quoted text, the hexadecimal form of bytes; a
 * list becomes literals with commas between them, a table JSON.
 */
#ifndef OB_STORE_MYSQL_SQL_H
#define OB_STORE_MYSQL_SQL_H

#include "store/mysql/conn.h"
#include "store/sql/sql.h"

struct my_answer {
	MYSQL_RES *rows; /* NULL: a statement without */
	uint64_t changed;
};

struct my_packet {
	struct my_store *s;
	const char *doing;
	bool writes;        /* it commits something: fault points are around it */
	struct ob_buf text; /* of all statements */
	size_t statements;
	struct ob_err err; /* of putting it together */
	struct my_answer *answers;
	size_t answer_count, answer_room;
	MYSQL_RES *rows; /* that are being read */
	MYSQL_ROW row;
	unsigned long *sizes;
};

void my_packet_init(struct my_packet *p, struct my_store *s, const char *doing);
void my_packet_done(struct my_packet *p);
/* Forget text and answers, to be used again. */
void my_packet_clear(struct my_packet *p);
/* Append a statement; its number, from 0. What fails is reported by run. */
size_t my_packet_add(struct my_packet *p, const char *tmpl, const struct ob_sql_arg *args);
#define MY_ADD(packet, tmpl, ...) my_packet_add(packet, tmpl, OB_ARGS(__VA_ARGS__))
#define MY_ADD0(packet, tmpl)     my_packet_add(packet, tmpl, OB_NO_ARGS)
/* The template with its values, appended to `out`. */
int my_sql_expand(struct my_store *s, struct ob_buf *out, const char *tmpl,
		  const struct ob_sql_arg *args, struct ob_err *err);

/*
 * Send it and hold all answers. After a deadlock or a lock that was not had in time it is rolled
 * back and sent again, a few times; after any failure no transaction is open. Connects if needed.
 */
int my_packet_run(struct my_packet *p, struct ob_err *err);

/* One statement: begin the packet, run it, stand before its rows. The caller ends the packet. */
int my_query(struct my_packet *p, struct my_store *s, const char *doing, const char *tmpl,
	     const struct ob_sql_arg *args, struct ob_err *err);
#define MY_QUERY(packet, store, doing, err, tmpl, ...) \
	my_query(packet, store, doing, tmpl, OB_ARGS(__VA_ARGS__), err)
/* The same for one that changes rows: how many, or a failure. */
int my_change(struct my_store *s, const char *doing, const char *tmpl,
	      const struct ob_sql_arg *args, struct ob_err *err);
/* The same for one that answers one number: 1, or 0 when there is no row; NULL is 0. */
int my_number(struct my_store *s, const char *doing, const char *tmpl,
	      const struct ob_sql_arg *args, int64_t *ret_number, struct ob_err *err);
#define MY_NUMBER(store, doing, number, err, tmpl, ...) \
	my_number(store, doing, tmpl, OB_ARGS(__VA_ARGS__), number, err)

/* Read the rows of a statement from the first on. */
void my_use(struct my_packet *p, size_t statement);
/* 1: on the next row; 0: no more. */
int my_step(struct my_packet *p);
/* How many rows it changed. */
uint64_t my_changed(const struct my_packet *p, size_t statement);
/* Values of the row: valid until the packet is cleared. */
int64_t my_int(const struct my_packet *p, unsigned column);
struct ob_str my_str(const struct my_packet *p, unsigned column);
/* A DATETIME in UTC, in microseconds since 1970; 0 for NULL. */
int64_t my_time(const struct my_packet *p, unsigned column);

void my_templates_free(struct my_templates *templates);

/* Numbers as SQL, "1,2,3"; none: "NULL", which nothing equals. */
void my_add_number(struct ob_buf *list, int64_t number);
const char *my_list(const struct ob_buf *list);

/* Rows become an array in an arena. */
struct my_rows {
	struct ob_arena *arena;
	size_t size; /* of one */
	char *data;
	size_t count, capacity;
};

void *my_rows_add(struct my_rows *rows);

#endif
