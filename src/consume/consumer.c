/* SPDX-License-Identifier: MIT */
/* The consumer's life: lease, steps, stopping. */
#include "consume/consumer_impl.h"

#include "base/cleanup.h"

#include <stdlib.h>

enum { WAIT_BASE_MS = 100, WAIT_CAP_MS = 5000, SHORT_MS = 20, MARGIN_PART = 5, SOON_MS = 1000 };

/* ---- failures of the source and of the database ---------------------- */

bool ob_consumer_waits(const struct ob_consumer *c, const struct ob_consume_wait *wait)
{
	return wait->failing && ob_consumer_now(c) < wait->until_us;
}

void ob_consumer_failed(struct ob_consumer *c, struct ob_consume_wait *wait, const char *what,
			const struct ob_err *err)
{
	c->m.errors++;
	ob_consumer_note_error(c, err->msg);
	if (err->kind == OB_ERR_LOST) {
		c->lease_until_us = 0;
		c->renew_us = 0;
		return;
	}
	if (err->kind == OB_ERR_FATAL) {
		c->failed = true;
		c->fatal = *err;
		return;
	}
	/* Once for each outage: what follows is the same. */
	if (!wait->failing && c->p.log)
		ob_log(c->p.log, OB_LOG_WARN, what, OB_KV("consumer", c->conf.name),
		       OB_KV("error", err->msg), OB_KV("next", "trying again"));
	wait->failing = true;
	if (wait == &c->store_wait)
		c->m.store_up = false;
	wait->until_us = ob_consumer_now(c) + ob_backoff_next_ms(&wait->backoff) * 1000;
}

void ob_consumer_worked(struct ob_consumer *c, struct ob_consume_wait *wait, const char *what)
{
	if (wait == &c->store_wait)
		c->m.store_up = true;
	if (!wait->failing)
		return;
	wait->failing = false;
	ob_backoff_reset(&wait->backoff);
	if (c->p.log)
		ob_log(c->p.log, OB_LOG_INFO, what, OB_KV("consumer", c->conf.name));
}

/* ---- items ----------------------------------------------------------- */

void ob_consumer_forget(struct ob_consumer *c, struct ob_consume_item *item)
{
	if (item->row.n)
		c->due_count--;
	if (item->key) {
		item->key->items--;
		ob_consume_key_drop(&c->keys, item->key);
	}
	ob_consume_chunk_leave(item->chunk);
	free(item);
}

static void forget_list(struct ob_consumer *c, struct ob_consume_list *list, uint64_t *count,
			bool give_back)
{
	struct ob_consume_item *item;

	while ((item = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, item, links);
		(*count)--;
		if (item->key && list == &c->sent)
			item->key->sent--;
		if (give_back && !item->row.n)
			ob_feed_give_back(c->p.feed, &item->entry->tag, 1);
		ob_consumer_forget(c, item);
	}
}

static void forget_waiting(void *arg, struct ob_consume_key *key)
{
	struct ob_consumer *c = arg;
	struct ob_consume_item *item;

	key->blocked = false;
	key->parked = 0;
	key->items++; /* it must outlive the loop */
	while ((item = TAILQ_FIRST(&key->waiting))) {
		TAILQ_REMOVE(&key->waiting, item, links);
		c->waiting_count--;
		ob_feed_give_back(c->p.feed, &item->entry->tag, 1);
		ob_consumer_forget(c, item);
	}
	key->items--;
	ob_consume_key_drop(&c->keys, key);
}

void ob_consumer_lose(struct ob_consumer *c)
{
	c->p.handler->ops->reset(c->p.handler);
	forget_list(c, &c->sent, &c->sent_count, true);
	forget_list(c, &c->runnable, &c->runnable_count, true);
	forget_list(c, &c->park, &c->park_count, true);
	forget_list(c, &c->done, &c->done_count, true);
	ob_consume_keys_each(&c->keys, forget_waiting, c);
	c->probe = 0;
	ob_breaker_unprobe(&c->breaker);
	c->handler_full = false;
	c->began = false;
}

/* ---- the lease ------------------------------------------------------- */

