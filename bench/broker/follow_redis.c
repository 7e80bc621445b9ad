/* SPDX-License-Identifier: MIT */
/* A blocking XREAD, which Redis answers with the command that adds an entry. */
#include "bench/broker/follow.h"
#include "bench/fatal.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct follower {
	redisContext *redis;
	const char *field;
	char last[64]; /* id of the entry that was read last */
};

static void *redis_open(const char *address, const char *field)
{
	struct follower *f = bench_need(calloc(1, sizeof(*f)));

	f->field = field;
	f->redis = redisConnectUnix(address);
	if (!f->redis || f->redis->err)
		bench_fatal("Redis: %s", f->redis ? f->redis->errstr : "out of memory");
	(void)snprintf(f->last, sizeof(f->last), "0");
	return f;
}

static uint64_t number_of(const redisReply *fields, const char *field)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		if (strcmp(fields->element[i]->str, field) == 0)
			return strtoull(fields->element[i + 1]->str, NULL, 10);
	}
	return 0;
}

static size_t redis_read(void *follower, uint64_t numbers[BENCH_FOLLOW_MAX], int timeout_ms)
{
	struct follower *f = follower;
	redisReply *reply = redisCommand(f->redis, "XREAD COUNT %d BLOCK %d STREAMS order %s",
					 BENCH_FOLLOW_MAX, timeout_ms, f->last);
	size_t count = 0;

	if (!reply || reply->type == REDIS_REPLY_ERROR)
		bench_fatal("Redis: %s", reply ? reply->str : f->redis->errstr);
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 1) {
		const redisReply *entries = reply->element[0]->element[1];

		for (; count < entries->elements; count++)
			numbers[count] = number_of(entries->element[count]->element[1], f->field);
		if (count)
			(void)snprintf(f->last, sizeof(f->last), "%s",
				       entries->element[count - 1]->element[0]->str);
	}
	freeReplyObject(reply);
	return count;
}

static void redis_close(void *follower)
{
	struct follower *f = follower;

	redisFree(f->redis);
	free(f);
}

const struct bench_follow_ops bench_follow_redis = { redis_open, redis_read, redis_close };
