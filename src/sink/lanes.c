/* SPDX-License-Identifier: MIT */
/* Queues of deliveries by key, in fixed pools of items and lanes. */
#include "sink/lanes.h"

#include <assert.h>
#include <stdlib.h>

/* ---- pools ----------------------------------------------------------- */

static void fill_pools(struct ob_lanes *l)
{
	l->free_items = NULL;
	l->free_lanes = NULL;
	for (uint32_t i = l->mask + 1; i-- > 0;) {
		l->buckets[i] = NULL;
		l->lanes[i].next = l->free_lanes;
		l->free_lanes = &l->lanes[i];
	}
	l->done = NULL;
	l->done_end = &l->done;
	l->ready = NULL;
	l->ready_end = &l->ready;
	l->out = l->done_count = 0;
}

/* The pools are powers of two; only `window` items are ever in use. */
static void free_items(struct ob_lanes *l, uint32_t window)
{
	for (uint32_t i = window; i-- > 0;) {
		l->items[i].err = &l->errs[i];
		l->items[i].next = l->free_items;
		l->free_items = &l->items[i];
	}
}

int ob_lanes_init(struct ob_lanes *l, uint32_t window, struct ob_err *err)
{
	uint32_t size = 16;

	if (l->items)
		return 0;
	while (size < window)
		size *= 2;
	l->items = calloc(window, sizeof(*l->items));
	l->errs = calloc(window, sizeof(*l->errs));
	l->lanes = calloc(size, sizeof(*l->lanes));
	l->buckets = calloc(size, sizeof(struct ob_lane *));
	if (!l->items || !l->errs || !l->lanes || !l->buckets) {
		ob_lanes_done(l);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating a window of %u",
				  window);
	}
	l->mask = size - 1;
	l->window = window;
	fill_pools(l);
	free_items(l, window);
	return 0;
}

void ob_lanes_clear(struct ob_lanes *l)
{
	if (!l->items)
		return;
	fill_pools(l);
	free_items(l, l->window);
}

void ob_lanes_done(struct ob_lanes *l)
{
	free(l->items);
	free(l->errs);
	free(l->lanes);
	free(l->buckets);
	*l = (struct ob_lanes){ 0 };
}

/* ---- lanes by key ---------------------------------------------------- */

static uint32_t bucket_of(const struct ob_lanes *l, struct ob_str key)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < key.n; i++)
		hash = (hash ^ (unsigned char)key.p[i]) * UINT64_C(1099511628211);
	return (uint32_t)(hash ^ hash >> 32) & l->mask;
}

static struct ob_lane *find_lane(const struct ob_lanes *l, struct ob_str key)
{
	struct ob_lane *lane = key.p ? l->buckets[bucket_of(l, key)] : NULL;

	while (lane && !ob_str_eq(lane->key, key))
		lane = lane->chain;
	return lane;
}

/* There are as many lanes as items, and none without an item. */
static struct ob_lane *new_lane(struct ob_lanes *l, struct ob_str key)
{
	struct ob_lane *lane = l->free_lanes;

	assert(lane);
	l->free_lanes = lane->next;
	*lane = (struct ob_lane){ .key = key };
	if (key.p) {
		lane->bucket = bucket_of(l, key);
		lane->chain = l->buckets[lane->bucket];
		l->buckets[lane->bucket] = lane;
	}
	return lane;
}

static void free_lane(struct ob_lanes *l, struct ob_lane *lane)
{
	assert(!lane->head && lane->failed == 0);
	if (lane->key.p) {
		struct ob_lane **at = &l->buckets[lane->bucket];

		while (*at != lane)
			at = &(*at)->chain;
		*at = lane->chain;
	}
	lane->next = l->free_lanes;
	l->free_lanes = lane;
}

static void make_ready(struct ob_lanes *l, struct ob_lane *lane)
{
	lane->next = NULL;
	*l->ready_end = lane;
	l->ready_end = &lane->next;
}

