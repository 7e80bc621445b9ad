/* SPDX-License-Identifier: MIT */
/* Outcomes of sent messages, taking back, and forgetting. */
#include "relay/flight_impl.h"

#include <assert.h>

static bool outcome_holds_key(const struct ob_flight *flight, enum ob_outcome_kind kind)
{
	if (flight->conf.ordering == OB_ORDER_NONE)
		return false;
	switch (kind) {
	case OB_OUTCOME_RETRY:
	case OB_OUTCOME_PARK:
	case OB_OUTCOME_SPILL: /* not sent, and about to become an exception */
		return true;
	case OB_OUTCOME_DEAD:
		return flight->conf.hold_dead;
	case OB_OUTCOME_DELAY:
		return flight->conf.hold_delayed;
	case OB_OUTCOME_PUBLISHED:
		break;
	}
	return false;
}

static void spill_one(struct ob_flight *flight, struct ob_entry *entry)
{
	if (entry->span == 0 || entry->spill != OB_SPILL_NONE)
		return;
	entry->spill = OB_SPILL_WANTED;
	flight->spills++;
}

static void spill_older(struct ob_flight *flight, struct ob_link *list, uint64_t order)
{
	for (struct ob_link *at = list->next; at != list; at = at->next) {
		if (entry_of_key(at)->order >= order)
			return;
		spill_one(flight, entry_of_key(at));
	}
}

/*
 * Whoever becomes an exception takes those before it in its key along. Else they would stand in the
 * log alone, and the next owner would read the exception first (P3).
 */
static void spill_before(struct ob_flight *flight, const struct ob_entry *entry)
{
	spill_older(flight, &entry->key->sent, entry->order);
	spill_older(flight, &entry->key->queue, entry->order);
}

void ob_flight_to_outcome(struct ob_flight *flight, struct ob_entry *entry,
			  enum ob_outcome_kind kind, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;

	entry->state = OB_ENTRY_OUTCOME;
	entry->outcome = kind;
	entry->since_us = now_us;
	flight->unsettled++;
	link_append(&flight->outcomes, &entry->by_state);
	if (!key)
		return;
	if (outcome_holds_key(flight, kind)) {
		spill_before(flight, entry);
		flight->held_keys += key->parking == 0;
		key->parking++;
	} else if (kind == OB_OUTCOME_DEAD && flight->conf.ordering != OB_ORDER_NONE) {
		key->waiting++;
	} else {
		entry->key = NULL;
		ob_flight_key_check(flight, key);
	}
}

/* An outcome that held its key does so no longer. */
static void unhold(struct ob_flight *flight, struct ob_flight_key *key, enum ob_outcome_kind kind)
{
	if (!outcome_holds_key(flight, kind)) {
		assert(key->waiting > 0);
		key->waiting--;
		return;
	}
	assert(key->parking > 0);
	key->parking--;
	flight->held_keys -= key->parking == 0;
}

/* What was not sent, or not stored, because one before it failed. */
static void park_or_requeue(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	bool park = entry->key->park;

	ob_flight_detach(flight, entry);
	if (!park) {
		ob_flight_enqueue(flight, entry);
	} else if (entry->message->excepted) {
		/* It stands in its queue already, after the one that failed. */
		struct ob_flight_key *key = entry->key;

		ob_flight_free_entry(flight, entry);
		ob_flight_key_check(flight, key);
	} else {
		ob_flight_to_outcome(flight, entry, OB_OUTCOME_PARK, now_us);
	}
}

/* The failure of its key is decided: what was queued or failed after it follows. */
static void follow_all(struct ob_flight *flight, struct ob_flight_key *key, int64_t now_us)
{
	for (struct ob_link *at = key->sent.next, *next; at != &key->sent; at = next) {
		next = at->next;
		if (entry_of_key(at)->state == OB_ENTRY_FAILED)
			park_or_requeue(flight, entry_of_key(at), now_us);
	}
	while (key->park && !link_empty(&key->queue))
		park_or_requeue(flight, entry_of_key(key->queue.next), now_us);
}

