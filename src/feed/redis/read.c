/* SPDX-License-Identifier: MIT */
/* Reading a stream: first what is pending, then what members that are gone had, then what is new.
 */
#include "feed/redis/redis.h"

#include <stdlib.h>

enum { NUMBER_SIZE = 24, LOST_AT_ONCE = 64 };

/* Entries that are gone are acknowledged: they would be pending for ever. */
struct gone {
	char ids[LOST_AT_ONCE][OB_REDIS_ID_SIZE];
	size_t count;
};

static bool is_open(const struct redis_feed *feed, struct ob_feed_place id)
{
	for (size_t i = 0; i < feed->open_count; i++) {
		if (feed->open[i].id.major == id.major && feed->open[i].id.minor == id.minor)
			return true;
	}
	return false;
}

static int no_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for entries of redis");
}

static bool note_open(struct redis_feed *feed, struct ob_feed_place id, uint64_t *ret_tag)
{
	if (feed->open_count == feed->open_room) {
		size_t room = feed->open_room ? feed->open_room * 2 : 256;
		void *more = realloc(feed->open, room * sizeof(*feed->open));

		if (!more)
			return false;
		feed->open = more;
		feed->open_room = room;
	}
	*ret_tag = ++feed->last_tag;
	feed->open[feed->open_count++] = (struct ob_redis_open_entry){ .tag = *ret_tag, .id = id };
	return true;
}

/* What cannot be read is shown as the list of its fields. */
static bool show_raw(const redisReply *fields, struct ob_arena *arena, struct ob_str *ret)
{
	struct ob_buf raw = OB_BUF_INIT(1 << 20);
	bool ok;

	for (size_t i = 0; i < fields->elements && raw.len < 65536; i++) {
		struct ob_str text = ob_redis_text(fields->element[i]);

		ob_buf_adds(&raw, i == 0 ? "" : i % 2 ? "=" : " ");
		ob_buf_add(&raw, (struct ob_str){ text.p, text.n > 4096 ? 4096 : text.n });
	}
	ok = !raw.failed && ob_arena_copy(arena, ob_buf_view(&raw), ret);
	ob_buf_done(&raw);
	return ok;
}

static bool read_fields(const redisReply *fields, struct ob_arena *arena,
			struct ob_feed_entry *entry)
{
	struct ob_feed_draft draft;
	bool ok = true;

	ob_feed_entry_begin(&draft, entry);
	for (size_t i = 0; i + 1 < fields->elements && ok; i += 2) {
		struct ob_str name, value;

		ok = ob_arena_copy(arena, ob_redis_text(fields->element[i]), &name) &&
		     ob_arena_copy(arena, ob_redis_text(fields->element[i + 1]), &value);
		if (ok && name.p && value.p)
			ob_feed_entry_field(&draft, name, value);
	}
	ok = ob_feed_entry_finish(&draft, arena) && ok;
	if (ok && entry->fault.p)
		ok = show_raw(fields, arena, &entry->message.payload);
	return ok;
}

static int take_entry(struct redis_feed *feed, const redisReply *reply, struct ob_feed_batch *batch,
		      struct gone *gone, struct ob_err *err)
{
	char where[OB_REDIS_ID_SIZE + 256], text[OB_REDIS_ID_SIZE];
	struct ob_feed_entry *entry = &batch->entries[batch->count];
	struct ob_feed_place id;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    !ob_redis_id_parse(ob_redis_text(reply->element[0]), &id))
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "redis answers with an entry that is none");
	if (ob_redis_id_less(feed->cursor, id))
		feed->cursor = id;
	if (is_open(feed, id))
		return 0;
	ob_redis_id_format(id, text);
	if (reply->element[1]->type != REDIS_REPLY_ARRAY) { /* deleted while it was pending */
		if (gone->count < LOST_AT_ONCE)
			memcpy(gone->ids[gone->count++], text, sizeof(text));
		return 0;
	}
	*entry = (struct ob_feed_entry){ .place = id };
	(void)snprintf(where, sizeof(where), "%.200s %s", feed->stream, text);
	if (!note_open(feed, id, &entry->tag))
		return no_memory(err);
	if (!ob_arena_copy(&batch->arena, ob_str(feed->stream), &entry->part) ||
	    !ob_arena_copy(&batch->arena, ob_str(where), &entry->where) ||
	    !read_fields(reply->element[1], &batch->arena, entry)) {
		feed->open_count--;
		return no_memory(err);
	}
	batch->count++;
	return 0;
}

