/* SPDX-License-Identifier: MIT */
/* Lists of messages: pages by keyset, searches in a window of the log that the answer names. */
#include "monitor/api.h"
#include "monitor/routes.h"
#include "operate/lookup.h"

#include <inttypes.h>
#include <stdio.h>

/* WINDOW: numbers of the log that one call covers. */
enum { LIMIT = 50, LIMIT_MAX = 500, WINDOW = 100000 };

#define BIT(view) (1U << OB_VIEW_##view)

void ob_api_log_members(struct ob_jout *j, const struct ob_message *m)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	ob_jout_int(j, "seq", m->seq);
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "target", m->target);
	ob_jout_text(j, "aggregate_type", m->aggregate_type);
	ob_jout_text(j, "aggregate_id", m->aggregate_id);
	ob_jout_text(j, "event_type", m->event_type);
	ob_jout_text(j, "key", m->key);
	ob_jout_int(j, "partition", m->partition);
	ob_jout_int(j, "priority", m->priority);
	ob_jout_text(j, "correlation_id", m->correlation_id);
	ob_jout_us(j, "created_us", m->created_at_us);
	ob_jout_us(j, "available_us", m->available_at_us);
	if (m->payload_bytes >= 0)
		ob_jout_int(j, "payload_bytes", m->payload_bytes);
	else
		ob_jout_null(j, "payload_bytes");
}

void ob_api_state_members(struct ob_jout *j, const char *reader, const struct ob_message *m)
{
	ob_jout_text(j, "reader", ob_str(reader));
	ob_jout_text(j, "state", ob_str(ob_view_name(m->view)));
	ob_jout_int(j, "attempts", m->attempts);
	ob_jout_us(j, "due_us", m->due_us);
	ob_jout_us(j, "since_us", m->since_us);
	ob_jout_us(j, "published_us", m->published_at_us);
	ob_jout_text(j, "last_error", m->last_error);
}

void ob_api_brief(struct ob_jout *j, const char *reader, const struct ob_message *m)
{
	ob_jout_begin(j, NULL, '{');
	ob_api_log_members(j, m);
	ob_api_state_members(j, reader, m);
	ob_jout_end(j, '}');
}

/* ---- the list --------------------------------------------------------- */

struct listing {
	struct ob_request *req;
	struct ob_store *store;
	struct ob_filter filter;
	struct ob_uuid id;
	struct ob_batch batch;
	int64_t from, to, limit; /* of the window */
	bool windowed;
	int64_t now_us;
};

/* "failed,dead"; false: answered. */
static bool take_states(struct listing *l)
{
	const char *text = ob_request_arg(l->req, "state");

	while (text && *text) {
		size_t n = strcspn(text, ",");
		char word[32];

		(void)snprintf(word, sizeof(word), "%.*s", n < 31 ? (int)n : 31, text);
		int view = ob_view_parse(word);
		if (view < 0 && strcmp(word, "all") != 0) {
			ob_request_fail(l->req, 400, "invalid", "state: no state '%s'", word);
			return false;
		}
		l->filter.views |= view < 0 ? 0 : 1U << view;
		text += n + (text[n] == ',');
	}
	return true;
}

static bool take_args(struct listing *l)
{
	struct ob_filter *f = &l->filter;
	int64_t before, from;

	if (!take_states(l) || !ob_request_int(l->req, "limit", 1, LIMIT_MAX, LIMIT, &l->limit) ||
	    !ob_request_int(l->req, "before", 1, INT64_MAX, 0, &before) ||
	    !ob_request_int(l->req, "from", 1, INT64_MAX, 0, &from))
		return false;
	f->key = ob_request_arg(l->req, "key");
	f->aggregate_type = ob_request_arg(l->req, "aggregate_type");
	f->aggregate_id = ob_request_arg(l->req, "aggregate_id");
	f->event_type = ob_request_arg(l->req, "type");
	f->correlation_id = ob_request_arg(l->req, "correlation");
	f->error = ob_request_arg(l->req, "error");
	f->excepted = f->error && !ob_request_arg(l->req, "id"); /* only an exception has one */
	f->after_seq = before;
	f->from_seq = from;
	f->newest_first = f->brief = true;
	f->limit = (uint32_t)l->limit;
	return true;
}

