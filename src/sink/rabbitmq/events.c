/* SPDX-License-Identifier: MIT */
/* What the broker tells us: confirms, messages that come back, alarms, and its closing. */
#include "base/utf8.h"
#include "sink/rabbitmq/rabbitmq.h"

/* ---- the end --------------------------------------------------------- */

/* Those to blame fail by `err`; the others are told of an outage, as their fate is not known. */
static void fail_all(struct rabbitmq_sink *sink, enum ob_rabbitmq_blame blame, struct ob_str text,
		     const struct ob_err *err)
{
	struct ob_rabbitmq_flight *flight = &sink->flight;
	struct ob_err down = *err;
	bool alone = flight->waiting == 1;

	down.kind = OB_ERR_DOWN;
	sink->reopen = true;
	for (struct ob_rabbitmq_slot *slot; (slot = ob_rabbitmq_flight_oldest(flight));) {
		bool blamed = ob_rabbitmq_is_about(sink, blame, text, slot, alone);

		if (!blamed)
			sink->reopen = false;
		ob_rabbitmq_flight_finish(flight, slot, blamed ? err : &down);
	}
	ob_rabbitmq_flight_restart(flight);
}

void ob_rabbitmq_lose(struct rabbitmq_sink *sink, const struct ob_err *err)
{
	fail_all(sink, OB_RABBITMQ_BLAME_NONE, OB_STR_NULL, err);
	ob_rabbitmq_conn_close(&sink->conn, false);
}

/* The broker closed the channel or the connection; for us both end the connection. */
static void closed(struct rabbitmq_sink *sink, uint16_t code, struct ob_str text)
{
	struct ob_err err = OB_ERR_INIT;
	enum ob_rabbitmq_blame blame;
	uint64_t limit = ob_rabbitmq_size_limit(text);

	(void)ob_rabbitmq_error(code, text, &blame, &err);
	err.hung_up = true;
	if (limit > 0)
		sink->size_max = limit;
	fail_all(sink, blame, text, &err);
	ob_rabbitmq_conn_close(&sink->conn, true);
}

/* ---- methods --------------------------------------------------------- */

static void answered(struct rabbitmq_sink *sink, struct ob_rabbitmq_slot *slot, bool stored)
{
	struct ob_err err = OB_ERR_INIT;

	/* An ack behind a return says that the broker is done with it, not that it is stored. */
	if (stored && slot->returned == 0) {
		ob_rabbitmq_flight_finish(&sink->flight, slot, NULL);
		return;
	}
	(void)ob_rabbitmq_refused(sink, slot, &err);
	ob_rabbitmq_flight_finish(&sink->flight, slot, &err);
}

static int answer(struct rabbitmq_sink *sink, uint64_t tag, bool multiple, bool stored,
		  struct ob_err *err)
{
	struct ob_rabbitmq_flight *flight = &sink->flight;
	struct ob_rabbitmq_slot *slot;

	if (tag == 0 && multiple)
		tag = flight->next - 1;
	if (tag >= flight->next)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "rabbitmq confirms a message that was not sent");
	if (stored && tag > flight->confirmed)
		flight->confirmed = tag;
	if (multiple) {
		while ((slot = ob_rabbitmq_flight_oldest(flight)) && flight->first <= tag)
			answered(sink, slot, stored);
	} else if ((slot = ob_rabbitmq_flight_at(flight, tag))) {
		answered(sink, slot, stored);
	}
	return 0;
}

static void set_blocked(struct rabbitmq_sink *sink, bool blocked, struct ob_str why)
{
	struct ob_rabbitmq_conn *conn = &sink->conn;
	struct ob_buf text = OB_BUF_INIT(sizeof(conn->blocked_why));

	conn->blocked = blocked;
	if (!blocked) {
		conn->unblocked_us = ob_clock_boot_us(sink->base.clock);
		return;
	}
	ob_utf8_sanitize(&text, why, 30);
	(void)snprintf(conn->blocked_why, sizeof(conn->blocked_why), "%s", ob_buf_str(&text));
	ob_buf_done(&text);
}

static int take_method(struct rabbitmq_sink *sink, const amqp_method_t *method, struct ob_err *err)
{
	switch (method->id) {
	case AMQP_BASIC_ACK_METHOD: {
		const amqp_basic_ack_t *ack = method->decoded;
		return answer(sink, ack->delivery_tag, ack->multiple, true, err);
	}
	case AMQP_BASIC_NACK_METHOD: {
		const amqp_basic_nack_t *nack = method->decoded;
		return answer(sink, nack->delivery_tag, nack->multiple, false, err);
	}
	case AMQP_BASIC_RETURN_METHOD:
		sink->conn.returning = ((const amqp_basic_return_t *)method->decoded)->reply_code;
		return 0;
	case AMQP_CONNECTION_BLOCKED_METHOD: {
		const amqp_connection_blocked_t *blocked = method->decoded;
		set_blocked(sink, true, ob_rabbitmq_str(blocked->reason));
		return 0;
	}
	case AMQP_CONNECTION_UNBLOCKED_METHOD:
		set_blocked(sink, false, OB_STR_NULL);
		return 0;
	case AMQP_CHANNEL_CLOSE_METHOD: {
		const amqp_channel_close_t *close = method->decoded;
		closed(sink, close->reply_code, ob_rabbitmq_str(close->reply_text));
		return 0;
	}
	case AMQP_CONNECTION_CLOSE_METHOD: {
		const amqp_connection_close_t *close = method->decoded;
		closed(sink, close->reply_code, ob_rabbitmq_str(close->reply_text));
		return 0;
	}
	default:
		return 0; /* nothing else was asked for */
	}
}

/* The head of a message that comes back says which one it is. */
static void take_header(struct rabbitmq_sink *sink, const amqp_frame_t *frame)
{
	const amqp_basic_properties_t *properties = frame->payload.properties.decoded;
	struct ob_uuid id;

	if (sink->conn.returning != 0 && frame->payload.properties.class_id == AMQP_BASIC_CLASS &&
	    (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) &&
	    ob_uuid_parse(ob_rabbitmq_str(properties->message_id), &id))
		ob_rabbitmq_flight_returned(&sink->flight, &id, sink->conn.returning);
	sink->conn.returning = 0;
}

/* ---- reading --------------------------------------------------------- */

void ob_rabbitmq_read(struct rabbitmq_sink *sink)
{
	struct ob_rabbitmq_conn *conn = &sink->conn;
	struct ob_err err = OB_ERR_INIT;
	int r = 0;

	while (conn->open) {
		amqp_frame_t frame;

		r = ob_rabbitmq_next_frame(conn, sink->base.clock, &frame, &err);
		if (r <= 0)
			break;
		r = 0;
		if (frame.frame_type == AMQP_FRAME_METHOD)
			r = take_method(sink, &frame.payload.method, &err);
		else if (frame.frame_type == AMQP_FRAME_HEADER)
			take_header(sink, &frame);
		if (r < 0)
			break;
		if (conn->open)
			ob_rabbitmq_release_frames(conn);
	}
	if (r < 0)
		ob_rabbitmq_lose(sink, &err);
}
