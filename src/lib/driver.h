/* SPDX-License-Identifier: MIT */
/*
 * What the library of a database (liboutbox-sqlite, ...) gives to the core.
 * Both come from one source tree, but they are loaded as two files that may be
 * of different versions: OB_DRIVER_ABI changes with everything in here.
 */
#ifndef OB_LIB_DRIVER_H
#define OB_LIB_DRIVER_H

#include "base/arena.h"
#include "base/uuid.h"
#include "outbox/events.h"

struct outbox_postgres_statement;

enum { OB_DRIVER_ABI = 5 };

/* A message that passed the checks. Sizes are known, the id is set. */
struct ob_push_row {
	const struct outbox_message *message; /* the caller's */
	struct ob_uuid id;
	struct ob_str payload, headers, snapshot; /* borrowed from the message; absent: NULL */
};

/*
 * insert() returns this when a CHECK of the table refused a row and the driver
 * cannot know which; *err is filled as for OUTBOX_ESTORE. The core then looks
 * whether a check that was switched off names the fault.
 */
enum { OB_DRIVER_CHECK = 1 };

/* ---- events ---------------------------------------------------------- */

/* A stream whose texts were checked; all are set. */
struct ob_stream_key {
	const char *target, *type, *id;
};

struct ob_stream_state {
	int64_t version;       /* 0: there is no event */
	int64_t first_version; /* reads begin here */
	int end;               /* enum outbox_stream_end */
};

/* One append: rows that passed the checks, of one stream. */
struct ob_append {
	struct ob_stream_key stream;
	int64_t expected;
	struct ob_push_row *rows;
	struct outbox_message *messages; /* what the rows point to: ours, to be numbered */
	size_t count;
	bool own_ids; /* the caller chose every id: a repeat can be told */
	bool placed;  /* the caller wants the positions: they cost a statement */
};

struct ob_append_done {
	int64_t first_version;
	int64_t first_position, last_position;
	bool repeated;
};

/* One chunk of a read: every bound is set, `limit` is at least 1. */
struct ob_event_query {
	struct ob_stream_key stream; /* recent: the target alone; log: without an id */
	bool recent;                 /* last events of streams, newest first, below to_position */
	bool log;                    /* of a category (stream.type; NULL: all), by position */
	bool with_ended;             /* log: also streams that ended, and what was cut off */
	const char *correlation_id;  /* log: NULL: any */
	const char *now;             /* log: what pin_log() gave, or NULL */
	bool backward;
	int64_t after_version, to_version;
	int64_t after_position, to_position;
	int64_t after_us, to_us;
	const char *event_type; /* NULL: any */
	uint32_t limit;
};

/* Events of one chunk; everything is the arena's. */
struct ob_event_page {
	struct ob_arena arena;
	struct outbox_event *events; /* room for `limit` */
	uint32_t count;
	size_t bytes; /* of payloads and headers */
};

/* Small statements, each a template of that name in events.sql; values in the order of its
 * parameters. */
#define OB_ASK_MAP(X) \
	X(snapshot_find) \
	X(snapshot_keep) \
	X(snapshot_forget) \
	X(key_find) \
	X(key_keep) \
	X(key_rewrap) \
	X(key_list) \
	X(key_forget)

enum ob_ask {
#define X(name) OB_ASK_##name,
	OB_ASK_MAP(X)
#undef X
};

enum { OB_ASK_VALUES = 8, OB_ASK_COLUMNS = 4 };

struct ob_ask_value {
	bool is_number;
	int64_t number;
	struct ob_str text; /* absent: NULL */
};

#define OB_ASK_TEXT(value)   ((struct ob_ask_value){ .text = (value) })
#define OB_ASK_NUMBER(value) ((struct ob_ask_value){ .is_number = true, .number = (value) })

/* Rows of text in the arena; absent: NULL. `changed`: rows that were written. */
struct ob_answer {
	struct ob_arena arena;
	struct ob_str (*rows)[OB_ASK_COLUMNS];
	size_t count, room;
	uint64_t changed;
};

#define OB_ANSWER_INIT ((struct ob_answer){ .arena = OB_ARENA_INIT(SIZE_MAX / 2) })

struct ob_driver_ops {
	unsigned abi; /* OB_DRIVER_ABI */
	/* Is a transaction open on the connection? Without a round trip. */
	bool (*in_transaction)(void *driver);
	/*
	 * Store rows (at least one), in order, all or nothing; see outbox_push().
	 * Fills *err (never NULL) when it fails: 0, a negative status, or OB_DRIVER_CHECK.
	 */
	int (*insert)(void *driver, const struct ob_push_row *rows, size_t count,
		      struct outbox_error *err);
	/*
	 * The statement that would store rows (at least one), sent by the caller instead; see
	 * outbox_postgres_statement(). NULL: this database has none.
	 */
	int (*statement)(void *driver, const struct ob_push_row *rows, size_t count,
			 const struct outbox_postgres_statement **ret, struct outbox_error *err);
	/* All or nothing; see outbox_append(). Returns as insert() does. */
	int (*append)(void *driver, const struct ob_append *call, struct ob_append_done *ret_done,
		      struct outbox_error *err);
	int (*look_stream)(void *driver, const struct ob_stream_key *stream,
			   struct ob_stream_state *ret_state, struct outbox_error *err);
	/* Store `end` and first_version of *state. */
	int (*keep_stream)(void *driver, const struct ob_stream_key *stream,
			   const struct ob_stream_state *state, struct outbox_error *err);
	/*
	 * A pass over the log begins: the highest position that belongs to it, and (a text of the
	 * caller's to free, or NULL) what else tells what is committed now.
	 */
	int (*pin_log)(void *driver, int64_t *ret_end, char **ret_now, struct outbox_error *err);
	/* Add what the query selects to an empty page. */
	int (*read_events)(void *driver, const struct ob_event_query *query,
			   struct ob_event_page *page, struct outbox_error *err);
	/* See outbox_inbox(); the texts passed the checks, a transaction is open. */
	int (*inbox)(void *driver, const char *consumer, const char *id, bool *ret_new,
		     struct outbox_error *err);
	/* Run a small statement and add its rows to an empty answer. */
	int (*ask)(void *driver, enum ob_ask ask, const struct ob_ask_value *values, size_t count,
		   struct ob_answer *ret, struct outbox_error *err);
	/* Free the driver; the connection is left as it is. */
	void (*close)(void *driver);
};

/* What the checks must know of the table. */
struct ob_check_rules {
	unsigned flags;       /* OUTBOX_NO_PAYLOAD_CHECK ... */
	uint32_t off_columns; /* bits 1 << enum ob_column: switched off */
};

/*
 * Make the handle. On success it owns `driver`; when it fails, the caller
 * still does. Exported for the libraries of databases, no part of the API.
 */
OUTBOX_API int outbox_driver_attach(const struct ob_driver_ops *ops, void *driver,
				    const struct ob_check_rules *rules, outbox **ret_ob,
				    struct outbox_error *err);

#endif
