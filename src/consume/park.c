/* SPDX-License-Identifier: MIT */
/* What leaves the straight way: parking it, trying it again, sending dead letters. */
#include "consume/consumer_impl.h"

#include "base/utf8.h"
#include "sink/line.h"

#include <stdlib.h>

enum { LETTERS = 32, LETTER_WAIT_MS = 5000 };

void ob_consumer_to_park(struct ob_consumer *c, struct ob_consume_item *item,
			 enum ob_parked_state state, int64_t delay_ms, const char *reason)
{
	struct ob_buf safe = OB_BUF_INIT(sizeof(item->reason) * 4);

	item->state = state;
	item->delay_ms = delay_ms;
	if (reason)
		ob_utf8_sanitize(&safe, ob_str(reason), sizeof(item->reason) / 4);
	(void)snprintf(item->reason, sizeof(item->reason), "%s", ob_buf_str(&safe));
	ob_buf_done(&safe);
	if (item->entry->fault.p) {
		ob_consumer_note_error(c, item->reason);
		if (c->p.log)
			ob_log(c->p.log, OB_LOG_ERROR,
			       "an entry is no message, keeping it as a letter",
			       OB_KV("consumer", c->conf.name), OB_KS("where", item->entry->where),
			       OB_KV("error", item->reason));
	}
	TAILQ_INSERT_TAIL(&c->park, item, links);
	c->park_count++;
}

void ob_consumer_park_key(struct ob_consumer *c, struct ob_consume_key *key)
{
	struct ob_consume_item *item;

	key->blocked = false;
	while ((item = TAILQ_FIRST(&key->waiting))) {
		TAILQ_REMOVE(&key->waiting, item, links);
		c->waiting_count--;
		/* A position must not pass what other keys have in between: each at its turn. */
		if (c->conf.dedup == OB_DEDUP_POSITION) {
			ob_consume_insert_head(&c->runnable, item);
			c->runnable_count++;
		} else {
			ob_consumer_to_park(c, item, OB_PARKED_WAITING, OB_PARKED_NEVER, NULL);
		}
	}
}

/* ---- parking --------------------------------------------------------- */

/* The message as a line; what is no message as it stood in the source. */
static bool make_line(const struct ob_feed_entry *e, struct ob_buf *out)
{
	struct ob_err err = OB_ERR_INIT;
	const struct ob_delivery delivery = { .message = &e->message,
					      .key = e->message.key,
					      .body = e->message.payload,
					      .content_type = e->content_type };

	if (e->fault.p) {
		ob_utf8_sanitize(out, e->message.payload.p ? e->message.payload : OB_STR(""),
				 65536);
		return !out->failed;
	}
	if (ob_line_add(out, &delivery, &err) < 0)
		return false;
	out->data[--out->len] = '\0'; /* without its newline */
	return true;
}

static bool make_park(struct ob_consumer *c, const struct ob_consume_item *item,
		      struct ob_arena *arena, struct ob_park *ret)
{
	const struct ob_feed_entry *e = item->entry;
	struct ob_buf line = OB_BUF_INIT(OB_LINE_BUF_MAX);
	char id[OB_UUID_TEXT_SIZE];
	struct ob_parked *p = &ret->parked;
	bool ok = make_line(e, &line);

	*ret = (struct ob_park){ .delay_ms = item->delay_ms };
	p->state = item->state;
	p->queue = item->key && item->state != OB_PARKED_LETTER ? item->key->name : OB_STR_NULL;
	p->attempts = item->state == OB_PARKED_WAITING ? 0 : 1;
	p->place = e->where;
	p->event_type = e->message.event_type;
	p->reason = item->reason[0] ? ob_str(item->reason) : OB_STR_NULL;
	ok = ok && ob_arena_copy(arena, ob_buf_view(&line), &p->message);
	ob_buf_done(&line);
	if (ok && !e->fault.p) {
		ob_uuid_format(&e->message.id, id);
		ok = ob_arena_copy(arena, ob_str(id), &p->id);
	}
	(void)c;
	return ok;
}

