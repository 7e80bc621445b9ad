/* SPDX-License-Identifier: MIT */
/* Lists, keys and the memory of messages. */
#include "consume/items.h"

#include <stdlib.h>

enum { BUCKETS = 4096 };

int ob_consume_keys_init(struct ob_consume_keys *keys, struct ob_err *err)
{
	/* An array of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
	keys->buckets = calloc(BUCKETS, sizeof(*keys->buckets));
	if (!keys->buckets)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating keys");
	keys->mask = BUCKETS - 1;
	return 0;
}

void ob_consume_keys_done(struct ob_consume_keys *keys)
{
	for (size_t i = 0; keys->buckets && i <= keys->mask; i++) {
		for (struct ob_consume_key *key = keys->buckets[i], *next; key; key = next) {
			next = key->chain;
			free(key);
		}
	}
	free(keys->buckets);
}

uint64_t ob_consume_hash(struct ob_str text)
{
	uint64_t hash = 1469598103934665603u;

	for (size_t i = 0; i < text.n; i++)
		hash = (hash ^ (unsigned char)text.p[i]) * 1099511628211u;
	return hash;
}

struct ob_consume_key *ob_consume_key_get(struct ob_consume_keys *keys, struct ob_str name)
{
	uint64_t hash = ob_consume_hash(name);
	struct ob_consume_key **bucket = &keys->buckets[hash & keys->mask];

	for (struct ob_consume_key *key = *bucket; key; key = key->chain) {
		if (key->hash == hash && ob_str_eq(key->name, name))
			return key;
	}
	struct ob_consume_key *key = calloc(1, sizeof(*key) + name.n + 1);
	if (!key)
		return NULL;
	char *text = (char *)(key + 1);
	if (name.n)
		memcpy(text, name.p, name.n);
	key->name = (struct ob_str){ text, name.n };
	key->hash = hash;
	TAILQ_INIT(&key->waiting);
	key->chain = *bucket;
	*bucket = key;
	keys->count++;
	return key;
}

void ob_consume_key_drop(struct ob_consume_keys *keys, struct ob_consume_key *key)
{
	struct ob_consume_key **at = &keys->buckets[key->hash & keys->mask];

	if (key->items > 0 || key->sent > 0 || key->parked > 0 || key->blocked)
		return;
	while (*at != key)
		at = &(*at)->chain;
	*at = key->chain;
	keys->count--;
	free(key);
}

void ob_consume_keys_each(struct ob_consume_keys *keys,
			  void (*fn)(void *arg, struct ob_consume_key *key), void *arg)
{
	for (size_t i = 0; i <= keys->mask; i++) {
		for (struct ob_consume_key *key = keys->buckets[i], *next; key; key = next) {
			next = key->chain;
			fn(arg, key);
		}
	}
}

void ob_consume_insert_head(struct ob_consume_list *list, struct ob_consume_item *item)
{
	struct ob_consume_item *at = TAILQ_FIRST(list);

	while (at && at->number < item->number)
		at = TAILQ_NEXT(at, links);
	if (at)
		TAILQ_INSERT_BEFORE(at, item, links);
	else
		TAILQ_INSERT_TAIL(list, item, links);
}

void ob_consume_insert_tail(struct ob_consume_list *list, struct ob_consume_item *item)
{
	struct ob_consume_item *at = TAILQ_LAST(list, ob_consume_list);

	while (at && at->number > item->number)
		at = TAILQ_PREV(at, ob_consume_list, links);
	if (at)
		TAILQ_INSERT_AFTER(list, at, item, links);
	else
		TAILQ_INSERT_HEAD(list, item, links);
}

struct ob_consume_chunk *ob_consume_chunk_new(void)
{
	struct ob_consume_chunk *chunk = calloc(1, sizeof(*chunk));

	if (chunk)
		chunk->batch = OB_FEED_BATCH_INIT;
	return chunk;
}

void ob_consume_chunk_free(struct ob_consume_chunk *chunk)
{
	if (!chunk)
		return;
	ob_feed_batch_done(&chunk->batch);
	free(chunk);
}

void ob_consume_chunk_leave(struct ob_consume_chunk *chunk)
{
	if (--chunk->left == 0)
		ob_consume_chunk_free(chunk);
}
