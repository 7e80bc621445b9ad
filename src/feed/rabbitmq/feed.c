/* SPDX-License-Identifier: MIT */
/*
 * A RabbitMQ queue. The broker hands out up to `prefetch` messages; those that nobody has asked for
 * yet stay in the socket. What was handed out and not acknowledged comes again when the channel
 * ends, in its place. So give_back() ends the channel: single messages that are given back would
 * come behind later ones of their key, in a quorum queue always.
 *
 * A queue has one consumer that keeps order; one that takes over waits until the broker has let go
 * of the other.
 */
#include "feed/backends.h"
#include "feed/rabbitmq/rabbitmq.h"

#include <stdlib.h>

enum {
	BATCH_BYTES = 64 << 20, /* after that a batch is long enough */
	STATE_MS = 500,
};

/* A queue's own limit is 512 MiB. */
static const size_t body_max = (size_t)513 << 20;

static int64_t now_us(const struct rabbitmq_feed *feed)
{
	return ob_clock_boot_us(feed->base.clock);
}

static int rabbitmq_feed_open(struct ob_feed *base, struct ob_err *err)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;

	feed->coming.body.max = body_max;
	feed->coming.properties.max = OB_RABBITMQ_FRAME;
	return ob_rabbitmq_feed_open(base, err);
}

static int not_connected(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "rabbitmq is not connected");
}

/* ---- reading --------------------------------------------------------- */

/* All that is there, as far as there is room. */
static int take_some(struct rabbitmq_feed *feed, uint32_t max, struct ob_feed_batch *batch,
		     struct ob_err *err)
{
	int r = 1;

	while (r > 0 && batch->count < max && batch->arena.used < BATCH_BYTES) {
		r = ob_rabbitmq_feed_next(feed, 0, err);
		if (r <= 0)
			break;
		if (!ob_rabbitmq_entry(feed, &batch->arena, &batch->entries[batch->count])) {
			ob_rabbitmq_feed_drop(feed);
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
					  "no memory for entries of rabbitmq");
		}
		ob_rabbitmq_feed_taken(feed);
		batch->count++;
	}
	return r < 0 ? r : 0;
}

static void wait_for_more(const struct rabbitmq_feed *feed, int64_t end_us)
{
	const struct ob_rabbitmq_conn *conn = &ob_rabbitmq_link(feed)->conn;
	int64_t beat_us = ob_rabbitmq_conn_beat_us(conn), gone_us = ob_rabbitmq_conn_gone_us(conn);

	if (beat_us < end_us)
		end_us = beat_us;
	if (gone_us < end_us)
		end_us = gone_us;
	(void)ob_net_wait(&conn->net, ob_net_events(&conn->net, false), feed->base.clock, end_us);
}

static int rabbitmq_feed_poll(struct ob_feed *base, int timeout_ms, uint32_t max,
			      struct ob_feed_batch *batch, struct ob_err *err)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;
	int64_t end_us = now_us(feed) + timeout_ms * INT64_C(1000);

	if (!feed->consuming)
		return not_connected(err);
	if (max > 0) {
		batch->entries =
			ob_arena_alloc(&batch->arena, (size_t)max * sizeof(*batch->entries));
		if (!batch->entries)
			return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
					  "no memory for entries of rabbitmq");
	}
	for (;;) {
		int r = ob_rabbitmq_feed_flush(feed, err); /* heartbeats, too */

		if (r == 0 && max > 0)
			r = take_some(feed, max, batch, err);
		if (r < 0 || max == 0 || batch->count > 0 || now_us(feed) >= end_us)
			return r;
		wait_for_more(feed, end_us);
	}
}

/* ---- acknowledging --------------------------------------------------- */

static int rabbitmq_feed_ack(struct ob_feed *base, const uint64_t *tags, size_t count,
			     struct ob_err *err)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;

	if (!feed->consuming)
		return not_connected(err);
	if (!ob_rabbitmq_marks_ack(feed, tags, count)) {
		ob_rabbitmq_feed_drop(feed);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				  "no memory for acknowledgements");
	}
	return ob_rabbitmq_feed_flush(feed, err);
}

