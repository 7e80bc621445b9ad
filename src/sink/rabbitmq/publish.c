/* SPDX-License-Identifier: MIT */
/* One message becomes the frames of one basic.publish. */
#include "sink/rabbitmq/rabbitmq.h"

struct target {
	struct ob_str exchange, key;
};

enum { HEADER_FIXED = 12 }; /* class, weight and body size, in front of the properties */

/* ---- where to -------------------------------------------------------- */

static int too_long(const char *what, size_t n, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
			  "the %s has %zu bytes; AMQP takes at most %d", what, n,
			  OB_RABBITMQ_SHORT);
}

/* The destination is the routing key, or exchange/routing.key. */
static int find_target(const struct rabbitmq_sink *sink, struct ob_str destination,
		       struct target *ret, struct ob_err *err)
{
	struct target target = { ob_str(sink->exchange), destination };

	if (sink->exchange_per_message) {
		const char *slash =
			destination.n > 0 ? memchr(destination.p, '/', destination.n) : NULL;

		if (!slash)
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
					  "the destination names no exchange: with "
					  "exchange_per_message it is exchange/routing.key");
		target.exchange = (struct ob_str){ destination.p, (size_t)(slash - destination.p) };
		target.key = (struct ob_str){ slash + 1, destination.n - target.exchange.n - 1 };
	}
	if (target.exchange.n > OB_RABBITMQ_SHORT)
		return too_long("name of the exchange", target.exchange.n, err);
	if (target.key.n > OB_RABBITMQ_SHORT)
		return too_long("routing key", target.key.n, err);
	if (target.exchange.n == 0 && target.key.n == 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "the destination is empty: the default exchange needs the name "
				  "of a queue");
	*ret = target;
	return 0;
}

int ob_rabbitmq_split(const struct rabbitmq_sink *sink, struct ob_str destination,
		      struct ob_str *ret_exchange, struct ob_str *ret_key, struct ob_err *err)
{
	struct target target;
	int r = find_target(sink, destination, &target, err);

	if (r < 0)
		return r;
	*ret_exchange = target.exchange;
	*ret_key = target.key;
	return 0;
}

static int check_size(const struct rabbitmq_sink *sink, size_t size, struct ob_err *err)
{
	if (size > OB_RABBITMQ_INPUT_MAX)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "a body of %zu bytes is too large for rabbitmq (at most %d MB)",
				  size, OB_RABBITMQ_INPUT_MAX >> 20);
	if (sink->size_max > 0 && size > sink->size_max)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "a body of %zu bytes is larger than the broker's "
				  "max_message_size of %llu",
				  size, (unsigned long long)sink->size_max);
	return 0;
}

/* ---- frames ---------------------------------------------------------- */

/* Encode the header frame's payload into the scratch; its size, or an error. */
static int encode_header(struct rabbitmq_sink *sink, const struct ob_delivery *delivery,
			 struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = &sink->conn;
	size_t room = conn->frame_max - OB_RABBITMQ_FRAME_EXTRA - HEADER_FIXED;
	struct ob_rabbitmq_properties properties;
	uint64_t size = delivery->body.n;
	int n = -1;
	int r = ob_rabbitmq_properties_make(sink, delivery, &properties, err);

	if (r == 0)
		n = amqp_encode_properties(AMQP_BASIC_CLASS, &properties.basic,
					   (amqp_bytes_t){ room, conn->scratch + HEADER_FIXED });
	ob_rabbitmq_properties_done(&properties);
	if (r < 0)
		return r;
	if (n < 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "the headers and names of the message do not fit into a frame of "
				  "%u bytes",
				  conn->frame_max);
	memset(conn->scratch, 0, 4);
	conn->scratch[1] = AMQP_BASIC_CLASS;
	for (int i = 0; i < 8; i++)
		conn->scratch[4 + i] = (char)(size >> (56 - 8 * i));
	return n + HEADER_FIXED;
}

static bool add_body(struct ob_rabbitmq_conn *conn, struct ob_str body)
{
	size_t most = conn->frame_max - OB_RABBITMQ_FRAME_EXTRA;
	bool ok = true;

	for (size_t at = 0; ok && at < body.n; at += most) {
		size_t n = body.n - at < most ? body.n - at : most;

		ok = ob_rabbitmq_add_frame(conn, AMQP_FRAME_BODY, OB_RABBITMQ_CHANNEL,
					   (struct ob_str){ body.p + at, n });
	}
	return ok;
}

static int add_frames(struct rabbitmq_sink *sink, const struct ob_delivery *delivery,
		      const struct target *target, struct ob_err *err)
{
	struct ob_rabbitmq_conn *conn = &sink->conn;
	size_t from = conn->out.bytes.len;
	amqp_basic_publish_t publish = { .exchange = ob_rabbitmq_bytes(target->exchange),
					 .routing_key = ob_rabbitmq_bytes(target->key),
					 .mandatory = 1 };
	int n;

	if (ob_rabbitmq_add_method(conn, OB_RABBITMQ_CHANNEL, AMQP_BASIC_PUBLISH_METHOD,
				   &publish)) {
		n = encode_header(sink, delivery, err);
		if (n >= 0 &&
		    ob_rabbitmq_add_frame(conn, AMQP_FRAME_HEADER, OB_RABBITMQ_CHANNEL,
					  (struct ob_str){ conn->scratch, (size_t)n }) &&
		    add_body(conn, delivery->body))
			return 0;
	} else {
		n = 0;
	}
	conn->out.bytes.len = from;
	conn->out.bytes.failed = false;
	return n < 0 ? n : ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a message");
}

int ob_rabbitmq_publish(struct rabbitmq_sink *sink, const struct ob_delivery *delivery,
			struct ob_err *err)
{
	struct target target;
	int r = find_target(sink, delivery->destination, &target, err);

	if (r == 0)
		r = check_size(sink, delivery->body.n, err);
	if (r < 0)
		return r;
	ob_outbuf_compact(&sink->conn.out, OB_RABBITMQ_OUT_BYTES);
	r = add_frames(sink, delivery, &target, err);
	if (r < 0)
		return r;
	struct ob_rabbitmq_slot slot = { .tag = delivery->tag,
					 .id = delivery->message->id,
					 .exchange = target.exchange,
					 .key = target.key,
					 .size = delivery->body.n,
					 .sent_us = ob_clock_boot_us(sink->base.clock) };
	ob_rabbitmq_flight_add(&sink->flight, &slot);
	return 0;
}
