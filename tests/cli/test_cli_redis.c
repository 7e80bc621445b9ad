/* SPDX-License-Identifier: MIT */
/* outbox work from SQLite to Redis, as a process, through an outage. */
#include "background.h"
#include "redis_server.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 20000 };

static struct background worker;
static struct redis_server server;

static void prepare_redis(const char *sink_options, const char *relays)
{
	static const char *const args[] = { "--appendonly", "yes", "--appendfsync", "always",
					    NULL };
	char yaml[1024];

	server.args = args;
	redis_server_start(&server);
	(void)snprintf(yaml, sizeof(yaml),
		       "stores: { main: { url: 'sqlite:x.db' } }\n"
		       "sinks: { out: { type: redis, url: 'redis://127.0.0.1:%d'%s } }\n%s",
		       server.port, sink_options, relays);
	prepare(yaml);
}

static void finish(void)
{
	kill_now(&worker);
	redis_server_end(&server);
	end();
}

/* How many different messages are in the stream; the id is the first field. */
static size_t count_ids(void)
{
	redisReply *entries = redis_ask(&server, "XRANGE", "order", "-", "+", NULL);
	size_t count = 0;

	for (size_t i = 0; i < entries->elements; i++) {
		const char *id = entries->element[i]->element[1]->element[1]->str;
		size_t k = 0;

		while (k < i && strcmp(entries->element[k]->element[1]->element[1]->str, id) != 0)
			k++;
		count += k == i;
	}
	freeReplyObject(entries);
	return count;
}

static void wait_ids(size_t count)
{
	int64_t until = now_ms() + LONG_MS;

	while (count_ids() < count) {
		ck_assert_int_lt(now_ms(), until);
		(void)poll(NULL, 0, 20);
	}
}

/* Only known once connected, so after the line that tells the relay's start. */
OB_TEST(a_server_that_may_evict_is_warned_of_once)
{
	prepare_redis("", "relays: [ { sink: out, workers: 2 } ]\n");
	redis_do(&server, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", NULL);
	push(200, "default");
	start(&worker, "work", NULL);
	wait_ids(200);
	wait_text(worker.err, "the sink weakens a promise", LONG_MS);
	wait_text(worker.err, "maxmemory-policy is allkeys-lru", LONG_MS);
	stop(&worker, 0);
	char *log = read_file(worker.err);
	ck_assert_ptr_null(strstr(strstr(log, "weakens") + 1, "weakens"));
	free(log);
	finish();
}
OB_TEST_END

OB_TEST(sqlite_to_redis_end_to_end)
{
	prepare_redis("", "");
	push(200, "default");
	start(&worker, "work", NULL);
	wait_ids(200);
	redis_server_kill(&server);
	push(50, "default");
	wait_text(worker.err, "sink is down, waiting for it", LONG_MS);
	redis_server_restart(&server);
	wait_ids(250);
	wait_text(worker.err, "sink is back, going on", LONG_MS);
	stop(&worker, 0);
	ck_assert_uint_eq(count_ids(), 250);
	redisReply *entries = redis_ask(&server, "XRANGE", "order", "-", "+", "COUNT", "1", NULL);
	const redisReply *fields = entries->element[0]->element[1];
	ck_assert_str_eq(fields->element[fields->elements - 2]->str, "payload");
	ck_assert_int_eq(strncmp(fields->element[fields->elements - 1]->str, "{\"n\":", 5), 0);
	freeReplyObject(entries);
	expect_in_output("\ndefault       250    0           - ", "--store", "sqlite:x.db",
			 "status", NULL);
	expect(0, "no message is waiting: 'outbox list all' shows those that are out\n", "", "list",
	       NULL);
	finish();
}
OB_TEST_END

OB_TEST(a_wrong_password_stops_no_message)
{
	prepare_redis(", password: 'wrong'", "");
	redis_do(&server, "CONFIG", "SET", "requirepass", "right", NULL);
	push(5, "default");
	start(&worker, "work", NULL);
	wait_text(worker.err, "check username and password", LONG_MS);
	redis_do(&server, "CONFIG", "SET", "requirepass", "wrong", NULL);
	wait_ids(5);
	stop(&worker, 0);
	expect_in_output("\ndefault         5    0           - ", "--store", "sqlite:x.db",
			 "status", NULL);
	expect(0, "no message is waiting: 'outbox list all' shows those that are out\n", "", "list",
	       NULL);
	finish();
}
OB_TEST_END

/* The value of a field of the only entry of a stream, or NULL. */
static const char *field(const redisReply *entries, const char *name)
{
	ck_assert_uint_eq(entries->elements, 1);
	const redisReply *fields = entries->element[0]->element[1];

	for (size_t i = 0; i < fields->elements; i += 2) {
		if (strcmp(fields->element[i]->str, name) == 0)
			return fields->element[i + 1]->str;
	}
	return NULL;
}

OB_TEST(envelopes_and_lanes_in_streams)
{
	prepare_redis("",
		      "relays:\n"
		      "- route:\n"
		      "    backfill: { below: 0, suffix: .slow }\n"
		      "    rules:\n"
		      "      - { event_type: Wrapped, envelope: cloudevents-structured }\n"
		      "      - { event_type: Plain, envelope: debezium }\n");
	expect_in(
		"{\"aggregate_type\":\"a\",\"event_type\":\"Wrapped\",\"priority\":-1,"
		"\"payload\":{\"n\":1}}\n"
		"{\"aggregate_type\":\"a\",\"aggregate_id\":\"7\",\"event_type\":\"Plain\","
		"\"headers\":{\"t\":\"x\"},\"payload\":{\"n\":2}}\n",
		0, NULL, "", "--store", "sqlite:x.db", "push", NULL);
	expect(0, "default: 2 published, 0 failed, 0 dead\n", "", "work", "--once", NULL);

	redisReply *wrapped = redis_ask(&server, "XRANGE", "a.slow", "-", "+", NULL);
	ck_assert_str_eq(field(wrapped, "content_type"), "application/cloudevents+json");
	ck_assert_ptr_nonnull(strstr(field(wrapped, "payload"), "\"type\":\"Wrapped\""));
	ck_assert_ptr_nonnull(strstr(field(wrapped, "payload"), "\"data\":{\"n\":1}}"));
	redisReply *plain = redis_ask(&server, "XRANGE", "outbox.event.a", "-", "+", NULL);
	ck_assert_str_eq(field(plain, "payload"), "{\"n\":2}");
	ck_assert_str_eq(field(plain, "key"), "7");
	char headers[128];
	(void)snprintf(headers, sizeof(headers), "{\"t\":\"x\",\"id\":\"%s\"}", field(plain, "id"));
	ck_assert_str_eq(field(plain, "headers"), headers);
	ck_assert_ptr_null(field(plain, "content_type"));
	freeReplyObject(wrapped);
	freeReplyObject(plain);
	finish();
}
OB_TEST_END

OB_SUITE_NEEDS("redis, end to end", redis_server_missing(),
	       a_server_that_may_evict_is_warned_of_once, sqlite_to_redis_end_to_end,
	       a_wrong_password_stops_no_message, envelopes_and_lanes_in_streams)