/* If the oldest sent message of a key has failed, it is to blame. True: it waits to be judged. */
static bool blame(struct ob_flight *flight, struct ob_flight_key *key)
{
	struct ob_entry *entry = link_empty(&key->sent) ? NULL : entry_of_key(key->sent.next);

	if (key->blamed || !entry || entry->state != OB_ENTRY_FAILED)
		return false;
	ob_flight_detach(flight, entry);
	entry->state = OB_ENTRY_JUDGE;
	flight->unsettled++;
	link_append(&flight->judge, &entry->by_state);
	key->blamed = true;
	key->park = false;
	return true;
}

void ob_flight_ok(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;

	assert(entry->state == OB_ENTRY_SENT);
	ob_flight_detach(flight, entry);
	entry->key = NULL;
	ob_flight_to_outcome(flight, entry, OB_OUTCOME_PUBLISHED, now_us);
	/* A key whose message is about to be judged must stay, though nothing else uses it. */
	if (key && !blame(flight, key))
		ob_flight_key_check(flight, key);
}

static void to_judge(struct ob_flight *flight, struct ob_entry *entry)
{
	ob_flight_detach(flight, entry);
	entry->state = OB_ENTRY_JUDGE;
	flight->unsettled++;
	link_append(&flight->judge, &entry->by_state);
}

void ob_flight_fail(struct ob_flight *flight, struct ob_entry *entry, enum ob_err_kind kind,
		    const char *error, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;

	assert(entry->state == OB_ENTRY_SENT);
	entry->failure = kind;
	free(entry->error);
	entry->error = strdup(error); /* NULL: the outcome goes without a text */
	if (!key) {
		to_judge(flight, entry);
		return;
	}
	link_remove(&entry->by_state);
	entry->state = OB_ENTRY_FAILED;
	/*
	 * At once, even if it may turn out to be a follower: what a sink refuses when
	 * it is handed over does not stop what is handed over after it.
	 */
	ob_flight_key_hold(key);
	if (!key->blamed) {
		(void)blame(flight, key);
		return;
	}
	key->pinned = true;
	park_or_requeue(flight, entry, now_us);
	/*
	 * It is parked, and so must be what was read since the failure before it was settled: that
	 * may be of another lane, whose exceptions a read does not see for this one.
	 */
	while (key->park && !link_empty(&key->queue))
		park_or_requeue(flight, entry_of_key(key->queue.next), now_us);
	key->pinned = false;
	ob_flight_key_check(flight, key);
}

struct ob_entry *ob_flight_judge(struct ob_flight *flight)
{
	return link_empty(&flight->judge) ? NULL : entry_of_state(flight->judge.next);
}

void ob_flight_decide(struct ob_flight *flight, struct ob_entry *entry, enum ob_outcome_kind kind,
		      int64_t delay_ms, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;

	assert(entry->state == OB_ENTRY_JUDGE);
	ob_flight_detach(flight, entry);
	entry->delay_ms = delay_ms;
	if (key) {
		key->park = outcome_holds_key(flight, kind);
		key->pinned = true;
		follow_all(flight, key, now_us);
		key->pinned = false;
	}
	ob_flight_to_outcome(flight, entry, kind, now_us);
	if (key && entry->key)
		ob_flight_key_check(flight, key);
}

void ob_flight_requeue(struct ob_flight *flight, struct ob_entry *entry)
{
	struct ob_flight_key *key = entry->key;

	ob_flight_detach(flight, entry);
	if (key) {
		key->park = false;
		key->pinned = true;
		follow_all(flight, key, 0);
		key->pinned = false;
	}
	ob_flight_enqueue(flight, entry);
}

void ob_flight_settle_begin(struct ob_flight *flight, struct ob_entry *entry)
{
	assert(entry->state == OB_ENTRY_OUTCOME);
	link_remove(&entry->by_state);
	entry->state = OB_ENTRY_SETTLING;
	link_append(&flight->settling, &entry->by_state);
}

void ob_flight_settle_failed(struct ob_flight *flight, struct ob_entry *entry)
{
	assert(entry->state == OB_ENTRY_SETTLING);
	link_remove(&entry->by_state);
	entry->state = OB_ENTRY_OUTCOME;
	link_append(flight->outcomes.next, &entry->by_state);
}

