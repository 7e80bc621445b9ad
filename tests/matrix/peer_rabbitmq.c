/* SPDX-License-Identifier: MIT */
/* RabbitMQ, read back by amqp-consume. */
#include "matrix.h"
#include "rabbitmq_server.h"

#include <stdio.h>

static struct rabbitmq_server server;

static const char *rabbitmq_start(void)
{
	const char *missing = rabbitmq_server_missing();

	if (!missing)
		rabbitmq_server_start(&server);
	return missing;
}

static void rabbitmq_stop(void)
{
	rabbitmq_server_stop(&server);
}

/* On the default exchange the destination is the name of a queue. */
static void rabbitmq_begin(const char *destination)
{
	amqp_connection_state_t client = rabbitmq_connect(&server);

	rabbitmq_queue(client, destination, 0);
	rabbitmq_disconnect(client);
}

static void rabbitmq_options(char *out, size_t size)
{
	(void)snprintf(out, size, ", url: 'amqp://127.0.0.1:%d'", server.port);
}

static char *rabbitmq_read(const char *destination)
{
	char url[64], queue[80], count[16];
	const char *argv[] = { "amqp-consume", "--url", url, queue, count, "cat", NULL };

	(void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d", server.port);
	(void)snprintf(queue, sizeof(queue), "--queue=%s", destination);
	(void)snprintf(count, sizeof(count), "--count=%d", MATRIX_COUNT);
	return matrix_run(argv);
}

const struct matrix_peer peer_rabbitmq = {
	.type = "rabbitmq",
	.start = rabbitmq_start,
	.stop = rabbitmq_stop,
	.begin = rabbitmq_begin,
	.options = rabbitmq_options,
	.read = rabbitmq_read,
};