/* ---- in -------------------------------------------------------------- */

int ob_lanes_add(struct ob_lanes *l, const struct ob_delivery *delivery)
{
	struct ob_lane_item *item = l->free_items;
	struct ob_lane *lane = find_lane(l, delivery->message->key);

	if (!item || (lane && lane->failed > 0))
		return OB_SINK_FULL;
	l->free_items = item->next;
	item->delivery = *delivery;
	item->next = NULL;
	item->lane = NULL;
	item->flags = 0;
	l->out++;
	if (!lane) {
		lane = new_lane(l, delivery->message->key);
		lane->head = lane->tail = item;
		make_ready(l, lane);
	} else {
		lane->tail->next = item;
		lane->tail = item;
	}
	item->in = lane;
	return 0;
}

struct ob_lane *ob_lanes_take(struct ob_lanes *l)
{
	struct ob_lane *lane = l->ready;

	if (!lane)
		return NULL;
	l->ready = lane->next;
	if (!l->ready)
		l->ready_end = &l->ready;
	lane->next = NULL;
	return lane;
}

void ob_lanes_untake(struct ob_lanes *l, struct ob_lane *lane)
{
	lane->next = l->ready;
	l->ready = lane;
	if (!lane->next)
		l->ready_end = &lane->next;
}

/* ---- outcomes -------------------------------------------------------- */

/* The first item of a lane has its outcome. */
static struct ob_lane_item *finish_first(struct ob_lanes *l, struct ob_lane *lane)
{
	struct ob_lane_item *item = lane->head;

	assert(item);
	lane->head = item->next;
	/* The memory of an item's key goes with its outcome: borrow from one that stays longer. */
	if (lane->head && lane->key.p)
		lane->key = lane->head->delivery.message->key;
	item->next = NULL;
	*l->done_end = item;
	l->done_end = &item->next;
	l->done_count++;
	return item;
}

void ob_lane_stored(struct ob_lanes *l, struct ob_lane *lane, uint32_t count)
{
	while (count-- > 0)
		finish_first(l, lane)->kind = OB_ERR_NONE;
}

static void fail(struct ob_lane_item *item, const struct ob_err *err)
{
	item->kind = err->kind;
	*item->err = *err;
}

void ob_lane_rejected(struct ob_lanes *l, struct ob_lane *lane, const struct ob_err *err)
{
	fail(finish_first(l, lane), err);
}

void ob_lane_failed(struct ob_lanes *l, struct ob_lane *lane, const struct ob_err *err)
{
	while (lane->head) {
		struct ob_lane_item *item = finish_first(l, lane);

		fail(item, err);
		item->lane = lane;
		lane->failed++;
	}
}

void ob_lane_give_back(struct ob_lanes *l, struct ob_lane *lane)
{
	if (lane->head)
		make_ready(l, lane);
	else if (lane->failed == 0)
		free_lane(l, lane);
}

void ob_lanes_fail_ready(struct ob_lanes *l, const struct ob_err *err)
{
	for (struct ob_lane *lane; (lane = ob_lanes_take(l));)
		ob_lane_failed(l, lane, err);
}

int ob_lanes_outcomes(struct ob_lanes *l, struct ob_ack *acks, size_t max)
{
	size_t n = 0;

	for (struct ob_lane_item *item; n < max && (item = l->done); n++) {
		acks[n].tag = item->delivery.tag;
		if (item->kind == OB_ERR_NONE)
			acks[n].err.kind = OB_ERR_NONE; /* the rest of it says nothing */
		else
			acks[n].err = *item->err;
		l->done = item->next;
		if (!l->done)
			l->done_end = &l->done;
		l->done_count--;
		l->out--;
		/* A lane with failed outcomes takes nothing in, so it is empty. */
		if (item->lane && --item->lane->failed == 0)
			free_lane(l, item->lane);
		item->next = l->free_items;
		l->free_items = item;
	}
	return (int)n;
}
