/* SPDX-License-Identifier: MIT */
/* A private Redis, without persistence. */
#include "bench/broker/broker.h"
#include "bench/broker/parts.h"
#include "bench/fatal.h"

#include "redis_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool redis_start(struct bench_broker *broker)
{
	struct redis_server *server = bench_need(calloc(1, sizeof(*server)));

	broker->impl = server;
	if (!bench_broker_finds(broker, "redis-server"))
		return false;
	redis_server_start(server);
	broker->pid = server->pid;
	(void)snprintf(broker->sink, sizeof(broker->sink), ", url: \"unix://%s\"", server->socket);
	(void)snprintf(broker->address, sizeof(broker->address), "%s", server->socket);
	return true;
}

static void redis_stop(struct bench_broker *broker)
{
	redis_server_end(broker->impl);
	free(broker->impl);
}

static void redis_clear(struct bench_broker *broker)
{
	redis_do(broker->impl, "FLUSHALL", NULL);
}

/* Also what was trimmed since. */
uint64_t bench_redis_added(struct bench_broker *broker, const char *stream)
{
	redisReply *reply = redis_ask(broker->impl, "XINFO", "STREAM", stream, NULL);
	uint64_t added = 0;

	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
		if (strcmp(reply->element[i]->str, "entries-added") == 0)
			added = (uint64_t)reply->element[i + 1]->integer;
	}
	freeReplyObject(reply);
	return added;
}

static uint64_t redis_count_added(struct bench_broker *broker)
{
	return bench_redis_added(broker, "order");
}

static void redis_version(struct bench_broker *broker, char out[BENCH_TEXT_SIZE])
{
	redisReply *reply = redis_ask(broker->impl, "INFO", "server", NULL);
	const char *at = reply->str ? strstr(reply->str, "redis_version:") : NULL;

	(void)snprintf(out, BENCH_TEXT_SIZE, "%.*s", at ? (int)strcspn(at + 14, "\r\n") : 0,
		       at ? at + 14 : "");
	freeReplyObject(reply);
}

const struct bench_broker_ops bench_broker_redis = {
	.name = "redis",
	.title = "Redis",
	.start = redis_start,
	.stop = redis_stop,
	.clear = redis_clear,
	.count = redis_count_added,
	.version = redis_version,
};
