/* SPDX-License-Identifier: MIT */
/*
 * A sink for tests and the simulator: it stores into a log that any number of
 * sinks share, and behaves as its plan says. Two tables, since order in flight
 * is a capability: ob_sink_memory stores what comes, ob_sink_memory_ordered
 * stores nothing of a key behind a failure. poll() never waits: time is the test's.
 */
#ifndef OB_DOUBLES_MEMORY_SINK_H
#define OB_DOUBLES_MEMORY_SINK_H

#include "sink/sink.h"

#include <pthread.h>

extern const struct ob_sink_ops ob_sink_memory, ob_sink_memory_ordered;

/* One stored message; a repeated delivery is a second entry. */
struct ob_memsink_entry {
	uint64_t tag;
	int64_t seq;
	struct ob_uuid id;
	struct ob_str destination, key;
	struct ob_str body;    /* absent when the log keeps no bodies */
	struct ob_str headers; /* JSON, as in a line; absent likewise */
	struct ob_str snapshot;
	const char *sender; /* the plan's */
};

/* What was stored, in the order in which it was stored. */
struct ob_memsink_log {
	pthread_mutex_t lock; /* guards everything below; take it to read while sinks send */
	struct ob_arena arena;
	struct ob_memsink_entry *entries;
	size_t count, capacity;
	bool keep_bodies;
};

void ob_memsink_log_init(struct ob_memsink_log *log, bool keep_bodies);
void ob_memsink_log_done(struct ob_memsink_log *log);

/* What becomes of one message. All zero: stored and confirmed. */
struct ob_memsink_verdict {
	enum ob_err_kind kind; /* of the outcome: NONE, DOWN, RETRY or REJECT */
	bool stored;  /* with a kind: stored all the same, only the acknowledgement is lost */
	bool silent;  /* no outcome comes, ever; reset() forgets it */
	bool at_send; /* send() itself fails with `kind`; nothing is stored */
	bool hung_up; /* with DOWN: and the connection is lost, with all that is on it */
};

/* How a sink behaves. Belongs to the caller, who may change it between any two calls. */
struct ob_memsink_plan {
	struct ob_memsink_log *log; /* required; outlives the sink */
	const char *sender;         /* a label for the log's entries; outlives the log */
	uint32_t window;            /* unconfirmed at most; 0: 256. Read by the first open() */
	uint32_t ack_polls;         /* outcomes are ready after so many polls more */
	uint32_t acks_per_poll;     /* 0: no limit */
	int64_t ack_delay_us;       /* and so long after send(), by the sink's clock */
	uint64_t shuffle;           /* a seed for the order of outcomes; 0: as sent */
	bool store_late;            /* when the outcome comes out, not at send() */
	bool down;                  /* the peer is away: open, send and all outcomes are DOWN */
	struct ob_memsink_verdict (*judge)(void *arg, const struct ob_delivery *delivery);
	void *judge_arg;
	uint32_t resets;      /* written by the sink: how often it forgot something unconfirmed */
	uint32_t losses;      /* how often the connection was lost over a message */
	uint32_t unconfirmed; /* and how much is under way */
};

/* `ops` is one of the two tables above. On success the caller owns *ret_sink. */
int ob_memsink_new(const struct ob_sink_ops *ops, struct ob_memsink_plan *plan,
		   const struct ob_clock *clock, struct ob_sink **ret_sink, struct ob_err *err);

#endif