/* Only what fits may be parked: per key, and in all. */
static bool is_full(struct ob_consumer *c, const struct ob_consume_item *item, size_t more)
{
	const struct ob_consume_key *key = item->key;
	bool all = c->m.parked_now + more >= c->conf.max_parked;
	bool one = key && item->state == OB_PARKED_WAITING &&
		   key->parked + more >= c->conf.max_per_key;

	if (!all && !one)
		return false;
	if (!c->m.full && c->p.log)
		ob_log(c->p.log, OB_LOG_ERROR,
		       all ? "too many messages are parked, the source is paused"
			   : "too many messages of one key are parked, the source is paused",
		       OB_KV("consumer", c->conf.name), OB_KS("key", key ? key->name : OB_STR_NULL),
		       OB_KI("parked", (int64_t)c->m.parked_now),
		       OB_KV("hint", "decide about them with `outbox dlq`"));
	c->m.full = true;
	return true;
}

static void parked(struct ob_consumer *c, struct ob_consume_item *item)
{
	TAILQ_REMOVE(&c->park, item, links);
	c->park_count--;
	c->m.parked++;
	c->m.parked_now++;
	c->m.dead_now += item->state >= OB_PARKED_DEAD;
	if (item->key && item->state != OB_PARKED_LETTER)
		item->key->parked++;
	if (item->delay_ms >= 0)
		c->due_us = 0;
	/* It is safe in our database: the source may forget it. */
	TAILQ_INSERT_TAIL(&c->done, item, links);
	c->done_count++;
}

bool ob_consumer_park(struct ob_consumer *c)
{
	struct ob_arena arena = OB_ARENA_INIT((size_t)1 << 30);
	struct ob_park_position position = { .source = ob_str(c->conf.source) };
	struct ob_consume_item *item;
	struct ob_err err = OB_ERR_INIT;
	size_t n = 0, most = 0, added = 0;
	char text[48];
	bool ok = true;

	if (c->park_count == 0 || ob_consumer_waits(c, &c->store_wait))
		return false;
	most = c->park_count < OB_CONSUME_PARK_LIMIT ? c->park_count : OB_CONSUME_PARK_LIMIT;
	struct ob_park *parks = ob_arena_alloc(&arena, most * sizeof(*parks));
	TAILQ_FOREACH(item, &c->park, links)
	{
		if (!parks || n == most || is_full(c, item, n))
			break;
		ok = make_park(c, item, &arena, &parks[n]);
		if (!ok)
			break;
		n++;
		position.at.part = item->entry->part;
		ob_consumer_position_text(item->entry->place, text);
		position.at.position = ob_str(text);
	}
	int r = n == 0 ? OUTBOX_EBUSY
		       : ob_park(c->p.store, c->p.lease, parks, n,
				 c->conf.dedup == OB_DEDUP_POSITION ? &position : NULL, &added,
				 &err);
	if (r < 0 && n > 0)
		ob_consumer_failed(c, &c->store_wait, "parking messages failed", &err);
	if (r == 0)
		ob_consumer_worked(c, &c->store_wait, "the database is back");
	for (; r == 0 && n > 0; n--)
		parked(c, TAILQ_FIRST(&c->park));
	ob_arena_done(&arena);
	return r == 0;
}

/* ---- trying again ---------------------------------------------------- */

/* Write the outcome down; what cannot be written now is tried again: the row stays as it was. */
void ob_consumer_retried(struct ob_consumer *c, struct ob_consume_item *item,
			 const struct ob_verdict *verdict, const char *reason)
{
	struct ob_parked row = item->row;
	struct ob_err err = OB_ERR_INIT;
	bool done = verdict->action == OB_ACT_PUBLISHED;
	int r = 0;

	if (done && !(c->p.handler->ops->caps & OB_HANDLER_SETTLES)) {
		r = ob_parked_done(c->p.store, c->p.lease, row.n, row.queue, &err);
	} else if (!done) {
		row.attempts++;
		row.state = verdict->action != OB_ACT_DEAD ? OB_PARKED_FAILED
			    : c->conf.hold                 ? OB_PARKED_DEAD
							   : OB_PARKED_LETTER;
		row.reason = ob_str(reason);
		r = ob_parked_failed(
			c->p.store, c->p.lease, &row,
			row.state == OB_PARKED_FAILED ? verdict->delay_ms : OB_PARKED_NEVER, &err);
	}
	if (r < 0)
		ob_consumer_failed(c, &c->store_wait, "writing down an outcome failed", &err);
	c->due_us = 0;
	c->keys_us = 0;
	ob_consumer_forget(c, item);
}

