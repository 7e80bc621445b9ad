/* SPDX-License-Identifier: MIT */
/* The log as an event store: streams that were appended to last; one stream, and its readers. */
#include "monitor/api.h"
#include "monitor/routes.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * SCAN: the newest messages among which streams are looked for, in at most WINDOW numbers: a list
 * of all streams would cost more the more there are. READERS: whose states are told of each event.
 */
enum { SCAN = 2000, WINDOW = 100000, LIMIT = 50, LIMIT_MAX = 500, READERS = 16 };

/* ---- streams ---------------------------------------------------------- */

/* By category and stream, the newest event of each first. */
static int by_stream(const void *a, const void *b)
{
	const struct ob_message *x = *(const struct ob_message *const *)a;
	const struct ob_message *y = *(const struct ob_message *const *)b;
	int r = ob_api_compare(x->target, y->target);

	if (r == 0)
		r = ob_api_compare(x->aggregate_type, y->aggregate_type);
	if (r == 0)
		r = ob_api_compare(x->aggregate_id, y->aggregate_id);
	return r ? r : x->seq > y->seq ? -1 : x->seq < y->seq;
}

static int newest_first(const void *a, const void *b)
{
	const struct ob_message *x = *(const struct ob_message *const *)a;
	const struct ob_message *y = *(const struct ob_message *const *)b;

	return x->seq > y->seq ? -1 : x->seq < y->seq;
}

static bool same_category(const struct ob_message *a, const struct ob_message *b)
{
	return ob_str_eq(a->target, b->target) && ob_str_eq(a->aggregate_type, b->aggregate_type);
}

static bool same_stream(const struct ob_message *a, const struct ob_message *b)
{
	return same_category(a, b) && ob_str_eq(a->aggregate_id, b->aggregate_id);
}

static void stream_members(struct ob_jout *j, const struct ob_message *m)
{
	ob_jout_text(j, "target", m->target);
	ob_jout_text(j, "type", m->aggregate_type);
}

/* The rows are ordered by stream. */
static void categories_json(struct ob_jout *j, const struct ob_message *const *rows, size_t count)
{
	ob_jout_begin(j, "categories", '[');
	for (size_t i = 0, first = 0; i < count; first = i) {
		int64_t streams = 0;

		for (; i < count && same_category(rows[first], rows[i]); i++)
			streams += i == first || !same_stream(rows[i - 1], rows[i]);
		ob_jout_begin(j, NULL, '{');
		stream_members(j, rows[first]);
		ob_jout_int(j, "streams", streams);
		ob_jout_int(j, "events", (int64_t)(i - first));
		ob_jout_end(j, '}');
	}
	ob_jout_end(j, ']');
}

static void streams_json(struct ob_jout *j, const struct ob_message **rows, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || !same_stream(rows[kept - 1], rows[i]))
			rows[kept++] = rows[i];
	}
	if (kept)
		qsort(rows, kept, sizeof(struct ob_message *), newest_first);
	ob_jout_begin(j, "streams", '[');
	for (size_t i = 0; i < kept && i < LIMIT_MAX; i++) {
		ob_jout_begin(j, NULL, '{');
		stream_members(j, rows[i]);
		ob_jout_text(j, "id", rows[i]->aggregate_id);
		ob_jout_int(j, "version", rows[i]->sequence_number);
		ob_jout_text(j, "event_type", rows[i]->event_type);
		ob_jout_us(j, "at_us", rows[i]->created_at_us);
		ob_jout_end(j, '}');
	}
	ob_jout_end(j, ']');
}

static int list_newest(struct ob_store *store, struct ob_filter filter, uint32_t limit,
		       struct ob_batch *batch, int64_t *ret_now_us, struct ob_err *err)
{
	filter.newest_first = filter.brief = true;
	filter.limit = limit;
	return ob_store_list(store, &filter, batch, ret_now_us, err);
}

static int find_streams(struct ob_request *req, const struct ob_asked *asked,
			struct ob_batch *batch, struct ob_err *err)
{
	struct ob_filter filter = { 0 };
	struct ob_jout *j = &req->out;
	int64_t now_us;
	size_t count = 0;
	int r = list_newest(asked->store, filter, 1, batch, &now_us, err);

	if (r == 0 && batch->count && batch->messages[0].seq > WINDOW)
		filter.from_seq = batch->messages[0].seq - WINDOW + 1;
	filter.aggregate_type = ob_request_arg(req, "type");
	if (r == 0)
		r = list_newest(asked->store, filter, SCAN, batch, &now_us, err);
	if (r < 0)
		return r;
	const struct ob_message **rows = calloc(batch->count + 1U, sizeof(struct ob_message *));
	if (!rows)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct ob_message *m = &batch->messages[i];

		if (m->sequence_number > 0 && m->aggregate_id.p)
			rows[count++] = m;
	}
	if (count)
		qsort(rows, count, sizeof(struct ob_message *), by_stream);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(asked->pool->entry->name));
	ob_jout_int(j, "now_us", now_us);
	categories_json(j, rows, count);
	streams_json(j, rows, count);
	ob_jout_int(j, "searched", batch->count);
	ob_jout_bool(j, "complete", batch->count < SCAN && filter.from_seq == 0);
	ob_jout_end(j, '}');
	free(rows);
	return 0;
}

