/* SPDX-License-Identifier: MIT */
/* What becomes of a message that did not go the straight way: the one place that decides. */
#include "log/exception.h"

#include "base/message.h"

struct ob_str ob_exception_queue(const struct ob_decide *decide, const struct ob_message *message)
{
	/* Where it stands, whatever the ordering is by now: those after it wait in that queue. */
	if (message->excepted && message->queue.p)
		return message->queue;
	switch (decide->ordering) {
	case OB_ORDER_KEY:
		return message->key;
	case OB_ORDER_PARTITION:
		return OB_STR("");
	case OB_ORDER_NONE:
	default:
		return OB_STR_NULL;
	}
}

static void set_retry(struct ob_change *change, int64_t delay_ms, struct ob_str error)
{
	change->state = OB_STATE_FAILED;
	change->attempts++;
	change->due = OB_DUE_AFTER;
	change->delay_ms = delay_ms;
	change->error = error;
}

/*
 * Out of its queue, so that the key goes on; or in it and never due, so that the key waits. Its row
 * stays in either case: a dead message is visible until a person decides (P1).
 */
static void set_dead(struct ob_change *change, bool hold, struct ob_str error)
{
	hold = hold && change->queue.p;
	change->state = hold ? OB_STATE_DEAD_HOLD : OB_STATE_DEAD;
	change->attempts++;
	change->due = OB_DUE_NEVER;
	if (!hold)
		change->queue = OB_STR_NULL;
	change->error = error;
}

static void set_delayed(struct ob_change *change, const struct ob_decide *decide,
			const struct ob_message *message)
{
	/* Due by the database's clock alone (P8): a worker whose clock is wrong would send it
	 * early. */
	change->state = OB_STATE_DELAYED;
	change->due = OB_DUE_AVAILABLE;
	change->available_at_us = message->available_at_us;
	if (!decide->hold_delayed)
		change->queue = OB_STR_NULL;
}

/*
 * To the end of its queue, without a time of its own: it is read when it is the head, or after one.
 * What waits in its queue already stays as it is, or a failure would cost the length of the queue.
 */
static bool set_parked(struct ob_change *change, const struct ob_decide *decide,
		       const struct ob_message *message)
{
	if (message->excepted &&
	    (message->state != OB_STATE_DELAYED || decide->hold_delayed || !change->queue.p))
		return false;
	if (message->delayed) {
		set_delayed(change, decide, message);
		return true;
	}
	/* Without a queue nobody would ever promote it. */
	change->state = OB_STATE_WAITING;
	change->due = change->queue.p ? OB_DUE_NEVER : OB_DUE_AFTER;
	return true;
}

bool ob_exception_decide(const struct ob_decide *decide, const struct ob_message *message,
			 enum ob_outcome_kind outcome, int64_t delay_ms, struct ob_str error,
			 struct ob_change *ret_change, bool *ret_promote)
{
	struct ob_str queue = ob_exception_queue(decide, message);
	struct ob_change change = {
		.kind = message->excepted ? OB_CHANGE_SET : OB_CHANGE_ADD,
		.partition = message->partition,
		.seq = message->seq,
		.txid = message->txid,
		.attempts = message->attempts,
		.was_attempts = message->attempts,
		.queue = queue,
	};

	*ret_promote = false;
	switch (outcome) {
	case OB_OUTCOME_PUBLISHED:
		/* The straight way: progress alone tells, and nothing is written about the message.
		 */
		if (!message->excepted)
			return false;
		change.kind = OB_CHANGE_REMOVE;
		break;
	case OB_OUTCOME_RETRY:
		set_retry(&change, delay_ms, error);
		break;
	case OB_OUTCOME_DEAD:
		set_dead(&change, decide->hold_dead, error);
		break;
	case OB_OUTCOME_PARK:
		if (!set_parked(&change, decide, message))
			return false;
		break;
	case OB_OUTCOME_DELAY:
		set_delayed(&change, decide, message);
		break;
	case OB_OUTCOME_SPILL:
		if (message->excepted)
			return false; /* it holds no position */
		change.state = OB_STATE_WAITING;
		change.due = OB_DUE_AFTER;
		break;
	}
	*ret_change = change;
	/*
	 * A head that goes leaves a queue whose next row nobody would wake; a row that is parked
	 * may find its head gone. What has a due of its own, or holds, needs no promotion.
	 */
	bool leaves = change.kind == OB_CHANGE_REMOVE ||
		      (change.kind == OB_CHANGE_SET && !change.queue.p);
	bool parked = change.state == OB_STATE_WAITING && change.due == OB_DUE_NEVER;

	*ret_promote = queue.p && (leaves || parked);
	return true;
}

/* ---- operator verbs -------------------------------------------------- */

static bool verb_allowed(enum ob_verb verb, const struct ob_verb_row *row)
{
	if (verb == OB_VERB_DELIVER)
		return row->covered && !row->excepted;
	if (!row->excepted) /* not tried or under way; or delivered */
		return verb != OB_VERB_RETRY && !row->covered;
	switch (row->state) {
	case OB_STATE_WAITING:
	case OB_STATE_DELAYED:
		return verb != OB_VERB_RETRY;
	case OB_STATE_FAILED:
	case OB_STATE_DEAD_HOLD:
		return true;
	case OB_STATE_DEAD:
		return verb != OB_VERB_SKIP;
	/* A person has decided, or it is out: neither is undone by a verb. */
	case OB_STATE_DISCARDED:
	case OB_STATE_DONE:
	default:
		return false;
	}
}

bool ob_exception_verb(enum ob_verb verb, const struct ob_verb_row *row,
		       struct ob_change *ret_change, bool *ret_promote)
{
	if (!verb_allowed(verb, row))
		return false;

	struct ob_change change = {
		.kind = row->excepted ? OB_CHANGE_SET : OB_CHANGE_ADD,
		.partition = row->partition,
		.seq = row->seq,
		.attempts = row->excepted ? row->attempts : 0,
		.was_attempts = row->excepted ? row->attempts : 0,
		.due = OB_DUE_NEVER,
	};

	if (verb == OB_VERB_DELIVER) {
		/* At the end of its queue, by number; what the reader meets later waits behind it.
		 */
		change.state = OB_STATE_WAITING;
		change.due = row->key.p ? OB_DUE_NEVER : OB_DUE_AFTER;
		change.queue = row->key;
		*ret_change = change;
		*ret_promote = row->key.p != NULL;
		return true;
	}
	if (verb == OB_VERB_RETRY) {
		/* One that is out of its queue stays out: its key has gone on. */
		change.state = OB_STATE_WAITING;
		change.attempts = 0;
		change.due = OB_DUE_AFTER;
		change.queue = row->queue;
	} else {
		change.state = verb == OB_VERB_SKIP ? OB_STATE_DEAD : OB_STATE_DISCARDED;
	}
	*ret_change = change;
	*ret_promote = row->excepted && row->queue.p && !change.queue.p;
	return true;
}