/* ---- letters --------------------------------------------------------- */

/* Send one and wait for its acknowledgement. */
static int send_letter(struct ob_consumer *c, const struct ob_parked *row,
		       const struct ob_feed_entry *e, struct ob_err *err)
{
	char attempts[16], since[OB_TIME_SIZE] = "";
	struct ob_ack ack = { 0 };
	int64_t end = ob_consumer_now(c) + (int64_t)LETTER_WAIT_MS * 1000;

	(void)snprintf(attempts, sizeof(attempts), "%u", row->attempts);
	(void)ob_time_format(row->since_us, since);
	const struct ob_header headers[] = {
		{ .name = OB_STR("outbox-dead-group"), .value = ob_str(c->conf.name) },
		{ .name = OB_STR("outbox-dead-reason"),
		  .value = row->reason.p ? row->reason : OB_STR("") },
		{ .name = OB_STR("outbox-dead-at"), .value = ob_str(since) },
		{ .name = OB_STR("outbox-dead-source"), .value = row->place },
		{ .name = OB_STR("outbox-dead-attempts"), .value = ob_str(attempts) },
	};
	const struct ob_delivery delivery = {
		.tag = (uint64_t)row->n,
		.message = &e->message,
		.destination = ob_str(c->conf.letter_destination),
		.key = e->message.key,
		.body = e->message.payload.p ? e->message.payload : row->message,
		.content_type = e->content_type,
		.headers = headers,
		.header_count = sizeof(headers) / sizeof(headers[0]),
	};
	int r = ob_sink_open(c->p.letters, err);
	if (r == 0)
		r = ob_sink_send(c->p.letters, &delivery, err);
	while (r == 0 && ob_consumer_now(c) < end) {
		int n = ob_sink_poll(c->p.letters, 100, &ack, 1, err);

		if (n < 0)
			return n;
		if (n == 0)
			continue;
		*err = ack.err;
		return ack.err.kind == OB_ERR_NONE ? 0 : ack.err.status;
	}
	ob_sink_reset(c->p.letters);
	return r < 0 ? r
		     : ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "the sink of dead letters does not answer");
}

bool ob_consumer_send_letters(struct ob_consumer *c)
{
	const struct ob_parked_filter filter = { .consumer = c->conf.name,
						 .state = OB_PARKED_LETTER,
						 .limit = LETTERS };
	struct ob_arena arena = OB_ARENA_INIT((size_t)1 << 30);
	struct ob_parked *rows = NULL;
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0, sent = 0;

	if (!c->p.letters || c->m.dead_now == 0 || c->p.lease->epoch == 0 || c->draining ||
	    ob_consumer_waits(c, &c->letter_wait) || ob_consumer_waits(c, &c->store_wait))
		return false;
	int r = ob_parked_list(c->p.store, &filter, &arena, &rows, &count, &err);
	if (r < 0)
		ob_consumer_failed(c, &c->store_wait, "reading dead letters failed", &err);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct ob_feed_entry entry = { 0 };

		if (rows[i].id.p)
			(void)ob_feed_entry_of_line(rows[i].message, &arena, &entry);
		r = send_letter(c, &rows[i], &entry, &err);
		/* Kept here until it is safe there. */
		if (r == 0)
			r = ob_parked_done(c->p.store, c->p.lease, rows[i].n, OB_STR_NULL, &err);
		sent += r == 0;
		if (r < 0)
			ob_consumer_failed(c, &c->letter_wait, "sending a dead letter failed",
					   &err);
		else
			ob_consumer_worked(c, &c->letter_wait, "dead letters are sent again");
	}
	c->m.letters += sent;
	c->m.parked_now -= sent < c->m.parked_now ? sent : c->m.parked_now;
	c->m.dead_now = count < LETTERS && r == 0 ? 0 : c->m.dead_now;
	ob_arena_done(&arena);
	return sent > 0;
}
