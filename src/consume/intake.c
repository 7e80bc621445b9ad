/* SPDX-License-Identifier: MIT */
/* What comes in: entries of the source, parked messages that are due; and what goes back: acks. */
#include "consume/consumer_impl.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ACKS = 256 };

/* ---- positions ------------------------------------------------------- */

void ob_consumer_position_text(struct ob_feed_place place, char out[48])
{
	(void)snprintf(out, 48, "%" PRIu64 "-%" PRIu64, place.major, place.minor);
}

static bool parse_position(struct ob_str text, struct ob_feed_place *ret)
{
	char copy[48], *end;

	if (text.n == 0 || text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	ret->major = strtoull(copy, &end, 10);
	if (*end != '-')
		return false;
	ret->minor = strtoull(end + 1, &end, 10);
	return *end == '\0';
}

static struct ob_consume_part *find_part(struct ob_consumer *c, struct ob_str name)
{
	for (struct ob_consume_part *part = c->parts; part; part = part->next) {
		if (ob_str_eq(ob_str(part->name), name))
			return part;
	}
	return NULL;
}

static void note_part(struct ob_consumer *c, struct ob_str name, struct ob_feed_place place)
{
	struct ob_consume_part *part = find_part(c, name);

	if (!part) {
		part = calloc(1, sizeof(*part) + name.n + 1);
		if (!part)
			return;
		memcpy(part->name, name.p, name.n);
		part->next = c->parts;
		c->parts = part;
	}
	part->place = place;
}

static bool is_behind(struct ob_feed_place a, struct ob_feed_place b)
{
	return a.major != b.major ? a.major < b.major : a.minor <= b.minor;
}

bool ob_consumer_read_positions(struct ob_consumer *c)
{
	struct ob_arena arena = OB_ARENA_INIT(16 << 20);
	struct ob_position *rows;
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0;
	int r = ob_positions_read(c->p.store, c->conf.name, ob_str(c->conf.source), &arena, &rows,
				  &count, &err);
	struct ob_str *names = r < 0 ? NULL : ob_arena_alloc(&arena, (count + 1) * sizeof(*names));
	struct ob_feed_place *places =
		r < 0 ? NULL : ob_arena_alloc(&arena, (count + 1) * sizeof(*places));

	for (size_t i = 0; r == 0 && names && places && i < count; i++) {
		names[i] = rows[i].part;
		if (!parse_position(rows[i].position, &places[i]))
			r = ob_err_set(&err, OUTBOX_ESTORE, OB_ERR_FATAL,
				       "the position of consumer '%.100s' is none: '%.*s'",
				       c->conf.name, (int)rows[i].position.n, rows[i].position.p);
		else
			note_part(c, names[i], places[i]);
	}
	if (r < 0)
		ob_consumer_failed(c, &c->store_wait, "reading positions failed", &err);
	/* The database's position wins over the source's. */
	else if (ob_feed_seek(c->p.feed, names, places, count, &err) < 0) {
		ob_consumer_failed(c, &c->feed_wait, "going to a position failed", &err);
		r = err.status;
	}
	ob_arena_done(&arena);
	return r == 0;
}

/* ---- keys that are held ---------------------------------------------- */

static void forget_parked(void *arg, struct ob_consume_key *key)
{
	struct ob_consumer *c = arg;

	key->parked = 0;
	ob_consume_key_drop(&c->keys, key);
}

bool ob_consumer_read_keys(struct ob_consumer *c)
{
	struct ob_arena arena = OB_ARENA_INIT(256 << 20);
	struct ob_parked_key *rows = NULL;
	struct ob_err err = OB_ERR_INIT;
	int64_t since = 0;
	size_t count = 0;
	int r = ob_parked_keys(c->p.store, c->conf.name, &arena, &rows, &count, &err);

	if (r == 0)
		r = ob_parked_count(c->p.store, c->conf.name, &c->m.parked_now, &c->m.dead_now,
				    &since, &err);
	if (r < 0) {
		ob_consumer_failed(c, &c->store_wait, "reading parked keys failed", &err);
		ob_arena_done(&arena);
		return false;
	}
	ob_consumer_worked(c, &c->store_wait, "the database is back");
	ob_consume_keys_each(&c->keys, forget_parked, c);
	for (size_t i = 0; i < count; i++) {
		struct ob_consume_key *key = ob_consume_key_get(&c->keys, rows[i].queue);

		if (key)
			key->parked = rows[i].count;
	}
	c->m.held_keys = count;
	c->m.full = c->m.parked_now >= c->conf.max_parked;
	c->keys_us = ob_consumer_now(c) + (int64_t)OB_CONSUME_KEYS_MS * 1000;
	ob_arena_done(&arena);
	return true;
}

/* ---- from the source ------------------------------------------------- */

static struct ob_consume_item *new_item(struct ob_consumer *c, struct ob_consume_chunk *chunk,
					struct ob_feed_entry *entry)
{
	struct ob_consume_item *item = calloc(1, sizeof(*item));
	struct ob_str key = c->conf.ordered && !entry->fault.p ? entry->message.key : OB_STR_NULL;

	if (!item)
		return NULL;
	item->number = ++c->last_number;
	item->chunk = chunk;
	item->entry = entry;
	entry->message.seq = (int64_t)item->number;
	if (key.p && key.n) {
		item->key = ob_consume_key_get(&c->keys, key);
		if (!item->key) {
			free(item);
			return NULL;
		}
		item->key->items++;
	}
	chunk->left++;
	return item;
}

static void add_done(struct ob_consumer *c, struct ob_consume_item *item)
{
	TAILQ_INSERT_TAIL(&c->done, item, links);
	c->done_count++;
}

/* A place that the database has behind it. */
static bool is_old(struct ob_consumer *c, const struct ob_feed_entry *entry)
{
	const struct ob_consume_part *part =
		c->conf.dedup == OB_DEDUP_POSITION ? find_part(c, entry->part) : NULL;

	return part && is_behind(entry->place, part->place);
}

/* False: no memory; the rest of the entries is not taken, and comes again. */
static bool take_entries(struct ob_consumer *c, struct ob_consume_chunk *chunk)
{
	for (size_t i = 0; i < chunk->batch.count; i++) {
		struct ob_consume_item *item = new_item(c, chunk, &chunk->batch.entries[i]);

		if (!item) {
			for (; i < chunk->batch.count; i++)
				ob_feed_give_back(c->p.feed, &chunk->batch.entries[i].tag, 1);
			return false;
		}
		c->m.read++;
		if (is_old(c, item->entry)) {
			c->m.duplicates++;
			add_done(c, item);
			continue;
		}
		TAILQ_INSERT_TAIL(&c->runnable, item, links);
		c->runnable_count++;
	}
	return true;
}

static void tell_news(struct ob_consumer *c, const struct ob_feed_batch *batch)
{
	c->m.lost += batch->lost;
	if (batch->news[0] && c->p.log)
		ob_log(c->p.log, OB_LOG_ERROR, "the source has lost something",
		       OB_KV("consumer", c->conf.name), OB_KI("lost", (int64_t)batch->lost),
		       OB_KV("what", batch->news));
	if (batch->news[0]) {
		ob_consumer_note_error(c, batch->news);
	}
}

/* How many more may come in; 0: signs of life only. */
static uint32_t room(const struct ob_consumer *c)
{
	uint64_t held = ob_consumer_held(c);
	uint64_t left = held >= c->conf.window ? 0 : c->conf.window - held;

	if (c->draining || c->m.full || c->store_wait.failing)
		return 0;
	/* While the handler is down, one to probe with: a suspect must not be the only one. */
	if (c->breaker.state != OB_BREAKER_CLOSED)
		return left && !ob_consumer_has_probe(c);
	return left < c->conf.batch ? (uint32_t)left : c->conf.batch;
}

bool ob_consumer_take_in(struct ob_consumer *c, int timeout_ms)
{
	struct ob_consume_chunk *chunk;
	struct ob_err err = OB_ERR_INIT;
	uint32_t most = room(c);
	int64_t now = ob_consumer_now(c);

	if (ob_consumer_waits(c, &c->feed_wait))
		return false;
	if (most == 0 && now < c->poll_us)
		return false;
	chunk = ob_consume_chunk_new();
	if (!chunk)
		return false;
	int r = ob_feed_open(c->p.feed, &err);
	c->source_empty = false;
	if (r == 0)
		r = ob_feed_poll(c->p.feed, timeout_ms, most, &chunk->batch, &err);
	c->poll_us = ob_consumer_now(c) + 1000000;
	if (r < 0) {
		ob_consume_chunk_free(chunk);
		ob_consumer_note_side(c, &c->m.source, err.msg);
		ob_consumer_failed(c, &c->feed_wait, "reading the source failed", &err);
		return false;
	}
	ob_consumer_note_side(c, &c->m.source, NULL);
	ob_consumer_worked(c, &c->feed_wait, "the source is back");
	tell_news(c, &chunk->batch);
	c->source_empty = most > 0 && chunk->batch.count == 0;
	bool any = chunk->batch.count > 0;
	(void)take_entries(c, chunk);
	if (chunk->left == 0)
		ob_consume_chunk_free(chunk);
	return any;
}

/* ---- from the parked table ------------------------------------------- */

static bool is_in_memory(const struct ob_consumer *c, int64_t n)
{
	const struct ob_consume_list *lists[] = { &c->runnable, &c->sent };

	for (size_t i = 0; c->due_count > 0 && i < 2; i++) {
		const struct ob_consume_item *item;

		TAILQ_FOREACH(item, lists[i], links)
		{
			if (item->row.n == n)
				return true;
		}
	}
	return false;
}

static bool take_row(struct ob_consumer *c, struct ob_consume_chunk *chunk,
		     const struct ob_parked *row, struct ob_feed_entry *entry)
{
	if (is_in_memory(c, row->n))
		return false;
	if (!ob_feed_entry_of_line(row->message, &chunk->batch.arena, entry)) {
		/* Our own line; only someone who changed the row can have made it unreadable. */
		entry->fault = OB_STR("its parked copy cannot be read");
		entry->message.payload = row->message;
	}
	struct ob_consume_item *item = new_item(c, chunk, entry);
	if (!item)
		return false;
	/* Its key is held by it: it goes in spite of that. */
	if (item->key) {
		struct ob_consume_key *key = item->key;

		item->key = NULL;
		key->items--;
		ob_consume_key_drop(&c->keys, key);
	}
	item->row = *row;
	entry->message.attempts = row->attempts;
	entry->where = row->place;
	c->due_count++;
	TAILQ_INSERT_TAIL(&c->runnable, item, links);
	c->runnable_count++;
	return true;
}

bool ob_consumer_take_due(struct ob_consumer *c)
{
	struct ob_consume_chunk *chunk;
	struct ob_parked *rows = NULL;
	struct ob_err err = OB_ERR_INIT;
	int64_t now = ob_consumer_now(c), wait_ms = -1;
	size_t count = 0, taken = 0;

	/* With the breaker open a retry would only find out what is known. */
	if (now < c->due_us || c->draining || c->p.lease->epoch == 0 || c->due_count > 0 ||
	    ob_consumer_waits(c, &c->store_wait) || c->breaker.state == OB_BREAKER_OPEN)
		return false;
	chunk = ob_consume_chunk_new();
	if (!chunk)
		return false;
	int r = ob_parked_due(c->p.store, c->conf.name, OB_CONSUME_DUE_LIMIT, &chunk->batch.arena,
			      &rows, &count, &wait_ms, &err);
	if (r < 0) {
		ob_consumer_failed(c, &c->store_wait, "reading parked messages failed", &err);
		ob_consume_chunk_free(chunk);
		return false;
	}
	struct ob_feed_entry *entries =
		ob_arena_alloc(&chunk->batch.arena, (count + 1) * sizeof(*entries));
	for (size_t i = 0; entries && i < count; i++)
		taken += take_row(c, chunk, &rows[i], &entries[i]);
	c->none_due = count == 0;
	if (wait_ms < 0 || wait_ms > OB_CONSUME_DUE_MS)
		wait_ms = OB_CONSUME_DUE_MS;
	c->due_us = now + (count ? 0 : wait_ms * 1000);
	if (chunk->left == 0)
		ob_consume_chunk_free(chunk);
	return taken > 0;
}

/* ---- acknowledging --------------------------------------------------- */

bool ob_consumer_ack(struct ob_consumer *c)
{
	uint64_t tags[ACKS];
	struct ob_consume_item *item;
	struct ob_err err = OB_ERR_INIT;
	size_t n = 0;

	if (c->done_count == 0 || ob_consumer_waits(c, &c->feed_wait))
		return false;
	TAILQ_FOREACH(item, &c->done, links)
	{
		if (n < ACKS)
			tags[n++] = item->entry->tag;
	}
	int r = ob_feed_open(c->p.feed, &err);
	if (r == 0)
		r = ob_feed_ack(c->p.feed, tags, n, &err);
	if (r < 0) {
		ob_consumer_note_side(c, &c->m.source, err.msg);
		ob_consumer_failed(c, &c->feed_wait, "acknowledging failed", &err);
		return false;
	}
	c->m.acked += n;
	for (; n > 0; n--) {
		item = TAILQ_FIRST(&c->done);
		TAILQ_REMOVE(&c->done, item, links);
		c->done_count--;
		if (c->conf.dedup == OB_DEDUP_POSITION)
			note_part(c, item->entry->part, item->entry->place);
		ob_consumer_forget(c, item);
	}
	return true;
}