static void rabbitmq_feed_give_back(struct ob_feed *base, const uint64_t *tags, size_t count)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;

	for (size_t i = 0; i < count && feed->consuming; i++) {
		if (tags[i] > feed->void_tags)
			ob_rabbitmq_feed_leave(feed);
	}
}

/* ---- the rest -------------------------------------------------------- */

static int rabbitmq_feed_state(struct ob_feed *base, struct ob_feed_state *ret, struct ob_err *err)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;
	int64_t end_us = now_us(feed) + (int64_t)STATE_MS * 1000;
	int r = 0;

	if (!feed->consuming)
		return not_connected(err);
	ob_rabbitmq_feed_ask_count(feed);
	r = ob_rabbitmq_feed_flush(feed, err);
	/* Messages come before the answer: then the last one stands, and this one comes later. */
	while (r == 0 && feed->asked && now_us(feed) < end_us) {
		r = ob_rabbitmq_feed_next(feed, AMQP_QUEUE_DECLARE_OK_METHOD, err);
		if (r == 0 && feed->asked)
			wait_for_more(feed, end_us);
	}
	if (r < 0)
		return r;
	ret->lag = feed->ready_count + (int64_t)ob_rabbitmq_marks_open(feed);
	return 0;
}

static int rabbitmq_feed_check(struct ob_feed *base, struct ob_err *err)
{
	const struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;
	size_t n = strlen(feed->queue);

	if (n == 0 || n > OB_RABBITMQ_SHORT)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the queue of the rabbitmq source needs a name of 1 to %d bytes",
				  OB_RABBITMQ_SHORT);
	return 0;
}

static void rabbitmq_feed_close(struct ob_feed *base)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;

	ob_rabbitmq_feed_leave(feed);
	ob_buf_done(&feed->coming.body);
	ob_buf_done(&feed->coming.properties);
	free(feed->marks);
}

static void rabbitmq_feed_describe(struct ob_feed *base, struct ob_buf *out)
{
	ob_sink_describe(base->link, out);
	ob_buf_addf(out, " queue %.255s", ((struct rabbitmq_feed *)base)->queue);
}

static const struct ob_opt rabbitmq_feed_opts[] = {
	{
		.name = "queue",
		.type = OB_OPT_STR,
		.offset = offsetof(struct rabbitmq_feed, queue),
		.flags = OB_OPT_REQUIRED,
		.help = "The queue to read: one for each consumer.",
	},
	{
		.name = "prefetch",
		.type = OB_OPT_U32,
		.offset = offsetof(struct rabbitmq_feed, prefetch),
		.dflt = "1000",
		.min = 1,
		.max = 65535,
		.help = "Maximum messages that the broker hands out without an acknowledgement.",
	},
	{
		.name = "consumer_timeout",
		.type = OB_OPT_DURATION_MS,
		.offset = offsetof(struct rabbitmq_feed, consumer_timeout_ms),
		.dflt = "30m",
		.min = 1,
		.max = INT64_C(86400000) * 30,
		.help = "What the server has as its consumer_timeout, which it does not tell: "
			"`outbox doctor` compares the handler's timeout with it.",
	},
	OB_OPT_END,
};

static const char *const link_opts[] = { "url",     "username",   "password", "connect_timeout",
					 "timeout", "heartbeat",  "tls_ca",   "tls_cert",
					 "tls_key", "tls_verify", NULL };

const struct ob_feed_ops ob_feed_rabbitmq = {
	.name = "rabbitmq",
	.size = sizeof(struct rabbitmq_feed),
	.opts = rabbitmq_feed_opts,
	.link = &ob_sink_rabbitmq,
	.link_opts = link_opts,
	.checks = ob_rabbitmq_feed_checks,
	.probe = ob_rabbitmq_feed_probe,
	.check = rabbitmq_feed_check,
	.open = rabbitmq_feed_open,
	.poll = rabbitmq_feed_poll,
	.ack = rabbitmq_feed_ack,
	.give_back = rabbitmq_feed_give_back,
	.state = rabbitmq_feed_state,
	.close = rabbitmq_feed_close,
	.describe = rabbitmq_feed_describe,
};
