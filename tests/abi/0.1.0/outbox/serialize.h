/* SPDX-License-Identifier: MIT */
/*
 * From your own structs to messages and back. A record is an event as your program has it;
 * serializers turn it into the payload and the snapshot of a message, translators turn a domain
 * event into the integration event that is stored.
 *
 *	struct opened { const char *owner; int64_t limit; };
 *	static const struct outbox_field opened_fields[] = {
 *		OUTBOX_FIELD(struct opened, owner, OUTBOX_TEXT),
 *		OUTBOX_FIELD(struct opened, limit, OUTBOX_INTEGER),
 *		OUTBOX_FIELDS_END,
 *	};
 *	static const struct outbox_shape shapes[] = { { "Opened", opened_fields }, { NULL, NULL } };
 *	static const struct outbox_serializer structs = OUTBOX_STRUCT_SERIALIZER(shapes);
 *	static const struct outbox_serializer *const list[] = { &structs, NULL };
 *	static const struct outbox_serializers how = { .payload = list };
 */
#ifndef OUTBOX_SERIALIZE_H
#define OUTBOX_SERIALIZE_H

#include <outbox/events.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An event, before it is a message. */
struct outbox_record {
	size_t size;
	/* All but payload and snapshot: event_type is required, a stream is set by the append. */
	struct outbox_message message;
	const void *event; /* your struct, or whatever your serializers take */
	size_t event_size; /* of raw bytes; 0: up to the terminating NUL */
	const void *state; /* of the aggregate after this event, for the snapshot; NULL: none */
	size_t state_size;
};

/* What is written; and memory that lives as long as the call. */
typedef struct outbox_text outbox_text;
/* Append bytes. Once it is out of memory it takes no more, and the call fails. */
OUTBOX_API void outbox_text_add(outbox_text *out, const void *bytes, size_t size);
/* Append a JSON string with its quotes; NULL becomes null. */
OUTBOX_API void outbox_text_add_string(outbox_text *out, const char *text);
/* Zeroed memory up to the end of the call, or NULL. */
OUTBOX_API void *outbox_text_alloc(outbox_text *out, size_t size);

/*
 * One serializer. Lists are asked in their order, and the first that supports a record is used;
 * both functions get the whole record.
 */
struct outbox_serializer {
	const char *name; /* for messages */
	/* Nonzero: it takes this record. NULL: it takes every record. */
	int (*supports)(const struct outbox_serializer *self, const struct outbox_record *record);
	/*
	 * Write the document. 0, or a negative status with *err filled (`err` is never NULL): then
	 * nothing of the call is stored.
	 */
	int (*serialize)(const struct outbox_serializer *self, const struct outbox_record *record,
			 outbox_text *out, struct outbox_error *err);
	const void *arg; /* the serializer's own */
};

/* The first that supports a record replaces it: *ret is a copy of it, to be changed. */
struct outbox_translator {
	const char *name;
	int (*supports)(const struct outbox_translator *self, const struct outbox_record *record);
	/* `memory` is for what *ret points to. Results as serialize() has them. */
	int (*translate)(const struct outbox_translator *self, const struct outbox_record *record,
			 struct outbox_record *ret, outbox_text *memory, struct outbox_error *err);
	const void *arg;
};

/* How records become messages. Lists end with NULL. */
struct outbox_serializers {
	size_t size;
	const struct outbox_serializer *const *payload;  /* required */
	const struct outbox_serializer *const *snapshot; /* of records with a state; NULL: none */
	const struct outbox_translator *const *translators; /* NULL: none */
};

/*
 * Translate, serialize, and push or append: as outbox_push() and outbox_append(), whose rules hold.
 * Everything is serialized before any SQL runs. A record that no serializer supports is
 * OUTBOX_ESERIALIZER; a document that is not JSON is OUTBOX_EPAYLOADJSON or OUTBOX_ESNAPSHOTJSON.
 * Each names the event.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_push_records(outbox *ob,
						    const struct outbox_serializers *how,
						    const struct outbox_record *records,
						    size_t count, struct outbox_id *ret_ids,
						    struct outbox_error *err);
OUTBOX_API OUTBOX_NODISCARD int
outbox_append_records(outbox *ob, const struct outbox_stream *stream, int64_t expected,
		      const struct outbox_serializers *how, const struct outbox_record *records,
		      size_t count, struct outbox_id *ret_ids, struct outbox_appended *ret_done,
		      struct outbox_error *err);

/* ---- raw ------------------------------------------------------------- */

/* The event (the state) is the document itself. */
OUTBOX_API int outbox_serialize_raw(const struct outbox_serializer *self,
				    const struct outbox_record *record, outbox_text *out,
				    struct outbox_error *err);
#define OUTBOX_RAW_SERIALIZER \
	{ \
		"raw", NULL, outbox_serialize_raw, NULL \
	}

/* ---- structs --------------------------------------------------------- */