static int64_t trusted_us(const struct ob_consumer *c, int64_t asked_us)
{
	return asked_us + (c->conf.lease_ttl_ms - c->conf.lease_ttl_ms / MARGIN_PART) * 1000;
}

static void lose_lease(struct ob_consumer *c, const char *why)
{
	if (c->p.lease->epoch && c->p.log)
		ob_log(c->p.log, OB_LOG_WARN, "the lease is lost, waiting for it",
		       OB_KV("consumer", c->conf.name), OB_KV("error", why));
	/* First: whoever runs in a transaction now finds another epoch, or none. */
	ob_consumer_lose(c);
	c->p.lease->epoch = 0;
	c->lease_until_us = 0;
	c->m.owner = false;
}

/* Others have the lease: that we are there is told all the same. */
static void stand_by(struct ob_consumer *c)
{
	struct ob_err err = OB_ERR_INIT;

	if (c->told.at_us && ob_consumer_now(c) - c->told.at_us < c->conf.lease_ttl_ms / 3 * 1000)
		return;
	if (ob_consumer_write_report(c, &err) < 0)
		ob_consumer_failed(c, &c->store_wait, "writing the report failed", &err);
}

static void take_lease(struct ob_consumer *c)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t asked = ob_consumer_now(c), wait_ms = 0;
	int r = ob_consumer_make(c->p.store, c->conf.name, ob_str(c->conf.source), &err);

	if (r == 0)
		r = ob_consumer_take(c->p.store, c->p.lease, c->conf.lease_ttl_ms, &wait_ms, &err);
	if (r < 0) {
		ob_consumer_failed(c, &c->store_wait, "taking the lease failed", &err);
		c->renew_us = c->store_wait.until_us;
		return;
	}
	ob_consumer_worked(c, &c->store_wait, "the database is back");
	if (r == 0) {
		if (wait_ms > 1000 || wait_ms <= 0)
			wait_ms = 1000; /* it may be given back earlier */
		c->renew_us = asked + wait_ms * 1000;
		stand_by(c);
		return;
	}
	c->lease_until_us = trusted_us(c, asked);
	/* Soon, for the first report. */
	c->renew_us =
		asked +
		(c->conf.lease_ttl_ms / 3 < SOON_MS ? c->conf.lease_ttl_ms / 3 : SOON_MS) * 1000;
	c->m.takeovers++;
	c->m.owner = true;
	if (c->p.log)
		ob_log(c->p.log, OB_LOG_INFO, "the consumer is ours",
		       OB_KV("consumer", c->conf.name), OB_KI("epoch", (int64_t)c->p.lease->epoch),
		       OB_KV("source", c->conf.source));
}

static void renew_lease(struct ob_consumer *c)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t asked = ob_consumer_now(c);
	int r = ob_consumer_write_report(c, &err);

	if (r < 0 && err.kind == OB_ERR_LOST) {
		lose_lease(c, err.msg);
		return;
	}
	if (r < 0) {
		ob_consumer_failed(c, &c->store_wait, "renewing the lease failed", &err);
		c->renew_us = c->store_wait.until_us;
		return;
	}
	ob_consumer_worked(c, &c->store_wait, "the database is back");
	c->lease_until_us = trusted_us(c, asked);
	c->renew_us = asked + c->conf.lease_ttl_ms / 3 * 1000;
}

static void keep_lease(struct ob_consumer *c)
{
	if (ob_consumer_now(c) < c->renew_us)
		return;
	if (c->p.lease->epoch == 0 && !c->draining)
		take_lease(c);
	else if (c->p.lease->epoch)
		renew_lease(c);
}

/* What must be known before the first message. */
static bool begin(struct ob_consumer *c)
{
	struct ob_err err = OB_ERR_INIT;

	if (c->began)
		return true;
	if (ob_consumer_waits(c, &c->store_wait) || ob_consumer_waits(c, &c->feed_wait))
		return false;
	if (!ob_consumer_read_keys(c))
		return false;
	if (c->conf.dedup == OB_DEDUP_POSITION) {
		if (ob_feed_open(c->p.feed, &err) < 0) {
			ob_consumer_note_side(c, &c->m.source, err.msg);
			ob_consumer_failed(c, &c->feed_wait, "opening the source failed", &err);
			return false;
		}
		if (!ob_consumer_read_positions(c))
			return false;
	}
	c->began = true;
	c->due_us = 0;
	return true;
}