/* A whole id is one probe; of the beginning of one the newest messages are looked through. */
static int take_id(struct listing *l, struct ob_err *err)
{
	const char *text = ob_request_arg(l->req, "id");
	struct ob_lookup lookup;

	if (!text)
		return 0;
	l->filter.id = &l->id;
	if (ob_uuid_parse(ob_str(text), &l->id))
		return 0;
	int r = ob_lookup_find(&lookup, l->store, text, NULL, "", err);
	l->id = lookup.id;
	ob_lookup_done(&lookup);
	return r;
}

/* The newest number that there is to see. */
static int find_top(struct listing *l, struct ob_err *err)
{
	const struct ob_filter newest = {
		.reader = l->filter.reader, .newest_first = true, .limit = 1, .brief = true
	};
	int r = 0;

	l->to = l->filter.after_seq - 1;
	if (l->filter.after_seq == 0) {
		r = ob_store_list(l->store, &newest, &l->batch, &l->now_us, err);
		l->to = r == 0 && l->batch.count ? l->batch.messages[0].seq : 0;
	}
	return r;
}

/* What failed or died is found by itself, however old; everything else in a window. */
static int make_window(struct listing *l, struct ob_err *err)
{
	unsigned few = BIT(FAILED) | BIT(DEAD) | BIT(DISCARDED);
	int r = find_top(l, err);

	l->windowed = !l->filter.id && !(l->filter.views && !(l->filter.views & ~few));
	l->from = l->filter.from_seq ? l->filter.from_seq : 1;
	if (l->windowed && l->to - l->from >= WINDOW)
		l->from = l->to - WINDOW + 1;
	if (l->windowed)
		l->filter.from_seq = l->from;
	return r;
}

static void listing_json(struct listing *l, struct ob_asked *asked)
{
	int64_t lowest = 1, asked_from, next = 0;
	struct ob_jout *j = &l->req->out;
	bool full = l->batch.count == l->filter.limit;
	char text[24];

	(void)ob_request_int(l->req, "from", 1, INT64_MAX, 0, &asked_from);
	lowest = asked_from ? asked_from : 1;
	if (full && l->batch.count)
		next = l->batch.messages[l->batch.count - 1].seq;
	else if (l->windowed && l->from > lowest)
		next = l->from;
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(asked->pool->entry->name));
	ob_jout_text(j, "reader", ob_str(l->filter.reader));
	ob_jout_int(j, "now_us", l->now_us);
	ob_jout_begin(j, "messages", '[');
	for (uint32_t i = 0; i < l->batch.count; i++)
		ob_api_brief(j, l->filter.reader, &l->batch.messages[i]);
	ob_jout_end(j, ']');
	(void)snprintf(text, sizeof(text), "%" PRId64, next);
	ob_jout_text(j, "next", next ? ob_str(text) : OB_STR_NULL);
	ob_jout_begin(j, "searched", '{');
	int64_t from = full && next ? next : l->from;
	ob_jout_int(j, "from_seq", from);
	ob_jout_int(j, "to_seq", l->to);
	ob_jout_int(j, "rows", l->to >= from ? l->to - from + 1 : 0);
	ob_jout_bool(j, "complete", next == 0);
	ob_jout_end(j, '}');
	ob_jout_end(j, '}');
}

void ob_api_messages(struct ob_request *req)
{
	struct listing l = { .req = req };
	struct ob_readers readers = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;

	req->type = "application/json";
	if (!take_args(&l) || !ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	l.store = asked.store;
	ob_batch_init(&l.batch);
	int r = ob_readers_name(&readers, l.store, ob_request_arg(req, "reader"), true,
				&l.filter.reader, &err);
	if (r == 0)
		r = take_id(&l, &err);
	if (r == 0)
		r = make_window(&l, &err);
	if (r == 0)
		r = ob_store_list(l.store, &l.filter, &l.batch, &l.now_us, &err);
	if (r == 0)
		listing_json(&l, &asked);
	ob_batch_done(&l.batch);
	ob_readers_done(&readers);
	ob_request_end(req, &asked, r, &err);
}
