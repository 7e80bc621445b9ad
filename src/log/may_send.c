/* SPDX-License-Identifier: MIT */
/* The rules of sending: from the log's side, the worker's, the key's and the lease's. */
#include "log/may_send.h"

#include <string.h>

static const struct {
	const char *word, *text;
} reasons[] = {
#define X(name, word, text) [OB_WHY_##name] = { word, text },
	OB_WHY_MAP(X)
#undef X
};

const char *ob_why_name(enum ob_why_reason reason)
{
	return reasons[reason].word;
}

const char *ob_why_help(enum ob_why_reason reason)
{
	return reasons[reason].text;
}

int ob_why_parse(const char *name)
{
	for (int i = 0; i < OB_WHY_COUNT; i++) {
		if (strcmp(reasons[i].word, name) == 0)
			return i;
	}
	return -1;
}

/* What its state alone tells. */
static enum ob_why_reason by_state(const struct ob_send_facts *f)
{
	switch (f->view) {
	case OB_VIEW_PUBLISHED:
		return OB_WHY_PUBLISHED;
	case OB_VIEW_DISCARDED:
		return OB_WHY_DISCARDED;
	case OB_VIEW_DELAYED:
		return OB_WHY_DELAYED;
	case OB_VIEW_DEAD:
		return f->dead_holds ? OB_WHY_DEAD_HOLD : OB_WHY_DEAD;
	case OB_VIEW_PARKED: /* P3: what follows a failed message of its key waits for it */
		return f->no_holder ? OB_WHY_PARKED : OB_WHY_HELD;
	case OB_VIEW_FAILED:
		return f->waits_for_retry ? OB_WHY_RETRY_WAITS : OB_MAY_SEND;
	case OB_VIEW_PENDING:
	case OB_VIEW_COUNT:
		break;
	}
	return OB_MAY_SEND;
}

/* What keeps the worker from sending anything at all. */
static enum ob_why_reason by_worker(const struct ob_send_facts *f)
{
	if (f->stopping)
		return OB_WHY_STOPPING;
	/*
	 * P4: what cannot be settled now had better not be sent, because a takeover would send it
	 * again. When the wait is over and nothing is there to record, only what is sent can tell
	 * whether the store is back.
	 */
	if (f->store_failed && (f->store_waits || f->has_unrecorded))
		return OB_WHY_STORE_DOWN;
	/* P4: another worker may take the partitions over at any moment. */
	if (f->cut_off)
		return OB_WHY_CUT_OFF;
	if (f->sink_full)
		return OB_WHY_SINK_FULL;
	/* P5: no message is spent on finding out that the sink is still down, but for the probe. */
	if (f->sink_down)
		return OB_WHY_SINK_DOWN;
	return OB_MAY_SEND;
}

/* What keeps this message, in a worker that sends others. */
static enum ob_why_reason by_message(const struct ob_send_facts *f)
{
	/* P3: until the failure of one is recorded, those after it must not pass it. */
	if (f->key_held)
		return OB_WHY_HELD;
	/* P3: a second one of a key could arrive first. */
	if (f->key_under_way && !f->keeps_order)
		return OB_WHY_KEY_BUSY;
	/* P5: whom a receiver hangs up on is known only if nobody else was on the connection. */
	if (f->suspect_under_way || f->under_way > f->company)
		return OB_WHY_SUSPECT;
	/* P4: the settle that runs makes it an exception, which the next owner sends. */
	if (f->handover)
		return OB_WHY_HANDOVER;
	/*
	 * P4: the lease may end before this could be settled. What was sent keeps its place: after
	 * the renewal it goes on, and if the lease is lost the view will say so.
	 */
	if (f->has_deadline && f->now_us >= f->send_until_us)
		return OB_WHY_LEASE_ENDS;
	return OB_MAY_SEND;
}

enum ob_why_reason ob_may_send(const struct ob_send_facts *f)
{
	enum ob_why_reason reason;

	if (f->no_reader)
		return OB_WHY_NO_READER;
	if (f->filtered)
		return OB_WHY_FILTERED;
	reason = by_state(f);
	if (reason != OB_MAY_SEND)
		return reason;
	if (f->no_worker)
		return OB_WHY_NO_WORKER;
	/* P7: the journal is taken over with the lease; without it nothing could be recorded. */
	if (f->no_lease)
		return OB_WHY_NO_LEASE;
	reason = by_worker(f);
	return reason != OB_MAY_SEND ? reason : by_message(f);
}
