/* SPDX-License-Identifier: MIT */
/* The whole relay to a Redis server that is killed again and again: nothing is lost. */
#include "doubles/memory_store.h"
#include "relay_fixture.h"
#include "sink_redis_fixture.h"

#include <stdlib.h>

static struct ob_memdb *db;
static struct ob_store *writer;

static int open_store(void *arg, struct ob_store **ret_store, struct ob_err *err)
{
	(void)arg;
	return ob_store_memory_open(db, ret_store, err);
}

static int open_sink(void *arg, struct ob_sink **ret_sink, struct ob_err *err)
{
	struct ob_opt_value options[] = { { "url", url_of("", 0) }, { "timeout", "2s" } };

	(void)arg;
	return ob_sink_new(&ob_sink_redis, options, 2, &ob_clock_system, ret_sink, err);
}

/* Everything is there, and first copies of a key are in order. */
static void check_stream(void)
{
	redisReply *entries = redis_ask(&server, "XRANGE", "order", "-", "+", NULL);
	struct relay_order order;

	relay_order_init(&order);
	for (size_t i = 0; i < entries->elements; i++) {
		const redisReply *fields = entries->element[i]->element[1];
		const redisReply *payload = fields->element[fields->elements - 1];

		relay_order_see(&order, (int)strtol(payload->str, NULL, 10));
	}
	relay_order_end(&order);
	freeReplyObject(entries);
}

OB_TEST(a_server_killed_three_times_loses_nothing)
{
	static const char *const args[] = { "--appendonly", "yes", "--appendfsync", "always",
					    NULL };
	struct ob_err err = OB_ERR_INIT;

	server.args = args;
	redis_server_start(&server);
	db = ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = RELAY_PARTITIONS });
	ck_assert_int_ge(ob_store_memory_open(db, &writer, &err), 0);
	relay_push(writer);
	struct ob_relay *relay = relay_make(open_store, open_sink);
	ck_assert_int_eq(ob_relay_start(relay, &err), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		relay_wait_published(relay, (uint64_t)i * 3000);
		redis_server_kill(&server);
		redis_server_restart(&server);
	}
	relay_wait_published(relay, RELAY_MANY);
	relay_end(relay);
	check_stream();
	ob_store_free(writer);
	ob_memdb_free(db);
	redis_server_end(&server);
}
OB_TEST_END

OB_SUITE_NEEDS("redis relay", redis_server_missing(), a_server_killed_three_times_loses_nothing)
