/* SPDX-License-Identifier: MIT */
/*
 * A Redis server as a receiver, with a stream for each customer: many messages of a key are under
 * way at a time. It denies streams for a while (a failure of each message), ends connections, is
 * silent, and crashes. What is called Poison finds a string where its stream should be.
 */
#include "redis_server.h"
#include "torture.h"

#include <inttypes.h>
#include <stdio.h>

enum { GAP_MS = 700, DENIED_MS = 300, WORKERS = 3 };

static struct redis_server server;
static int64_t next_ms, allow_ms;
static uint64_t breaks;

static void allow_all(void)
{
	redis_do(&server, "ACL", "SETUSER", "relay", "on", "nopass", "resetkeys", "~*", "+@all",
		 NULL);
	allow_ms = 0;
}

static void redis_start(uint64_t seed, bool rejects, char sink[TORTURE_SINK],
			char relay[TORTURE_SINK])
{
	static const char *const args[] = { "--appendonly", "yes", "--appendfsync", "always",
					    NULL };
	char name[32];

	(void)seed;
	(void)rejects;
	server = (struct redis_server){ .args = args };
	redis_server_start(&server);
	allow_all();
	for (int i = 0; i < SHOP_CUSTOMERS; i++) {
		(void)snprintf(name, sizeof(name), "Poison.%03d", i);
		redis_do(&server, "SET", name, "no stream", NULL);
	}
	(void)snprintf(sink, TORTURE_SINK,
		       "type: redis, url: \"redis://relay:x@127.0.0.1:%d\", timeout: 2s",
		       server.port);
	(void)snprintf(relay, TORTURE_SINK,
		       ", route: { destination: \"{event_type}.{aggregate_id}\" }, "
		       "failures: [ { code: \"WRONGTYPE\", then: reject } ]");
}

static void vex_somehow(struct ob_rng *rng, int64_t now_ms)
{
	char keys[32];

	switch (ob_rng_below(rng, 8)) {
	case 0:
		redis_server_kill(&server);
		redis_server_restart(&server);
		allow_all();
		breaks++;
		break;
	case 1:
		redis_do(&server, "CLIENT", "PAUSE", "250", "ALL", NULL);
		break;
	case 2:
	case 3:
		freeReplyObject(redis_ask(&server, "CLIENT", "KILL", "USER", "relay", NULL));
		breaks++;
		break;
	default:
		/* one customer in ten */
		(void)snprintf(keys, sizeof(keys), "~OrderPlaced.??[^%c]",
			       (char)('0' + ob_rng_below(rng, 10)));
		redis_do(&server, "ACL", "SETUSER", "relay", "resetkeys", keys, "~Poison*",
			 "~Doomed*", NULL);
		allow_ms = now_ms + (int64_t)ob_rng_below(rng, DENIED_MS);
		break;
	}
}

static void redis_vex(struct ob_rng *rng, int64_t now_ms)
{
	if (allow_ms && now_ms >= allow_ms)
		allow_all();
	if (now_ms < next_ms || allow_ms)
		return;
	next_ms = now_ms + (int64_t)ob_rng_below(rng, GAP_MS);
	vex_somehow(rng, now_ms);
}

static void redis_calm(const struct rig *rig)
{
	(void)rig;
	allow_all();
}

/* An entry is its id and an array of names and values; its id begins with the time in ms. */
static void write_entry(FILE *out, const redisReply *entry)
{
	const redisReply *fields = entry->element[1];
	long long ms = strtoll(entry->element[0]->str, NULL, 10);

	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		if (strcmp(fields->element[i]->str, "id") == 0)
			(void)fprintf(out, "{\"id\":\"%s\",\"received\":%lld}\n",
				      fields->element[i + 1]->str, ms * 1000 + 999);
	}
}

static void redis_collect(const struct rig *rig)
{
	char name[32];
	FILE *out = fopen(rig->events, "we");

	ck_assert_ptr_nonnull(out);
	for (int i = 0; i < SHOP_CUSTOMERS; i++) {
		(void)snprintf(name, sizeof(name), "OrderPlaced.%03d", i);
		redisReply *reply = redis_ask(&server, "XRANGE", name, "-", "+", NULL);
		for (size_t k = 0; k < reply->elements; k++)
			write_entry(out, reply->element[k]);
		freeReplyObject(reply);
	}
	ck_assert_int_eq(fclose(out), 0);
}

static uint64_t redis_hung_up(const struct rig *rig)
{
	(void)rig;
	return breaks;
}

static void redis_stop(void)
{
	redis_server_end(&server);
}

/* What is under way at all workers may be stored without an answer. */
const struct torture_receiver torture_redis = {
	.start = redis_start,
	.vex = redis_vex,
	.calm = redis_calm,
	.collect = redis_collect,
	.hung_up = redis_hung_up,
	.repeats_each = WORKERS * RIG_IN_FLIGHT,
	.stop = redis_stop,
};
