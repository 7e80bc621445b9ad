/* SPDX-License-Identifier: MIT */
/*
 * outbox: write a message into your own database, in your own transaction.
 * This header is the part that is the same on every database; the header of
 * your database (outbox/sqlite.h, ...) binds it to a connection.
 */
#ifndef OUTBOX_OUTBOX_H
#define OUTBOX_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OUTBOX_API       __attribute__((visibility("default")))
#define OUTBOX_NODISCARD __attribute__((warn_unused_result))
#else
#define OUTBOX_API
#define OUTBOX_NODISCARD
#endif

#define OUTBOX_VERSION        "0.1.0"
#define OUTBOX_VERSION_NUMBER 100 /* major * 10000 + minor * 100 + patch */

/*
 * How this API grows. New members are only ever appended to a struct, and a program built against
 * an older header keeps working with a newer library. Calls that take a struct without a member
 * `size` are inline functions that pass its size as your compiler has it to a function whose name
 * ends in _sized; a binding for another language calls that one. A library that is older than the
 * header refuses a struct that it does not know all of (OUTBOX_EINVAL).
 */

/* One list: the enum, outbox_strerror() and outbox_status_name() come from it. */
#define OUTBOX_STATUS_MAP(X) \
	X(OK, 0, "success") \
	X(EINVAL, -1, "invalid argument") \
	X(ENOMEM, -2, "out of memory") \
	X(ESTORE, -3, "the store refused or failed") \
	X(ESINK, -4, "the sink refused or failed") \
	X(ELEASE, -5, "the lease is held by another relay") \
	X(ECONFIG, -6, "bad configuration") \
	X(ENOTRANSACTION, -7, "no transaction is open on this connection") \
	X(EAGGREGATETYPE, -8, "aggregate_type is missing") \
	X(EEVENTTYPE, -9, "event_type is missing") \
	X(ENOPAYLOAD, -10, "payload is missing") \
	X(EPAYLOADJSON, -11, "payload is not valid JSON") \
	X(EHEADERSJSON, -12, "headers are not a valid JSON object") \
	X(ESNAPSHOTJSON, -13, "snapshot is not valid JSON") \
	X(EID, -14, "id is not a UUID, or is the nil UUID") \
	X(ETEXT, -15, "a text field is not valid UTF-8") \
	X(ETOOLONG, -16, "a field is longer than its bound") \
	X(EDUPID, -17, "a message with this id is already stored") \
	X(EDUPSEQUENCE, -18, "this aggregate already has a message with this sequence number") \
	X(ESCHEMA, -19, "the outbox tables are missing, older, newer or foreign") \
	X(ENOTFOUND, -20, "no such message") \
	X(EBUSY, -21, "the database is locked by another writer") \
	X(ESTATE, -22, "the message's state does not allow this") \
	X(ECONFLICT, -30, "the stream has another version than expected") \
	X(EENDED, -31, "the stream was archived or tombstoned") \
	X(ESERIALIZER, -32, "no serializer supports the event") \
	X(EEVENT, -33, "an event is of an unknown type or revision") \
	X(EKEY, -34, "the key is wrong, unknown or missing")

enum outbox_status {
#define OUTBOX_STATUS_VALUE_(name, value, text) OUTBOX_##name = (value),
	OUTBOX_STATUS_MAP(OUTBOX_STATUS_VALUE_)
#undef OUTBOX_STATUS_VALUE_
};

/* The text of a status; never NULL. */
OUTBOX_API const char *outbox_strerror(int status);
/* Its name without the prefix, "EDUPID"; never NULL. */
OUTBOX_API const char *outbox_status_name(int status);
/* The version of the library that is loaded; OUTBOX_VERSION is the header's. */
OUTBOX_API const char *outbox_version(void);

/* In outbox_error.index: the error is not about one message. */
#define OUTBOX_NO_INDEX ((size_t)-1)

/*
 * What went wrong, in one line. A call that fails fills all of it, a call that
 * succeeds writes nothing. Every call takes NULL instead. Its size never
 * changes: a new member will take its room from the end of `message`.
 */
struct outbox_error {
	int status;        /* enum outbox_status, what the call returned */
	size_t index;      /* which message of the call it is about, from 0; or OUTBOX_NO_INDEX */
	char native[16];   /* the database's own code: "SQLITE_2067", "23505", "1062"; or "" */
	char message[256]; /* one line, no full stop */
};

