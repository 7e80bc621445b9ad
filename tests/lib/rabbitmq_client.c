/* SPDX-License-Identifier: MIT */
/* A plain, blocking client of a RabbitMQ under test: makes queues and reads them. */
#include "rabbitmq_server.h"

#if HAVE_RABBITMQ_FOLDER
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp_tcp_socket.h>
#endif
#include <check.h>
#include <string.h>

enum { CHANNEL = 1 };

static bool is_good(amqp_rpc_reply_t reply)
{
	return reply.reply_type == AMQP_RESPONSE_NORMAL;
}

amqp_connection_state_t rabbitmq_try_connect(int port)
{
	amqp_connection_state_t client = amqp_new_connection();
	amqp_socket_t *socket = amqp_tcp_socket_new(client);
	struct timeval patience = { .tv_sec = 10 };

	if (amqp_socket_open_noblock(socket, "127.0.0.1", port, &patience) == AMQP_STATUS_OK &&
	    is_good(amqp_login(client, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest",
			       "guest")) &&
	    amqp_channel_open(client, CHANNEL))
		return client;
	(void)amqp_destroy_connection(client);
	return NULL;
}

amqp_connection_state_t rabbitmq_connect(const struct rabbitmq_server *server)
{
	amqp_connection_state_t client = rabbitmq_try_connect(server->port);

	ck_assert_msg(client != NULL, "the broker does not take a client");
	return client;
}

void rabbitmq_disconnect(amqp_connection_state_t client)
{
	if (!client)
		return;
	(void)amqp_connection_close(client, AMQP_REPLY_SUCCESS);
	(void)amqp_destroy_connection(client);
}

static void check(amqp_connection_state_t client, const char *doing)
{
	ck_assert_msg(is_good(amqp_get_rpc_reply(client)), "%s failed", doing);
}

static void declare(amqp_connection_state_t client, const char *name, const char *type,
		    int overflow)
{
	amqp_table_entry_t entries[] = {
		{ .key = amqp_cstring_bytes("x-queue-type"),
		  .value = { .kind = AMQP_FIELD_KIND_UTF8,
			     .value.bytes = amqp_cstring_bytes(type) } },
		{ .key = amqp_cstring_bytes("x-max-length"),
		  .value = { .kind = AMQP_FIELD_KIND_I32, .value.i32 = overflow } },
		{ .key = amqp_cstring_bytes("x-overflow"),
		  .value = { .kind = AMQP_FIELD_KIND_UTF8,
			     .value.bytes = amqp_cstring_bytes("reject-publish") } },
	};
	amqp_table_t args = { overflow > 0 ? 3 : 1, entries };

	(void)amqp_queue_declare(client, CHANNEL, amqp_cstring_bytes(name), 0, 1, 0, 0, args);
	check(client, "declaring a queue");
}

void rabbitmq_queue(amqp_connection_state_t client, const char *name, int overflow)
{
	declare(client, name, "classic", overflow);
}

void rabbitmq_quorum_queue(amqp_connection_state_t client, const char *name, int overflow)
{
	declare(client, name, "quorum", overflow);
}

void rabbitmq_delete_queue(amqp_connection_state_t client, const char *name)
{
	(void)amqp_queue_delete(client, CHANNEL, amqp_cstring_bytes(name), 0, 0);
	check(client, "deleting a queue");
}

void rabbitmq_exchange(amqp_connection_state_t client, const char *name, const char *type)
{
	(void)amqp_exchange_declare(client, CHANNEL, amqp_cstring_bytes(name),
				    amqp_cstring_bytes(type), 0, 1, 0, 0, amqp_empty_table);
	check(client, "declaring an exchange");
}

void rabbitmq_bind(amqp_connection_state_t client, const char *queue, const char *exchange,
		   const char *key)
{
	(void)amqp_queue_bind(client, CHANNEL, amqp_cstring_bytes(queue),
			      amqp_cstring_bytes(exchange), amqp_cstring_bytes(key),
			      amqp_empty_table);
	check(client, "binding a queue");
}

void rabbitmq_purge(amqp_connection_state_t client, const char *queue)
{
	(void)amqp_queue_purge(client, CHANNEL, amqp_cstring_bytes(queue));
	check(client, "purging a queue");
}

uint32_t rabbitmq_count(amqp_connection_state_t client, const char *queue)
{
	const amqp_queue_declare_ok_t *ok = amqp_queue_declare(
		client, CHANNEL, amqp_cstring_bytes(queue), 1, 1, 0, 0, amqp_empty_table);

	check(client, "counting a queue");
	return ok->message_count;
}

bool rabbitmq_get(amqp_connection_state_t client, const char *queue, amqp_message_t *ret_message,
		  char *ret_key, size_t *ret_key_size)
{
	amqp_maybe_release_buffers(client);
	amqp_rpc_reply_t reply = amqp_basic_get(client, CHANNEL, amqp_cstring_bytes(queue), 1);

	ck_assert_msg(is_good(reply), "getting a message failed");
	if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD)
		return false;
	const amqp_basic_get_ok_t *got = reply.reply.decoded;
	*ret_key_size = got->routing_key.len;
	memcpy(ret_key, got->routing_key.bytes, got->routing_key.len);
	ret_key[got->routing_key.len] = '\0';
	ck_assert_msg(is_good(amqp_read_message(client, CHANNEL, ret_message, 0)),
		      "reading a message failed");
	return true;
}
