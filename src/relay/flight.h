/* SPDX-License-Identifier: MIT */
/*
 * The messages that a worker has in memory, from read to settle, and the rules of
 * order among them. A plain data structure: it calls neither store nor sink.
 *
 *   queued -> sent -> ok ------------------------> outcome (-> settling) -> settled
 *     ^         |                                    ^
 *     |         +---> failed -> judged by the worker +
 *     +--- sink down, sink reset: back to its place --+
 *
 * A key (or, with ordering partition, a partition) may have one sent message, or
 * many where the sink keeps order. When a message of a key fails for itself, what comes
 * after it in its key is parked: it becomes an outcome too, which makes it an exception
 * after the failed one. Rows of that key that a read brings are parked as well, until that is
 * settled and a read began afterwards: only such a read can have seen the exceptions (P3). A sent
 * message after a failed one that fails too is not charged: its failure says nothing about it.
 *
 * Keys are told apart by a 64-bit hash: two keys that collide are only kept in
 * order with each other.
 */
#ifndef OB_RELAY_FLIGHT_H
#define OB_RELAY_FLIGHT_H

#include "sink/sink.h"
#include "store/store.h"

enum {
	/* Reads whose messages are in memory. A slow receiver may pin one for each message. */
	OB_FLIGHT_BATCHES = 64,
	/* Partition numbers, of all lanes. */
	OB_FLIGHT_PARTITIONS = OB_LANES * OB_PARTITIONS_MAX,
};

struct ob_link {
	struct ob_link *prev, *next;
};

struct ob_flight_key;