/* ---- upkeep ---------------------------------------------------------- */

static void warn_retention(struct ob_consumer *c, const char *what, int64_t age_ms)
{
	int64_t now = ob_consumer_now(c);

	if (c->conf.retention_ms == OB_NEVER_MS || c->conf.dedup == OB_DEDUP_POSITION ||
	    age_ms <= c->conf.retention_ms ||
	    (c->warned_us && now - c->warned_us < INT64_C(3600000000)))
		return;
	c->warned_us = now;
	if (c->p.log)
		ob_log(c->p.log, OB_LOG_WARN, what, OB_KV("consumer", c->conf.name),
		       OB_KI("inbox_hours", c->conf.retention_ms / 3600000),
		       OB_KI("hours", age_ms / 3600000),
		       OB_KV("hint",
			     "raise retention.inbox of the store: older copies count as new"));
}

static void look_at_source(struct ob_consumer *c)
{
	struct ob_feed_state state;
	struct ob_err err = OB_ERR_INIT;

	c->state_us = ob_consumer_now(c) +
		      (int64_t)(c->m.source.up ? OB_CONSUME_STATE_MS : SOON_MS) * 1000;
	if (!c->m.source.up || ob_feed_state(c->p.feed, &state, &err) < 0)
		return;
	c->m.lag = state.lag;
	c->m.oldest_us = state.oldest_us;
	warn_retention(c, "the source keeps messages longer than the inbox remembers them",
		       state.retention_ms);
}

static void purge(struct ob_consumer *c)
{
	struct ob_err err = OB_ERR_INIT;
	uint64_t all = 0, dead = 0, gone = 0;
	int64_t since = 0;
	int r;

	c->purge_us = ob_consumer_now(c) + (int64_t)OB_CONSUME_PURGE_MS * 1000;
	r = ob_parked_count(c->p.store, c->conf.name, &all, &dead, &since, &err);
	if (r == 0 && since)
		warn_retention(c, "a parked message is older than what the inbox remembers",
			       (ob_clock_real_us(c->p.clock) - since) / 1000);
	if (r == 0 && c->conf.retention_ms != OB_NEVER_MS)
		r = ob_inbox_purge(c->p.store, c->conf.retention_ms, c->conf.purge_batch, &gone,
				   &err);
	if (r < 0)
		ob_consumer_failed(c, &c->store_wait, "removing old rows of the inbox failed",
				   &err);
	/* There is more: soon again, and other things in between. */
	else if (gone == c->conf.purge_batch)
		c->purge_us = ob_consumer_now(c) + 100000;
}

static void touch_list(struct ob_consumer *c, const struct ob_consume_list *list)
{
	const struct ob_consume_item *item;

	TAILQ_FOREACH(item, list, links)
	{
		if (!item->row.n)
			ob_feed_touch(c->p.feed, &item->entry->tag, 1);
	}
}

static void touch_waiting(void *arg, struct ob_consume_key *key)
{
	touch_list(arg, &key->waiting);
}

/* All that is in memory, or the source would hand it out a second time. */
static void touch_all(struct ob_consumer *c)
{
	c->touch_us = ob_consumer_now(c) + (int64_t)OB_CONSUME_TOUCH_MS * 1000;
	touch_list(c, &c->sent);
	touch_list(c, &c->runnable);
	ob_consume_keys_each(&c->keys, touch_waiting, c);
}

static void keep_up(struct ob_consumer *c)
{
	int64_t now = ob_consumer_now(c);

	if (now >= c->state_us)
		look_at_source(c);
	if (now >= c->touch_us && c->p.feed->ops->touch)
		touch_all(c);
	if (ob_consumer_waits(c, &c->store_wait) || c->p.lease->epoch == 0)
		return;
	if (now >= c->purge_us)
		purge(c);
	if (now >= c->keys_us && (c->m.held_keys || c->m.parked_now || c->m.full))
		(void)ob_consumer_read_keys(c);
}

/* ---- steps ----------------------------------------------------------- */