/* Bounds. Characters are Unicode code points. */
#define OUTBOX_TEXT_MAX    255            /* characters of a text field */
#define OUTBOX_PAYLOAD_MAX 33554432u      /* bytes of a payload, headers or snapshot: 32 MiB */
#define OUTBOX_BATCH_MAX   1000000u       /* messages of one call */
#define OUTBOX_DELAY_MAX   3155760000000u /* delay_ms: a hundred years */

/* Flags of a message. */
#define OUTBOX_TOMBSTONE 0x1u /* there is no payload on purpose: a NULL body is sent */

/*
 * A message to push. Written for designated initialisers: what is left out is
 * zero, and zero means the default. Text is UTF-8 and NUL-terminated. A size of
 * zero beside a pointer means "up to the terminating NUL". New members are
 * only ever appended.
 */
struct outbox_message {
	const char *aggregate_type; /* required: the stream, "order" */
	const char *aggregate_id;   /* which one: "1042" */
	const char *event_type;     /* required: "OrderPlaced" */
	const void *payload;        /* required, unless OUTBOX_TOMBSTONE: sent unchanged */
	size_t payload_size;
	const char *headers; /* a JSON object for the consumer */
	size_t headers_size;
	const char *id;            /* a UUID of any version; NULL: a version 7 is made */
	const char *partition_key; /* your own ordering key instead of type:id */
	const char *target;        /* which relay delivers it; NULL: "default" */
	const char *correlation_id;
	const char *causation_id;
	int64_t sequence_number; /* position in the aggregate, from 1; 0: none */
	int64_t occurred_at_us;  /* event time, us since 1970 UTC, year 1000 to 9999; 0: now */
	uint64_t delay_ms;       /* not before this long after now, by the database's clock */
	int32_t revision;        /* version of the payload's schema; 0: 1 */
	int32_t priority;        /* -32768..32767, higher first */
	const char *snapshot;    /* JSON: the aggregate's state at this event */
	size_t snapshot_size;
	unsigned flags; /* OUTBOX_TOMBSTONE */
};

/* An id in its canonical text form, 36 characters and a NUL. Never grows. */
struct outbox_id {
	char text[37];
};

/* Flags of the options. */
#define OUTBOX_NO_PAYLOAD_CHECK 0x1u /* do not check payload and snapshot as JSON before SQL */
#define OUTBOX_NO_HEADERS_CHECK 0x2u /* do not check headers before SQL */
#define OUTBOX_BINARY_PAYLOAD   0x4u /* the payload column holds bytes, not JSON */
#define OUTBOX_STRING_ID        0x8u /* the id column holds canonical text, not 16 bytes */

/* A column under another name; `name` NULL: the table has no such column. Never grows. */
struct outbox_column {
	const char *column; /* our name: "event_type" */
	const char *name;   /* the table's: "kind" */
};

/* How the table looks. NULL or all zero: the tables that `outbox setup` makes. */
struct outbox_options {
	const char *table; /* "outbox", "shop.outbox" */
	const struct outbox_column *columns;
	size_t column_count;
	unsigned flags; /* OUTBOX_NO_PAYLOAD_CHECK ... */
};

/* A writer bound to one of your own connections; use it from one thread at a time. */
typedef struct outbox outbox;

/* outbox_push(); `message_size` is sizeof(struct outbox_message) of the program that calls. */
OUTBOX_API OUTBOX_NODISCARD int outbox_push_sized(outbox *ob, const void *messages, size_t count,
						  size_t message_size, struct outbox_id *ret_ids,
						  struct outbox_error *err);

/*
 * Store `count` messages, in order, in the transaction that is open on the
 * connection. Refused (OUTBOX_ENOTRANSACTION) when none is open. Never
 * commits. Messages are checked before any SQL runs, one after the other; the
 * first fault is reported. When the call fails, nothing of it is stored and the
 * transaction stays usable, unless the message says otherwise: the database
 * itself may have rolled it back. `count` 0 succeeds and does nothing.
 * ret_ids: NULL, or room for `count` ids; written only on success.
 */
OUTBOX_NODISCARD static inline int outbox_push(outbox *ob, const struct outbox_message *messages,
					       size_t count, struct outbox_id *ret_ids,
					       struct outbox_error *err)
{
	return outbox_push_sized(ob, messages, count, sizeof(struct outbox_message), ret_ids, err);
}

/* Free the writer; NULL is allowed. The connection and its transaction are not touched. */
OUTBOX_API void outbox_close(outbox *ob);

/* A new UUID version 7. Ids of one process strictly increase, also across threads. */
OUTBOX_API struct outbox_id outbox_id_new(void);

#ifdef __cplusplus
}
#endif
#endif
