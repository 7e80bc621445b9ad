/* SPDX-License-Identifier: MIT */
/* Appending to a stream: check the call, give every event its stream, hand over to the driver. */
#include "base/cleanup.h"
#include "base/grow.h"
#include "lib/events/stream.h"
#include "lib/fail.h"
#include "lib/handle.h"

#include <inttypes.h>

/* A version, or one of the words. */
static int check_expected(int64_t expected, struct outbox_error *err)
{
	if (expected >= OUTBOX_STREAM_EXISTS)
		return 0;
	return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
		       "expected version %" PRId64
		       " is no version: give one from 0 on, "
		       "OUTBOX_ANY or OUTBOX_STREAM_EXISTS",
		       expected);
}

/* What the stream says must not be said again otherwise. */
static bool agrees(const char *own, const char *of_stream)
{
	return !own || strcmp(own, of_stream) == 0;
}

static int name_stream(const struct ob_stream_key *stream, const struct outbox_message *event,
		       size_t index, struct outbox_message *ret, struct outbox_error *err)
{
	if (event->sequence_number != 0 || !agrees(event->aggregate_type, stream->type) ||
	    !agrees(event->aggregate_id, stream->id) || !agrees(event->target, stream->target))
		return ob_fail(err, OUTBOX_EINVAL, index,
			       "an event gets its stream and version from the call: leave "
			       "aggregate_type, aggregate_id, target and sequence_number out");
	*ret = *event;
	ret->aggregate_type = stream->type;
	ret->aggregate_id = stream->id;
	ret->target = stream->target;
	return 0;
}

static int take_events(const outbox *ob, const struct outbox_message *events,
		       struct ob_append *call, struct outbox_error *err)
{
	call->own_ids = true;
	for (size_t i = 0; i < call->count; i++) {
		int r = name_stream(&call->stream, &events[i], i, &call->messages[i], err);

		if (r < 0)
			return r;
		/* So that a table without the column is told before anything is written. */
		call->messages[i].sequence_number = 1;
		call->own_ids = call->own_ids && events[i].id;
	}
	return ob_push_prepare(ob, call->messages, call->count, call->rows, err);
}

static void hand_over(const struct ob_append *call, const struct ob_append_done *done,
		      struct outbox_id *ret_ids, struct outbox_appended *ret)
{
	for (size_t i = 0; ret_ids && i < call->count; i++)
		ob_uuid_format(&call->rows[i].id, ret_ids[i].text);
	if (!ret)
		return;
	ret->first_version = done->first_version;
	ret->last_version = done->first_version + (int64_t)call->count - 1;
	ret->first_position = done->first_position;
	ret->last_position = done->last_position;
	ret->repeated = done->repeated;
}

/* NOLINTNEXTLINE(readability-function-size): nine parameters, as the header has them */
int outbox_append_sized(outbox *ob, const struct outbox_stream *stream, int64_t expected,
			const void *events, size_t count, size_t event_size,
			struct outbox_id *ret_ids, struct outbox_appended *ret_done,
			struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_append call = { .expected = expected,
				  .count = count,
				  .placed = ret_done != NULL };
	struct ob_append_done done = { 0 };
	OB_AUTOFREE struct outbox_message *copies = NULL;
	const struct outbox_message *ours = NULL;

	if (!err)
		err = &unused;
	int r = ob_push_check_call(ob, events, count, OUTBOX_APPEND_MAX, err);
	if (r == 0)
		r = ob_push_messages(events, count, event_size, &ours, &copies, err);
	if (r == 0)
		r = ob_stream_key(stream, &call.stream, err);
	if (r == 0)
		r = check_expected(expected, err);
	if (r < 0 || count == 0)
		return r;
	OB_AUTOFREE struct outbox_message *messages = calloc(count, sizeof(*messages));
	OB_AUTOFREE struct ob_push_row *rows = calloc(count, sizeof(*rows));
	if (!messages || !rows)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory for %zu events",
			       count);
	call.messages = messages;
	call.rows = rows;
	r = take_events(ob, ours, &call, err);
	if (r == 0)
		r = ob->ops->append(ob->driver, &call, &done, err);
	r = ob_push_outcome(ob, r, rows, count, err);
	if (r == 0)
		hand_over(&call, &done, ret_ids, ret_done);
	return r;
}

OUTBOX_API int first_append(outbox *ob, const struct outbox_stream *stream, int64_t expected,
			    const void *events, size_t count, struct outbox_id *ret_ids,
			    struct outbox_appended *ret_done, struct outbox_error *err)
	OB_FIRST_ABI("outbox_append");

/* NOLINTNEXTLINE(readability-function-size): as outbox_append() */
int first_append(outbox *ob, const struct outbox_stream *stream, int64_t expected,
		 const void *events, size_t count, struct outbox_id *ret_ids,
		 struct outbox_appended *ret_done, struct outbox_error *err)
{
	return outbox_append_sized(ob, stream, expected, events, count, ob_grow_message.first,
				   ret_ids, ret_done, err);
}
