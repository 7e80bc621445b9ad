/* SPDX-License-Identifier: MIT */
/*
 * The consumer's side of a store: what `outbox setup --inbox` makes. Its operations are the same in
 * every SQL database (store/sql/inbox.c, parked.c). The rules of store.h hold: time is the
 * database's, DOWN passes by itself, FATAL needs a person. Without the tables: OUTBOX_ESCHEMA.
 *
 * Operations named _tx_ run inside the transaction of ob_store_tx_begin(); if one fails, that
 * transaction is undone and only ob_store_tx_end(false) may follow. The others are a transaction of
 * their own.
 */
#ifndef OB_STORE_INBOX_H
#define OB_STORE_INBOX_H

#include "store/store.h"

enum { OB_CONSUMER_MAX = 200, OB_INBOX_ID_MAX = 255, OB_PLACE_MAX = 480 };

/* For these operations: OUTBOX_ESCHEMA says which command makes the tables. */
int ob_inbox_explain(int r, struct ob_err *err);

/* Are the tables there? Says yes where the first query can find that out at no cost. */
int ob_inbox_exists(struct ob_store *store, bool *ret_exists, struct ob_err *err);

/* ---- what was handled ------------------------------------------------ */

/*
 * Is a message new to the consumer? If so it counts as handled once the transaction commits. When
 * another transaction handles the same id at the moment, waits for its end; where the database does
 * not wait that long: DOWN, nothing is decided.
 */
int ob_inbox_tx_add(struct ob_store *store, const char *consumer, struct ob_str id, bool *ret_new,
		    struct ob_err *err);
/* Forget up to `limit` ids that were handled at least age_ms ago, of all consumers. */
int ob_inbox_purge(struct ob_store *store, int64_t age_ms, uint32_t limit, uint64_t *ret_removed,
		   struct ob_err *err);

/* ---- who consumes ---------------------------------------------------- */

/* A consumer's lease. The epoch grows with every new owner: writes of older ones are refused. */
struct ob_consumer_lease {
	const char *consumer;
	struct ob_uuid owner;
	uint64_t epoch; /* 0: not held */
};

/* A process that consumes: works, or stands by. Its id is the `owner` of its lease. */
struct ob_consumer_member {
	struct ob_str consumer;
	struct ob_uuid id;
	struct ob_str hostname;
	int32_t pid;
	struct ob_str state; /* what it tells: base/consumer_report.h */
	/* Of a list: */
	int64_t started_at_us, heartbeat_until_us;
	bool alive; /* its heartbeat is valid */
};

/*
 * What a consumer has done since its last renewal; lag and oldest are the source's, -1: unknown.
 * The member's hostname, pid and state replace what it told before.
 */
struct ob_consumer_beat {
	uint64_t handled, duplicates, failed;
	int64_t lag, oldest_us;
	struct ob_consumer_member member; /* consumer and id are the lease's */
};

/* Make the consumer's row, or note another source in it. */
int ob_consumer_make(struct ob_store *store, const char *consumer, struct ob_str source,
		     struct ob_err *err);
/*
 * Take the lease if it is free, over, or ours: 1 and lease->epoch. 0: someone else has it for
 * another *ret_wait_ms.
 */
int ob_consumer_take(struct ob_store *store, struct ob_consumer_lease *lease, int64_t ttl_ms,
		     int64_t *ret_wait_ms, struct ob_err *err);
/* Extend it and write the counts; LOST when it is not ours any more. */
int ob_consumer_renew(struct ob_store *store, const struct ob_consumer_lease *lease, int64_t ttl_ms,
		      const struct ob_consumer_beat *beat, struct ob_err *err);
/*
 * Of a process without the lease: add the counts and write its report, valid for ttl_ms. As with a
 * renewal, members of the consumer that have been silent for an hour are forgotten.
 */
int ob_consumer_tell(struct ob_store *store, const struct ob_consumer_lease *lease, int64_t ttl_ms,
		     const struct ob_consumer_beat *beat, struct ob_err *err);
/* Give it back and forget the member; not an error when they are gone. */
int ob_consumer_release(struct ob_store *store, const struct ob_consumer_lease *lease,
			struct ob_err *err);
/* The fence: LOST unless the lease is ours, and nobody takes it before the transaction ends. */
int ob_consumer_tx_fence(struct ob_store *store, const struct ob_consumer_lease *lease,
			 struct ob_err *err);

/* A consumer, for people and monitors. */
struct ob_consumer_row {
	struct ob_str name, source;
	struct ob_uuid owner;
	uint64_t epoch;
	bool held; /* by an owner whose lease is valid */
	int64_t updated_at_us;
	uint64_t handled, duplicates, failed; /* in all */
	int64_t lag, oldest_us;               /* -1: unknown */
	uint64_t parked, dead;                /* dead ones are parked too */
	int64_t parked_since_us;              /* the oldest; 0: none */
	int64_t now_us;                       /* the database's clock */
};

/* All of them by name, or one. */
int ob_consumer_list(struct ob_store *store, const char *consumer, struct ob_arena *arena,
		     struct ob_consumer_row **ret_rows, size_t *ret_count, struct ob_err *err);

/* Members of a consumer, or (NULL) of all, by consumer and start; also those that fell silent. */
int ob_consumer_members(struct ob_store *store, const char *consumer, struct ob_arena *arena,
			struct ob_consumer_member **ret_members, size_t *ret_count,
			struct ob_err *err);

