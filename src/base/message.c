/* SPDX-License-Identifier: MIT */
/* Message views and batches. */
#include "base/message.h"

#include <stdlib.h>

static const char *const view_names[] = {
#define X(name, text) [OB_VIEW_##name] = (text),
	OB_VIEW_MAP(X)
#undef X
};

const char *ob_view_name(enum ob_view view)
{
	return view_names[view];
}

int ob_view_parse(const char *name)
{
	for (int view = 0; view < OB_VIEW_COUNT; view++) {
		if (strcmp(view_names[view], name) == 0)
			return view;
	}
	return -1;
}

void ob_batch_init(struct ob_batch *batch)
{
	*batch = (struct ob_batch){ .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
}

void ob_batch_reset(struct ob_batch *batch)
{
	ob_arena_reset(&batch->arena, OB_BATCH_KEEP);
	batch->count = 0;
	batch->bytes = 0;
}

struct ob_message *ob_batch_add(struct ob_batch *batch)
{
	if (batch->count == batch->capacity) {
		uint32_t capacity = batch->capacity ? batch->capacity * 2 : 64;
		struct ob_message *more =
			reallocarray(batch->messages, capacity, sizeof(*batch->messages));

		if (!more)
			return NULL;
		batch->messages = more;
		batch->capacity = capacity;
	}
	struct ob_message *message = &batch->messages[batch->count++];
	*message = (struct ob_message){ 0 };
	return message;
}

bool ob_batch_own(struct ob_batch *batch, struct ob_message *message)
{
	struct ob_str *const texts[] = {
		&message->aggregate_type, &message->aggregate_id, &message->event_type,
		&message->payload,        &message->headers,      &message->correlation_id,
		&message->causation_id,   &message->key,          &message->target,
		&message->partition_key,  &message->snapshot,     &message->last_error,
		&message->queue,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!ob_arena_copy(&batch->arena, *texts[i], texts[i]))
			return false;
	}
	batch->bytes += message->payload.n + message->headers.n + message->snapshot.n;
	return true;
}

void ob_batch_done(struct ob_batch *batch)
{
	free(batch->messages);
	ob_arena_done(&batch->arena);
	*batch = (struct ob_batch){ .arena = batch->arena };
}
