/* SPDX-License-Identifier: MIT */
/* The Redis sink for the contract: one private server a process, read back by another client. */
#include "redis_server.h"
#include "sink_harness.h"

#include <check.h>
#include <stdlib.h>

static struct redis_server server;

static void end_server(void)
{
	redis_server_end(&server);
}

static void clear(struct sink_env *env)
{
	(void)env;
	redis_do(&server, "FLUSHALL", NULL);
}

/* The server outlives the environments of a test: a sweep of faults makes hundreds. */
static void begin(struct sink_env *env)
{
	if (server.pid == 0) {
		redis_server_start(&server);
		ck_assert_int_eq(atexit(end_server), 0);
	}
	clear(env);
}

static int port(struct sink_env *env)
{
	(void)env;
	return server.port;
}

static struct ob_sink *make(struct sink_env *env)
{
	char url[64];
	struct ob_opt_value options[] = { { "url", url }, { "timeout", env->timeout } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d/0",
		       env->port ? env->port : server.port);
	if (ob_sink_new(&ob_sink_redis, options, env->timeout ? 2 : 1, &ob_clock_system, &sink,
			&err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

static struct ob_str keep(struct ob_arena *arena, const redisReply *reply)
{
	struct ob_str copy = OB_STR_NULL;

	ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
	ck_assert(ob_arena_copy(arena, (struct ob_str){ reply->str, (size_t)reply->len }, &copy));
	return copy;
}

/* An entry is its id in the stream and a list of names and values. */
static void parse_entry(struct ob_arena *arena, const redisReply *entry, struct stored *out)
{
	const redisReply *fields = entry->element[1];

	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		const char *name = fields->element[i]->str;
		struct ob_str value = keep(arena, fields->element[i + 1]);

		if (strcmp(name, "id") == 0)
			ck_assert(ob_uuid_parse(value, &out->id));
		else if (strcmp(name, "key") == 0)
			out->key = value;
		else if (strcmp(name, "snapshot") == 0)
			out->snapshot = value;
		else if (strcmp(name, "headers") == 0)
			out->headers = value;
		else if (strcmp(name, "payload") == 0)
			out->body = value;
		else if (strcmp(name, "tombstone") == 0)
			out->tombstone = true;
	}
}

static size_t read_stream(struct sink_env *env, const redisReply *name, struct stored **list,
			  size_t count)
{
	const char *words[] = { "XRANGE", name->str, "-", "+" };
	const size_t sizes[] = { 6, (size_t)name->len, 1, 1 };
	redisReply *entries = redisCommandArgv(server.client, 4, words, sizes);
	struct ob_str destination = keep(&env->arena, name);

	ck_assert(entries && entries->type == REDIS_REPLY_ARRAY);
	struct stored *more =
		ob_arena_alloc(&env->arena, (count + entries->elements + 1) * sizeof(*more));
	ck_assert_ptr_nonnull(more);
	if (count > 0)
		memcpy(more, *list, count * sizeof(*more));
	for (size_t i = 0; i < entries->elements; i++) {
		more[count + i].destination = destination;
		parse_entry(&env->arena, entries->element[i], &more[count + i]);
	}
	count += entries->elements;
	*list = more;
	freeReplyObject(entries);
	return count;
}

static size_t list_all(struct sink_env *env, struct stored **ret_stored)
{
	redisReply *names = redis_ask(&server, "KEYS", "*", NULL);
	size_t count = 0;

	*ret_stored = NULL;
	for (size_t i = 0; i < names->elements; i++)
		count = read_stream(env, names->element[i], ret_stored, count);
	freeReplyObject(names);
	return count;
}

const struct sink_kind sink_kind_redis = {
	.name = "redis",
	.missing = redis_server_missing,
	.begin = begin,
	.make = make,
	.list = list_all,
	.clear = clear,
	.wait_ms = 20,
	.port = port,
};