/* What a member of a struct is, and what it becomes in JSON. */
enum outbox_field_kind {
	OUTBOX_TEXT,     /* const char *: a string; NULL: null */
	OUTBOX_CHARS,    /* char [n], NUL-terminated: a string */
	OUTBOX_INTEGER,  /* a signed integer of 1, 2, 4 or 8 bytes: a number */
	OUTBOX_UNSIGNED, /* an unsigned one */
	OUTBOX_DOUBLE,   /* double: a number with as many digits as it needs */
	OUTBOX_BOOLEAN,  /* bool, or an integer of 1, 2, 4 or 8 bytes */
	OUTBOX_TIME,     /* int64_t, microseconds since 1970 UTC: "2026-05-01T12:00:00.123456Z" */
	OUTBOX_UUID,     /* 16 bytes: the canonical text */
	OUTBOX_JSON,     /* const char *: JSON as it is; NULL: null */
	OUTBOX_STRUCT,   /* another struct: an object */
};

/* One member. Made by the macros below. */
struct outbox_field {
	const char *name; /* in the JSON; NULL: the end */
	enum outbox_field_kind kind;
	size_t offset, size;               /* in the struct; of one value */
	const struct outbox_field *fields; /* of a STRUCT */
	/* An array: a pointer to values, and how many. 1: `count` is the offset of a size_t. 2: the
	 * member is an array of `count` values. */
	int array;
	size_t count;
	/* Optional: 1: left out while the bool at `has` is false. 2: while the pointer is NULL. */
	int optional;
	size_t has;
};

/* A member. */
#define OUTBOX_FIELD(type, member, kind) \
	{ \
#member, kind, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0, 0, 0, \
			0 \
	}
/* A TEXT or JSON that is left out when it is NULL. */
#define OUTBOX_FIELD_OR_NULL(type, member, kind) \
	{ \
#member, kind, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0, 0, 2, \
			0 \
	}
/* A member that is left out while the bool `has_member` is false. */
#define OUTBOX_FIELD_IF(type, member, kind, has_member) \
	{ \
#member, kind, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0, 0, 1, \
			offsetof(type, has_member) \
	}
/* A struct in the struct, with its own table. */
#define OUTBOX_FIELD_STRUCT(type, member, table) \
	{ \
#member, OUTBOX_STRUCT, offsetof(type, member), sizeof(((type *)0)->member), \
			table, 0, 0, 0, 0 \
	}
/* A pointer to values, and the size_t that says how many there are. */
#define OUTBOX_FIELD_LIST(type, member, kind, count_member) \
	{ \
#member, kind, offsetof(type, member), sizeof(*((type *)0)->member), NULL, 1, \
			offsetof(type, count_member), 0, 0 \
	}
#define OUTBOX_FIELD_STRUCT_LIST(type, member, table, count_member) \
	{ \
#member, OUTBOX_STRUCT, offsetof(type, member), sizeof(*((type *)0)->member), \
			table, 1, offsetof(type, count_member), 0, 0 \
	}
/* An array of a fixed length. */
#define OUTBOX_FIELD_ARRAY(type, member, kind) \
	{ \
#member, kind, offsetof(type, member), sizeof(((type *)0)->member[0]), NULL, 2, \
			sizeof(((type *)0)->member) / sizeof(((type *)0)->member[0]), 0, 0 \
	}
#define OUTBOX_FIELDS_END \
	{ \
		NULL, OUTBOX_TEXT, 0, 0, NULL, 0, 0, 0, 0 \
	}

/* Which table an event's struct has; the last has no event_type. */
struct outbox_shape {
	const char *event_type;
	const struct outbox_field *fields;
};

OUTBOX_API int outbox_supports_struct(const struct outbox_serializer *self,
				      const struct outbox_record *record);
OUTBOX_API int outbox_serialize_struct(const struct outbox_serializer *self,
				       const struct outbox_record *record, outbox_text *out,
				       struct outbox_error *err);
/* For lists of payloads: the struct of each event type. */
#define OUTBOX_STRUCT_SERIALIZER(shapes) \
	{ \
		"struct", outbox_supports_struct, outbox_serialize_struct, shapes \
	}
OUTBOX_API int outbox_serialize_state(const struct outbox_serializer *self,
				      const struct outbox_record *record, outbox_text *out,
				      struct outbox_error *err);
/* For lists of snapshots: the state is a struct with this table. */
#define OUTBOX_STATE_SERIALIZER(fields) \
	{ \
		"state", NULL, outbox_serialize_state, fields \
	}

/* A struct as a JSON object; what no JSON has (not a number, invalid UTF-8) is
 * OUTBOX_EPAYLOADJSON and names the member. */
OUTBOX_API OUTBOX_NODISCARD int outbox_struct_write(const struct outbox_field *fields,
						    const void *from, outbox_text *out,
						    struct outbox_error *err);
/*
 * And back: read an object into a zeroed struct. Members that the table does not have are passed
 * over; one that is missing, or of another type, is OUTBOX_EPAYLOADJSON and names it, unless it is
 * optional. Texts and lists are in memory of `memory`.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_struct_read(const struct outbox_field *fields,
						   const void *json, size_t size, void *to,
						   outbox_text *memory, struct outbox_error *err);

/* A text of your own, to write into and to allocate from; NULL: out of memory. */
OUTBOX_API outbox_text *outbox_text_new(void);
OUTBOX_API void outbox_text_free(outbox_text *text); /* NULL is allowed */
/* What was written, with a NUL behind it; NULL: it ran out of memory. */
OUTBOX_API const char *outbox_text_get(const outbox_text *text, size_t *ret_size);
/* Begin anew: what was written and allocated is gone. */
OUTBOX_API void outbox_text_clear(outbox_text *text);

#ifdef __cplusplus
}
#endif
#endif