static int take_entries(struct redis_feed *feed, const redisReply *list,
			struct ob_feed_batch *batch, struct gone *gone, struct ob_err *err)
{
	int r = 0;

	if (!list || list->type != REDIS_REPLY_ARRAY)
		return 0;
	batch->entries =
		ob_arena_alloc(&batch->arena, (list->elements + 1) * sizeof(struct ob_feed_entry));
	if (!batch->entries)
		return no_memory(err);
	for (size_t i = 0; i < list->elements && r == 0; i++)
		r = take_entry(feed, list->element[i], batch, gone, err);
	return r;
}

/* [[stream, [entries]]]; NULL: there are none. */
static const redisReply *entries_of(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 1 ||
	    reply->element[0]->type != REDIS_REPLY_ARRAY || reply->element[0]->elements != 2)
		return NULL;
	return reply->element[0]->element[1];
}

/* Tell of them, and let go of them. */
static int report_gone(struct redis_feed *feed, const struct gone *gone, struct ob_err *err)
{
	const char *words[LOST_AT_ONCE + 3] = { "XACK", feed->stream, ob_redis_group(feed) };
	redisReply *reply = NULL;

	if (gone->count == 0)
		return 0;
	for (size_t i = 0; i < gone->count; i++)
		words[3 + i] = gone->ids[i];
	int r = ob_redis_feed_ask(feed, words, 3 + gone->count, &reply, err);
	if (r < 0)
		return r;
	freeReplyObject(reply);
	feed->lost += gone->count;
	(void)snprintf(
		feed->news, sizeof(feed->news),
		"stream '%.80s' was trimmed: entries that were pending for group '%.80s' are "
		"lost, the first is %s",
		feed->stream, ob_redis_group(feed), gone->ids[0]);
	return 0;
}

/* ---- phases ---------------------------------------------------------- */

static int read_group(struct redis_feed *feed, const char *from, int block_ms, uint32_t max,
		      struct ob_feed_batch *batch, struct ob_err *err)
{
	char count[NUMBER_SIZE], block[NUMBER_SIZE], after[OB_REDIS_ID_SIZE];
	const char *words[12];
	struct gone gone = { .count = 0 };
	redisReply *reply = NULL;
	size_t n = 0;

	(void)snprintf(count, sizeof(count), "%u", max);
	(void)snprintf(block, sizeof(block), "%d", block_ms);
	ob_redis_id_format(feed->after, after);
	if (feed->by_place) {
		words[n++] = "XREAD";
		from = after;
	} else {
		words[n++] = "XREADGROUP";
		words[n++] = "GROUP";
		words[n++] = ob_redis_group(feed);
		words[n++] = feed->base.member;
	}
	words[n++] = "COUNT";
	words[n++] = count;
	if (block_ms > 0) {
		words[n++] = "BLOCK";
		words[n++] = block;
	}
	words[n++] = "STREAMS";
	words[n++] = feed->stream;
	words[n++] = from;
	int r = ob_redis_feed_ask(feed, words, n, &reply, err);
	if (r < 0) {
		/* Someone removed the group, or the stream: open() says which. */
		if (strcmp(err->native, "NOGROUP") == 0)
			feed->ready = false;
		return r;
	}
	r = take_entries(feed, entries_of(reply), batch, &gone, err);
	freeReplyObject(reply);
	if (r == 0 && feed->by_place && batch->count > 0)
		feed->after = batch->entries[batch->count - 1].place;
	return r < 0 ? r : report_gone(feed, &gone, err);
}

static int read_pending(struct redis_feed *feed, uint32_t max, struct ob_feed_batch *batch,
			struct ob_err *err)
{
	char from[OB_REDIS_ID_SIZE];
	struct ob_feed_place before = feed->cursor;

	ob_redis_id_format(feed->cursor, from);
	int r = read_group(feed, from, 0, max, batch, err);
	/* The cursor stands still behind the last one. */
	if (r == 0 && before.major == feed->cursor.major && before.minor == feed->cursor.minor)
		feed->phase = OB_REDIS_CLAIM;
	return r;
}

