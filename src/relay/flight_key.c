/* SPDX-License-Identifier: MIT */
/* The keys of a flight: which are in use, which are held, and what may be sent next. */
#include "log/may_send.h"
#include "relay/flight_impl.h"

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
	key->parking = key->waiting = 0;
	key->held = key->blamed = key->park = key->pinned = false;
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

static bool key_may_send(const struct ob_flight *flight, const struct ob_flight_key *key)
{
	const struct ob_send_facts facts = {
		.key_held = key->held || key->waiting > 0,
		.key_under_way = !link_empty(&key->sent),
		.keeps_order = flight->conf.pipelined,
	};

	return ob_may_send(&facts) == OB_MAY_SEND;
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
	bool many = flight->conf.pipelined;

	if (link_empty(&key->queue) || !key_may_send(flight, key))
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

void ob_flight_key_check(struct ob_flight *flight, struct ob_flight_key *key)
{
	if (link_empty(&key->sent))
		key->held = key->blamed = false;
	make_ready(flight, key);
	if (link_empty(&key->queue) && link_empty(&key->sent) && key->parking == 0 &&
	    key->waiting == 0 && !key->pinned)
		key_free(flight, key);
}

void ob_flight_key_hold(struct ob_flight_key *key)
{
	key->held = true;
	for (struct ob_link *at = key->queue.next; at != &key->queue; at = at->next) {
		struct ob_entry *entry = entry_of_key(at);

		link_remove(&entry->by_state);
		entry->ready = false;
	}
}

void ob_flight_enqueue(struct ob_flight *flight, struct ob_entry *entry)
{
	struct ob_flight_key *key = entry->key;

	entry->state = OB_ENTRY_QUEUED;
	entry->serial++;
	flight->queued++;
	if (!key) {
		entry->ready = true;
		link_append(&flight->ready, &entry->by_state);
		return;
	}

	struct ob_link *at = &key->queue;

	while (at->prev != &key->queue && entry_of_key(at->prev)->order > entry->order)
		at = at->prev;
	link_append(at, &entry->by_key);
	ob_flight_key_check(flight, key);
}
