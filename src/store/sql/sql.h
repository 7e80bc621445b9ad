/* SPDX-License-Identifier: MIT */
/*
 * SQL under the stores: what an operation says, whatever the database.
 *
 * An operation is a transaction: begin, add statements by their names with named values, commit,
 * read rows. A dialect has the text of each statement in sql/<store>, and a driver that sends them.
 * Statements are queued where the database can take several at once: most operations are one round
 * trip. A statement that a dialect does not need is an empty template: it has no rows.
 *
 * The first failure is kept and what follows it does nothing: flush and commit report it.
 */
#ifndef OB_STORE_SQL_SQL_H
#define OB_STORE_SQL_SQL_H

#include "store/sql/statements.h"
#include "store/store.h"

/* ---- values ---------------------------------------------------------- */

/* Rows of values for one parameter. Text is borrowed until the statement is added. */
struct ob_sql_cell {
	int64_t number;
	struct ob_str text; /* absent: NULL */
};

struct ob_sql_table {
	const char *types; /* of its columns: i a number, t a text, u a UUID */
	struct ob_sql_cell *cells;
	size_t count, room;
	bool failed; /* out of memory */
};

#define OB_SQL_TABLE(columns) ((struct ob_sql_table){ .types = (columns) })

void ob_sql_table_int(struct ob_sql_table *table, int64_t number);
void ob_sql_table_str(struct ob_sql_table *table, struct ob_str text);
size_t ob_sql_table_rows(const struct ob_sql_table *table);
void ob_sql_table_done(struct ob_sql_table *table);
/* [[1,"a"],[2,null]]; a UUID is 32 hexadecimal digits. With one column and `flat`: [1,2]. */
void ob_sql_table_json(const struct ob_sql_table *table, bool flat, struct ob_buf *out);

enum ob_sql_kind {
	OB_SQL_KIND_INT,
	OB_SQL_KIND_TEXT,
	OB_SQL_KIND_BYTES,
	OB_SQL_KIND_LIST,  /* one column: an array, IN (...), a JSON list */
	OB_SQL_KIND_TABLE, /* arrays of its columns, or a JSON list of lists */
	OB_SQL_KIND_RAW,   /* SQL that we made ourselves: a direction, a condition */
};

/* A value for the parameter of that name: ":reader" in the template. */
struct ob_sql_arg {
	const char *name;
	enum ob_sql_kind kind;
	int64_t number;
	struct ob_str text; /* absent: NULL */
	const struct ob_sql_table *table;
};

static inline struct ob_str ob_sql_uuid_bytes(const struct ob_uuid *id)
{
	return id ? (struct ob_str){ (const char *)id->b, sizeof(id->b) } : OB_STR_NULL;
}

#define OB_ARG_INT(arg, value) ((struct ob_sql_arg){ .name = (arg), .number = (int64_t)(value) })
#define OB_ARG_STR(arg, value) \
	((struct ob_sql_arg){ .name = (arg), .kind = OB_SQL_KIND_TEXT, .text = (value) })
#define OB_ARG_TEXT(arg, value) OB_ARG_STR(arg, ob_str(value)) /* NULL is NULL */
#define OB_ARG_UUID(arg, value) \
	((struct ob_sql_arg){ .name = (arg), \
			      .kind = OB_SQL_KIND_BYTES, \
			      .text = ob_sql_uuid_bytes(value) }) /* NULL is NULL */
#define OB_ARG_LIST(arg, value) \
	((struct ob_sql_arg){ .name = (arg), .kind = OB_SQL_KIND_LIST, .table = (value) })
#define OB_ARG_TABLE(arg, value) \
	((struct ob_sql_arg){ .name = (arg), .kind = OB_SQL_KIND_TABLE, .table = (value) })
#define OB_ARG_RAW(arg, value) \
	((struct ob_sql_arg){ .name = (arg), .kind = OB_SQL_KIND_RAW, .text = ob_str(value) })
/* A duration in microseconds that can be added to any time. */
#define OB_ARG_MS(arg, value) OB_ARG_INT(arg, ob_sql_us(value))

/* An array of them, with its end. */
#define OB_ARGS(...) ((const struct ob_sql_arg[]){ __VA_ARGS__, { .name = NULL } })
#define OB_NO_ARGS   ((const struct ob_sql_arg[]){ { .name = NULL } })

