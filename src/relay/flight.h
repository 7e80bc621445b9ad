/* SPDX-License-Identifier: MIT */
/*
 * The messages that a worker has in memory, from fetch to settle, and the rules of
 * order among them. A plain data structure: it calls neither store nor sink.
 *
 *   queued -> sent -> ok ------------------------> outcome (-> settling) -> settled
 *               |                                    ^
 *               +---> failed -> judged by the worker +
 *
 * A key (or, with ordering partition, a partition) may have one sent message, or
 * many where the sink keeps order. When a message of a key fails, what is
 * queued behind it is dropped (its rows are untouched) and the key is held: rows of it
 * are ignored, until all its sent messages have an outcome, its failure is settled or forgotten,
 * and a fetch began after that. A sent message behind a failed one that fails too
 * is dropped: its failure says nothing about it.
 *
 * Keys are told apart by a 64-bit hash: two keys that collide are only kept in
 * order with each other.
 */
#ifndef OB_RELAY_FLIGHT_H
#define OB_RELAY_FLIGHT_H

#include "sink/sink.h"
#include "store/store.h"

enum { OB_FLIGHT_BATCHES = 16 };

struct ob_link {
	struct ob_link *prev, *next;
};

struct ob_flight_key;

/* What one fetch brought. Free when its last message has left. */
struct ob_flight_batch {
	struct ob_batch batch;
	uint32_t refs;        /* its messages in memory; the fill itself counts as one */
	struct ob_uuid token; /* of a row claim */
	int64_t deadline_us;  /* of a row claim, boot clock */
};

enum ob_entry_state {
	OB_ENTRY_FREE,
	OB_ENTRY_QUEUED,
	OB_ENTRY_SENT,
	OB_ENTRY_FAILED,   /* one before it is still unconfirmed */
	OB_ENTRY_JUDGE,    /* failed by itself: the worker decides */
	OB_ENTRY_OUTCOME,  /* to be settled */
	OB_ENTRY_SETTLING, /* it is being settled: not to be touched, whatever else happens */
};

struct ob_entry {
	struct ob_link by_state, by_key; /* first: lists of states, then of the key */
	const struct ob_message *message;
	struct ob_flight_batch *batch;
	struct ob_flight_key *key; /* NULL: without order */
	enum ob_entry_state state;
	uint32_t serial;
	bool ready;                  /* queued, and may be sent now */
	struct ob_delivery delivery; /* the worker fills it when it sends */
	enum ob_err_kind failure;    /* FAILED, JUDGE */
	enum ob_outcome_kind outcome;
	int64_t delay_ms;
	char *error;      /* owned; NULL: none */
	int64_t since_us; /* when it was sent, then when its outcome was known */
};

struct ob_flight_conf {
	uint32_t max_messages;
	size_t max_bytes;
	enum ob_ordering ordering;
	bool pipelined; /* many sent messages of one key at a time */
	bool claims;    /* row claims: what is dropped must be released */
};

struct ob_flight {
	struct ob_flight_conf conf;
	struct ob_entry *entries;
	struct ob_flight_key *keys, **buckets;
	uint32_t bucket_mask;
	int64_t *seqs;
	struct ob_link free_entries, free_keys, idle_keys;
	struct ob_link ready, sent, judge, outcomes, settling; /* entries by_state, oldest first */
	struct ob_flight_batch batches[OB_FLIGHT_BATCHES];
	uint64_t generation; /* of the last fetch that began */
	bool fetching;
	int64_t cursor; /* highest seq seen; only a mutant looks at it */
	size_t bytes;
	uint32_t count, queued, in_flight, unsettled, held_keys;
	uint64_t forgotten; /* messages dropped unsettled, since the start */
	uint32_t of_partition[OB_PARTITIONS_MAX], sent_of_partition[OB_PARTITIONS_MAX];
};

int ob_flight_init(struct ob_flight *flight, const struct ob_flight_conf *conf, struct ob_err *err);
void ob_flight_done(struct ob_flight *flight);

/* ---- fetching -------------------------------------------------------- */

/* A batch to fill, or NULL when all are in use. From here on the fetch has begun. */
struct ob_flight_batch *ob_flight_fetch_begin(struct ob_flight *flight);
/* Take in what the batch holds now (0 messages after a failure); returns how many were accepted. */
uint32_t ob_flight_fetch_end(struct ob_flight *flight, struct ob_flight_batch *batch);
/* The seq of everything in memory, ascending; valid until the next call. */
size_t ob_flight_seqs(struct ob_flight *flight, const int64_t **ret_seqs);

/* ---- sending --------------------------------------------------------- */

/* The message to send next, or NULL. `skip` > 0 passes over so many, for probes; never over a key's
 * head. */
struct ob_entry *ob_flight_next(struct ob_flight *flight, uint32_t skip);
/* It goes to the sink. */
void ob_flight_sent(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us);
uint64_t ob_flight_tag(const struct ob_flight *flight, const struct ob_entry *entry);
/* The sent message of that tag, or NULL when it was forgotten meanwhile. */
struct ob_entry *ob_flight_find(struct ob_flight *flight, uint64_t tag);

/* ---- outcomes -------------------------------------------------------- */

/* The sink has it: an outcome to settle. */
void ob_flight_ok(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us);
/* A sent message failed; `error` is copied. It comes out of ob_flight_judge(), or was a follower
 * and is gone. */
void ob_flight_fail(struct ob_flight *flight, struct ob_entry *entry, enum ob_err_kind kind,
		    const char *error);
/* The next failure to decide, or NULL. */
struct ob_entry *ob_flight_judge(struct ob_flight *flight);
/* Decided: RETRY or DEAD, to be settled. Its key stays held until then. */
void ob_flight_decide(struct ob_flight *flight, struct ob_entry *entry, enum ob_outcome_kind kind,
		      int64_t delay_ms, int64_t now_us);
/* It is being settled beside us. */
void ob_flight_settle_begin(struct ob_flight *flight, struct ob_entry *entry);
/* All of that has failed: outcomes again, the oldest of all. */
void ob_flight_settle_failed(struct ob_flight *flight);
/* Recorded: it leaves. */
void ob_flight_settled(struct ob_flight *flight, struct ob_entry *entry);

/* ---- forgetting: rows stay as they are (a row claim is given back) ---- */

/* One message in whatever state; what is queued behind a sent one goes too. */
void ob_flight_drop(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us);
/* All that is queued, of one partition or (-1) of all. */
void ob_flight_drop_queued(struct ob_flight *flight, int64_t partition, int64_t now_us);
/* All that is sent: the sink was reset. */
void ob_flight_drop_sent(struct ob_flight *flight, int64_t now_us);
/* All of a partition that is not ours any more, but for what is being settled. */
void ob_flight_drop_partition(struct ob_flight *flight, uint32_t partition, int64_t now_us);
/* All failures that are not settled yet: they turned out to be an outage. */
void ob_flight_drop_failures(struct ob_flight *flight, int64_t now_us);

/* ---- looking --------------------------------------------------------- */

/* The oldest that is being settled, or NULL; older than any outcome. */
const struct ob_entry *ob_flight_settling(const struct ob_flight *flight);
/* The oldest outcome, or NULL; and the one behind it. */
struct ob_entry *ob_flight_outcome(const struct ob_flight *flight);
struct ob_entry *ob_flight_outcome_next(const struct ob_flight *flight,
					const struct ob_entry *entry);
/* What stands for a message's key in the breaker's counts. */
uint64_t ob_flight_key_hash(const struct ob_flight *flight, const struct ob_message *message);

#endif
