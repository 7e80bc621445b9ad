/* SPDX-License-Identifier: MIT */
/* A message as it is read from a store and handed to a sink, and a batch of them. */
#ifndef OB_BASE_MESSAGE_H
#define OB_BASE_MESSAGE_H

#include "base/arena.h"
#include "base/uuid.h"

/* The states of a message for one reader, as people see and type them; one bit each, for filters.
 */
#define OB_VIEW_MAP(X) \
	X(PENDING, "pending") \
	X(DELAYED, "delayed") \
	X(FAILED, "failed") \
	X(PARKED, "parked") \
	X(DEAD, "dead") \
	X(DISCARDED, "discarded") \
	X(PUBLISHED, "published")

enum ob_view {
#define X(name, text) OB_VIEW_##name,
	OB_VIEW_MAP(X)
#undef X
		OB_VIEW_COUNT
};

/* One header, as text. */
struct ob_header {
	struct ob_str name, value;
	bool json; /* the value is JSON other than a string: a number, a list ... */
};

/*
 * One row. Text that is NULL in the database has p == NULL. The memory is the
 * batch's. What a fetch does not need (the last block) it leaves zero; list
 * fills everything.
 */
struct ob_message {
	int64_t seq; /* insert order; never a cursor, never a dedup id */
	struct ob_uuid id;
	struct ob_str aggregate_type, aggregate_id, event_type;
	struct ob_str payload; /* p NULL: a tombstone */
	struct ob_str headers;
	struct ob_str snapshot; /* of the aggregate; a read brings it where a relay sends it */
	struct ob_str correlation_id, causation_id;
	struct ob_str key; /* the ordering key; p NULL: unordered */
	struct ob_str target;
	int64_t sequence_number; /* 0: none */
	int64_t occurred_at_us, created_at_us;
	int32_t revision, priority;
	uint32_t partition;
	int64_t available_at_us; /* 0: at once */
	uint64_t txid;           /* PostgreSQL: of its transaction; 0: not known */

	/* What the store says of it for the reader that asked. */
	uint32_t attempts;
	uint8_t state;       /* enum ob_state of its exception */
	bool excepted;       /* it has a row in the exceptions */
	struct ob_str queue; /* read: that row's; p NULL: none */
	bool held;           /* read: its queue has an exception */
	bool garbled;        /* its payload is encrypted, and was changed: it cannot be sent */
	bool delayed;        /* read: available_at lies ahead of the database's now */

	/* list only: */
	struct ob_str partition_key, last_error;
	enum ob_view view;
	int64_t due_us, since_us, published_at_us; /* 0: not set */
	int64_t payload_bytes;                     /* -1: a tombstone */
};

/* "pending" ...; and back: the view, or -1. */
const char *ob_view_name(enum ob_view view);
int ob_view_parse(const char *name);

/*
 * Messages that live and die together. A fill resets the batch first and
 * keeps its memory, so a loop over one batch does not allocate.
 */
struct ob_batch {
	struct ob_arena arena; /* everything the messages point to */
	struct ob_message *messages;
	uint32_t count, capacity;
	size_t bytes; /* payload, headers and snapshot, for limits */
};

enum { OB_BATCH_KEEP = 8 << 20 }; /* memory kept across resets */

void ob_batch_init(struct ob_batch *batch);
void ob_batch_reset(struct ob_batch *batch);
/* A zeroed message at the end; NULL when out of memory. Earlier pointers may move. */
struct ob_message *ob_batch_add(struct ob_batch *batch);
/* Copy every text of *message into the batch's arena; false when out of memory. */
bool ob_batch_own(struct ob_batch *batch, struct ob_message *message);
void ob_batch_done(struct ob_batch *batch);

#endif