/* What one read brought. Free when its last message has left. */
struct ob_flight_batch {
	struct ob_batch batch;
	uint32_t refs; /* its messages in memory; the fill itself counts as one */
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

enum ob_spill {
	OB_SPILL_NONE,
	OB_SPILL_WANTED,   /* the next settle makes it an exception */
	OB_SPILL_SETTLING, /* it is being settled as one */
};

struct ob_entry {
	struct ob_link by_state, by_key; /* first: lists of states, then of the key */
	struct ob_message *message;
	struct ob_flight_batch *batch;
	struct ob_flight_key *key; /* NULL: without order */
	enum ob_entry_state state;
	uint32_t serial;     /* of its sends: an answer to an earlier one is not for this one */
	uint64_t order;      /* of arrival: what is taken back goes to its place by this */
	uint64_t span;       /* of the log that waits for its outcome; 0: none does (any more) */
	bool ready;          /* queued, and may be sent now */
	bool counted;        /* the worker has counted its outcome */
	enum ob_spill spill; /* besides its state: it goes on all the while */
	struct ob_delivery delivery; /* the worker fills it when it sends */
	enum ob_err_kind failure;    /* FAILED, JUDGE */
	bool about_it;  /* the failure is the message's for certain: no sign of an outage */
	bool timed_out; /* the receiver was over its time */
	enum ob_outcome_kind outcome;
	int64_t delay_ms;
	char *error;      /* owned; NULL: none */
	int64_t since_us; /* when it was sent, then when its outcome was known */
};

struct ob_flight_conf {
	uint32_t max_messages;
	size_t max_bytes;
	enum ob_ordering ordering;
	bool pipelined;    /* many sent messages of one key at a time */
	bool hold_dead;    /* a dead message holds its key */
	bool hold_delayed; /* so does a delayed one */
};

struct ob_flight {
	struct ob_flight_conf conf;
	struct ob_entry *entries;
	struct ob_flight_key *keys, **buckets;
	uint32_t bucket_mask;
	int64_t *seqs;
	struct ob_link free_entries, free_keys;
	struct ob_link ready, sent, judge, outcomes, settling; /* entries by_state, oldest first */
	struct ob_flight_batch batches[OB_FLIGHT_BATCHES];
	uint64_t arrivals;
	size_t bytes;
	uint32_t count, queued, in_flight, unsettled, held_keys;
	uint32_t spills;    /* entries to spill */
	uint64_t forgotten; /* messages dropped unsettled, since the start */
	uint32_t of_partition[OB_FLIGHT_PARTITIONS], sent_of_partition[OB_FLIGHT_PARTITIONS];
};

int ob_flight_init(struct ob_flight *flight, const struct ob_flight_conf *conf, struct ob_err *err);
void ob_flight_done(struct ob_flight *flight);

/* ---- reading --------------------------------------------------------- */

/* A batch to fill, or NULL when all are in use. From here on the read has begun. */
struct ob_flight_batch *ob_flight_read_begin(struct ob_flight *flight);
/*
 * Take one message of the batch in; `span` is 0 for an exception. It is queued, or parked or
 * delayed at once (an outcome). False: no room; then nothing after it may be taken in either.
 */
bool ob_flight_take_in(struct ob_flight *flight, struct ob_flight_batch *batch,
		       struct ob_message *message, uint64_t span, int64_t now_us);
/* The batch is taken in, or the read failed. */
void ob_flight_read_end(struct ob_flight_batch *batch);
/* The seq of all exceptions in memory, ascending; valid until the next call. */
size_t ob_flight_exceptions(struct ob_flight *flight, const int64_t **ret_seqs);

/* ---- sending --------------------------------------------------------- */

/* The message to send next, or NULL. `skip` > 0 passes over so many, for probes; never over a key's
 * head. */
struct ob_entry *ob_flight_next(struct ob_flight *flight, uint32_t skip);
/* It goes to the sink. */
void ob_flight_sent(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us);
uint64_t ob_flight_tag(const struct ob_flight *flight, const struct ob_entry *entry);
/* The sent message of that tag, or NULL when it was taken back or forgotten meanwhile. */
struct ob_entry *ob_flight_find(struct ob_flight *flight, uint64_t tag);

/* ---- outcomes -------------------------------------------------------- */

/* The sink has it: an outcome to settle. */
void ob_flight_ok(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us);
/* A sent message failed; `error` is copied. It comes out of ob_flight_judge(), or was a follower
 * and is parked or queued again. */
void ob_flight_fail(struct ob_flight *flight, struct ob_entry *entry, enum ob_err_kind kind,
		    const char *error, int64_t now_us);
/* The next failure to decide, or NULL. */
struct ob_entry *ob_flight_judge(struct ob_flight *flight);
/* Decided: RETRY, DEAD or PUBLISHED, to be settled. What its key waits for until then is parked. */
void ob_flight_decide(struct ob_flight *flight, struct ob_entry *entry, enum ob_outcome_kind kind,
		      int64_t delay_ms, int64_t now_us);
/* Decided: it was not its fault. It is queued again, before what comes after it. */
void ob_flight_requeue(struct ob_flight *flight, struct ob_entry *entry);
/* The settle of this outcome has begun. */
void ob_flight_settle_begin(struct ob_flight *flight, struct ob_entry *entry);
/* That settle did not happen: an outcome again, before all others. */
void ob_flight_settle_failed(struct ob_flight *flight, struct ob_entry *entry);
/* Recorded: it leaves (a spilled one that was sent stays, as an exception). */
void ob_flight_settled(struct ob_flight *flight, struct ob_entry *entry);

/* ---- taking back and forgetting -------------------------------------- */

/* The sink was reset: all that is sent is queued again, in order. */
void ob_flight_unsend(struct ob_flight *flight);
/* All of a partition, whose lease is not ours any more, but for what is being settled. */
void ob_flight_drop_partition(struct ob_flight *flight, uint32_t partition);
/* One message that is queued or an outcome; its span stays open. */
void ob_flight_drop(struct ob_flight *flight, struct ob_entry *entry);
/* It becomes an exception with the next settle, so that its span waits no longer, and goes on. */
void ob_flight_spill(struct ob_flight *flight, struct ob_entry *entry);
/* A queued message becomes an exception with the next settle, and leaves. */
void ob_flight_give_up(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us);
/* It has an outcome of its own now. */
void ob_flight_unspill(struct ob_flight *flight, struct ob_entry *entry);
/* The failures that are not settled yet turned out to be an outage: queued again, but for those
 * that are about their message for certain. */
void ob_flight_undo_failures(struct ob_flight *flight);

/* ---- asking ---------------------------------------------------------- */

/* The oldest that is being settled, or NULL; older than any outcome. */
const struct ob_entry *ob_flight_settling(const struct ob_flight *flight);
/* The oldest outcome, or NULL; and the one after it. */
struct ob_entry *ob_flight_outcome(const struct ob_flight *flight);
struct ob_entry *ob_flight_outcome_next(const struct ob_flight *flight,
					const struct ob_entry *entry);
/* What stands for a message's key in the breaker's counts. */
uint64_t ob_flight_key_hash(const struct ob_flight *flight, const struct ob_message *message);

#endif