static void leave_flight(struct ob_flight *flight, struct ob_entry *entry)
{
	struct ob_flight_key *key = entry->key;
	bool outcome = entry->state == OB_ENTRY_OUTCOME || entry->state == OB_ENTRY_SETTLING;

	ob_flight_detach(flight, entry);
	if (key && outcome)
		unhold(flight, key, entry->outcome);
	ob_flight_free_entry(flight, entry);
	if (key)
		ob_flight_key_check(flight, key);
}

void ob_flight_settled(struct ob_flight *flight, struct ob_entry *entry)
{
	if (entry->spill == OB_SPILL_SETTLING) {
		entry->spill = OB_SPILL_NONE;
		flight->spills--;
		entry->span = 0;
		entry->message->excepted = true;
		entry->message->state = OB_STATE_WAITING;
		return;
	}
	assert(entry->state == OB_ENTRY_SETTLING);
	leave_flight(flight, entry);
}

/* ---- taking back and forgetting -------------------------------------- */

void ob_flight_unsend(struct ob_flight *flight)
{
	for (uint32_t i = 0; flight->in_flight > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state != OB_ENTRY_SENT && entry->state != OB_ENTRY_FAILED)
			continue;
		ob_flight_detach(flight, entry);
		ob_flight_enqueue(flight, entry);
	}
}

void ob_flight_drop(struct ob_flight *flight, struct ob_entry *entry)
{
	flight->forgotten++;
	leave_flight(flight, entry);
}

void ob_flight_drop_partition(struct ob_flight *flight, uint32_t partition)
{
	for (uint32_t i = 0; flight->of_partition[partition] > 0 && i < flight->conf.max_messages;
	     i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state != OB_ENTRY_FREE && entry->state != OB_ENTRY_SETTLING &&
		    entry->message->partition == partition)
			ob_flight_drop(flight, entry);
	}
}

void ob_flight_spill(struct ob_flight *flight, struct ob_entry *entry)
{
	if (entry->span == 0 || entry->spill != OB_SPILL_NONE)
		return;
	if (entry->key)
		spill_before(flight, entry);
	spill_one(flight, entry);
}

void ob_flight_give_up(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	assert(entry->state == OB_ENTRY_QUEUED && entry->spill != OB_SPILL_SETTLING);
	ob_flight_detach(flight, entry);
	ob_flight_to_outcome(flight, entry, OB_OUTCOME_SPILL, now_us);
}

void ob_flight_unspill(struct ob_flight *flight, struct ob_entry *entry)
{
	if (entry->spill != OB_SPILL_WANTED)
		return;
	entry->spill = OB_SPILL_NONE;
	flight->spills--;
}

void ob_flight_undo_failures(struct ob_flight *flight)
{
	for (uint32_t i = 0; flight->unsettled > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];
		struct ob_flight_key *key = entry->key;
		bool outcome =
			entry->state == OB_ENTRY_OUTCOME &&
			(entry->outcome == OB_OUTCOME_RETRY || entry->outcome == OB_OUTCOME_DEAD);

		/* Once collected for a settle, its position may be passed: it stays a failure. */
		if ((entry->state != OB_ENTRY_JUDGE && !outcome) || entry->counted ||
		    entry->about_it)
			continue;
		if (key && outcome)
			unhold(flight, key, entry->outcome);
		/* A failure that held nothing had left its key; sent again, it is first in it. */
		if (!key && ob_flight_has_key(flight, entry->message))
			entry->key = key = ob_flight_key_get(
				flight, ob_flight_key_hash(flight, entry->message), true);
		ob_flight_requeue(flight, entry);
		/* What becomes an exception after it must not overtake it. */
		if (key && (key->parking > 0 || flight->spills > 0))
			ob_flight_spill(flight, entry);
	}
}

/* ---- asking ---------------------------------------------------------- */

const struct ob_entry *ob_flight_settling(const struct ob_flight *flight)
{
	return link_empty(&flight->settling) ? NULL : entry_of_state(flight->settling.next);
}

struct ob_entry *ob_flight_outcome(const struct ob_flight *flight)
{
	return link_empty(&flight->outcomes) ? NULL : entry_of_state(flight->outcomes.next);
}

struct ob_entry *ob_flight_outcome_next(const struct ob_flight *flight,
					const struct ob_entry *entry)
{
	struct ob_link *next = entry->by_state.next;

	return next == &flight->outcomes ? NULL : entry_of_state(next);
}
