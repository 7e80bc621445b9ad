/* SPDX-License-Identifier: MIT */
/* Outcomes of sent messages, and forgetting. */
#include "relay/flight_impl.h"
#include "relay/mutants.h"

#include <assert.h>

void ob_flight_to_outcome(struct ob_flight *flight, struct ob_entry *entry,
			  enum ob_outcome_kind kind, int64_t now_us)
{
	entry->state = OB_ENTRY_OUTCOME;
	entry->outcome = kind;
	entry->since_us = now_us;
	flight->unsettled++;
	link_append(&flight->outcomes, &entry->by_state);
}

/* A detached entry leaves unsettled; a row claim is given back. */
static void leave(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	flight->forgotten++;
	entry->key = NULL;
	if (flight->conf.claims)
		ob_flight_to_outcome(flight, entry, OB_OUTCOME_RELEASE, now_us);
	else
		ob_flight_free_entry(flight, entry);
}

static void forget(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;

	leave(flight, entry, now_us);
	if (key)
		ob_flight_key_check(flight, key);
}

/*
 * The oldest sent messages of a key that have failed: the first one is to blame,
 * those behind it are not.
 */
static void blame(struct ob_flight *flight, struct ob_flight_key *key)
{
	while (!link_empty(&key->sent)) {
		struct ob_entry *entry = entry_of_key(key->sent.next);
		bool follower = key->blamed && !OB_IS_MUTANT(CHARGE_FOLLOWER);

		if (entry->state != OB_ENTRY_FAILED)
			return;
		ob_flight_detach(flight, entry);
		if (follower) {
			leave(flight, entry, entry->since_us);
			continue;
		}
		entry->state = OB_ENTRY_JUDGE;
		flight->unsettled++;
		link_append(&flight->judge, &entry->by_state);
		key->failures++;
		key->blamed = true;
	}
}

void ob_flight_ok(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;

	assert(entry->state == OB_ENTRY_SENT);
	ob_flight_detach(flight, entry);
	ob_flight_to_outcome(flight, entry, OB_OUTCOME_PUBLISHED, now_us);
	entry->key = NULL;
	if (key) {
		blame(flight, key);
		ob_flight_key_check(flight, key);
	}
}

void ob_flight_fail(struct ob_flight *flight, struct ob_entry *entry, enum ob_err_kind kind,
		    const char *error)
{
	struct ob_flight_key *key = entry->key;

	assert(entry->state == OB_ENTRY_SENT);
	entry->failure = kind;
	entry->error = strdup(error); /* NULL: the outcome goes without a text */
	if (!key) {
		ob_flight_detach(flight, entry);
		entry->state = OB_ENTRY_JUDGE;
		flight->unsettled++;
		link_append(&flight->judge, &entry->by_state);
		return;
	}
	link_remove(&entry->by_state);
	entry->state = OB_ENTRY_FAILED;
	/*
	 * At once, even if it may turn out to be a follower: what a sink refuses when
	 * it is handed over does not stop what is handed over after it.
	 */
	ob_flight_key_hold(flight, key);
	blame(flight, key);
	ob_flight_key_check(flight, key);
}

struct ob_entry *ob_flight_judge(struct ob_flight *flight)
{
	return link_empty(&flight->judge) ? NULL : entry_of_state(flight->judge.next);
}

void ob_flight_decide(struct ob_flight *flight, struct ob_entry *entry, enum ob_outcome_kind kind,
		      int64_t delay_ms, int64_t now_us)
{
	assert(entry->state == OB_ENTRY_JUDGE);
	ob_flight_detach(flight, entry);
	entry->delay_ms = delay_ms;
	ob_flight_to_outcome(flight, entry, kind, now_us);
}

void ob_flight_settle_begin(struct ob_flight *flight, struct ob_entry *entry)
{
	assert(entry->state == OB_ENTRY_OUTCOME);
	link_remove(&entry->by_state);
	entry->state = OB_ENTRY_SETTLING;
	link_append(&flight->settling, &entry->by_state);
}

void ob_flight_settle_failed(struct ob_flight *flight)
{
	struct ob_link *first = flight->outcomes.next;

	while (!link_empty(&flight->settling)) {
		struct ob_entry *entry = entry_of_state(flight->settling.next);

		link_remove(&entry->by_state);
		entry->state = OB_ENTRY_OUTCOME;
		link_append(first, &entry->by_state);
	}
}

void ob_flight_settled(struct ob_flight *flight, struct ob_entry *entry)
{
	struct ob_flight_key *key = entry->key;

	assert(entry->state == OB_ENTRY_OUTCOME || entry->state == OB_ENTRY_SETTLING);
	ob_flight_detach(flight, entry);
	ob_flight_free_entry(flight, entry);
	if (key) {
		key->failures--;
		ob_flight_key_check(flight, key);
	}
}

/* ---- forgetting ------------------------------------------------------ */

void ob_flight_drop(struct ob_flight *flight, struct ob_entry *entry, int64_t now_us)
{
	struct ob_flight_key *key = entry->key;
	enum ob_entry_state state = entry->state;

	ob_flight_detach(flight, entry);
	if (key && (state == OB_ENTRY_JUDGE || state == OB_ENTRY_OUTCOME))
		key->failures--;
	if (key && (state == OB_ENTRY_SENT || state == OB_ENTRY_FAILED)) {
		/* It comes again with the next fetch, and must then be first. */
		ob_flight_key_hold(flight, key);
		key->blamed = true;
		blame(flight, key);
	}
	forget(flight, entry, now_us);
}

static bool is_of(const struct ob_entry *entry, int64_t partition)
{
	return partition < 0 || entry->message->partition == (uint32_t)partition;
}

void ob_flight_drop_queued(struct ob_flight *flight, int64_t partition, int64_t now_us)
{
	for (uint32_t i = 0; flight->queued > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state == OB_ENTRY_QUEUED && is_of(entry, partition))
			ob_flight_drop(flight, entry, now_us);
	}
}

void ob_flight_drop_sent(struct ob_flight *flight, int64_t now_us)
{
	for (uint32_t i = 0; flight->in_flight > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state == OB_ENTRY_SENT || entry->state == OB_ENTRY_FAILED)
			ob_flight_drop(flight, entry, now_us);
	}
}

void ob_flight_drop_partition(struct ob_flight *flight, uint32_t partition, int64_t now_us)
{
	for (uint32_t i = 0; flight->of_partition[partition] > 0 && i < flight->conf.max_messages;
	     i++) {
		struct ob_entry *entry = &flight->entries[i];

		if (entry->state != OB_ENTRY_FREE && entry->state != OB_ENTRY_SETTLING &&
		    is_of(entry, partition))
			ob_flight_drop(flight, entry, now_us);
	}
}

void ob_flight_drop_failures(struct ob_flight *flight, int64_t now_us)
{
	for (uint32_t i = 0; flight->unsettled > 0 && i < flight->conf.max_messages; i++) {
		struct ob_entry *entry = &flight->entries[i];
		bool failed =
			entry->state == OB_ENTRY_JUDGE ||
			(entry->state == OB_ENTRY_OUTCOME &&
			 (entry->outcome == OB_OUTCOME_RETRY || entry->outcome == OB_OUTCOME_DEAD));

		if (failed)
			ob_flight_drop(flight, entry, now_us);
	}
}

/* ---- looking --------------------------------------------------------- */

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
