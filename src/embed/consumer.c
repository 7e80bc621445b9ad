/* SPDX-License-Identifier: MIT */
/* The consumer for applications: make, run, stop. */
#include "outbox/consumer.h"
#include "base/grow.h"
#include "consume/setup.h"
#include "embed/embed.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

enum {
	STEP_MS = 100,   /* how long a stop may wait to be seen */
	NAP_MS = 20,     /* when there is nothing to wait on */
	RETRY_MS = 1000, /* between two tries to reach the database */
	ONCE_MS = 10000, /* process_once waits no longer than this for what is away */
};

struct outbox_consumer {
	/* First: to its handler it is a relay. */
	struct outbox_relay relay;
	struct ob_consume_setup setup;
};

/* ---- making ---------------------------------------------------------- */

/* What is written; the second has what relays have too. */
struct wish {
	const struct outbox_consumer_options *own;
	const struct outbox_relay_options *shared;
};

static void write_yaml(struct ob_buf *b, const void *options)
{
	const struct wish *wish = options;
	const struct outbox_consumer_options *o = wish->own;
	static const char *const dedups[] = { "ids", "position", "none" };
	unsigned dedup = (unsigned)o->dedup < 3 ? (unsigned)o->dedup : 0;

	ob_buf_adds(b, "stores: { main: { ");
	ob_embed_add_text(b, "url", o->store);
	ob_buf_adds(b, " } }\nconsumers:\n  - { ");
	ob_embed_add_text(b, "name", o->name);
	/* The handler is put in its place afterwards. */
	ob_buf_addf(b, ", sql: \"SELECT 1\", source: %s, dedup: %s", o->source, dedups[dedup]);
	ob_buf_addf(b, ", ordering: %s", o->flags & OUTBOX_CONSUMER_UNORDERED ? "none" : "key");
	ob_buf_addf(b, ", on_dead: %s",
		    o->flags & OUTBOX_CONSUMER_RELEASE_DEAD ? "release" : "hold");
	ob_embed_add_number(b, "lanes", o->lanes, "");
	ob_embed_add_number(b, "batch_size", o->batch_size, "");
	ob_embed_add_number(b, "window", o->window, "");
	ob_embed_add_number(b, "lease_ttl", o->lease_ttl_ms, "ms");
	ob_embed_add_number(b, "shutdown_timeout", o->shutdown_timeout_ms, "ms");
	ob_embed_add_retry(b, wish->shared);
	ob_buf_adds(b, " }\n");
}

static int check_options(const struct outbox_consumer_options *o, struct ob_err *err)
{
	if (!o || !o->store || !o->name || !o->source || !o->handler)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "options: store, name, source and handler are required");
	/* It is written into a line of YAML, and must not leave its place there. */
	if (o->source[0] != '{' || strchr(o->source, '\n'))
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "options: source must be one line: { type: redis, ... }");
	if (!(o->flags & OUTBOX_CONSUMER_IN_TRANSACTION) && o->dedup == OUTBOX_CONSUMER_POSITION)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "options: OUTBOX_CONSUMER_POSITION needs "
				  "OUTBOX_CONSUMER_IN_TRANSACTION");
	return 0;
}

static int configure(outbox_consumer *c, const struct outbox_consumer_options *o,
		     struct ob_err *err)
{
	const struct wish wish = { o, &c->relay.options };
	int r = check_options(o, err);

	if (r < 0)
		return r;
	c->relay.options = (struct outbox_relay_options){
		.handler = o->handler,
		.arg = o->arg,
		.classify = o->classify,
		.log = o->log,
		.log_level = o->log_level,
		.handler_timeout_ms = o->handler_timeout_ms,
		.max_attempts = o->max_attempts,
		.base_delay_ms = o->base_delay_ms,
		.max_backoff_ms = o->max_backoff_ms,
		.multiplier = o->multiplier,
		.jitter = o->jitter,
	};
	return ob_embed_parse(write_yaml, &wish, "consumers[0].", &c->relay.config, err);
}

