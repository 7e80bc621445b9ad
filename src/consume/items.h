/* SPDX-License-Identifier: MIT */
/* What a consumer has in memory: messages, and their keys. */
#ifndef OB_CONSUME_ITEMS_H
#define OB_CONSUME_ITEMS_H

#include "consume/handler.h"
#include "feed/feed.h"

#include <sys/queue.h>

struct ob_consume_key;

/* Memory of the messages of one read; freed with the last of them. */
struct ob_consume_chunk {
	struct ob_feed_batch batch;
	size_t left;
};

struct ob_consume_item {
	TAILQ_ENTRY(ob_consume_item) links; /* of the one list it is in */
	uint64_t number;                    /* order of arrival; also the handler's tag */
	struct ob_consume_chunk *chunk;
	struct ob_feed_entry *entry;
	struct ob_consume_key *key; /* NULL: it stands alone */
	struct ob_parked row;       /* n > 0: from the parked table */
	bool alone;                 /* it was sent with nothing else under way */
	/* Of a failure that is to be parked: */
	enum ob_parked_state state;
	int64_t delay_ms;
	char reason[OB_LAST_ERROR_MAX];
};

TAILQ_HEAD(ob_consume_list, ob_consume_item);

struct ob_consume_key {
	struct ob_consume_key *chain;
	struct ob_str name; /* behind the struct */
	uint64_t hash;
	uint32_t items;       /* in memory */
	uint32_t sent;        /* with the handler */
	uint64_t parked;      /* rows that hold it, as far as we know */
	uint64_t passed_over; /* in this pass of sending */
	bool blocked; /* one of it failed: what is sent comes back first, then all is parked */
	struct ob_consume_list waiting; /* by number */
};

struct ob_consume_keys {
	struct ob_consume_key **buckets;
	size_t mask, count;
};

int ob_consume_keys_init(struct ob_consume_keys *keys, struct ob_err *err);
void ob_consume_keys_done(struct ob_consume_keys *keys);
/* Find it, or make it; NULL: out of memory. */
struct ob_consume_key *ob_consume_key_get(struct ob_consume_keys *keys, struct ob_str name);
/* Forget it if nothing is known of it. */
void ob_consume_key_drop(struct ob_consume_keys *keys, struct ob_consume_key *key);
/* Call `fn` for each; it may drop the key. */
void ob_consume_keys_each(struct ob_consume_keys *keys,
			  void (*fn)(void *arg, struct ob_consume_key *key), void *arg);
uint64_t ob_consume_hash(struct ob_str text);

/* Into a list that is sorted by number: near its head, or near its tail. */
void ob_consume_insert_head(struct ob_consume_list *list, struct ob_consume_item *item);
void ob_consume_insert_tail(struct ob_consume_list *list, struct ob_consume_item *item);

struct ob_consume_chunk *ob_consume_chunk_new(void);
/* One of its messages is done with. */
void ob_consume_chunk_leave(struct ob_consume_chunk *chunk);
/* Nothing came of it, or all that did is done with. */
void ob_consume_chunk_free(struct ob_consume_chunk *chunk);

#endif
