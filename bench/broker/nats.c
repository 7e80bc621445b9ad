/* SPDX-License-Identifier: MIT */
/* A private NATS server with one stream in files. */
#include "bench/broker/parts.h"
#include "bench/fatal.h"

#include "nats_server.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOOK_US = 10000 };

static void add_stream(struct nats_server *server)
{
	nats_stream_add(server, "bench", "order", NULL);
}

static bool nats_start(struct bench_broker *broker)
{
	struct nats_server *server = bench_need(calloc(1, sizeof(*server)));

	broker->impl = server;
	if (!bench_broker_finds(broker, "nats-server"))
		return false;
	nats_server_start(server);
	add_stream(server);
	broker->pid = server->pid;
	(void)snprintf(broker->sink, sizeof(broker->sink), ", url: \"nats://127.0.0.1:%d\"",
		       server->port);
	(void)snprintf(broker->address, sizeof(broker->address), "nats://127.0.0.1:%d",
		       server->port);
	return true;
}

static void nats_stop(struct bench_broker *broker)
{
	nats_server_end(broker->impl);
	free(broker->impl);
}

/* A new stream has also forgotten the ids. */
static void nats_clear(struct bench_broker *broker)
{
	nats_stream_remove(broker->impl, "bench");
	add_stream(broker->impl);
}

static uint64_t nats_count(struct bench_broker *broker)
{
	return nats_stream_count(broker->impl, "bench");
}

static void nats_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	(void)broker;
	(void)snprintf(out, BENCH_TEXT_SIZE, "by libnats %s", nats_GetVersion());
}

const struct bench_broker_ops bench_broker_nats = {
	.name = "nats",
	.title = "NATS",
	.look_us = LOOK_US,
	.start = nats_start,
	.stop = nats_stop,
	.clear = nats_clear,
	.count = nats_count,
	.version = nats_version,
};
