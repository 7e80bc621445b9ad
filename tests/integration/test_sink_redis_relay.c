/* SPDX-License-Identifier: MIT */
/* The whole relay to a Redis server that is killed again and again: nothing is lost. */
#include "relay_fixture.h"
#include "sink_redis_fixture.h"
#include "store/memory.h"

#include <poll.h>
#include <stdlib.h>

enum { PATIENCE_MS = 50000 };

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

struct rows {
	uint32_t published, dead, attempts;
};

static bool count_row(void *arg, const struct ob_message *row)
{
	struct rows *rows = arg;

	rows->published += row->state == OB_STATE_PUBLISHED;
	rows->dead += row->state == OB_STATE_DEAD || row->state == OB_STATE_DEAD_HOLD;
	rows->attempts += row->attempts;
	return true;
}

/* Wait until so many are published; there is nothing but looking. */
static void wait_published(uint32_t count)
{
	struct rows rows = { 0 };

	for (int ms = 0; ms < PATIENCE_MS; ms += 5) {
		rows = (struct rows){ 0 };
		ob_memdb_each(db, count_row, &rows);
		if (rows.published >= count)
			return;
		(void)poll(NULL, 0, 5);
	}
	ck_abort_msg("only %u of %u published", rows.published, count);
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
	struct rows rows = { 0 };

	server.args = args;
	redis_server_start(&server);
	db = ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = RELAY_PARTITIONS });
	ck_assert_int_ge(ob_store_memory_open(db, &writer, &err), 0);
	relay_push(writer);
	struct ob_relay *relay = relay_make(open_store, open_sink);
	ck_assert_int_eq(ob_relay_start(relay, &err), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		wait_published(i * 3000);
		redis_server_kill(&server);
		redis_server_restart(&server);
	}
	wait_published(RELAY_MANY);
	relay_end(relay);
	ob_memdb_each(db, count_row, &rows);
	ck_assert_uint_eq(rows.dead, 0);
	ck_assert_uint_eq(rows.attempts, 0);
	check_stream();
	ob_store_free(writer);
	ob_memdb_free(db);
	redis_server_end(&server);
}
OB_TEST_END

OB_SUITE_NEEDS("redis relay", redis_server_missing(), a_server_killed_three_times_loses_nothing)
