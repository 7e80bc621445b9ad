/* SPDX-License-Identifier: MIT */
/* To the handler and back: what may go, and what an outcome means. */
#include "consume/consumer_impl.h"

enum { OUTCOMES = 64 };

/* ---- sending --------------------------------------------------------- */

static bool is_ordered_handler(const struct ob_consumer *c)
{
	return c->p.handler->ops->caps & OB_HANDLER_ORDERED;
}

static void take_from_runnable(struct ob_consumer *c, struct ob_consume_item *item)
{
	TAILQ_REMOVE(&c->runnable, item, links);
	c->runnable_count--;
}

static void let_wait(struct ob_consumer *c, struct ob_consume_item *item)
{
	ob_consume_insert_tail(&item->key->waiting, item);
	c->waiting_count++;
}

/* True: it went somewhere else than to the handler. */
static bool goes_elsewhere(struct ob_consumer *c, struct ob_consume_item *item)
{
	struct ob_consume_key *key = item->key;

	if (item->entry->fault.p) {
		take_from_runnable(c, item);
		c->m.unreadable++;
		if (item->row.n)
			ob_consumer_retried(c, item, &(struct ob_verdict){ .action = OB_ACT_DEAD },
					    item->entry->fault.p);
		else
			ob_consumer_to_park(c, item, OB_PARKED_LETTER, OB_PARKED_NEVER,
					    item->entry->fault.p);
		return true;
	}
	if (!key)
		return false;
	/* What of it is with the handler comes back before this one is parked behind it. */
	if (key->blocked || (!is_ordered_handler(c) && key->sent > 0)) {
		take_from_runnable(c, item);
		let_wait(c, item);
		return true;
	}
	if (key->parked > 0) {
		take_from_runnable(c, item);
		ob_consumer_to_park(c, item, OB_PARKED_WAITING, OB_PARKED_NEVER, NULL);
		return true;
	}
	return false;
}

static void fill_work(struct ob_consumer *c, struct ob_consume_item *item, struct ob_work *work,
		      char position[48])
{
	const struct ob_feed_entry *e = item->entry;

	*work = (struct ob_work){
		.tag = item->number,
		.delivery = { .tag = item->number,
			      .message = &e->message,
			      .destination = ob_str(c->conf.name),
			      .key = e->message.key,
			      .body = e->message.payload,
			      .content_type = e->content_type },
		.parked_n = item->row.n,
		.queue = item->row.queue,
	};
	if (c->conf.dedup == OB_DEDUP_POSITION && !item->row.n) {
		struct ob_str text;

		ob_consumer_position_text(e->place, position);
		if (ob_arena_copy(&item->chunk->batch.arena, ob_str(position), &text))
			work->position = (struct ob_position){ e->part, text };
	}
}

/* 1: it is with the handler; 0: it cannot take one now. */
static int send_item(struct ob_consumer *c, struct ob_consume_item *item, struct ob_err *err)
{
	struct ob_work work;
	char position[48];

	fill_work(c, item, &work, position);
	if (c->conf.dedup == OB_DEDUP_POSITION && !item->row.n && !work.position.part.p)
		return 0; /* no memory: later */
	int r = c->p.handler->ops->send(c->p.handler, &work, err);
	if (r == OB_SINK_FULL)
		c->handler_full = true;
	if (r != 0)
		return r == OB_SINK_FULL ? 0 : r;
	take_from_runnable(c, item);
	item->alone = c->sent_count == 0;
	TAILQ_INSERT_TAIL(&c->sent, item, links);
	c->sent_count++;
	if (item->key)
		item->key->sent++;
	if (c->breaker.state == OB_BREAKER_HALF_OPEN) {
		ob_breaker_probe(&c->breaker);
		c->probe = item->number;
	}
	if (item->row.n)
		c->m.retried++;
	return 1;
}

static void handler_down(struct ob_consumer *c, const struct ob_err *err)
{
	c->handler_open = false;
	ob_consumer_note_side(c, &c->m.handler, err->msg);
	ob_consumer_note_error(c, err->msg);
	if (ob_breaker_down(&c->breaker, ob_consumer_now(c)) && c->p.log)
		ob_log(c->p.log, OB_LOG_WARN, "the handler is down, waiting for it",
		       OB_KV("consumer", c->conf.name), OB_KV("error", err->msg));
}