static int set_up(outbox_consumer *c, struct ob_err *err)
{
	const struct ob_config_consumer *conf = &c->relay.config->consumers[0];
	sigset_t all, before;

	/* Threads of sources leave the application's signals to the application. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = ob_consume_setup(&c->setup, conf, &c->relay.ops,
				 c->relay.options.log ? &c->relay.log : NULL, err);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		ob_consume_setup_done(&c->setup);
	return r;
}

/* The database answers and has the tables. */
static int check_store(const outbox_consumer *c, struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_consumer_row *rows;
	struct ob_store *store = NULL;
	size_t count;
	int r = ob_store_connect(&c->relay.config->stores[0].conf, &store, err);

	if (r == 0)
		r = ob_consumer_list(store, c->relay.config->consumers[0].name, &arena, &rows,
				     &count, err);
	ob_store_free(store);
	ob_arena_done(&arena);
	return r;
}

static int make(const struct outbox_consumer_options *options, outbox_consumer **ret_consumer,
		struct ob_err *err)
{
	outbox_consumer *c = calloc(1, sizeof(*c));

	if (!c)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a consumer");
	c->relay.consumes = true;
	int r = ob_embed_init(&c->relay,
			      options && (options->flags & OUTBOX_CONSUMER_IN_TRANSACTION), err);
	if (r == 0)
		r = configure(c, options, err);
	if (r == 0)
		r = check_store(c, err);
	if (r < 0) {
		outbox_consumer_free(c);
		return r;
	}
	ob_embed_make_log(&c->relay);
	*ret_consumer = c;
	return 0;
}

static const struct ob_grow grow_options = {
	.name = "struct outbox_consumer_options",
	.first = OB_GROW_SIZE(struct outbox_consumer_options, shutdown_timeout_ms),
	.now = sizeof(struct outbox_consumer_options),
};

int outbox_consumer_new_sized(const void *options, size_t options_size,
			      outbox_consumer **ret_consumer, struct outbox_error *err)
{
	struct outbox_consumer_options ours;
	struct ob_err e = OB_ERR_INIT;
	int r;

	if (!ret_consumer)
		r = ob_err_set(&e, OUTBOX_EINVAL, OB_ERR_FATAL, "ret_consumer is NULL");
	else if (options)
		r = ob_grow_check(&grow_options, options_size, &e);
	else
		r = 0;
	if (r == 0 && options)
		ob_grow_copy(&grow_options, options, options_size, &ours);
	if (r == 0)
		r = make(options ? &ours : NULL, ret_consumer, &e);
	return r < 0 ? ob_embed_error(&e, err) : OUTBOX_OK;
}

void outbox_consumer_free(outbox_consumer *c)
{
	if (c)
		outbox_relay_free(&c->relay);
}

void outbox_consumer_stop(outbox_consumer *c)
{
	outbox_relay_stop(&c->relay);
}

/* ---- running --------------------------------------------------------- */

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

static unsigned stops_of(const outbox_consumer *c)
{
	return atomic_load(&c->relay.stops);
}

/* Wait for a stop, or a while. */
static void nap(const outbox_consumer *c, int ms)
{
	struct pollfd fd = { .fd = c->relay.stop_fd, .events = POLLIN };

	(void)poll(&fd, 1, ms);
}

/* The database may be away: wait for it, or for a stop. 1: it is set up; 0: it was stopped. */
static int wait_for_setup(outbox_consumer *c, struct ob_err *err)
{
	while (!stops_of(c)) {
		int r = set_up(c, err);

		if (r == 0)
			return 1;
		if (err->kind != OB_ERR_DOWN)
			return r;
		nap(c, RETRY_MS);
	}
	return 0;
}

/* One turn; *drain_until_us is set by the first stop. 1: go on; 0: it has stopped. */
static int turn(outbox_consumer *c, int64_t *drain_until_us, struct ob_err *err)
{
	struct ob_consumer *engine = c->setup.consumer;
	unsigned stops = stops_of(c);

	if (stops && !*drain_until_us) {
		ob_consumer_drain(engine);
		*drain_until_us = now_us() + c->setup.conf->shutdown_timeout_ms * 1000;
	}
	if (stops > 1 || (stops && (ob_consumer_is_drained(engine) || now_us() >= *drain_until_us)))
		return 0;
	int64_t began = now_us();
	int r = ob_consumer_step(engine, STEP_MS, err);
	if (r < 0)
		return r;
	/* It had nothing to wait on: no lease, or something is away. */
	if (r == 0 && now_us() - began < (int64_t)NAP_MS * 1000 && !stops)
		nap(c, NAP_MS);
	return 1;
}

int outbox_consumer_run(outbox_consumer *c, struct outbox_error *err)
{
	struct ob_err e = OB_ERR_INIT;
	int64_t drain_until_us = 0;
	int r = wait_for_setup(c, &e);

	if (r > 0) {
		do
			r = turn(c, &drain_until_us, &e);
		while (r > 0);
		ob_consume_setup_done(&c->setup);
	}
	ob_embed_forget_stops(&c->relay);
	return r < 0 ? ob_embed_error(&e, err) : OUTBOX_OK;
}

/* ---- once ------------------------------------------------------------ */

static uint64_t decided(const struct ob_consume_metrics *m)
{
	return m->handled + m->duplicates + m->parked;
}

/* What keeps it from going on, for longer than it waits: r < 0. */
static int why_not(const struct ob_consume_metrics *m, bool late, struct ob_err *err)
{
	const char *why = m->last_error[0] ? m->last_error : "no answer yet";

	if (m->handler.since_us && !m->handler.up)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "%s", m->handler.why);
	if (!late)
		return 0;
	if (!m->store_up || !m->source.up)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN, "%s", why);
	if (!m->owner)
		return ob_err_set(err, OUTBOX_ELEASE, OB_ERR_LOST,
				  "another process has the consumer");
	return 0;
}

int outbox_consumer_process_once(outbox_consumer *c, struct outbox_error *err)
{
	struct ob_err e = OB_ERR_INIT;
	int64_t drain_until_us = 0, began = now_us();
	uint64_t count = 0;
	int r = set_up(c, &e);

	if (r < 0)
		return ob_embed_error(&e, err);
	do {
		const struct ob_consume_metrics *m = ob_consumer_metrics(c->setup.consumer);

		r = turn(c, &drain_until_us, &e);
		count = decided(m);
		if (r > 0)
			r = why_not(m, now_us() - began > (int64_t)ONCE_MS * 1000, &e) < 0
				    ? e.status
				    : 1;
	} while (r > 0 && !ob_consumer_is_idle(c->setup.consumer));
	ob_consume_setup_done(&c->setup);
	ob_embed_forget_stops(&c->relay);
	return r < 0 ? ob_embed_error(&e, err) : (int)count;
}
