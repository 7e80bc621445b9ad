/* SPDX-License-Identifier: MIT */
/* Why a reader has not delivered a message yet, as far as the store can tell. */
#ifndef OB_OPERATE_WHY_H
#define OB_OPERATE_WHY_H

#include "base/jout.h"
#include "config/config.h"

/* The reasons; the text is for programs. */
#define OB_WHY_MAP(X) \
	X(PUBLISHED, "published") \
	X(DISCARDED, "discarded")     /* a person decided that it is not delivered */ \
	X(FILTERED, "filtered")       /* the relay's patterns leave it out */ \
	X(DELAYED, "delayed")         /* not due yet */ \
	X(RETRY_WAITS, "retry_waits") /* failed, the next attempt is not due yet */ \
	X(HELD, "held")               /* another message holds its key or partition */ \
	X(PARKED, "parked")           /* parked, but nothing that holds it was found */ \
	X(DEAD, "dead") \
	X(DEAD_HOLD, "dead_hold") /* dead, and its key waits */ \
	X(NO_READER, "no_reader") /* nobody has ever read its target */ \
	X(NO_WORKER, "no_worker") /* nobody runs the reader */ \
	X(NO_LEASE, "no_lease")   /* workers are there, but none has its partition */ \
	X(SINK_DOWN, "sink_down") /* a worker has its partition, and the sink is down */ \
	X(LEASED, "leased")       /* a worker has its partition: it should be on its way */

enum ob_why_reason {
#define X(name, text) OB_WHY_##name,
	OB_WHY_MAP(X)
#undef X
};

struct ob_why {
	const char *reader;               /* NULL: NO_READER */
	const struct ob_message *message; /* the caller's */
	int64_t now_us;
	enum ob_why_reason reason;
	bool has_holder;          /* HELD */
	struct ob_message holder; /* its texts live in `batch` */
	struct ob_worker
		worker; /* LEASED, SINK_DOWN: the owner of the lease; pid 0: not known by name */
	int64_t lease_until_us; /* likewise */
	bool has_report;        /* what that worker tells is known: */
	struct ob_worker_report report;
	size_t workers; /* alive on the reader */
	bool no_relay;  /* the configuration has relays, but none of this reader or target */
	uint32_t hash;  /* its partition without the lane */
	bool has_pos;   /* `pos` is known: where the reader stands in its partition */
	int64_t pos;
	struct ob_batch batch;
	struct ob_arena arena;
};

/*
 * Find the reason for one message as `reader` sees it; NULL: nobody reads its target. `config` may
 * have no relays. The caller ends *why in every case.
 */
int ob_why_find(struct ob_why *why, struct ob_store *store, const struct ob_config *config,
		const char *reader, const struct ob_message *message, int64_t now_us,
		struct ob_err *err);
const char *ob_why_name(enum ob_why_reason reason);
/* Sentences for people: what the matter is, and what can be done. Not yet safe to print. */
void ob_why_text(const struct ob_why *why, struct ob_buf *out);
/* The same with its subject, "Message 0196... "; the reader is named only with `several`. */
void ob_why_sentence(const struct ob_why *why, bool several, struct ob_buf *out);
/* Append one object about it; `text` is its sentence. */
void ob_why_json(struct ob_jout *j, const struct ob_why *why, struct ob_str text);
void ob_why_done(struct ob_why *why);

#endif
