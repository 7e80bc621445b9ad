/* SPDX-License-Identifier: MIT */
/* From the sink's connection to a channel that hands messages out, and what comes on it. */
#include "base/utf8.h"
#include "feed/rabbitmq/rabbitmq.h"

enum { LEAVE_MS = 2000, KEEP_BYTES = 1 << 20 };

static struct ob_rabbitmq_conn *conn_of(const struct rabbitmq_feed *feed)
{
	return &ob_rabbitmq_link(feed)->conn;
}

static int64_t now_us(const struct rabbitmq_feed *feed)
{
	return ob_clock_boot_us(feed->base.clock);
}

/* ---- the end --------------------------------------------------------- */

static void end(struct rabbitmq_feed *feed, bool politely)
{
	if (!ob_rabbitmq_link(feed)->ready)
		return; /* it was never opened */
	ob_rabbitmq_conn_close(conn_of(feed), politely);
	ob_rabbitmq_marks_void(feed);
	feed->consuming = feed->asked = false;
	ob_rabbitmq_feed_taken(feed);
}

void ob_rabbitmq_feed_taken(struct rabbitmq_feed *feed)
{
	feed->coming.whole = false;
	feed->coming.delivery_tag = 0;
	/* One large message must not keep its memory. */
	if (feed->coming.body.cap > KEEP_BYTES)
		ob_buf_done(&feed->coming.body);
}

void ob_rabbitmq_feed_drop(struct rabbitmq_feed *feed)
{
	end(feed, false);
}

static bool holds(struct ob_str text, const char *words)
{
	return text.p && memmem(text.p, text.n, words, strlen(words));
}

int ob_rabbitmq_feed_refused(const struct rabbitmq_feed *feed, uint16_t code, struct ob_str text,
			     struct ob_err *err)
{
	struct ob_buf line = OB_BUF_INIT(1200);
	const char *hint = "trying again";

	if (code == AMQP_NOT_FOUND)
		hint = "declare the queue, and bind it";
	else if (code == AMQP_ACCESS_REFUSED && holds(text, "exclusive"))
		hint = "another consumer has the queue: waiting until it is gone";
	else if (code == AMQP_ACCESS_REFUSED)
		hint = "allow this user to read it";
	else if (code == AMQP_RESOURCE_LOCKED)
		hint = "the queue belongs to another connection";
	else if (code == AMQP_PRECONDITION_FAILED && holds(text, "timed out"))
		hint = "a message was longer in hand than the server's consumer_timeout allows: "
		       "raise it, or lower prefetch; what was not done comes again";
	ob_utf8_sanitize(&line, text, 200);
	(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
			 "queue '%.100s': rabbitmq says %u: %s (%s)", feed->queue, code,
			 ob_buf_str(&line), hint);
	ob_buf_done(&line);
	(void)snprintf(err->native, sizeof(err->native), "%u", code);
	return err->status;
}

/* ---- what comes ------------------------------------------------------ */

static int out_of_turn(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "rabbitmq sends frames out of turn");
}

static int take_deliver(struct rabbitmq_feed *feed, const amqp_basic_deliver_t *deliver,
			struct ob_err *err)
{
	struct ob_rabbitmq_coming *coming = &feed->coming;

	if (coming->delivery_tag || deliver->delivery_tag != feed->past + feed->mark_count + 1)
		return out_of_turn(err);
	if (!ob_rabbitmq_mark_add(feed))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a delivery");
	coming->delivery_tag = deliver->delivery_tag;
	coming->redelivered = deliver->redelivered;
	coming->properties.len = coming->body.len = 0;
	coming->size = UINT64_MAX;
	return 0;
}

