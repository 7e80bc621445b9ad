/* SPDX-License-Identifier: MIT */
/* Reading in chunks: each goes on after the last event of the one before. */
#include "base/cleanup.h"
#include "lib/events/stream.h"
#include "lib/fail.h"
#include "lib/handle.h"

enum {
	CHUNK_FIRST = 16, /* how large events are is known after these */
	CHUNK_MAX = 1000,
	CHUNK_BYTES = 1 << 20,
	/* Memory of a chunk: one of CHUNK_MAX events may meet larger ones than the last did. */
	ARENA_KEEP = 2 << 20,
};

struct outbox_event_reader {
	outbox *ob;
	struct ob_event_query query; /* of the next chunk */
	char *texts;                 /* what the query points to */
	char *now;                   /* of a pass over the log; NULL: none */
	uint64_t left;               /* events that may still be returned */
	uint32_t chunk;              /* as the caller wants it; 0: chosen here */
	struct ob_event_page page;
	uint32_t at;
	bool ended;
};

/* ---- opening --------------------------------------------------------- */

static char *keep_text(char **to, const char *text)
{
	size_t n = text ? strlen(text) + 1 : 0;
	char *kept = *to;

	if (!text)
		return NULL;
	memcpy(kept, text, n);
	*to += n;
	return kept;
}

/* The query outlives the caller's strings. */
static int keep_texts(outbox_event_reader *reader, struct outbox_error *err)
{
	struct ob_event_query *q = &reader->query;
	const char **texts[] = { &q->stream.target, &q->stream.type, &q->stream.id, &q->event_type,
				 &q->correlation_id };
	size_t size = 1;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		size += *texts[i] ? strlen(*texts[i]) + 1 : 0;
	char *to = reader->texts = malloc(size);
	if (!to)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = keep_text(&to, *texts[i]);
	return 0;
}

/* Takes the query; on failure nothing is left. */
static int make_reader(outbox *ob, const struct ob_event_query *query, uint64_t limit,
		       uint32_t chunk, outbox_event_reader **ret, struct outbox_error *err)
{
	outbox_event_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	*reader = (outbox_event_reader){
		.ob = ob,
		.query = *query,
		.left = limit,
		.chunk = chunk < CHUNK_MAX ? chunk : CHUNK_MAX,
		.page.arena = OB_ARENA_INIT(SIZE_MAX),
		.ended = limit == 0,
	};
	int r = keep_texts(reader, err);
	if (r < 0) {
		outbox_events_close(reader);
		return r;
	}
	reader->query.limit = chunk ? reader->chunk : CHUNK_FIRST;
	*ret = reader;
	return 0;
}

static int64_t or_all(int64_t bound)
{
	return bound > 0 ? bound : INT64_MAX;
}

static int check_query(const struct outbox_event_query *query, struct outbox_error *err)
{
	const unsigned known = OUTBOX_BACKWARD | OUTBOX_WITH_ENDED;

	if (!query)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "query is NULL");
	if (query->flags & ~known)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "flags 0x%x are unknown",
			       query->flags & ~known);
	if (query->after_version < 0 || query->to_version < 0 || query->after_position < 0 ||
	    query->to_position < 0)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "a bound of the query is negative");
	return 0;
}

/* Members that a program of an older header does not have. */
static const char *correlation_of(const struct outbox_event_query *query)
{
	const size_t needed =
		offsetof(struct outbox_event_query, correlation_id) + sizeof(query->correlation_id);

	return query->size >= needed ? query->correlation_id : NULL;
}

static struct ob_event_query query_of(const struct outbox_event_query *query)
{
	return (struct ob_event_query){
		.backward = query->flags & OUTBOX_BACKWARD,
		.with_ended = query->flags & OUTBOX_WITH_ENDED,
		.after_version = query->after_version,
		.to_version = or_all(query->to_version),
		.after_position = query->after_position,
		.to_position = or_all(query->to_position),
		.after_us = query->after_us ? query->after_us : INT64_MIN,
		.to_us = query->to_us ? query->to_us : INT64_MAX,
		.event_type = query->event_type,
		.correlation_id = correlation_of(query),
	};
}

static int open_stream(outbox *ob, const struct outbox_event_query *query, struct ob_event_query *q,
		       uint64_t limit, outbox_event_reader **ret_reader, struct outbox_error *err)
{
	struct ob_stream_state state;
	int r = ob_stream_key(&query->stream, &q->stream, err);

	if (r == 0 && q->correlation_id)
		r = ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			    "correlation_id narrows a category or all events, not a stream");
	if (r == 0)
		r = ob->ops->look_stream(ob->driver, &q->stream, &state, err);
	if (r < 0)
		return r;
	if (!q->with_ended) {
		if (state.end != OUTBOX_STREAM_OPEN)
			limit = 0;
		if (q->after_version < state.first_version - 1)
			q->after_version = state.first_version - 1;
	}
	return make_reader(ob, q, limit, query->chunk, ret_reader, err);
}

