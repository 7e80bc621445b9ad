/* SPDX-License-Identifier: MIT */
/* Redis for the bare loop: a batch of XADD in one pipeline. */
#include "bench/bare/parts.h"
#include "bench/fatal.h"

#include <hiredis/hiredis.h>

enum { WORDS_MAX = 3 + 2 * (BARE_FIELDS + 1) };

/* The address is the path of a unix socket. */
static void *redis_open(const char *address)
{
	redisContext *redis = redisConnectUnix(address);

	if (!redis || redis->err)
		bench_fatal("Redis: %s", redis ? redis->errstr : "out of memory");
	return redis;
}

static void append(redisContext *redis, const struct bare_row *row)
{
	struct bare_field fields[BARE_FIELDS + 1];
	const char *words[WORDS_MAX] = { "XADD", row->aggregate_type.p, "*" };
	size_t sizes[WORDS_MAX] = { 4, row->aggregate_type.n, 1 };
	size_t count = bare_fields(row, fields);
	int n = 3;

	fields[count++] = (struct bare_field){ OB_STR("payload"), row->payload };
	for (size_t i = 0; i < count; i++) {
		words[n] = fields[i].name.p;
		sizes[n++] = fields[i].name.n;
		words[n] = fields[i].value.p;
		sizes[n++] = fields[i].value.n;
	}
	(void)redisAppendCommandArgv(redis, n, words, sizes);
}

static void redis_publish(void *sink, const struct bare_row *rows, size_t count)
{
	redisContext *redis = sink;

	for (size_t i = 0; i < count; i++)
		append(redis, &rows[i]);
	for (size_t i = 0; i < count; i++) {
		redisReply *reply;

		if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
			bench_fatal("Redis: %s", redis->errstr);
		if (reply->type == REDIS_REPLY_ERROR)
			bench_fatal("Redis: %s", reply->str);
		freeReplyObject(reply);
	}
}

const struct bare_sink_ops bare_redis = { "redis", redis_open, redis_publish };
