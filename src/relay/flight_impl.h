/* SPDX-License-Identifier: MIT */
/* Shared by the files of the flight: lists, keys, and the few moves everything is made of. */
#ifndef OB_RELAY_FLIGHT_IMPL_H
#define OB_RELAY_FLIGHT_IMPL_H

#include "relay/flight.h"

struct ob_flight_key {
	struct ob_link idle; /* in free_keys or none */
	struct ob_flight_key *chain;
	uint64_t hash;
	struct ob_link queue, sent; /* entries by_key, in order */
	uint32_t parking;           /* unsettled outcomes that hold it: what comes is parked */
	uint32_t waiting; /* dead ones not yet settled: an outage may still give them back */
	bool pinned;      /* in use: not to be freed */
	bool held;        /* nothing more is sent before all that is sent is answered */
	bool blamed;      /* the failure that holds it is known: those after it are not to blame */
	bool park;        /* ... and they are parked; else they are queued again */
};

static inline void link_init(struct ob_link *link)
{
	link->prev = link->next = link;
}

static inline bool link_empty(const struct ob_link *link)
{
	return link->next == link;
}

static inline void link_remove(struct ob_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link_init(link);
}

static inline void link_append(struct ob_link *list, struct ob_link *link)
{
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

static inline struct ob_entry *entry_of_state(struct ob_link *link)
{
	return (struct ob_entry *)((char *)link - offsetof(struct ob_entry, by_state));
}

static inline struct ob_entry *entry_of_key(struct ob_link *link)
{
	return (struct ob_entry *)((char *)link - offsetof(struct ob_entry, by_key));
}

static inline struct ob_flight_key *key_of_idle(struct ob_link *link)
{
	return (struct ob_flight_key *)((char *)link - offsetof(struct ob_flight_key, idle));
}

/* Does order matter for this message? */
bool ob_flight_has_key(const struct ob_flight *flight, const struct ob_message *message);
/* The key of a hash; with `make`, a new one when there is none. NULL: none (or none left). */
struct ob_flight_key *ob_flight_key_get(struct ob_flight *flight, uint64_t hash, bool make);
/* Something of the key has changed: go on, make its head ready, or free it. */
void ob_flight_key_check(struct ob_flight *flight, struct ob_flight_key *key);
/* Send no more of it until all that is sent has an answer. */
void ob_flight_key_hold(struct ob_flight_key *key);
/* A detached entry is queued, in its key's queue by order of arrival; without a key it is ready. */
void ob_flight_enqueue(struct ob_flight *flight, struct ob_entry *entry);
/* Take an entry out of all lists and counts of its state; it keeps batch and key. */
void ob_flight_detach(struct ob_flight *flight, struct ob_entry *entry);
/* Give a detached entry back. */
void ob_flight_free_entry(struct ob_flight *flight, struct ob_entry *entry);
/* A detached entry becomes an outcome; it keeps its key only if it holds it. */
void ob_flight_to_outcome(struct ob_flight *flight, struct ob_entry *entry,
			  enum ob_outcome_kind kind, int64_t now_us);

#endif
