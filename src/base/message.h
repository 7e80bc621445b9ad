/* SPDX-License-Identifier: MIT */
/* A message as it is read from a store and handed to a sink, and a batch of them. */
#ifndef OB_BASE_MESSAGE_H
#define OB_BASE_MESSAGE_H

#include "base/arena.h"
#include "base/uuid.h"

/* What stands in the status column. Readers also see "processing": see ob_message.locked_until_us.
 */
enum ob_state {
	OB_STATE_PENDING = 0,
	OB_STATE_PUBLISHED = 1,
	OB_STATE_FAILED = 2,     /* a retry is due at available_at; holds its key */
	OB_STATE_PARKED = 3,     /* behind a row that holds the key */
	OB_STATE_DEAD = -1,      /* given up, the key goes on */
	OB_STATE_DEAD_HOLD = -2, /* given up, the key waits for an operator; shown as dead */
};

/*
 * The states as people see and type them; one bit each, for filters.
 * "delayed" is pending but not yet due; "processing" is claimed by a row claim.
 */
#define OB_STATE_MAP(X) \
	X(PENDING, "pending") \
	X(DELAYED, "delayed") \
	X(PROCESSING, "processing") \
	X(FAILED, "failed") \
	X(PARKED, "parked") \
	X(DEAD, "dead") \
	X(PUBLISHED, "published")

enum ob_view {
#define X(name, text) OB_VIEW_##name,
	OB_STATE_MAP(X)
#undef X
		OB_VIEW_COUNT
};

/* One header, as text. */
struct ob_header {
	struct ob_str name, value;
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
	struct ob_str correlation_id, causation_id;
	struct ob_str key; /* the ordering key; p NULL: unordered */
	struct ob_str target;
	int64_t sequence_number; /* 0: none */
	int64_t occurred_at_us, created_at_us;
	int32_t revision, priority;
	uint32_t partition;
	uint32_t attempts;
	enum ob_state state;

	struct ob_str partition_key, snapshot, last_error, locked_by;
	int64_t available_at_us, published_at_us, locked_until_us; /* 0: not set */
};

/* The state as readers see it, at `now_us` of the database's clock. */
enum ob_view ob_message_view(const struct ob_message *message, int64_t now_us);
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
	size_t bytes; /* payload and headers, for limits */
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