/* NULL: it is not among them. */
const struct ob_sql_arg *ob_sql_find(const struct ob_sql_arg *args, const char *name, size_t size);
/* Does one of them bring SQL of its own? Then the statement has another text every time. */
bool ob_sql_has_raw(const struct ob_sql_arg *args);
/* Milliseconds in microseconds, cut to a hundred years. */
int64_t ob_sql_us(int64_t ms);
/* Does a parameter begin at this colon? The length of its name; 0: no. A cast (::) is none. */
size_t ob_sql_name_length(const char *colon);
/* A template with the layout's names and our numbers; `quote` is '"' or '`'. */
int ob_sql_expand(const struct ob_layout *layout, const char *tmpl, char quote,
		  int64_t partition_count, struct ob_buf *out, struct ob_err *err);

/* ---- drivers --------------------------------------------------------- */

enum ob_sql_mode {
	OB_SQL_READ,      /* writes nothing */
	OB_SQL_LONG_READ, /* the same, and may take as long as it needs */
	OB_SQL_PEEK,      /* the same, and runs all the time */
	OB_SQL_WRITE,     /* all of it or nothing */
	OB_SQL_BEAT,      /* runs all the time; a crash of the server may undo it */
	OB_SQL_SETTLE,    /* the same, unless the option settle_durable forbids that */
	OB_SQL_ALONE, /* the same for one statement that needs no transaction around it. Two that
			 collide: SQLSTATE 40001 */
	OB_SQL_JOIN,  /* in the transaction of tx_begin, which stays open */
};

/*
 * One per database. Everything is about the one operation that runs. Statements are numbered from 0
 * on since begin or the last flush; their rows are there after the flush, up to clear or the next
 * statement.
 */
struct ob_sql_driver {
	/* The template of a statement; an empty one is never added. */
	const char *(*text)(enum ob_sql_id id);
	int (*begin)(struct ob_store *store, enum ob_sql_mode mode, const char *doing,
		     struct ob_err *err);
	int (*add)(struct ob_store *store, enum ob_sql_id id, const struct ob_sql_arg *args,
		   struct ob_err *err);
	int (*flush)(struct ob_store *store, struct ob_err *err);
	/* r >= 0: send what is queued and commit; else roll back and keep *err. */
	int (*end)(struct ob_store *store, int r, struct ob_err *err);
	void (*clear)(struct ob_store *store);
	/* Optional. It failed: would it pass, were it run again from the start? */
	bool (*again)(struct ob_store *store, int tries);

	size_t (*rows)(struct ob_store *store, size_t statement);
	uint64_t (*changed)(struct ob_store *store, size_t statement);
	/* NULL is 0, or absent. Time is in us since 1970. */
	int64_t (*get_int)(struct ob_store *store, size_t statement, size_t row, int column);
	int64_t (*get_time)(struct ob_store *store, size_t statement, size_t row, int column);
	struct ob_str (*get_str)(struct ob_store *store, size_t statement, size_t row, int column);

	/* Optional, before a beat: hold the worker's session lock; and after it has left. */
	int (*hold_session)(struct ob_store *store, const struct ob_uuid *worker,
			    struct ob_err *err);
	void (*left_session)(struct ob_store *store, const struct ob_uuid *worker);
	/* Optional: learn what the reader has behind it, for the values :low and :gaps of
	 * statements about it. Before begin. */
	int (*reach)(struct ob_store *store, struct ob_str reader, struct ob_err *err);
	/* Optional, instead of the statement `place`: the progress of a place, and :gaps. `seen`
	 * stays empty where there is none. */
	int (*place)(struct ob_store *store, const struct ob_place *place, int64_t *ret_pos,
		     struct ob_buf *seen, struct ob_err *err);
	/* Optional: is what the statement `numbering` has found as it must be? */
	int (*check_numbering)(struct ob_store *store, int64_t found, struct ob_err *err);
};

/* ---- an operation ---------------------------------------------------- */

enum { OB_SQL_STATEMENTS = 24 }; /* at once */

struct ob_sql {
	struct ob_store *store;
	const char *doing;
	size_t added;                  /* statements since the last flush */
	int places[OB_SQL_STATEMENTS]; /* the driver's number of each; -1: it was empty */
	int sent;                      /* that are not */
	bool open;
	struct ob_err err; /* the first failure */
};