static bool open_handler(struct ob_consumer *c)
{
	struct ob_err err = OB_ERR_INIT;

	if (c->handler_open)
		return true;
	if (c->p.handler->ops->open(c->p.handler, &err) == 0) {
		c->handler_open = true;
		/* While the breaker is not closed that it opens says little: the probe decides. */
		if (c->breaker.state == OB_BREAKER_CLOSED)
			ob_consumer_note_side(c, &c->m.handler, NULL);
		return true;
	}
	if (err.kind == OB_ERR_FATAL) {
		c->failed = true;
		c->fatal = err;
	}
	handler_down(c, &err);
	return false;
}

/* A message on which the handler ended twice goes alone. */
static bool must_wait_for_others(const struct ob_consumer *c, const struct ob_consume_item *item)
{
	if (c->sent_count == 0)
		return false;
	if (ob_suspects_has(&c->suspects, (int64_t)item->number))
		return c->sent_count > ob_suspects_company(&c->suspects, (int64_t)item->number);
	const struct ob_consume_item *first = TAILQ_FIRST(&c->sent);
	return first->alone && c->sent_count == 1 &&
	       ob_suspects_has(&c->suspects, (int64_t)first->number) &&
	       ob_suspects_company(&c->suspects, (int64_t)first->number) == 0;
}

static bool is_suspect(const struct ob_consumer *c, const struct ob_consume_item *item)
{
	return ob_suspects_has(&c->suspects, (int64_t)item->number);
}

bool ob_consumer_has_probe(const struct ob_consumer *c)
{
	const struct ob_consume_item *item;

	TAILQ_FOREACH(item, &c->runnable, links)
	{
		if (!is_suspect(c, item))
			return true;
	}
	return c->sent_count > 0;
}

/* The breaker's probe is no suspect while another message can be had, nor does it overtake one. */
static bool is_passed_over(struct ob_consumer *c, const struct ob_consume_item *item)
{
	struct ob_consume_key *key = item->key;

	if (c->breaker.state == OB_BREAKER_CLOSED)
		return false;
	if (key && key->passed_over == c->pass)
		return true;
	if (!is_suspect(c, item) || !ob_consumer_has_probe(c))
		return false;
	if (key)
		key->passed_over = c->pass;
	return true;
}

static void refused(struct ob_consumer *c, struct ob_consume_item *item, struct ob_err *err);

bool ob_consumer_send(struct ob_consumer *c)
{
	struct ob_consume_item *item, *next;
	bool any = false;

	c->pass++;
	/* Whatever the lease covers; and with positions nothing passes what is not parked yet. */
	if (ob_consumer_now(c) >= c->lease_until_us && c->conf.ordered)
		return false;
	for (item = TAILQ_FIRST(&c->runnable); item && !c->failed; item = next) {
		struct ob_err err = OB_ERR_INIT;

		next = TAILQ_NEXT(item, links);
		if (c->conf.dedup == OB_DEDUP_POSITION && c->park_count > 0)
			return any;
		/* Parking writes the position: everything before it must be done. */
		if (c->conf.dedup == OB_DEDUP_POSITION && c->sent_count > 0 &&
		    (item->entry->fault.p ||
		     (item->key && (item->key->parked || item->key->blocked))))
			return any;
		if (goes_elsewhere(c, item)) {
			any = true;
			continue;
		}
		if (is_passed_over(c, item))
			continue;
		if (c->handler_full || c->draining ||
		    ob_breaker_allows(&c->breaker, ob_consumer_now(c)) == 0 ||
		    must_wait_for_others(c, item) || !open_handler(c))
			break;
		int r = send_item(c, item, &err);
		any |= r > 0;
		if (r == 0)
			break;
		if (r < 0)
			refused(c, item, &err);
	}
	return any;
}

/* ---- outcomes -------------------------------------------------------- */

static void leave_sent(struct ob_consumer *c, struct ob_consume_item *item)
{
	TAILQ_REMOVE(&c->sent, item, links);
	c->sent_count--;
	if (item->key)
		item->key->sent--;
	if (c->probe == item->number)
		c->probe = 0;
}