/* One step of XAUTOCLAIM: it may find nothing and yet have more to look at. */
static int claim_step(struct redis_feed *feed, uint32_t max, struct ob_feed_place *cursor,
		      struct ob_feed_batch *batch, struct ob_err *err)
{
	char idle[NUMBER_SIZE], from[OB_REDIS_ID_SIZE], count[NUMBER_SIZE];
	struct gone gone = { .count = 0 };
	redisReply *reply = NULL;

	(void)snprintf(idle, sizeof(idle), "%lld", (long long)feed->claim_idle_ms);
	(void)snprintf(count, sizeof(count), "%u", max);
	ob_redis_id_format(*cursor, from);
	const char *words[] = { "XAUTOCLAIM",      feed->stream, ob_redis_group(feed),
				feed->base.member, idle,         from,
				"COUNT",           count };
	int r = ob_redis_feed_ask(feed, words, 8, &reply, err);
	if (r < 0)
		return r;
	bool whole = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 &&
		     ob_redis_id_parse(ob_redis_text(reply->element[0]), cursor);
	if (whole)
		r = take_entries(feed, reply->element[1], batch, &gone, err);
	/* Since Redis 7: those that were deleted, already taken out of the pending ones. */
	if (whole && r == 0 && reply->elements >= 3 && reply->element[2]->elements > 0) {
		feed->lost += reply->element[2]->elements;
		(void)snprintf(feed->news, sizeof(feed->news),
			       "stream '%.80s' was trimmed: entries that another member of group "
			       "'%.80s' had are lost",
			       feed->stream, ob_redis_group(feed));
	}
	freeReplyObject(reply);
	if (!whole)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "redis answers XAUTOCLAIM with something else");
	return r < 0 ? r : report_gone(feed, &gone, err);
}

/* Follow the cursor until it comes back to 0-0, or entries are here. */
static int read_claimed(struct redis_feed *feed, uint32_t max, struct ob_feed_batch *batch,
			struct ob_err *err)
{
	int64_t now = ob_clock_boot_us(feed->base.clock);
	struct ob_feed_place cursor = { 0, 0 };
	int r = 0;

	if (now < feed->next_claim_us) {
		feed->phase = OB_REDIS_NEW;
		return 0;
	}
	do
		r = claim_step(feed, max, &cursor, batch, err);
	while (r == 0 && batch->count == 0 && (cursor.major || cursor.minor));
	if (r == 0 && batch->count == 0) {
		feed->phase = OB_REDIS_NEW;
		feed->next_claim_us = now + feed->claim_every_ms * 1000;
		if (!feed->base.sole)
			r = ob_redis_feed_reap(feed, err);
	}
	return r;
}

static int read_phases(struct redis_feed *feed, int timeout_ms, uint32_t max,
		       struct ob_feed_batch *batch, struct ob_err *err)
{
	int r = 0;

	if (feed->phase == OB_REDIS_NEW && !feed->by_place &&
	    ob_clock_boot_us(feed->base.clock) >= feed->next_claim_us)
		feed->phase = OB_REDIS_CLAIM;
	while (r == 0 && batch->count == 0 && feed->phase == OB_REDIS_PENDING)
		r = read_pending(feed, max, batch, err);
	if (r == 0 && batch->count == 0 && feed->phase == OB_REDIS_CLAIM)
		r = read_claimed(feed, max, batch, err);
	if (r == 0 && batch->count == 0 && feed->phase == OB_REDIS_NEW)
		r = read_group(feed, ">", timeout_ms, max, batch, err);
	return r;
}

int ob_redis_feed_poll(struct ob_feed *base, int timeout_ms, uint32_t max,
		       struct ob_feed_batch *batch, struct ob_err *err)
{
	struct redis_feed *feed = (struct redis_feed *)base;

	if (!feed->ready)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "redis is not connected");
	int r = max ? read_phases(feed, timeout_ms, max, batch, err) : 0;
	batch->lost = feed->lost;
	(void)snprintf(batch->news, sizeof(batch->news), "%s", feed->news);
	feed->lost = 0;
	feed->news[0] = '\0';
	return r;
}
