/* SPDX-License-Identifier: MIT */
/* A private RabbitMQ with one durable classic queue. */
#include "bench/broker/parts.h"
#include "bench/fatal.h"

#include "rabbitmq_server.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOOK_US = 10000 };

struct rabbit {
	struct rabbitmq_server server;
	amqp_connection_state_t client;
};

static bool rabbitmq_start(struct bench_broker *broker)
{
	struct rabbit *r = bench_need(calloc(1, sizeof(*r)));
	const char *missing = rabbitmq_server_missing();

	broker->impl = r;
	if (missing) {
		(void)snprintf(broker->reason, sizeof(broker->reason), "%s", missing);
		return false;
	}
	rabbitmq_server_start(&r->server);
	r->client = rabbitmq_connect(&r->server);
	rabbitmq_queue(r->client, "order", 0);
	broker->pid = r->server.pid;
	(void)snprintf(broker->sink, sizeof(broker->sink),
		       ", url: \"amqp://guest:guest@127.0.0.1:%d/\"", r->server.port);
	(void)snprintf(broker->address, sizeof(broker->address), "%d", r->server.port);
	return true;
}

static void rabbitmq_stop(struct bench_broker *broker)
{
	struct rabbit *r = broker->impl;

	rabbitmq_disconnect(r->client);
	rabbitmq_server_stop(&r->server);
	free(r);
}

static void rabbitmq_clear(struct bench_broker *broker)
{
	struct rabbit *r = broker->impl;

	rabbitmq_purge(r->client, "order");
}

static uint64_t rabbitmq_stored(struct bench_broker *broker)
{
	struct rabbit *r = broker->impl;

	return rabbitmq_count(r->client, "order");
}

static void rabbitmq_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	struct rabbit *r = broker->impl;
	const amqp_table_t *properties = amqp_get_server_properties(r->client);

	out[0] = '\0';
	for (int i = 0; i < properties->num_entries; i++) {
		const amqp_table_entry_t *entry = &properties->entries[i];

		if (entry->key.len == 7 && memcmp(entry->key.bytes, "version", 7) == 0)
			(void)snprintf(out, BENCH_TEXT_SIZE, "%.*s",
				       (int)entry->value.value.bytes.len,
				       (const char *)entry->value.value.bytes.bytes);
	}
}

const struct bench_broker_ops bench_broker_rabbitmq = {
	.name = "rabbitmq",
	.title = "RabbitMQ",
	.look_us = LOOK_US,
	.start = rabbitmq_start,
	.stop = rabbitmq_stop,
	.clear = rabbitmq_clear,
	.count = rabbitmq_stored,
	.version = rabbitmq_version,
};