void ob_api_streams(struct ob_request *req)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;
	struct ob_batch batch;

	req->type = "application/json";
	if (!ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	ob_batch_init(&batch);
	int r = find_streams(req, &asked, &batch, &err);
	ob_batch_done(&batch);
	ob_request_end(req, &asked, r, &err);
}

/* ---- one stream ------------------------------------------------------- */

struct stream {
	struct ob_filter filter;
	struct ob_batch events, seen;
	struct ob_readers readers;
	const char *names[READERS]; /* of its target's readers */
	size_t count;
	const char *states[LIMIT_MAX][READERS]; /* NULL: the row has gone meanwhile */
	int64_t now_us;
};

/* The states of these events for one reader. */
static int see_events(struct stream *s, struct ob_store *store, size_t reader, struct ob_err *err)
{
	struct ob_filter filter = s->filter;
	uint32_t at = 0;

	filter.reader = s->names[reader];
	int r = ob_store_list(store, &filter, &s->seen, &s->now_us, err);
	for (uint32_t i = 0; r == 0 && i < s->seen.count; i++) {
		const struct ob_message *m = &s->seen.messages[i];

		while (at < s->events.count && s->events.messages[at].seq > m->seq)
			at++;
		if (at < s->events.count && s->events.messages[at].seq == m->seq)
			s->states[at][reader] = ob_view_name(m->view);
	}
	return r;
}

static int load_stream(struct stream *s, struct ob_store *store, struct ob_err *err)
{
	int r = ob_store_list(store, &s->filter, &s->events, &s->now_us, err);

	if (r == 0 && s->events.count == 0 && s->filter.before_version == 0)
		return ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_REJECT,
				  "there is no stream %.80s of type %.80s", s->filter.aggregate_id,
				  s->filter.aggregate_type);
	if (r == 0)
		r = ob_readers_load(&s->readers, store, err);
	for (size_t i = 0; r == 0 && i < s->readers.count && s->count < READERS; i++) {
		const struct ob_reader *reader = &s->readers.list[i];

		if (!ob_str_eq(reader->target, ob_str(s->filter.stream)))
			continue;
		s->names[s->count] = ob_readers_text(&s->readers, reader->name);
		if (!s->names[s->count])
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
		r = see_events(s, store, s->count++, err);
	}
	return r;
}

static void event_json(struct ob_jout *j, const struct stream *s, uint32_t at)
{
	const struct ob_message *m = &s->events.messages[at];

	ob_jout_begin(j, NULL, '{');
	ob_api_log_members(j, m);
	ob_jout_int(j, "version", m->sequence_number);
	ob_jout_int(j, "revision", m->revision);
	ob_jout_begin(j, "states", '[');
	for (size_t i = 0; i < s->count; i++)
		ob_jout_text(j, NULL, ob_str(s->states[at][i]));
	ob_jout_end(j, ']');
	ob_jout_end(j, '}');
}

static void stream_json(struct ob_request *req, const struct ob_asked *asked,
			const struct stream *s)
{
	struct ob_jout *j = &req->out;
	bool full = s->events.count == s->filter.limit;
	int64_t next = full ? s->events.messages[s->events.count - 1].sequence_number : 0;
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, next);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(asked->pool->entry->name));
	ob_jout_int(j, "now_us", s->now_us);
	ob_jout_text(j, "target", ob_str(s->filter.stream));
	ob_jout_text(j, "type", ob_str(s->filter.aggregate_type));
	ob_jout_text(j, "id", ob_str(s->filter.aggregate_id));
	ob_jout_begin(j, "readers", '[');
	for (size_t i = 0; i < s->count; i++)
		ob_jout_text(j, NULL, ob_str(s->names[i]));
	ob_jout_end(j, ']');
	ob_jout_begin(j, "events", '[');
	for (uint32_t i = 0; i < s->events.count; i++)
		event_json(j, s, i);
	ob_jout_end(j, ']');
	ob_jout_text(j, "next", next > 1 ? ob_str(text) : OB_STR_NULL);
	ob_jout_end(j, '}');
}

static bool take_stream(struct ob_request *req, struct ob_filter *f)
{
	const char *target = ob_request_arg(req, "target");
	int64_t limit;

	f->stream = target ? target : "default";
	f->aggregate_type = ob_request_arg(req, "type");
	f->aggregate_id = ob_request_arg(req, "id");
	f->newest_first = f->brief = true;
	if (!f->aggregate_type || !f->aggregate_id) {
		ob_request_fail(req, 400, "invalid", "a stream has a type and an id");
		return false;
	}
	if (!ob_request_int(req, "limit", 1, LIMIT_MAX, LIMIT, &limit) ||
	    !ob_request_int(req, "before", 1, INT64_MAX, 0, &f->before_version))
		return false;
	f->limit = (uint32_t)limit;
	return true;
}

void ob_api_stream(struct ob_request *req)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_filter filter = { 0 };
	struct ob_asked asked;

	req->type = "application/json";
	if (!take_stream(req, &filter) ||
	    !ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	struct stream *s = calloc(1, sizeof(*s));
	int r = s ? 0 : ob_err_set(&err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	if (s) {
		s->filter = filter;
		ob_batch_init(&s->events);
		ob_batch_init(&s->seen);
		r = load_stream(s, asked.store, &err);
		if (r == 0)
			stream_json(req, &asked, s);
		ob_readers_done(&s->readers);
		ob_batch_done(&s->seen);
		ob_batch_done(&s->events);
		free(s);
	}
	ob_request_end(req, &asked, r, &err);
}
