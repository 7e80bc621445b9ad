/* SPDX-License-Identifier: MIT */
/*
 * The log as an event store: append events to a stream with an expected version, read
 * streams. On your own connection and in your own transaction, with the handle of
 * outbox_sqlite_open(), outbox_postgres_open() or outbox_mysql_open(). The tables are made by
 * `outbox setup --events`; keep them for ever with `retention: never`.
 *
 * Structs with a member `size` grow: set it to the size of the struct, or leave it 0, which stands
 * for the members of the first version.
 */
#ifndef OUTBOX_EVENTS_H
#define OUTBOX_EVENTS_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- appending ------------------------------------------------------- */

/*
 * The version of a stream is that of its last event. Versions are contiguous from 1. Instead of a
 * version, what is expected may be:
 */
#define OUTBOX_NO_STREAM     INT64_C(0)    /* the stream has no event */
#define OUTBOX_ANY           (-INT64_C(1)) /* whatever is there */
#define OUTBOX_STREAM_EXISTS (-INT64_C(2)) /* the stream has events */

#define OUTBOX_APPEND_MAX 100000u /* events of one call */

/* A stream of events: the events of one aggregate in one target. */
struct outbox_stream {
	size_t size;
	const char *type;   /* required: the category, "account" */
	const char *id;     /* required: "42" */
	const char *target; /* NULL: "default" */
};

/* What an append did. `size` is yours, the rest is written on success. */
struct outbox_appended {
	size_t size;
	int64_t first_version, last_version;
	/* In the whole log. Positions of a call ascend; those of others may stand between them. */
	int64_t first_position, last_position;
	int repeated; /* 1: these events were stored before, and nothing was written now */
};

/* outbox_append(); `event_size` is sizeof(struct outbox_message) of the program that calls. */
OUTBOX_API OUTBOX_NODISCARD int
outbox_append_sized(outbox *ob, const struct outbox_stream *stream, int64_t expected,
		    const void *events, size_t count, size_t event_size, struct outbox_id *ret_ids,
		    struct outbox_appended *ret_done, struct outbox_error *err);

/*
 * Append `count` events to a stream, in the transaction that is open on the connection: all of
 * them, or none. Refused (OUTBOX_ENOTRANSACTION) when no transaction is open. Never commits.
 * `count` 0 succeeds, checks nothing and writes nothing.
 *
 * An event is a message as outbox_push() takes it. Its stream and its version are set here: leave
 * aggregate_type, aggregate_id, target and sequence_number out.
 *
 * `expected` is the version that the stream must have, or OUTBOX_NO_STREAM, OUTBOX_STREAM_EXISTS,
 * OUTBOX_ANY. Any other version is OUTBOX_ECONFLICT, and the message names what was expected and
 * what is there; read the stream again and decide again. So is an append that lost a race for the
 * same version; one with ANY or STREAM_EXISTS takes the next version then. Nothing is locked but
 * the stream's own new versions.
 *
 * To repeat an append whose outcome you do not know, give every event an id of your own: if events
 * with these ids stand at the same place already (for ANY and STREAM_EXISTS: anywhere in this
 * stream, in this order), the call returns the first result again with `repeated` set. An id that
 * is stored elsewhere is OUTBOX_EDUPID.
 *
 * A stream that was archived or tombstoned is OUTBOX_EENDED.
 *
 * When the call fails, nothing of it is stored and the transaction stays usable, unless the message
 * says otherwise. PostgreSQL in REPEATABLE READ or above, SQLite after a plain BEGIN, and a
 * deadlock on MySQL report a lost race as OUTBOX_EBUSY: roll back and run the transaction again.
 *
 * ret_ids: NULL, or room for `count` ids. ret_done: NULL, or what was done. Both are written only
 * on success.
 */
OUTBOX_NODISCARD static inline int
/* NOLINTNEXTLINE(readability-function-size): eight parameters */
outbox_append(outbox *ob, const struct outbox_stream *stream, int64_t expected,
	      const struct outbox_message *events, size_t count, struct outbox_id *ret_ids,
	      struct outbox_appended *ret_done, struct outbox_error *err)
{
	return outbox_append_sized(ob, stream, expected, events, count,
				   sizeof(struct outbox_message), ret_ids, ret_done, err);
}

/* What this handle has appended since it was opened, for the metrics of your program. */
struct outbox_append_counts {
	size_t size;        /* of the struct as you know it: sizeof(struct outbox_append_counts) */
	uint64_t appends;   /* that succeeded; their transactions may have been rolled back since */
	uint64_t events;    /* that they stored */
	uint64_t repeats;   /* of these, those that were stored before */
	uint64_t conflicts; /* OUTBOX_ECONFLICT, and OUTBOX_EBUSY of a lost race */
	uint64_t failures;  /* any other error */
};
OUTBOX_API void outbox_append_counted(const outbox *ob, struct outbox_append_counts *ret_counts);

/* ---- reading --------------------------------------------------------- */

