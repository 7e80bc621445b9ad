/* SPDX-License-Identifier: MIT */
/* The keys of a flight: which are in use, which are held, and what may be sent next. */
#include "relay/flight_impl.h"
#include "relay/mutants.h"

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* FNV-1a with a final mix. Whoever forges collisions only slows down keys of their own making. */
static uint64_t hash_bytes(struct ob_str s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
	return mix(h);
}

uint64_t ob_flight_key_hash(const struct ob_flight *flight, const struct ob_message *message)
{
	if (flight->conf.ordering == OB_ORDER_PARTITION)
		return mix((uint64_t)message->partition + 1);
	if (message->key.p)
		return hash_bytes(message->key);
	return mix(~(uint64_t)message->seq);
}

struct ob_flight_key *ob_flight_key_get(struct ob_flight *flight, uint64_t hash, bool make)
{
	struct ob_flight_key **bucket = &flight->buckets[hash & flight->bucket_mask];

	for (struct ob_flight_key *key = *bucket; key; key = key->chain) {
		if (key->hash == hash)
			return key;
	}
	if (!make || link_empty(&flight->free_keys))
		return NULL;

	struct ob_flight_key *key = key_of_idle(flight->free_keys.next);

	link_remove(&key->idle);
	key->hash = hash;
	key->chain = *bucket;
	*bucket = key;
	link_init(&key->queue);
	link_init(&key->sent);
	key->failures = 0;
	key->held = key->blamed = false;
	key->ignore = 0;
	return key;
}

static void key_free(struct ob_flight *flight, struct ob_flight_key *key)
{
	struct ob_flight_key **at = &flight->buckets[key->hash & flight->bucket_mask];

	while (*at != key)
		at = &(*at)->chain;
	*at = key->chain;
	link_remove(&key->idle);
	/* The first to be used again: the others need not be in memory. */
	link_append(flight->free_keys.next, &key->idle);
}

static bool is_unused(const struct ob_flight_key *key)
{
	return link_empty(&key->queue) && link_empty(&key->sent) && key->failures == 0;
}

static bool may_send(const struct ob_flight *flight, const struct ob_flight_key *key)
{
	if (key->held && !OB_IS_MUTANT(IGNORE_HELD))
		return false;
	if (OB_IS_MUTANT(TWO_UNCONFIRMED))
		return true;
	return flight->conf.pipelined || link_empty(&key->sent);
}

/* The first that is not ready; those that are stand before all others. */
static struct ob_link *first_unready(struct ob_flight_key *key)
{
	struct ob_link *at = &key->queue;

	while (at->prev != &key->queue && !entry_of_key(at->prev)->ready)
		at = at->prev;
	return at;
}

static void make_ready(struct ob_flight *flight, struct ob_flight_key *key)
{
	bool many = flight->conf.pipelined || OB_IS_MUTANT(TWO_UNCONFIRMED);

	if (link_empty(&key->queue) || !may_send(flight, key))
		return;
	if (!many && entry_of_key(key->queue.next)->ready)
		return;
	for (struct ob_link *at = many ? first_unready(key) : key->queue.next; at != &key->queue;
	     at = at->next) {
		struct ob_entry *entry = entry_of_key(at);

		entry->ready = true;
		link_append(&flight->ready, &entry->by_state);
		if (!many)
			break;
	}
}

/* Without order a failure holds nothing; only the sink must have answered all that it failed. */
static bool may_go_on(const struct ob_flight *flight, const struct ob_flight_key *key)
{
	return link_empty(&key->sent) &&
	       (key->failures == 0 || flight->conf.ordering == OB_ORDER_NONE);
}

void ob_flight_key_check(struct ob_flight *flight, struct ob_flight_key *key)
{
	if (may_go_on(flight, key)) {
		key->blamed = false;
		if (key->held) {
			key->held = false;
			key->ignore = flight->generation;
			flight->held_keys--;
		}
	}
	make_ready(flight, key);
	if (key->held || !is_unused(key))
		return;
	link_remove(&key->idle);
	/* A fetch that is under way may bring rows that this key must still refuse. */
	if (flight->fetching && key->ignore == flight->generation)
		link_append(&flight->idle_keys, &key->idle);
	else
		key_free(flight, key);
}

static void make_unready(struct ob_flight_key *key)
{
	for (struct ob_link *at = key->queue.next; at != &key->queue; at = at->next) {
		struct ob_entry *entry = entry_of_key(at);

		link_remove(&entry->by_state);
		entry->ready = false;
	}
}

void ob_flight_key_hold(struct ob_flight *flight, struct ob_flight_key *key)
{
	if (OB_IS_MUTANT(EARLY_RELEASE))
		return;
	if (!key->held) {
		key->held = true;
		flight->held_keys++;
	}
	if (flight->conf.ordering == OB_ORDER_NONE) {
		make_unready(key);
		return;
	}
	while (!link_empty(&key->queue)) {
		struct ob_entry *entry = entry_of_key(key->queue.next);

		ob_flight_detach(flight, entry);
		ob_flight_free_entry(flight, entry);
		flight->forgotten++;
	}
}

void ob_flight_key_sweep(struct ob_flight *flight)
{
	for (struct ob_link *at = flight->idle_keys.next, *next; at != &flight->idle_keys;
	     at = next) {
		struct ob_flight_key *key = key_of_idle(at);

		next = at->next;
		link_remove(at);
		if (is_unused(key))
			key_free(flight, key);
	}
}
