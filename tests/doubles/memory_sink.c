/* SPDX-License-Identifier: MIT */
/* The programmable sink. Every message is judged at send(); only its outcome waits. */
#include "doubles/memory_sink.h"

#include "sink/line.h"

#include <assert.h>
#include <stdlib.h>

enum { WINDOW = 256 };

struct pending {
	struct ob_delivery delivery; /* its pointers are good until the outcome */
	struct ob_memsink_verdict verdict;
	uint32_t polls_left;
	int64_t ready_us;
	bool done, lost;
};

struct memory_sink {
	struct ob_sink base;
	struct ob_memsink_plan *plan;
	struct pending *pending; /* in the order of sending */
	uint32_t count, window;
	uint64_t random;
	bool open;
};

void ob_memsink_log_init(struct ob_memsink_log *log, bool keep_bodies)
{
	*log = (struct ob_memsink_log){ .arena = OB_ARENA_INIT((size_t)1 << 32),
					.keep_bodies = keep_bodies };
	(void)pthread_mutex_init(&log->lock, NULL);
}

void ob_memsink_log_done(struct ob_memsink_log *log)
{
	ob_arena_done(&log->arena);
	free(log->entries);
	(void)pthread_mutex_destroy(&log->lock);
}

static bool grow(struct ob_memsink_log *log)
{
	size_t capacity = log->capacity ? log->capacity * 2 : 256;

	if (log->count < log->capacity)
		return true;
	struct ob_memsink_entry *entries =
		reallocarray(log->entries, capacity, sizeof(*log->entries));
	if (!entries)
		return false;
	log->entries = entries;
	log->capacity = capacity;
	return true;
}

static bool copy_headers(struct ob_memsink_log *log, const struct ob_delivery *d,
			 struct ob_str *ret)
{
	struct ob_buf json = OB_BUF_INIT(OB_LINE_BUF_MAX);

	ob_line_add_headers(&json, d);
	bool ok = !json.failed;
	if (ok && json.len > 0)
		ok = ob_arena_copy(&log->arena, ob_buf_view(&json), ret);
	ob_buf_done(&json);
	return ok;
}

/* Under the lock. False when memory is short: then nothing is stored. */
static bool add_entry(struct ob_memsink_log *log, const struct ob_delivery *d, const char *sender)
{
	struct ob_memsink_entry entry = {
		.tag = d->tag, .seq = d->message->seq, .id = d->message->id, .sender = sender
	};

	if (!grow(log) || !ob_arena_copy(&log->arena, d->destination, &entry.destination) ||
	    !ob_arena_copy(&log->arena, d->key, &entry.key))
		return false;
	if (log->keep_bodies && (!ob_arena_copy(&log->arena, d->body, &entry.body) ||
				 !copy_headers(log, d, &entry.headers) ||
				 !ob_arena_copy(&log->arena, d->snapshot, &entry.snapshot)))
		return false;
	log->entries[log->count++] = entry;
	return true;
}

static void store(const struct memory_sink *sink, struct pending *p)
{
	struct ob_memsink_log *log = sink->plan->log;

	if (p->verdict.kind != OB_ERR_NONE && !p->verdict.stored)
		return;
	(void)pthread_mutex_lock(&log->lock);
	if (!add_entry(log, &p->delivery, sink->plan->sender))
		p->verdict = (struct ob_memsink_verdict){ .kind = OB_ERR_DOWN };
	(void)pthread_mutex_unlock(&log->lock);
}

static bool is_ordered(const struct memory_sink *sink)
{
	return sink->base.ops->caps & OB_SINK_ORDERED;
}

static bool same_key(const struct pending *p, struct ob_str key)
{
	return key.p && ob_str_eq(p->delivery.message->key, key);
}

static int memory_open(struct ob_sink *base, struct ob_err *err)
{
	struct memory_sink *sink = (struct memory_sink *)base;

	assert(sink->plan && sink->plan->log);
	if (sink->plan->down)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the memory sink is away");
	if (!sink->pending) {
		sink->window = sink->plan->window ? sink->plan->window : WINDOW;
		sink->random = sink->plan->shuffle;
		sink->pending = calloc(sink->window, sizeof(*sink->pending));
		if (!sink->pending)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a window");
	}
	sink->open = true;
	return 0;
}

/* What the plan says, unless the key already failed on an ordered sink. */
static struct ob_memsink_verdict judge(const struct memory_sink *sink, const struct ob_delivery *d)
{
	for (uint32_t i = sink->count; i-- > 0 && is_ordered(sink);) {
		const struct ob_memsink_verdict *v = &sink->pending[i].verdict;

		if (!same_key(&sink->pending[i], d->message->key))
			continue;
		if (v->kind != OB_ERR_NONE && v->kind != OB_ERR_REJECT)
			return (struct ob_memsink_verdict){ .kind = v->kind };
		break;
	}
	if (sink->plan->judge)
		return sink->plan->judge(sink->plan->judge_arg, d);
	return (struct ob_memsink_verdict){ .kind = OB_ERR_NONE };
}

static int memory_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	struct memory_sink *sink = (struct memory_sink *)base;

	if (!sink->open || sink->plan->down)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the memory sink is not open");
	if (sink->count == sink->window)
		return OB_SINK_FULL;
	struct pending p = {
		.delivery = *delivery,
		.verdict = judge(sink, delivery),
		.polls_left = sink->plan->ack_polls,
		.ready_us = ob_clock_boot_us(base->clock) + sink->plan->ack_delay_us,
	};
	if (p.verdict.at_send && p.verdict.kind != OB_ERR_NONE)
		return ob_err_set(err, OUTBOX_ESINK, p.verdict.kind, "refused by the plan");
	if (!sink->plan->store_late)
		store(sink, &p);
	sink->pending[sink->count++] = p;
	sink->plan->unconfirmed = sink->count;
	return 0;
}

