/* SPDX-License-Identifier: MIT */
/* What the files of the RabbitMQ feed share. The connection is the RabbitMQ sink's. */
#ifndef OB_FEED_RABBITMQ_H
#define OB_FEED_RABBITMQ_H

#include "feed/feed.h"
#include "sink/rabbitmq/rabbitmq.h"

/* The message that is coming in, frame by frame. */
struct ob_rabbitmq_coming {
	uint64_t delivery_tag;
	uint64_t size; /* of the body */
	struct ob_buf properties, body;
	bool redelivered, whole;
};

struct rabbitmq_feed {
	struct ob_feed base;
	/* options */
	char *queue;
	uint32_t prefetch;
	int64_t consumer_timeout_ms;

	bool consuming;                /* the broker hands messages out to us */
	bool asked;                    /* for the queue's count, without waiting for the answer */
	int64_t ready_count;           /* the last answer */
	uint32_t consumer_count;       /* with it */
	amqp_method_number_t answered; /* the method that came last, unless it was a delivery */
	struct ob_rabbitmq_coming coming;
	/*
	 * Delivery tags are 1, 2, 3 ... on every channel; a tag of ours is `void_tags` above.
	 * marks[i] is of delivery `past` + 1 + i: open, or acknowledged.
	 */
	uint64_t void_tags, past;
	char *marks;
	size_t mark_count, mark_room;
};

static inline struct rabbitmq_sink *ob_rabbitmq_link(const struct rabbitmq_feed *feed)
{
	return (struct rabbitmq_sink *)feed->base.link;
}

/* ---- channel.c -------------------------------------------------------- */

/* Log in, and let the broker hand messages out. */
ob_feed_open_fn ob_rabbitmq_feed_open;
/* 1: a message is whole in feed->coming; 0: not now, or the answer `until` came (0: none is waited
 * for); or an error, with the connection closed. */
int ob_rabbitmq_feed_next(struct rabbitmq_feed *feed, amqp_method_number_t until,
			  struct ob_err *err);
/* The message in feed->coming is not needed any more. */
void ob_rabbitmq_feed_taken(struct rabbitmq_feed *feed);
/* Write all that waits to be written. */
int ob_rabbitmq_feed_flush(struct rabbitmq_feed *feed, struct ob_err *err);
/* Ask how many messages the queue has; the answer comes in its turn. */
void ob_rabbitmq_feed_ask_count(struct rabbitmq_feed *feed);
/* The connection is of no use: close it. Tags are void, what has no acknowledgement comes again. */
void ob_rabbitmq_feed_drop(struct rabbitmq_feed *feed);
/* The same, after the broker has taken our acknowledgements and has its messages back. */
void ob_rabbitmq_feed_leave(struct rabbitmq_feed *feed);
/* DOWN, and what the broker's words mean for a consumer. */
int ob_rabbitmq_feed_refused(const struct rabbitmq_feed *feed, uint16_t code, struct ob_str text,
			     struct ob_err *err);

/* ---- marks.c ---------------------------------------------------------- */

/* The next delivery of this channel, to be acknowledged; false: no memory. */
bool ob_rabbitmq_mark_add(struct rabbitmq_feed *feed);
/* How many are open. */
size_t ob_rabbitmq_marks_open(const struct rabbitmq_feed *feed);
/* The channel is gone. */
void ob_rabbitmq_marks_void(struct rabbitmq_feed *feed);
/* Write acknowledgements of those that are open; others are passed over. False: no memory. */
bool ob_rabbitmq_marks_ack(struct rabbitmq_feed *feed, const uint64_t *tags, size_t count);

/* ---- message.c -------------------------------------------------------- */

/* What has come, as an entry with its tag set. False: no memory. */
bool ob_rabbitmq_entry(struct rabbitmq_feed *feed, struct ob_arena *arena,
		       struct ob_feed_entry *entry);

/* ---- probe.c ---------------------------------------------------------- */

extern const struct ob_check ob_rabbitmq_feed_checks[];
ob_feed_probe_fn ob_rabbitmq_feed_probe;

#endif
