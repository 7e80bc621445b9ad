/* SPDX-License-Identifier: MIT */
/* RabbitMQ for the bare loop: publisher confirms, waited for behind each batch. */
#include "bench/bare/parts.h"
#include "bench/fatal.h"
#include "config.h"

#if HAVE_RABBITMQ_FOLDER
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_tcp_socket.h>
#endif
#include <stdint.h>
#include <stdlib.h>

enum { CHANNEL = 1, FRAME_MAX = 131072 };

struct sink {
	amqp_connection_state_t client;
	uint64_t sent, confirmed; /* delivery tags */
};

/* The address is a port of 127.0.0.1. */
static void *rabbitmq_open(const char *address)
{
	struct sink *s = bench_need(calloc(1, sizeof(*s)));

	s->client = amqp_new_connection();
	amqp_socket_t *socket = amqp_tcp_socket_new(s->client);
	if (!socket ||
	    amqp_socket_open(socket, "127.0.0.1", (int)strtol(address, NULL, 10)) != AMQP_STATUS_OK)
		bench_fatal("RabbitMQ: no connection");
	if (amqp_login(s->client, "/", 0, FRAME_MAX, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest")
		    .reply_type != AMQP_RESPONSE_NORMAL)
		bench_fatal("RabbitMQ: no login");
	(void)amqp_channel_open(s->client, CHANNEL);
	(void)amqp_confirm_select(s->client, CHANNEL);
	if (amqp_get_rpc_reply(s->client).reply_type != AMQP_RESPONSE_NORMAL)
		bench_fatal("RabbitMQ: no channel");
	return s;
}

static amqp_bytes_t bytes(struct ob_str text)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): only read */
	return (amqp_bytes_t){ .len = text.n, .bytes = (void *)(uintptr_t)text.p };
}

static void publish_one(struct sink *s, const struct bare_row *row)
{
	struct bare_field fields[BARE_FIELDS];
	amqp_table_entry_t entries[BARE_FIELDS];
	size_t count = bare_fields(row, fields);
	amqp_basic_properties_t properties = {
		._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
			  AMQP_BASIC_HEADERS_FLAG,
		.delivery_mode = AMQP_DELIVERY_PERSISTENT,
		.message_id = bytes(row->id),
		.headers = { .num_entries = (int)count, .entries = entries },
	};

	for (size_t i = 0; i < count; i++)
		entries[i] =
			(amqp_table_entry_t){ .key = bytes(fields[i].name),
					      .value = { .kind = AMQP_FIELD_KIND_UTF8,
							 .value.bytes = bytes(fields[i].value) } };
	if (amqp_basic_publish(s->client, CHANNEL, amqp_empty_bytes, bytes(row->aggregate_type), 1,
			       0, &properties, bytes(row->payload)) != AMQP_STATUS_OK)
		bench_fatal("RabbitMQ: publishing fails");
	s->sent++;
}

/* Single acknowledgements count one each, as each tag has exactly one. */
static void wait_frame(struct sink *s)
{
	amqp_frame_t frame;

	amqp_maybe_release_buffers(s->client);
	if (amqp_simple_wait_frame(s->client, &frame) != AMQP_STATUS_OK)
		bench_fatal("RabbitMQ: the connection is lost");
	if (frame.frame_type != AMQP_FRAME_METHOD ||
	    frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
		bench_fatal("RabbitMQ: something other than a confirm");
	const amqp_basic_ack_t *ack = frame.payload.method.decoded;
	s->confirmed = ack->multiple ? ack->delivery_tag : s->confirmed + 1;
}

static void rabbitmq_publish(void *sink, const struct bare_row *rows, size_t count)
{
	struct sink *s = sink;

	for (size_t i = 0; i < count; i++)
		publish_one(s, &rows[i]);
	while (s->confirmed < s->sent)
		wait_frame(s);
}

const struct bare_sink_ops bare_rabbitmq = { "rabbitmq", rabbitmq_open, rabbitmq_publish };
