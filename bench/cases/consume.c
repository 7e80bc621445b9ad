/* SPDX-License-Identifier: MIT */
/*
 * Consuming a Redis stream into a database: `outbox consume --once` with a statement, and a bare
 * loop that inserts the id and applies in one transaction, in turns. Each is a process, measured
 * from its start to its end.
 */
#include "bench/bare/consume.h"
#include "bench/cases/cases.h"
#include "bench/fatal.h"
#include "bench/now.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { KEYS = 300, CHUNK = 1000, END_MS = 600000 };

static void run_child(struct bench_env *env, const char *program, const char *const *argv)
{
	char log[BENCH_PATH], words[BENCH_TEXT_SIZE];
	const struct ob_child_conf conf = {
		.program = program, .argv = argv, .dir = env->dir, .log = log
	};
	struct ob_child child = { 0 };
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(log, sizeof(log), "%s/log", env->dir);
	if (ob_child_start(&child, &conf, &err) < 0)
		bench_fatal("%s", err.msg);
	if (!ob_child_wait_end(&child, END_MS) || child.code != 0) {
		bench_subject_words(env, words);
		bench_fatal("%s %s failed: %s", argv[0], argv[1], words);
	}
}

/* Messages as the redis sink writes them. */
static void fill_stream(const struct bench_broker *broker, uint64_t count, size_t payload_size)
{
	redisContext *redis = redisConnectUnix(broker->address);
	char *payload = bench_need(malloc(payload_size + 16));

	if (!redis || redis->err)
		bench_fatal("Redis: %s", redis ? redis->errstr : "out of memory");
	(void)snprintf(payload, payload_size + 16, "{\"note\": \"%*s\"}", (int)payload_size, "x");
	for (uint64_t from = 0; from < count; from += CHUNK) {
		uint64_t n = count - from < CHUNK ? count - from : CHUNK;

		for (uint64_t i = from; i < from + n; i++) {
			unsigned key = (unsigned)(i % KEYS);

			(void)redisAppendCommand(
				redis,
				"XADD %s * id 00000000-0000-4000-8000-%012llu event_type Paid "
				"aggregate_type order aggregate_id %u revision 1 key order:%u "
				"payload %s",
				BARE_STREAM, (unsigned long long)i, key, key, payload);
		}
		for (uint64_t i = 0; i < n; i++) {
			redisReply *reply = NULL;

			if (redisGetReply(redis, (void **)&reply) != REDIS_OK ||
			    reply->type == REDIS_REPLY_ERROR)
				bench_fatal("Redis: %s", reply ? reply->str : redis->errstr);
			freeReplyObject(reply);
		}
	}
	free(payload);
	redisFree(redis);
}

static void write_config(struct bench_env *env, const struct bench_case *c,
			 const struct bench_store *store, const struct bench_broker *broker,
			 char path[BENCH_PATH])
{
	(void)snprintf(path, BENCH_PATH, "%s/consume.yaml", env->dir);
	FILE *file = fopen(path, "we");

	if (file)
		(void)fprintf(file,
			      "stores: { main: { url: \"%s\" } }\n"
			      "consumers:\n"
			      "  - name: billing\n"
			      "    source: { type: redis%s, stream: " BARE_STREAM
			      " }\n"
			      "    dedup: %s\n"
			      "    sql: \"INSERT INTO paid (id, order_id, payload) VALUES "
			      "(:id, :aggregate_id, :payload)\"\n",
			      store->url, broker->sink, c->each ? "position" : "ids");
	if (!file || fclose(file) != 0)
		bench_fatal("writing %s: %m", path);
}

/* Empty both sides and fill the stream anew. */
static void prepare(struct bench_store *store, struct bench_broker *broker, uint64_t messages,
		    size_t payload_size)
{
	static const char *const tables[] = { "paid", "outbox_inbox", "outbox_positions",
					      "outbox_parked", "outbox_consumers" };

	broker->ops->clear(broker);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char sql[64];

		(void)snprintf(sql, sizeof(sql), "DELETE FROM %s", tables[i]);
		store->ops->run(store, sql);
	}
	fill_stream(broker, messages, payload_size);
}

static bool turn(struct bench_env *env, const struct bench_case *c, struct bench_store *store,
		 struct bench_broker *broker, bool bare, struct bench_result *result)
{
	char config[BENCH_PATH];
	const char *const consume[] = { "outbox",  "--config", config,     "consume",
					"billing", "--once",   "--silent", NULL };
	const char *const loop[] = { "outbox-bench", "--bare-consume", store->ops->name,
				     store->url,     broker->address,  NULL };
	uint64_t messages = bench_case_messages(env, c);

	write_config(env, c, store, broker, config);
	prepare(store, broker, messages, c->payload_size);
	double from_us = bench_now_us();
	run_child(env, bare ? env->self : env->program, bare ? loop : consume);
	double took_us = bench_now_us() - from_us;
	uint64_t applied = store->ops->number(store, "SELECT count(*) FROM paid");
	if (applied != messages) {
		bench_result_miss(result, "%s applied %llu messages of %llu",
				  bare ? "the bare loop" : "outbox consume",
				  (unsigned long long)applied, (unsigned long long)messages);
		return false;
	}
	bench_result_add(result, bare ? "bare_rate" : "consume_rate",
			 (double)messages * 1e6 / took_us);
	return true;
}

void bench_run_consume(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	const char *reason = NULL;
	struct bench_store *store = bench_env_store(env, BENCH_NEW, c->store, &reason);
	struct bench_broker *broker = store ? bench_env_broker(env, c->broker, &reason) : NULL;

	if (!store || !broker) {
		bench_result_miss(result, "%.150s", reason);
		return;
	}
	const char *const setup[] = { "outbox", "--store", store->url, "setup", "--inbox", NULL };
	run_child(env, env->program, setup);
	store->ops->run(store,
			"CREATE TABLE IF NOT EXISTS paid (id TEXT NOT NULL, order_id TEXT "
			"NOT NULL, payload TEXT NOT NULL)");
	for (uint32_t round = 0; round < env->rounds; round++) {
		for (uint32_t i = 0; i < 2; i++) {
			if (!turn(env, c, store, broker, (i + round) % 2, result))
				return;
		}
		bench_result_add(result, "ratio",
				 bench_result_get(result, "consume_rate")->values[round] /
					 bench_result_get(result, "bare_rate")->values[round]);
	}
}