/* ---- positions ------------------------------------------------------- */

/* How far a consumer is in one part of its source, as text. */
struct ob_position {
	struct ob_str part, position;
};

int ob_positions_read(struct ob_store *store, const char *consumer, struct ob_str source,
		      struct ob_arena *arena, struct ob_position **ret_positions, size_t *ret_count,
		      struct ob_err *err);
int ob_position_tx_set(struct ob_store *store, const char *consumer, struct ob_str source,
		       const struct ob_position *position, struct ob_err *err);

/* ---- parked ---------------------------------------------------------- */

enum ob_parked_state {
	OB_PARKED_FAILED,  /* comes again when it is due */
	OB_PARKED_WAITING, /* behind the head of its queue */
	OB_PARKED_DEAD,    /* holds its queue until someone decides */
	OB_PARKED_LETTER,  /* dead, and its queue goes on without it */
};

/* A message of a consumer that failed, or that came after one that did. */
struct ob_parked {
	int64_t n;
	struct ob_str queue; /* its key; p NULL: it holds nothing */
	struct ob_str id;    /* p NULL: it could not be read */
	struct ob_str event_type;
	enum ob_parked_state state;
	uint32_t attempts;
	int64_t due_us, since_us;
	struct ob_str place;   /* where it stood in the source */
	struct ob_str reason;  /* of its last failure */
	struct ob_str message; /* as a line: sink/line.h; or what stood in the source */
	struct ob_str consumer;
	bool behind; /* a lower one of its queue holds it */
};

/* delay_ms of a message that is not due by itself. */
#define OB_PARKED_NEVER (-1)

/*
 * Store messages that leave the straight way, in order, in one transaction that is fenced by the
 * lease (epoch 0: not fenced). A WAITING one whose queue is empty by now is due at once. One that
 * is stored already (same id, or same place where there is none) stays as it is. *ret_added: how
 * many were not.
 */
struct ob_park {
	struct ob_parked parked; /* n, due, since, consumer and behind are not used */
	int64_t delay_ms;        /* FAILED: due after it; else OB_PARKED_NEVER */
};
/* Where the consumer stands once they are parked. */
struct ob_park_position {
	struct ob_str source;
	struct ob_position at;
};
int ob_park(struct ob_store *store, const struct ob_consumer_lease *lease,
	    const struct ob_park *parks, size_t count, const struct ob_park_position *position,
	    size_t *ret_added, struct ob_err *err);

/* Queues that hold their key, and how many messages each has. */
struct ob_parked_key {
	struct ob_str queue;
	uint64_t count;
};
int ob_parked_keys(struct ob_store *store, const char *consumer, struct ob_arena *arena,
		   struct ob_parked_key **ret_keys, size_t *ret_count, struct ob_err *err);
/* In all, of these dead, and since when the oldest; 0: none. */
int ob_parked_count(struct ob_store *store, const char *consumer, uint64_t *ret_all,
		    uint64_t *ret_dead, int64_t *ret_since_us, struct ob_err *err);

/* What is due, longest first; *ret_wait_ms: until the next will be, -1: none will. */
int ob_parked_due(struct ob_store *store, const char *consumer, uint32_t limit,
		  struct ob_arena *arena, struct ob_parked **ret_rows, size_t *ret_count,
		  int64_t *ret_wait_ms, struct ob_err *err);

struct ob_parked_filter {
	const char *consumer; /* NULL: of all */
	const char *id;       /* of the message, or its place */
	const char *queue, *error;
	int state; /* enum ob_parked_state; negative: any */
	int64_t after_n;
	uint32_t limit; /* at least 1 */
};
int ob_parked_list(struct ob_store *store, const struct ob_parked_filter *filter,
		   struct ob_arena *arena, struct ob_parked **ret_rows, size_t *ret_count,
		   struct ob_err *err);

/* Done: remove it, and let the next of its queue go. */
int ob_parked_tx_done(struct ob_store *store, const char *consumer, int64_t n, struct ob_str queue,
		      struct ob_err *err);
/* The same as a transaction of its own, fenced. */
int ob_parked_done(struct ob_store *store, const struct ob_consumer_lease *lease, int64_t n,
		   struct ob_str queue, struct ob_err *err);
/*
 * It failed again: FAILED with its delay, DEAD or LETTER. After LETTER the next of its queue goes.
 * Fenced.
 */
int ob_parked_failed(struct ob_store *store, const struct ob_consumer_lease *lease,
		     const struct ob_parked *parked, int64_t delay_ms, struct ob_err *err);

enum ob_parked_verb {
	OB_PARKED_RETRY,   /* a failed or dead one: due now, attempts from 0 */
	OB_PARKED_SKIP,    /* count it as handled, let its queue go on */
	OB_PARKED_DISCARD, /* remove it without that: another copy would be new */
};

/*
 * Apply a verb to these rows, in one transaction. A row that is gone, or waits behind another
 * (RETRY alone), is refused and counted.
 */
int ob_parked_operate(struct ob_store *store, const char *consumer, enum ob_parked_verb verb,
		      const struct ob_parked *rows, size_t count, uint64_t *ret_changed,
		      uint64_t *ret_refused, struct ob_err *err);

#endif