/* Standing by: another process has the lease. */
static bool may_work(struct ob_consumer *c)
{
	if (c->p.lease->epoch && c->conf.ordered && c->lease_until_us == 0) {
		lose_lease(c, "another process has taken over");
		c->renew_us = ob_consumer_now(c) + 100000;
	}
	return (c->p.lease->epoch || !c->conf.ordered) && begin(c);
}

static bool rest(struct ob_consumer *c, int wait_ms)
{
	if (c->sent_count > 0)
		return ob_consumer_poll(c, wait_ms < SHORT_MS ? wait_ms : SHORT_MS);
	return ob_consumer_take_in(c, wait_ms);
}

int ob_consumer_step(struct ob_consumer *c, int wait_ms, struct ob_err *err)
{
	bool any = false;

	keep_lease(c);
	if (!c->failed && may_work(c)) {
		any |= ob_consumer_poll(c, 0);
		any |= ob_consumer_park(c);
		any |= ob_consumer_ack(c);
		any |= ob_consumer_take_due(c);
		if (ob_consumer_held(c) < c->conf.window / 2 + 1)
			any |= ob_consumer_take_in(c, 0);
		any |= ob_consumer_send(c);
		any |= ob_consumer_send_letters(c);
		keep_up(c);
		if (!any && !c->failed && wait_ms > 0)
			any = rest(c, wait_ms);
	}
	ob_consumer_note_state(c);
	if (c->failed) {
		*err = c->fatal;
		return err->status;
	}
	return any;
}

void ob_consumer_drain(struct ob_consumer *c)
{
	c->draining = true;
}

bool ob_consumer_is_drained(const struct ob_consumer *c)
{
	return c->sent_count == 0 && c->park_count == 0 && c->done_count == 0;
}

bool ob_consumer_is_idle(const struct ob_consumer *c)
{
	return ob_consumer_held(c) == 0 && c->source_empty && c->none_due && c->began;
}

const struct ob_consume_metrics *ob_consumer_metrics(const struct ob_consumer *c)
{
	return &c->m;
}

void ob_consumer_reload(struct ob_consumer *c, const struct ob_consumer_conf *conf)
{
	const char *source = c->conf.source;

	c->conf = *conf;
	c->conf.source = source;
}

static void init_wait(struct ob_consume_wait *wait)
{
	ob_backoff_init(&wait->backoff, WAIT_BASE_MS, WAIT_CAP_MS);
}

int ob_consumer_new(const struct ob_consumer_conf *conf, const struct ob_consumer_parts *parts,
		    struct ob_consumer **ret_consumer, struct ob_err *err)
{
	struct ob_consumer *c = calloc(1, sizeof(*c));

	if (!c)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a consumer");
	c->conf = *conf;
	c->p = *parts;
	c->m.lag = c->m.oldest_us = -1;
	TAILQ_INIT(&c->runnable);
	TAILQ_INIT(&c->sent);
	TAILQ_INIT(&c->park);
	TAILQ_INIT(&c->done);
	ob_breaker_init(&c->breaker);
	ob_rng_init_random(&c->rng);
	init_wait(&c->feed_wait);
	init_wait(&c->store_wait);
	init_wait(&c->letter_wait);
	int r = ob_consume_keys_init(&c->keys, err);
	if (r == 0)
		r = ob_suspects_init(&c->suspects, conf->window + 64, err);
	if (r < 0) {
		ob_consumer_free(c);
		return r;
	}
	*ret_consumer = c;
	return 0;
}

void ob_consumer_free(struct ob_consumer *c)
{
	struct ob_err ignored = OB_ERR_INIT;

	if (!c)
		return;
	if (c->keys.buckets)
		ob_consumer_lose(c);
	if ((c->p.lease->epoch || c->told.at_us) && !ob_consumer_waits(c, &c->store_wait)) {
		/* What was counted since the last report. */
		(void)ob_consumer_write_report(c, &ignored);
		(void)ob_consumer_release(c->p.store, c->p.lease, &ignored);
	}
	c->p.lease->epoch = 0;
	for (struct ob_consume_part *part = c->parts, *next; part; part = next) {
		next = part->next;
		free(part);
	}
	ob_suspects_done(&c->suspects);
	ob_consume_keys_done(&c->keys);
	free(c);
}