/* Its turn comes again. */
static void go_back(struct ob_consumer *c, struct ob_consume_item *item)
{
	if (item->key && item->key->blocked) {
		let_wait(c, item);
		return;
	}
	ob_consume_insert_head(&c->runnable, item);
	c->runnable_count++;
}

/* Nothing of the key is with the handler: the next of it may go, or all of it is parked. */
static void key_moved(struct ob_consumer *c, struct ob_consume_key *key)
{
	struct ob_consume_item *item;

	if (!key || key->sent > 0)
		return;
	if (key->blocked) {
		ob_consumer_park_key(c, key);
		return;
	}
	item = TAILQ_FIRST(&key->waiting);
	if (!item)
		return;
	TAILQ_REMOVE(&key->waiting, item, links);
	c->waiting_count--;
	ob_consume_insert_head(&c->runnable, item);
	c->runnable_count++;
}

static void breaker_closed(struct ob_consumer *c)
{
	ob_consumer_note_side(c, &c->m.handler, NULL);
	if (c->p.log)
		ob_log(c->p.log, OB_LOG_INFO, "the handler is back",
		       OB_KV("consumer", c->conf.name));
}

static void succeeded(struct ob_consumer *c, struct ob_consume_item *item, bool probe,
		      bool duplicate)
{
	struct ob_consume_key *key = item->key;

	if (duplicate)
		c->m.duplicates++;
	else
		c->m.handled++;
	if ((probe || c->breaker.state == OB_BREAKER_CLOSED) && ob_breaker_success(&c->breaker))
		breaker_closed(c);
	ob_breaker_note(&c->breaker, key ? key->hash : item->number, false, ob_consumer_now(c));
	ob_suspects_pass(&c->suspects, (int64_t)item->number);
	if (item->row.n) {
		ob_consumer_retried(c, item, &(struct ob_verdict){ .action = OB_ACT_PUBLISHED },
				    NULL);
		return;
	}
	/* Acknowledged by the next ack(), after the commit that this outcome stands for. */
	TAILQ_INSERT_TAIL(&c->done, item, links);
	c->done_count++;
	key_moved(c, key);
}

static bool is_outage(const struct ob_consumer *c)
{
	return c->breaker.alarm && c->breaker.state != OB_BREAKER_CLOSED;
}

static void report(struct ob_consumer *c, const struct ob_consume_item *item, bool dead,
		   const struct ob_verdict *verdict, const struct ob_err *err)
{
	char id[OB_UUID_TEXT_SIZE];

	c->m.failed++;
	c->m.dead += dead;
	ob_consumer_note_error(c, err->msg);
	if (!c->p.log)
		return;
	ob_uuid_format(&item->entry->message.id, id);
	ob_log(c->p.log, dead ? OB_LOG_ERROR : OB_LOG_WARN,
	       dead ? "the handler failed, giving the message up"
		    : "the handler failed, trying again later",
	       OB_KV("consumer", c->conf.name), OB_KV("id", id),
	       OB_KI("attempt", (int64_t)item->row.attempts + 1),
	       OB_KI("delay_ms", verdict->delay_ms), OB_KV("error", err->msg));
}

/* It is about this message: charge it, park its key. */
static void charge(struct ob_consumer *c, struct ob_consume_item *item,
		   const struct ob_verdict *verdict, const struct ob_err *err)
{
	bool dead = verdict->action == OB_ACT_DEAD;
	enum ob_parked_state state = !dead          ? OB_PARKED_FAILED
				     : c->conf.hold ? OB_PARKED_DEAD
						    : OB_PARKED_LETTER;

	report(c, item, dead, verdict, err);
	if (item->row.n) {
		ob_consumer_retried(c, item, verdict, err->msg);
		return;
	}
	if (item->key && state != OB_PARKED_LETTER)
		item->key->blocked = true;
	ob_consumer_to_park(c, item, state, dead ? OB_PARKED_NEVER : verdict->delay_ms, err->msg);
	key_moved(c, item->key);
}

static void mass_failure(struct ob_consumer *c, const struct ob_err *err)
{
	if (ob_breaker_mass(&c->breaker, ob_consumer_now(c)) && c->p.log)
		ob_log(c->p.log, OB_LOG_ERROR,
		       "most keys fail: taken as an outage, nothing is given up",
		       OB_KV("consumer", c->conf.name), OB_KV("error", err->msg));
}