static int take_method(struct rabbitmq_feed *feed, const amqp_method_t *method, struct ob_err *err)
{
	if (method->id != AMQP_BASIC_DELIVER_METHOD)
		feed->answered = method->id;
	switch (method->id) {
	case AMQP_BASIC_DELIVER_METHOD:
		return take_deliver(feed, method->decoded, err);
	case AMQP_QUEUE_DECLARE_OK_METHOD: {
		const amqp_queue_declare_ok_t *ok = method->decoded;
		feed->ready_count = ok->message_count;
		feed->consumer_count = ok->consumer_count;
		feed->asked = false;
		return 0;
	}
	case AMQP_BASIC_CANCEL_METHOD:
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "queue '%.150s' was deleted, or its server is gone "
				  "(basic.cancel): declare it again",
				  feed->queue);
	case AMQP_CHANNEL_CLOSE_METHOD: {
		const amqp_channel_close_t *close = method->decoded;
		return ob_rabbitmq_feed_refused(feed, close->reply_code,
						ob_rabbitmq_str(close->reply_text), err);
	}
	case AMQP_CONNECTION_CLOSE_METHOD: {
		const amqp_connection_close_t *close = method->decoded;
		return ob_rabbitmq_feed_refused(feed, close->reply_code,
						ob_rabbitmq_str(close->reply_text), err);
	}
	default:
		return 0;
	}
}

static int take_content(struct rabbitmq_feed *feed, const amqp_frame_t *frame, struct ob_err *err)
{
	struct ob_rabbitmq_coming *coming = &feed->coming;
	bool head = frame->frame_type == AMQP_FRAME_HEADER;

	if (!coming->delivery_tag || coming->whole || head != (coming->size == UINT64_MAX))
		return out_of_turn(err);
	if (head) {
		coming->size = frame->payload.properties.body_size;
		ob_buf_add(&coming->properties, ob_rabbitmq_str(frame->payload.properties.raw));
	} else {
		ob_buf_add(&coming->body, ob_rabbitmq_str(frame->payload.body_fragment));
	}
	if (coming->properties.failed || coming->body.failed) {
		coming->properties.failed = coming->body.failed = false;
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN,
				  "no memory for a message of %llu bytes",
				  (unsigned long long)coming->size);
	}
	coming->whole = coming->body.len >= coming->size;
	return 0;
}

int ob_rabbitmq_feed_next(struct rabbitmq_feed *feed, amqp_method_number_t until,
			  struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = conn_of(feed);
	int r = 0;

	feed->answered = 0;
	while (!feed->coming.whole && (!until || feed->answered != until)) {
		amqp_frame_t frame = { 0 };

		r = ob_rabbitmq_next_frame(conn, feed->base.clock, &frame, err);
		/* Only an empty socket tells of silence: what was not read is no silence. */
		if (r == 0 && ob_rabbitmq_conn_gone_us(conn) <= now_us(feed))
			r = ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				       "rabbitmq has been silent for two heartbeats of %lld ms",
				       (long long)(conn->heartbeat_us / 1000));
		if (r <= 0)
			break;
		r = 0;
		if (frame.frame_type == AMQP_FRAME_METHOD)
			r = take_method(feed, &frame.payload.method, err);
		else if (frame.frame_type == AMQP_FRAME_HEADER ||
			 frame.frame_type == AMQP_FRAME_BODY)
			r = take_content(feed, &frame, err);
		if (r < 0)
			break;
		ob_rabbitmq_release_frames(conn);
	}
	if (r < 0) {
		ob_rabbitmq_feed_drop(feed);
		return r;
	}
	return feed->coming.whole;
}

/* ---- what goes ------------------------------------------------------- */

int ob_rabbitmq_feed_flush(struct rabbitmq_feed *feed, struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = conn_of(feed);
	int64_t end_us = now_us(feed) + ob_rabbitmq_link(feed)->timeout_ms * 1000;
	int r;

	while ((r = ob_rabbitmq_conn_flush(conn, feed->base.clock, err)) == 0 &&
	       ob_outbuf_left(&conn->out) > 0) {
		if (!ob_net_wait(&conn->net, (short)(POLLOUT | conn->net.wants), feed->base.clock,
				 end_us)) {
			r = ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				       "rabbitmq does not read what we send");
			break;
		}
	}
	if (r < 0)
		ob_rabbitmq_feed_drop(feed);
	return r;
}