/* The connection is gone: what is not yet stored never will be, all fates are unknown. */
static void lose_all(struct memory_sink *sink)
{
	for (uint32_t i = 0; i < sink->count; i++) {
		struct pending *p = &sink->pending[i];

		p->verdict = (struct ob_memsink_verdict){ .kind = OB_ERR_DOWN, .hung_up = true };
		p->polls_left = 0;
		p->ready_us = INT64_MIN;
		p->lost = true;
	}
	sink->open = false;
}

/* `left`: how many before it are not done yet. */
static bool is_ready(const struct memory_sink *sink, uint32_t at, uint32_t left, int64_t now_us)
{
	const struct pending *p = &sink->pending[at];

	if (p->done || p->verdict.silent || p->polls_left > 0 || p->ready_us > now_us)
		return false;
	for (uint32_t i = 0; i < at && left > 0 && is_ordered(sink); i++) {
		if (!sink->pending[i].done && same_key(&sink->pending[i], p->delivery.message->key))
			return false;
	}
	return true;
}

static uint32_t next_random(struct memory_sink *sink, uint32_t below)
{
	uint64_t x = sink->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	sink->random = x;
	return (uint32_t)((x >> 16) % below);
}

/* The next to come out, or -1. Shuffled: the first ready one from a random place on. */
static int64_t pick(struct memory_sink *sink, uint32_t from, uint32_t left, int64_t now_us)
{
	bool shuffled = sink->random != 0;

	if (sink->count == 0)
		return -1;
	uint32_t start = shuffled ? next_random(sink, sink->count) : from;
	uint32_t tries = shuffled ? sink->count : sink->count - from;

	for (uint32_t i = 0; i < tries; i++) {
		uint32_t at = (start + i) % sink->count;

		if (is_ready(sink, at, shuffled ? 1 : left, now_us))
			return at;
		left += !sink->pending[at].done;
	}
	return -1;
}

static void drop_done(struct memory_sink *sink)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sink->count; i++) {
		if (!sink->pending[i].done)
			sink->pending[kept++] = sink->pending[i];
	}
	sink->count = sink->plan->unconfirmed = kept;
}

static void come_out(struct memory_sink *sink, struct pending *p, struct ob_ack *ack)
{
	if (sink->plan->store_late)
		store(sink, p);
	p->done = true;
	ack->tag = p->delivery.tag;
	ack->err = OB_ERR_INIT;
	if (p->verdict.kind != OB_ERR_NONE)
		(void)ob_err_set(&ack->err, OUTBOX_ESINK, p->verdict.kind, "failed by the plan");
	ack->err.hung_up = p->verdict.hung_up;
	/* The first one takes all others along. */
	if (p->verdict.hung_up && !p->lost) {
		sink->plan->losses++;
		lose_all(sink);
	}
}

static int memory_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		       struct ob_err *err)
{
	struct memory_sink *sink = (struct memory_sink *)base;
	int64_t now_us = ob_clock_boot_us(base->clock);
	uint32_t limit = sink->plan->acks_per_poll;
	uint32_t from = 0, n = 0;

	(void)timeout_ms;
	(void)err;
	if (sink->plan->down)
		lose_all(sink);
	for (uint32_t i = 0; i < sink->count; i++)
		sink->pending[i].polls_left -= sink->pending[i].polls_left > 0;
	while (n < max && (limit == 0 || n < limit)) {
		int64_t at = pick(sink, from, from - n, now_us);

		if (at < 0)
			break;
		come_out(sink, &sink->pending[at], &acks[n++]);
		from = (uint32_t)at + 1;
	}
	drop_done(sink);
	return (int)n;
}

static void memory_reset(struct ob_sink *base)
{
	struct memory_sink *sink = (struct memory_sink *)base;

	sink->plan->resets += sink->count > 0;
	sink->count = sink->plan->unconfirmed = 0;
}

static void memory_close(struct ob_sink *base)
{
	free(((struct memory_sink *)base)->pending);
}

static void memory_describe(struct ob_sink *base, struct ob_buf *out)
{
	ob_buf_adds(out, base->ops->name);
}

#define MEMORY_OPS(ops_name, ops_caps) \
	{ \
		.name = (ops_name), .caps = (ops_caps), .size = sizeof(struct memory_sink), \
		.open = memory_open, .send = memory_send, .poll = memory_poll, \
		.reset = memory_reset, .close = memory_close, .describe = memory_describe, \
	}

const struct ob_sink_ops ob_sink_memory = MEMORY_OPS("memory", OB_SINK_VOLATILE);
const struct ob_sink_ops ob_sink_memory_ordered =
	MEMORY_OPS("memory_ordered", OB_SINK_VOLATILE | OB_SINK_ORDERED);

int ob_memsink_new(const struct ob_sink_ops *ops, struct ob_memsink_plan *plan,
		   const struct ob_clock *clock, struct ob_sink **ret_sink, struct ob_err *err)
{
	struct ob_sink *sink = NULL;
	int r = ob_sink_new(ops, NULL, 0, clock, &sink, err);

	if (r < 0)
		return r;
	((struct memory_sink *)sink)->plan = plan;
	*ret_sink = sink;
	return 0;
}