static int open_log(outbox *ob, const struct outbox_event_query *query, struct ob_event_query *q,
		    uint64_t limit, outbox_event_reader **ret_reader, struct outbox_error *err)
{
	int64_t end = INT64_MAX;
	OB_AUTOFREE char *now = NULL;
	int r = ob->ops->pin_log(ob->driver, &end, &now, err);

	if (r < 0)
		return r;
	q->log = true;
	q->stream.target = query->stream.target ? query->stream.target : "default";
	q->stream.type = query->stream.type;
	if (q->to_position > end)
		q->to_position = end;
	r = make_reader(ob, q, limit, query->chunk, ret_reader, err);
	if (r == 0) {
		(*ret_reader)->now = OB_TAKE(now);
		(*ret_reader)->query.now = (*ret_reader)->now;
	}
	return r;
}

int outbox_events_open(outbox *ob, const struct outbox_event_query *query,
		       outbox_event_reader **ret_reader, struct outbox_error *err)
{
	struct outbox_error unused;

	if (!err)
		err = &unused;
	int r = ob ? check_query(query, err)
		   : ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no outbox");
	if (r < 0)
		return r;
	struct ob_event_query q = query_of(query);
	uint64_t limit = query->limit ? query->limit : UINT64_MAX;
	return query->stream.id ? open_stream(ob, query, &q, limit, ret_reader, err)
				: open_log(ob, query, &q, limit, ret_reader, err);
}

int outbox_events_recent(outbox *ob, const char *target, uint32_t limit,
			 outbox_event_reader **ret_reader, struct outbox_error *err)
{
	struct outbox_error unused;
	const struct ob_event_query q = {
		.stream.target = target ? target : "default",
		.recent = true,
		.backward = true,
		.to_position = INT64_MAX,
	};

	if (!err)
		err = &unused;
	if (!ob)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no outbox");
	return make_reader(ob, &q, limit, 0, ret_reader, err);
}

/* ---- reading --------------------------------------------------------- */

/* As many as make about CHUNK_BYTES, by what the last chunk had. */
static uint32_t next_limit(const outbox_event_reader *reader)
{
	size_t each = reader->page.count ? reader->page.bytes / reader->page.count + 1 : 1;
	uint64_t limit = CHUNK_BYTES / each;

	if (reader->chunk)
		limit = reader->chunk;
	else if (reader->page.count == 0)
		limit = CHUNK_FIRST;
	if (limit > CHUNK_MAX)
		limit = CHUNK_MAX;
	if (limit > reader->left)
		limit = reader->left;
	return limit ? (uint32_t)limit : 1;
}

/* The next chunk begins where this one ended. */
static void move_on(outbox_event_reader *reader)
{
	struct ob_event_query *q = &reader->query;
	const struct outbox_event *last = &reader->page.events[reader->page.count - 1];

	if (q->recent || (q->log && q->backward))
		q->to_position = last->position - 1;
	else if (q->log)
		q->after_position = last->position;
	else if (q->backward)
		q->to_version = last->version - 1;
	else
		q->after_version = last->version;
}

static int read_chunk(outbox_event_reader *reader, struct outbox_error *err)
{
	struct ob_event_page *page = &reader->page;
	struct ob_event_query *q = &reader->query;

	q->limit = next_limit(reader);
	ob_arena_reset(&page->arena, ARENA_KEEP);
	page->count = 0;
	page->bytes = 0;
	reader->at = 0;
	page->events = ob_arena_alloc(&page->arena, q->limit * sizeof(*page->events));
	if (!page->events)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	int r = reader->ob->ops->read_events(reader->ob->driver, q, page, err);
	if (r < 0)
		return r;
	reader->ended = page->count < q->limit || page->count == reader->left;
	if (page->count > 0)
		move_on(reader);
	return 0;
}

int outbox_events_next(outbox_event_reader *reader, const struct outbox_event **ret_event,
		       struct outbox_error *err)
{
	struct outbox_error unused;

	if (reader->at == reader->page.count && !reader->ended) {
		int r = read_chunk(reader, err ? err : &unused);

		if (r < 0)
			return r;
	}
	if (reader->at == reader->page.count)
		return 0;
	*ret_event = &reader->page.events[reader->at++];
	reader->left--;
	return 1;
}

void outbox_events_close(outbox_event_reader *reader)
{
	if (!reader)
		return;
	ob_arena_done(&reader->page.arena);
	free(reader->texts);
	free(reader->now);
	free(reader);
}