/* `doing` is what the operation does, for messages. A cleanup: OB_CLEANUP(ob_sql_done). */
void ob_sql_begin(struct ob_sql *q, struct ob_store *store, enum ob_sql_mode mode,
		  const char *doing);
/* Its number. `args` ends without a name. */
size_t ob_sql_add(struct ob_sql *q, enum ob_sql_id id, const struct ob_sql_arg *args);
#define OB_SQL_ADD(q, name, ...) ob_sql_add(q, OB_SQL_##name, OB_ARGS(__VA_ARGS__))
#define OB_SQL_ADD0(q, name)     ob_sql_add(q, OB_SQL_##name, OB_NO_ARGS)
int ob_sql_flush(struct ob_sql *q, struct ob_err *err);
int ob_sql_commit(struct ob_sql *q, struct ob_err *err);
/* r < 0: roll back and return r; else commit and return r. */
int ob_sql_end(struct ob_sql *q, int r, struct ob_err *err);
/* Rolls back what is open, drops the rows. */
void ob_sql_done(struct ob_sql *q);
int ob_sql_oom(const struct ob_sql *q, struct ob_err *err);
/* It failed: run the operation again, from its begin? Then the error is forgotten: a success leaves
 * none. */
bool ob_sql_again(struct ob_store *store, int tries, struct ob_err *err);

/* ---- rows ------------------------------------------------------------ */

/* for (rows = ob_sql_rows(q, n); ob_sql_next(&rows);) */
struct ob_sql_rows {
	struct ob_store *store;
	size_t statement, row, count;
};

struct ob_sql_rows ob_sql_rows(const struct ob_sql *q, size_t statement);
bool ob_sql_next(struct ob_sql_rows *rows);
int64_t ob_sql_int(const struct ob_sql_rows *rows, int column);
int64_t ob_sql_time(const struct ob_sql_rows *rows, int column);
struct ob_str ob_sql_str(const struct ob_sql_rows *rows, int column); /* up to the next statement */
bool ob_sql_is_null(const struct ob_sql_rows *rows, int column);
bool ob_sql_uuid(const struct ob_sql_rows *rows, int column, struct ob_uuid *ret);

size_t ob_sql_count(const struct ob_sql *q, size_t statement);
uint64_t ob_sql_changed(const struct ob_sql *q, size_t statement);
/* The first cell of the first row; 0 when there is none. */
int64_t ob_sql_value(const struct ob_sql *q, size_t statement);
int64_t ob_sql_value_time(const struct ob_sql *q, size_t statement);

/* What becomes of a column: a member of a struct, by its place in the statement. */
enum ob_sql_how { OB_SQL_HOW_INT, OB_SQL_HOW_TIME, OB_SQL_HOW_STR, OB_SQL_HOW_UUID };

struct ob_sql_column {
	enum ob_sql_how how;
	size_t offset, size;
};

#define OB_SQL_COLUMN(type, member, kind) \
	{ \
		OB_SQL_HOW_##kind, offsetof(type, member), sizeof(((type *)NULL)->member) \
	}

struct ob_sql_map {
	const struct ob_sql_column *columns;
	size_t count, size; /* columns; of the struct */
};

#define OB_SQL_MAP_OF(type, list) \
	{ \
		(list), sizeof(list) / sizeof((list)[0]), sizeof(type) \
	}

/* Read a row; texts are copied into the arena, or (NULL) borrowed. False: out of memory, or a UUID
 * is none. */
bool ob_sql_read(const struct ob_sql_rows *rows, const struct ob_sql_map *map,
		 struct ob_arena *arena, void *to);
/* All rows of a statement as an array in the arena; NULL: out of memory. */
void *ob_sql_collect(const struct ob_sql *q, size_t statement, const struct ob_sql_map *map,
		     struct ob_arena *arena, size_t *ret_count, struct ob_err *err);
/* An operation that only lists: one statement, all its rows. */
void *ob_sql_list(struct ob_store *store, const char *doing, enum ob_sql_id id,
		  const struct ob_sql_arg *args, const struct ob_sql_map *map,
		  struct ob_arena *arena, size_t *ret_count, struct ob_err *err);

/* OUTBOX_EINVAL: there is no such reader. */
int ob_sql_no_reader(const char *reader, struct ob_err *err);

#endif