/* The item is in no list. `own`: the handler has not seen it. */
static void judge_failure(struct ob_consumer *c, struct ob_consume_item *item, struct ob_err *err,
			  bool probe, bool own)
{
	enum ob_err_kind kind = ob_failures_kind(c->conf.failures, c->conf.failure_count, err);
	struct ob_verdict verdict;

	if (err->kind == OB_ERR_DOWN)
		c->handler_open = false;
	if (kind == OB_ERR_DOWN && err->hung_up &&
	    ob_suspects_drop(&c->suspects, (int64_t)item->number, item->alone)) {
		(void)ob_err_context(
			err,
			"the handler ended %d times on this message alone, while others "
			"pass",
			OB_SUSPECT_STRIKES);
		kind = OB_ERR_RETRY;
		own = true;
	}
	if (kind == OB_ERR_DOWN)
		handler_down(c, err);
	else if (probe && kind != OB_ERR_FATAL && kind != OB_ERR_NONE && kind != OB_ERR_LOST &&
		 ob_breaker_answer(&c->breaker, ob_consumer_now(c)))
		breaker_closed(c);
	verdict = ob_policy_judge(&c->conf.policy, kind, item->row.attempts, ob_rng_unit(&c->rng));
	if (!own && item->row.attempts == 0 &&
	    (verdict.action == OB_ACT_RETRY || verdict.action == OB_ACT_DEAD)) {
		ob_breaker_note(&c->breaker, item->key ? item->key->hash : item->number, true,
				ob_consumer_now(c));
		if (ob_breaker_is_mass(&c->breaker, ob_consumer_now(c)))
			mass_failure(c, err);
		if (is_outage(c))
			verdict.action = OB_ACT_WAIT;
	}
	switch (verdict.action) {
	case OB_ACT_RETRY:
	case OB_ACT_DEAD:
		charge(c, item, &verdict, err);
		return;
	case OB_ACT_PUBLISHED:
		succeeded(c, item, probe, false);
		return;
	case OB_ACT_WAIT:
		c->m.down++;
		break;
	case OB_ACT_FORGET: /* the lease is lost: all of it goes */
		c->lease_until_us = 0;
		c->renew_us = 0;
		break;
	case OB_ACT_STOP:
		c->failed = true;
		c->fatal = *err;
		break;
	}
	go_back(c, item);
	if (item->key && item->key->blocked)
		key_moved(c, item->key);
}

/* The handler would not take it. */
static void refused(struct ob_consumer *c, struct ob_consume_item *item, struct ob_err *err)
{
	take_from_runnable(c, item);
	judge_failure(c, item, err, false, true);
}

static struct ob_consume_item *find_sent(const struct ob_consumer *c, uint64_t tag)
{
	struct ob_consume_item *item;

	TAILQ_FOREACH(item, &c->sent, links)
	{
		if (item->number == tag)
			return item;
	}
	return NULL;
}

bool ob_consumer_poll(struct ob_consumer *c, int timeout_ms)
{
	struct ob_outcome outcomes[OUTCOMES];
	struct ob_err err = OB_ERR_INIT;
	int n;

	if (c->sent_count == 0 && !c->handler_open)
		return false;
	n = c->p.handler->ops->poll(c->p.handler, c->sent_count ? timeout_ms : 0, outcomes,
				    OUTCOMES, &err);
	if (n < 0) {
		c->failed = true;
		c->fatal = err;
		return true;
	}
	if (n > 0)
		c->handler_full = false;
	for (int i = 0; i < n; i++) {
		struct ob_consume_item *item = find_sent(c, outcomes[i].tag);
		bool probe = item && item->number == c->probe;

		if (!item)
			continue;
		leave_sent(c, item);
		if (outcomes[i].back) {
			if (probe)
				ob_breaker_unprobe(&c->breaker);
			go_back(c, item);
			if (item->key && item->key->blocked)
				key_moved(c, item->key);
		} else if (outcomes[i].err.kind == OB_ERR_NONE) {
			succeeded(c, item, probe, outcomes[i].duplicate);
		} else {
			judge_failure(c, item, &outcomes[i].err, probe, false);
		}
	}
	return n > 0;
}
