/* SPDX-License-Identifier: MIT */
/* The memory feed: the simplest thing that keeps the contract. */
#include "doubles/memory_feed.h"

#include <inttypes.h>

enum { GROUPS = 8, ENTRIES = 4096 };

static struct {
	struct ob_memsink_log *log;
	struct {
		char name[256];
		bool acked[ENTRIES];
	} groups[GROUPS];
	size_t count;
} memory;

struct memory_feed {
	struct ob_feed base;
	size_t at; /* the next entry to look at */
	bool open;
};

void ob_memfeed_use(struct ob_memsink_log *log)
{
	memset(&memory, 0, sizeof(memory));
	memory.log = log;
}

static bool *acked_by(const struct ob_feed *feed)
{
	for (size_t i = 0; i < memory.count; i++) {
		if (strcmp(memory.groups[i].name, feed->group) == 0)
			return memory.groups[i].acked;
	}
	if (memory.count == GROUPS)
		return NULL;
	(void)snprintf(memory.groups[memory.count].name, sizeof(memory.groups[0].name), "%s",
		       feed->group);
	return memory.groups[memory.count++].acked;
}

static int memory_open(struct ob_feed *base, struct ob_err *err)
{
	struct memory_feed *feed = (struct memory_feed *)base;

	if (!memory.log || !acked_by(base))
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "stream 'orders' does not exist");
	feed->open = true;
	return 0;
}

static int memory_seek(struct ob_feed *base, const struct ob_str *parts,
		       const struct ob_feed_place *places, size_t count, struct ob_err *err)
{
	struct memory_feed *feed = (struct memory_feed *)base;

	(void)parts;
	(void)err;
	feed->at = count ? (size_t)places[0].major : 0;
	memset(acked_by(base), 0, ENTRIES * sizeof(bool));
	return 0;
}

static bool take(const struct ob_memsink_entry *from, size_t index, struct ob_arena *arena,
		 struct ob_feed_entry *entry)
{
	struct ob_feed_draft draft;
	char where[48], id[OB_UUID_TEXT_SIZE];

	*entry = (struct ob_feed_entry){ .tag = index + 1, .place = { index + 1, 0 } };
	(void)snprintf(where, sizeof(where), "orders %zu", index + 1);
	ob_uuid_format(&from->id, id);
	ob_feed_entry_begin(&draft, entry);
	ob_feed_entry_field(&draft, OB_STR("id"), ob_str(id));
	entry->message.key = from->key;
	entry->message.payload = from->body;
	entry->message.headers = from->headers;
	draft.tombstone = !from->body.p;
	entry->part = OB_STR("orders");
	return ob_arena_copy(arena, ob_str(where), &entry->where) &&
	       ob_feed_entry_finish(&draft, arena);
}

static int memory_poll(struct ob_feed *base, int timeout_ms, uint32_t max,
		       struct ob_feed_batch *batch, struct ob_err *err)
{
	struct memory_feed *feed = (struct memory_feed *)base;

	(void)timeout_ms;
	if (!feed->open)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "it is not open");
	batch->entries = ob_arena_alloc(&batch->arena, (max + 1) * sizeof(*batch->entries));
	for (; batch->entries && batch->count < max && feed->at < memory.log->count; feed->at++) {
		if (acked_by(base)[feed->at])
			continue;
		if (!take(&memory.log->entries[feed->at], feed->at, &batch->arena,
			  &batch->entries[batch->count]))
			break;
		batch->count++;
	}
	return 0;
}

static int memory_ack(struct ob_feed *base, const uint64_t *tags, size_t count, struct ob_err *err)
{
	const struct memory_feed *feed = (struct memory_feed *)base;

	(void)err;
	for (size_t i = 0; i < count; i++) {
		if (tags[i] - 1 < feed->at)
			acked_by(base)[tags[i] - 1] = true;
	}
	return 0;
}

static void memory_give_back(struct ob_feed *base, const uint64_t *tags, size_t count)
{
	struct memory_feed *feed = (struct memory_feed *)base;

	for (size_t i = 0; i < count; i++)
		feed->at = tags[i] - 1 < feed->at ? tags[i] - 1 : feed->at;
}

static int memory_state(struct ob_feed *base, struct ob_feed_state *ret, struct ob_err *err)
{
	(void)err;
	ret->lag = 0;
	for (size_t i = 0; i < memory.log->count; i++)
		ret->lag += !acked_by(base)[i];
	return 0;
}

static void memory_close(struct ob_feed *base)
{
	(void)base;
}

static void memory_describe(struct ob_feed *base, struct ob_buf *out)
{
	(void)base;
	ob_buf_adds(out, "memory");
}

static const struct ob_opt memory_opts[] = { OB_OPT_END };

const struct ob_feed_ops ob_feed_memory = {
	.name = "memory",
	.caps = OB_FEED_PLACES | OB_FEED_STABLE_TAGS,
	.size = sizeof(struct memory_feed),
	.opts = memory_opts,
	.open = memory_open,
	.seek = memory_seek,
	.poll = memory_poll,
	.ack = memory_ack,
	.give_back = memory_give_back,
	.state = memory_state,
	.close = memory_close,
	.describe = memory_describe,
};
