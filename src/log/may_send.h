/* SPDX-License-Identifier: MIT */
/*
 * May this message go now, and if not, why? The one answer: the worker asks it before each send,
 * `outbox why` and the monitor ask it for people, metrics count what waits by it. The rules and
 * their order are in may_send.c; whoever asks only gathers facts.
 */
#ifndef OB_LOG_MAY_SEND_H
#define OB_LOG_MAY_SEND_H

#include "base/message.h"

/* The reasons, in the order in which they are asked: the word is for programs, the text says what
 * stands in the way. */
#define OB_WHY_MAP(X) \
	X(NO_READER, "no_reader", "nobody has ever read its target") \
	X(FILTERED, "filtered", "the relay's patterns leave it out") \
	X(PUBLISHED, "published", "it is out") \
	X(DISCARDED, "discarded", "a person decided that it is not delivered") \
	X(DELAYED, "delayed", "it is not due yet") \
	X(RETRY_WAITS, "retry_waits", "it failed, and its next attempt is not due yet") \
	X(DEAD, "dead", "it was given up") \
	X(DEAD_HOLD, "dead_hold", "it was given up, and its key waits") \
	X(HELD, "held", "another message holds its key or partition") \
	X(PARKED, "parked", "it is parked, but nothing that holds it was found") \
	X(NO_WORKER, "no_worker", "nobody runs the reader") \
	X(NO_LEASE, "no_lease", "no worker holds its partition") \
	X(STOPPING, "stopping", "the worker is stopping") \
	X(STORE_DOWN, "store_down", "the database does not answer the worker") \
	X(CUT_OFF, "cut_off", "the worker cannot renew its leases") \
	X(SINK_FULL, "sink_full", "the sink takes no more until it has answered some") \
	X(SINK_DOWN, "sink_down", "the sink is down") \
	X(KEY_BUSY, "key_busy", "one before it in its key has no answer yet") \
	X(SUSPECT, "suspect", "the receiver hung up on a message, which is tried by itself") \
	X(HANDOVER, "handover", "its partition is being given to another worker") \
	X(LEASE_ENDS, "lease_ends", "its lease may end before the outcome is recorded") \
	X(LEASED, "leased", "nothing stands in the way: it should be on its way")

enum ob_why_reason {
#define X(name, word, text) OB_WHY_##name,
	OB_WHY_MAP(X)
#undef X
		OB_WHY_COUNT
};

/* The answer that lets a message go. */
#define OB_MAY_SEND OB_WHY_LEASED

/* What is known. Zero is no obstacle, so whoever asks sets what he knows and no more. */
struct ob_send_facts {
	/* the message, as the store has it for this reader */
	bool no_reader, filtered;
	enum ob_view view;
	bool waits_for_retry; /* FAILED: its next attempt is not due yet */
	bool dead_holds;      /* DEAD: it holds its key */
	bool no_holder;       /* PARKED: by whom is not known */

	/* who works on it */
	bool no_worker, no_lease;

	/* the worker */
	bool stopping;
	bool store_failed;   /* its last call failed ... */
	bool store_waits;    /* ... and the wait after that is not over */
	bool has_unrecorded; /* ... or there is something to record first */
	bool cut_off;        /* the connection that renews its leases is gone */
	bool sink_full, sink_down;

	/* its key in memory */
	bool key_held;      /* one that failed is not recorded yet */
	bool key_under_way; /* one is at the sink ... */
	bool keeps_order;   /* ... which keeps the order of a key by itself */

	/* the message in the worker */
	bool suspect_under_way;      /* one that must be by itself is at the sink */
	uint32_t under_way, company; /* messages at the sink; and so many may be beside this one */
	bool handover;               /* its partition is asked back */
	bool has_deadline;           /* of its lease: */
	int64_t now_us, send_until_us; /* what is sent later may not be recorded in time */
};

enum ob_why_reason ob_may_send(const struct ob_send_facts *facts);

/* "sink_down"; and back: the reason, or -1. */
const char *ob_why_name(enum ob_why_reason reason);
int ob_why_parse(const char *name);
/* What stands in the way, as part of a sentence. */
const char *ob_why_help(enum ob_why_reason reason);

#endif