/*
 * An event as it is read; valid until the next call on its reader. Text is NUL-terminated and may
 * be NULL where the column may be; payload and headers have a size, and a NUL behind them.
 */
struct outbox_event {
	int64_t position; /* in the whole log */
	int64_t version;  /* in its stream */
	const char *id;
	const char *type, *stream_id, *target; /* its stream */
	const char *event_type;
	const void *payload; /* NULL: a tombstone message */
	size_t payload_size;
	const char *headers; /* a JSON object, or NULL */
	size_t headers_size;
	const char *correlation_id, *causation_id;
	int64_t occurred_at_us, created_at_us; /* microseconds since 1970 UTC */
	int32_t revision;
};

/* Flags of a query. */
#define OUTBOX_BACKWARD 0x1u /* newest first */
#define OUTBOX_WITH_ENDED \
	0x2u /* also of an archived or tombstoned stream, and what was cut off \
	      */

/*
 * Which events: of a stream; with stream.type alone, of a category; with neither, of all streams of
 * the target. Every member that is set narrows: after_ is exclusive, to_ inclusive. Left out is
 * zero, and zero is no bound.
 */
struct outbox_event_query {
	size_t size;
	struct outbox_stream stream;
	int64_t after_version, to_version; /* of a stream; a category has none */
	int64_t after_position, to_position;
	int64_t after_us, to_us; /* by created_at, microseconds since 1970 UTC */
	const char *event_type;
	uint64_t limit; /* events in all; 0: no limit */
	uint32_t chunk; /* events of one statement; 0: as many as make about a megabyte */
	unsigned flags;
	const char *correlation_id; /* not of a stream */
};

/* A pass over events, in the memory of one chunk. Belongs to the handle it was opened with. */
typedef struct outbox_event_reader outbox_event_reader;

/*
 * Begin to read. A stream that does not exist has no events, and so has one that ended, unless the
 * query asks for these. Needs no transaction. On success the caller owns *ret_reader; close it
 * before the handle.
 *
 * A stream is read by version, each chunk by a statement of its own, so what is appended meanwhile
 * may be read too; nothing is read twice, and no version is passed over.
 *
 * A category, or all, is read by position, once, up to now: it returns what was committed when it
 * was opened, waits for nobody and ends. (On MySQL that is exact in a REPEATABLE READ transaction.
 * Without one an event that commits during the pass is in it or not. On SQLite and MySQL events of
 * your own open transaction are in it too.) The last position of a pass is no place to go on from:
 * a transaction that was open then may commit events with lower positions later. Who follows the
 * log is a reader: see outbox/relay.h and `outbox work`.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_events_open(outbox *ob,
						   const struct outbox_event_query *query,
						   outbox_event_reader **ret_reader,
						   struct outbox_error *err);
/*
 * The newest event of each of the `limit` streams of a target (NULL: "default") that were appended
 * to last, newest first; 0: none. Streams that ended are left out.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_events_recent(outbox *ob, const char *target, uint32_t limit,
						     outbox_event_reader **ret_reader,
						     struct outbox_error *err);
/* The next event: 1 and *ret_event, or 0 at the end. */
OUTBOX_API OUTBOX_NODISCARD int outbox_events_next(outbox_event_reader *reader,
						   const struct outbox_event **ret_event,
						   struct outbox_error *err);
/* NULL is allowed. */
OUTBOX_API void outbox_events_close(outbox_event_reader *reader);

/* ---- streams end ----------------------------------------------------- */

enum outbox_stream_end {
	OUTBOX_STREAM_OPEN = 0,
	OUTBOX_STREAM_ARCHIVED,   /* left out of reads; nothing is appended until it is restored */
	OUTBOX_STREAM_TOMBSTONED, /* the same, for ever: the name is not used again */
};

struct outbox_stream_info {
	size_t size;
	int64_t version;       /* 0: there is no event */
	int64_t first_version; /* reads begin here; 1 unless it was truncated */
	enum outbox_stream_end end;
};

/* What is known of a stream. One that does not exist has version 0. Needs no transaction. */
OUTBOX_API OUTBOX_NODISCARD int outbox_stream_look(outbox *ob, const struct outbox_stream *stream,
						   struct outbox_stream_info *ret_info,
						   struct outbox_error *err);

/*
 * End or restore a stream, in the open transaction. Events stay in the log, and the readers of the
 * log (relays) deliver them; reads of streams leave them out. An append that is under way in
 * another transaction may still commit. ARCHIVED may be undone by OPEN, which also brings back what
 * was truncated. TOMBSTONED is for ever: any other end of such a stream is OUTBOX_EENDED.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_stream_set_end(outbox *ob,
						      const struct outbox_stream *stream,
						      enum outbox_stream_end end,
						      struct outbox_error *err);
/* Reads of the stream begin at this version from now on; its version does not change. */
OUTBOX_API OUTBOX_NODISCARD int outbox_stream_truncate(outbox *ob,
						       const struct outbox_stream *stream,
						       int64_t first_version,
						       struct outbox_error *err);

#ifdef __cplusplus
}
#endif
#endif
