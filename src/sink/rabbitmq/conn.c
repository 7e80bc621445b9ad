/* SPDX-License-Identifier: MIT */
/* One connection to a broker: frames out, frames in, heartbeats both ways. */
#include "sink/rabbitmq/rabbitmq.h"

#include <stdlib.h>

enum { GOODBYE = 200 };

int ob_rabbitmq_conn_init(struct ob_rabbitmq_conn *conn, struct ob_err *err)
{
	*conn = (struct ob_rabbitmq_conn){ .net = OB_NET_INIT };
	conn->out = OB_OUTBUF_INIT((size_t)OB_RABBITMQ_INPUT_MAX + (16 << 20));
	conn->in = malloc(OB_RABBITMQ_IN_BYTES);
	conn->scratch = malloc(OB_RABBITMQ_FRAME);
	if (conn->in && conn->scratch)
		return 0;
	ob_rabbitmq_conn_done(conn);
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "allocating for rabbitmq");
}

void ob_rabbitmq_conn_done(struct ob_rabbitmq_conn *conn)
{
	free(conn->in);
	free(conn->scratch);
	conn->in = conn->scratch = NULL;
}

void ob_rabbitmq_conn_close(struct ob_rabbitmq_conn *conn, bool politely)
{
	struct ob_err err = OB_ERR_INIT;
	amqp_connection_close_t goodbye = { .reply_code = GOODBYE,
					    .reply_text = amqp_cstring_bytes("goodbye") };

	/* Behind a frame that is cut off there is nothing to say. */
	if (politely && conn->open && ob_outbuf_left(&conn->out) == 0 &&
	    ob_rabbitmq_add_method(conn, 0, AMQP_CONNECTION_CLOSE_METHOD, &goodbye))
		(void)ob_outbuf_flush(&conn->out, &conn->net, &err);
	ob_net_close(&conn->net);
	ob_outbuf_drop(&conn->out);
	if (conn->codec)
		(void)amqp_destroy_connection(conn->codec);
	conn->codec = NULL;
	conn->in_at = conn->in_size = 0;
	conn->returning = 0;
	conn->open = conn->blocked = false;
	conn->unblocked_us = 0;
	conn->heartbeat_us = 0;
}

/* ---- out ------------------------------------------------------------- */

bool ob_rabbitmq_add_frame(struct ob_rabbitmq_conn *conn, uint8_t type, uint16_t channel,
			   struct ob_str payload)
{
	uint32_t n = (uint32_t)payload.n;
	const unsigned char head[] = { type,
				       (unsigned char)(channel >> 8),
				       (unsigned char)channel,
				       (unsigned char)(n >> 24),
				       (unsigned char)(n >> 16),
				       (unsigned char)(n >> 8),
				       (unsigned char)n };

	ob_buf_add(&conn->out.bytes, (struct ob_str){ (const char *)head, sizeof(head) });
	ob_buf_add(&conn->out.bytes, payload);
	ob_buf_addc(&conn->out.bytes, (char)AMQP_FRAME_END);
	return !conn->out.bytes.failed;
}

bool ob_rabbitmq_add_method(struct ob_rabbitmq_conn *conn, uint16_t channel,
			    amqp_method_number_t id, void *method)
{
	amqp_bytes_t room = { OB_RABBITMQ_FRAME_MIN - 4, conn->scratch + 4 };
	int n = amqp_encode_method(id, method, room);

	if (n < 0)
		return false;
	for (int i = 0; i < 4; i++)
		conn->scratch[i] = (char)(id >> (24 - 8 * i));
	return ob_rabbitmq_add_frame(conn, AMQP_FRAME_METHOD, channel,
				     (struct ob_str){ conn->scratch, (size_t)n + 4 });
}

int64_t ob_rabbitmq_conn_gone_us(const struct ob_rabbitmq_conn *conn)
{
	return conn->heartbeat_us > 0 ? conn->read_us + 2 * conn->heartbeat_us : INT64_MAX;
}

int64_t ob_rabbitmq_conn_beat_us(const struct ob_rabbitmq_conn *conn)
{
	return conn->heartbeat_us > 0 ? conn->written_us + conn->heartbeat_us / 2 : INT64_MAX;
}

int ob_rabbitmq_conn_flush(struct ob_rabbitmq_conn *conn, const struct ob_clock *clock,
			   struct ob_err *err)
{
	if (ob_outbuf_left(&conn->out) == 0) {
		if (ob_rabbitmq_conn_beat_us(conn) > ob_clock_boot_us(clock))
			return 0;
		(void)ob_rabbitmq_add_frame(conn, AMQP_FRAME_HEARTBEAT, 0, OB_STR(""));
	}
	int r = ob_outbuf_flush(&conn->out, &conn->net, err);

	if (r > 0)
		conn->written_us = ob_clock_boot_us(clock);
	return r < 0 ? r : 0;
}

/* ---- in -------------------------------------------------------------- */

/* 1: there are bytes, 0: not now, or an error. */
static int feed(struct ob_rabbitmq_conn *conn, const struct ob_clock *clock, struct ob_err *err)
{
	ssize_t n;

	if (conn->in_at < conn->in_size)
		return 1;
	n = ob_net_read(&conn->net, conn->in, OB_RABBITMQ_IN_BYTES, err);
	if (n <= 0)
		return n < 0 ? err->status : 0;
	conn->in_at = 0;
	conn->in_size = (size_t)n;
	conn->read_us = ob_clock_boot_us(clock);
	return 1;
}

int ob_rabbitmq_next_frame(struct ob_rabbitmq_conn *conn, const struct ob_clock *clock,
			   amqp_frame_t *ret_frame, struct ob_err *err)
{
	int more;

	while ((more = feed(conn, clock, err)) > 0) {
		amqp_bytes_t bytes = { conn->in_size - conn->in_at, conn->in + conn->in_at };
		amqp_frame_t frame = { 0 };
		int n = amqp_handle_input(conn->codec, bytes, &frame);

		if (n < 0)
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
					  "the peer does not speak AMQP 0-9-1: %s",
					  amqp_error_string2(n));
		conn->in_at += (size_t)n;
		if (frame.frame_type == AMQP_FRAME_HEARTBEAT) {
			ob_rabbitmq_release_frames(conn);
		} else if (frame.frame_type != 0) {
			*ret_frame = frame;
			return 1;
		}
	}
	return more;
}

void ob_rabbitmq_release_frames(struct ob_rabbitmq_conn *conn)
{
	amqp_maybe_release_buffers(conn->codec);
}
