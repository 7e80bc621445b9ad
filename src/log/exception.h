/* SPDX-License-Identifier: MIT */
/*
 * Exceptions: messages of a reader that did not go the straight way. All decisions about them
 * are made here, for every store: a store fences, reads and applies.
 *
 * A row has a `queue` when order matters for it: the ordering key, or "" when the whole
 * partition is one queue; NULL when nothing waits for it and it waits for nothing. The rows
 * of a queue by seq are what waits of a key. The lowest, its head, decides for all:
 *  - a head is read when its `due` has come (WAITING heads: due is the moment they became head);
 *  - what follows stays as it is (WAITING, due NULL), because there is a head. A failure, a
 *    release and a retry each cost O(1) rows, never the length of the queue.
 * Whoever removes a head, adds rows or takes a row out of its queue lists the queue for
 * promotion: in the same transaction, after all other changes, its lowest row, if WAITING
 * without due, becomes due at once. A queue whose head has no due and is not DEAD_HOLD would wait
 * for ever; promotion of every touched queue rules that out.
 */
#ifndef OB_LOG_EXCEPTION_H
#define OB_LOG_EXCEPTION_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* What stands in the state column. SQL templates write {=waiting}, {=failed} ...; never a number.
 */
#define OB_STATE_MAP(X) \
	X(WAITING, waiting, 0) /* not tried: parked in its queue, or spilled, or brought back */ \
	X(FAILED, failed, 1)   /* again when due */ \
	X(DELAYED, delayed, 2) /* was not due when the reader passed it */ \
	X(DEAD, dead, 3)       /* given up; has no queue: its key goes on */ \
	X(DEAD_HOLD, dead_hold, 4) /* given up; holds its queue until a person decides */ \
	X(DISCARDED, discarded, 5) /* a person decided that it is not delivered */ \
	X(DONE, done, 6)           /* delivered before the position reached it (resize) */

enum ob_state {
#define X(name, word, number) OB_STATE_##name = number,
	OB_STATE_MAP(X)
#undef X
};

enum ob_ordering {
	OB_ORDER_KEY,       /* a failing message holds its key */
	OB_ORDER_PARTITION, /* a failing message holds its partition */
	OB_ORDER_NONE,      /* a failing message holds nothing */
};

enum ob_outcome_kind {
	OB_OUTCOME_PUBLISHED, /* the sink has it */
	OB_OUTCOME_RETRY,     /* failed; attempts + 1; due again after delay_ms */
	OB_OUTCOME_DEAD,      /* given up; attempts + 1 */
	OB_OUTCOME_PARK,      /* not sent: its key is held */
	OB_OUTCOME_DELAY,     /* not sent: not due yet */
	OB_OUTCOME_SPILL,     /* under way for so long that the position goes on without it */
};

/* One change of one exception of a reader. */
enum ob_change_kind {
	OB_CHANGE_ADD,    /* a new row; one is there: a repeat, or an operator decided: nothing */
	OB_CHANGE_SET,    /* the row that is there, if its attempts are still `was_attempts` and it
			     is WAITING, FAILED or DELAYED; else an operator decided: nothing. That
			     of a verb: whatever it says, it was read in the same transaction. */
	OB_CHANGE_REMOVE, /* gone, whatever it says; not there is success */
};

enum ob_due {
	OB_DUE_NEVER,     /* NULL: only as a head, by promotion, or by an operator */
	OB_DUE_AFTER,     /* the database's now + delay_ms */
	OB_DUE_AVAILABLE, /* the message's available_at */
};

struct ob_change {
	enum ob_change_kind kind;
	uint32_t partition;
	int64_t seq;
	uint64_t txid; /* of the row; 0: not known, or there are none */
	enum ob_state state;
	uint32_t attempts, was_attempts;
	enum ob_due due;
	int64_t delay_ms;
	int64_t available_at_us; /* OB_DUE_AVAILABLE */
	struct ob_str queue;     /* p NULL: none */
	struct ob_str error;     /* any bytes; stored sanitised and cut; p NULL: as it was */
};

struct ob_message; /* excepted: it has a row in the exceptions, with state and attempts */

struct ob_decide {
	enum ob_ordering ordering;
	bool hold_dead;    /* on_dead: hold */
	bool hold_delayed; /* a delayed message holds its key */
};

/* The queue of a message: where its exception stands; else its key, "" or NULL. A delayed one that
 * holds nothing has none, until it fails or its key is held when it is due. */
struct ob_str ob_exception_queue(const struct ob_decide *decide, const struct ob_message *message);

/*
 * The change that an outcome makes; false: none (published straight from the log).
 * *ret_promote: its queue (ob_exception_queue) must be promoted after all changes.
 */
bool ob_exception_decide(const struct ob_decide *decide, const struct ob_message *message,
			 enum ob_outcome_kind outcome, int64_t delay_ms, struct ob_str error,
			 struct ob_change *ret_change, bool *ret_promote);

/* ---- operator verbs -------------------------------------------------- */

enum ob_verb {
	OB_VERB_RETRY,   /* failed, dead: due now, attempts 0, the error text stays */
	OB_VERB_SKIP,    /* anything not published or dead: dead, its key goes on; dead-hold: too */
	OB_VERB_DISCARD, /* anything not published: never delivered, its key goes on */
	OB_VERB_DELIVER, /* what the position has passed and no exception names: as if it were new
			  */
};

/* A message as a verb finds it. */
struct ob_verb_row {
	bool covered;  /* by the reader's progress */
	bool excepted; /* it has a row in the exceptions: the members below are its own */
	enum ob_state state;
	uint32_t partition, attempts;
	int64_t seq;
	struct ob_str queue;
	struct ob_str key; /* DELIVER: the queue that it goes into */
};

/* False: its state does not allow the verb. *ret_change holds ADD or SET (was_attempts as found).
 * *ret_promote: row->queue must be promoted. */
bool ob_exception_verb(enum ob_verb verb, const struct ob_verb_row *row,
		       struct ob_change *ret_change, bool *ret_promote);

#endif
