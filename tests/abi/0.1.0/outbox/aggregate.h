/* SPDX-License-Identifier: MIT */
/*
 * Aggregates over streams of events: load one (its snapshot and the events after it), record new
 * events, store them in one call. And upcasters, which read events of an older schema as events of
 * today's.
 */
#ifndef OUTBOX_AGGREGATE_H
#define OUTBOX_AGGREGATE_H

#include <outbox/serialize.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- upcasters ------------------------------------------------------- */

typedef struct outbox_upcast outbox_upcast;

/*
 * Turns the events of one type and revision into others. A list is walked once, forward: what an
 * upcaster makes is seen by those after it, so a chain from revision 1 to 3 stands in that order.
 */
struct outbox_upcaster {
	const char *event_type;
	int32_t revision;
	/* Call outbox_upcast_emit() for each event that this one becomes: one, several, or none.
	 * 0, or a negative status with *err filled. A pure function of the event. */
	int (*upcast)(const struct outbox_upcaster *self, const struct outbox_event *event,
		      outbox_upcast *out, struct outbox_error *err);
	const void *arg;
};

/* NULL as event_type: the same. `revision` 0: one higher. The payload is copied; size 0: up to the
 * NUL. */
OUTBOX_API void outbox_upcast_emit(outbox_upcast *out, const char *event_type, int32_t revision,
				   const void *payload, size_t payload_size);

struct outbox_upcasted {
	size_t size;
	const struct outbox_event *events; /* what it is today; all have the version it has */
	size_t count;
	size_t applied;      /* upcasters */
	const char *history; /* "Opened 1 > Opened 2", separated by commas; "" when none applied */
};

/* A list of upcasters (the last is NULL) with its memory; use it from one thread at a time. */
OUTBOX_API outbox_upcast *outbox_upcast_new(const struct outbox_upcaster *const *list);
OUTBOX_API void outbox_upcast_free(outbox_upcast *upcast); /* NULL is allowed */
/* Read one event; *ret is valid until the next call, and as long as *event is. */
OUTBOX_API OUTBOX_NODISCARD int outbox_upcast_event(outbox_upcast *upcast,
						    const struct outbox_event *event,
						    struct outbox_upcasted *ret,
						    struct outbox_error *err);

/* ---- aggregates ------------------------------------------------------ */

/* An event type that an aggregate knows, in its revision of today; the last has no event_type. */
struct outbox_event_kind {
	const char *event_type;
	int32_t revision; /* 0: 1 */
};

/* What kind of aggregate it is. */
struct outbox_aggregate_type {
	size_t size;
	const char *name;   /* of its streams: "account" */
	const char *target; /* NULL: "default" */
	size_t state_size;  /* of your struct; all zero before the first event */
	/*
	 * Change the state by one event, which is upcast. `memory` lives as long as the aggregate.
	 * 0, or a negative status with *err filled.
	 */
	int (*apply)(void *state, const struct outbox_event *event, outbox_text *memory,
		     struct outbox_error *err);
	/* NULL: apply() knows. Else an event of another type, or one whose revision no upcaster
	 * leads to today's, is OUTBOX_EEVENT. */
	const struct outbox_event_kind *kinds;
	const struct outbox_upcaster *const *upcasters; /* NULL: none */
	const struct outbox_serializers *serializers;   /* of the events that are recorded */
	/* Snapshots, in a table beside the log. NULL: none. */
	const struct outbox_field *state_fields;
	int32_t state_revision; /* of the state's own schema; a snapshot of another is ignored */
	int64_t snapshot_every; /* at each multiple of so many events that a store reaches or
				   passes; 0: only by outbox_aggregate_snapshot() */
};

typedef struct outbox_aggregate outbox_aggregate;

/* What is to be loaded; zero is the present. */
struct outbox_load {
	size_t size;
	int64_t to_version; /* the state after this event; a newer snapshot is not used */
	int64_t to_us;      /* as it was at this time, by created_at; no snapshot is used */
	int no_snapshot;    /* 1: from the first event on */
};

/*
 * Load an aggregate: its snapshot, if there is one that can be read, and every event after it. One
 * that has no events is new: version 0. `load` may be NULL. A stream that ended is OUTBOX_EENDED, a
 * gap in its versions OUTBOX_ESTATE. On success the caller owns *ret.
 */
OUTBOX_API OUTBOX_NODISCARD int
outbox_aggregate_load(outbox *ob, const struct outbox_aggregate_type *type, const char *id,
		      const struct outbox_load *load, outbox_aggregate **ret,
		      struct outbox_error *err);
OUTBOX_API void outbox_aggregate_free(outbox_aggregate *aggregate); /* NULL is allowed */

/* Your struct. It is changed by apply() alone. */
OUTBOX_API const void *outbox_aggregate_state(const outbox_aggregate *aggregate);
/* Of its last event, recorded ones counted. */
OUTBOX_API int64_t outbox_aggregate_version(const outbox_aggregate *aggregate);
/* The version of the snapshot that it was loaded from; 0: none. */
OUTBOX_API int64_t outbox_aggregate_snapshot_version(const outbox_aggregate *aggregate);

/*
 * Record an event: its version is one higher, and it is applied to the state. `more` is NULL or has
 * correlation_id, causation_id, headers, id ... Correlation and causation that are left out are
 * those of the event before. Nothing is written; what `event` points to is serialized now.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_aggregate_record(outbox_aggregate *aggregate,
							const char *event_type, const void *event,
							const struct outbox_message *more,
							struct outbox_error *err);
/* How many are recorded. They are never cleared. */
OUTBOX_API size_t outbox_aggregate_recorded(const outbox_aggregate *aggregate);

/*
 * Append what was recorded, in the open transaction, expecting the version that was loaded; and
 * keep a snapshot if the policy says so. Nothing recorded: nothing is written. An aggregate is
 * stored once: a second time is OUTBOX_EDUPID, unless the first was rolled back.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_aggregate_store(outbox *ob, outbox_aggregate *aggregate,
						       struct outbox_appended *ret_done,
						       struct outbox_error *err);
/* Keep a snapshot of a stored aggregate now, in the open transaction. */
OUTBOX_API OUTBOX_NODISCARD int outbox_aggregate_snapshot(outbox *ob, outbox_aggregate *aggregate,
							  struct outbox_error *err);

#ifdef __cplusplus
}
#endif
#endif