/* Send it and wait for the answer; messages that come before that are passed over. */
static int ask(struct rabbitmq_feed *feed, amqp_method_number_t id, void *method,
	       amqp_method_number_t answer, int64_t timeout_ms, struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = conn_of(feed);
	int64_t end_us = now_us(feed) + timeout_ms * 1000;

	if (!ob_rabbitmq_add_method(conn, OB_RABBITMQ_CHANNEL, id, method)) {
		ob_rabbitmq_feed_drop(feed);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a frame");
	}
	int r = ob_rabbitmq_feed_flush(feed, err);
	while (r >= 0) {
		r = ob_rabbitmq_feed_next(feed, answer, err);
		if (r > 0)
			ob_rabbitmq_feed_taken(feed);
		else if (r == 0 && feed->answered == answer)
			return 0;
		else if (r == 0 && !ob_net_wait(&conn->net, ob_net_events(&conn->net, false),
						feed->base.clock, end_us)) {
			ob_rabbitmq_feed_drop(feed);
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
					  "rabbitmq gives no answer within %lld ms",
					  (long long)timeout_ms);
		}
	}
	return r;
}

void ob_rabbitmq_feed_leave(struct rabbitmq_feed *feed)
{
	amqp_channel_close_t bye = { .reply_code = AMQP_REPLY_SUCCESS,
				     .reply_text = ob_rabbitmq_bytes(OB_STR("")) };
	struct ob_err ignored = OB_ERR_INIT;

	/*
	 * A socket that is closed with something unread in it is reset, and acknowledgements that
	 * the broker has not read are lost. Its answer says that it has read them.
	 */
	if (feed->consuming && ask(feed, AMQP_CHANNEL_CLOSE_METHOD, &bye,
				   AMQP_CHANNEL_CLOSE_OK_METHOD, LEAVE_MS, &ignored) < 0)
		return;
	end(feed, true);
}

/* ---- opening --------------------------------------------------------- */

static amqp_queue_declare_t same_queue(const struct rabbitmq_feed *feed)
{
	return (amqp_queue_declare_t){ .queue = ob_rabbitmq_bytes(ob_str(feed->queue)),
				       .passive = 1 };
}

void ob_rabbitmq_feed_ask_count(struct rabbitmq_feed *feed)
{
	amqp_queue_declare_t declare = same_queue(feed);

	if (!feed->asked)
		feed->asked = ob_rabbitmq_add_method(conn_of(feed), OB_RABBITMQ_CHANNEL,
						     AMQP_QUEUE_DECLARE_METHOD, &declare);
}

/*
 * A second consumer would get later messages of a key while the first still has earlier ones: a
 * process that stands still, and that the broker has not given up yet. Classic queues refuse one
 * beside an exclusive one; quorum queues do not, but they count.
 */
static int check_alone(struct rabbitmq_feed *feed, struct ob_err *err)
{
	if (!feed->base.sole || feed->consumer_count == 0)
		return 0;
	ob_rabbitmq_feed_drop(feed);
	return ob_err_set(
		err, OUTBOX_ESINK, OB_ERR_DOWN,
		"another consumer has the queue '%.150s'; with ordering: key there is one "
		"at a time: waiting until it is gone",
		feed->queue);
}

int ob_rabbitmq_feed_open(struct ob_feed *base, struct ob_err *err)
{
	struct rabbitmq_feed *feed = (struct rabbitmq_feed *)base;
	int64_t timeout_ms = ob_rabbitmq_link(feed)->connect_timeout_ms;
	amqp_queue_declare_t declare = same_queue(feed);
	amqp_basic_qos_t qos = { .prefetch_count = (uint16_t)feed->prefetch };
	amqp_basic_consume_t consume = { .queue = declare.queue, .exclusive = base->sole };

	/* When the connection stands, the sink must not read from it: what comes is ours. */
	if (feed->consuming)
		return 0;
	int r = ob_sink_open(base->link, err);
	if (r == 0)
		r = ask(feed, AMQP_QUEUE_DECLARE_METHOD, &declare, AMQP_QUEUE_DECLARE_OK_METHOD,
			timeout_ms, err);
	if (r == 0)
		r = check_alone(feed, err);
	if (r == 0)
		r = ask(feed, AMQP_BASIC_QOS_METHOD, &qos, AMQP_BASIC_QOS_OK_METHOD, timeout_ms,
			err);
	if (r == 0)
		r = ask(feed, AMQP_BASIC_CONSUME_METHOD, &consume, AMQP_BASIC_CONSUME_OK_METHOD,
			timeout_ms, err);
	feed->consuming = r == 0;
	return r;
}
