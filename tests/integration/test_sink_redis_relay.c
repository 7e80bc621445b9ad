/* SPDX-License-Identifier: MIT */
/* The whole relay to a Redis server that is killed again and again: nothing is lost. */
#include "relay/relay.h"
#include "sink_redis_fixture.h"
#include "store/memory.h"

#include <poll.h>
#include <stdlib.h>

enum { MANY = 20000, KEYS = 37, PATIENCE_MS = 50000 };

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

static struct ob_relay *make_relay(void)
{
	static char destination[] = "{aggregate_type}";
	static struct ob_config_relay config;
	struct ob_err err = OB_ERR_INIT;
	struct ob_relay *relay = NULL;

	config = (struct ob_config_relay){
		.name = "default",
		.workers = 2,
		.ordering = OB_ORDER_KEY,
		.batch_size = 500,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 100,
		.shutdown_timeout_ms = 5000,
		.claim_ttl_ms = 60000,
		.leasing = { true, 8, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0.25 },
		.route = { destination },
		.cleanup = { OB_NEVER_MS, OB_NEVER_MS, 3600000, 1000 },
	};
	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = open_store,
				      .open_sink = open_sink };
	ck_assert_msg(ob_relay_new(&conf, &relay, &err) >= 0, "%s", err.msg);
	return relay;
}

static void push_all(void)
{
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; i < MANY;) {
		ck_assert_int_ge(ob_store_tx_begin(writer, &err), 0);
		for (int k = 0; k < 500; k++, i++) {
			char key[16], payload[16];
			struct outbox_id id;
			size_t index;

			(void)snprintf(key, sizeof(key), "k%d", i % KEYS);
			(void)snprintf(payload, sizeof(payload), "%d", i);
			struct outbox_message message = { .aggregate_type = "order",
							  .event_type = "E",
							  .payload = payload,
							  .partition_key = key };
			ck_assert_int_ge(ob_store_tx_push(writer, &message, 1, &id, &index, &err),
					 0);
		}
		ck_assert_int_ge(ob_store_tx_end(writer, true, &err), 0);
	}
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

/* Everything is there, and first copies of a key are in order. Returns the copies. */
static size_t check_stream(void)
{
	redisReply *entries = redis_ask(&server, "XRANGE", "order", "-", "+", NULL);
	int next[KEYS];
	size_t count = entries->elements;

	for (int k = 0; k < KEYS; k++)
		next[k] = k;
	for (size_t i = 0; i < count; i++) {
		const redisReply *fields = entries->element[i]->element[1];
		const redisReply *payload = fields->element[fields->elements - 1];
		int n = (int)strtol(payload->str, NULL, 10);

		ck_assert_msg(n <= next[n % KEYS], "%d before %d", n, next[n % KEYS]);
		if (n == next[n % KEYS])
			next[n % KEYS] += KEYS;
	}
	for (int k = 0; k < KEYS; k++)
		ck_assert_int_ge(next[k], MANY);
	freeReplyObject(entries);
	return count;
}

OB_TEST(a_server_killed_three_times_loses_nothing)
{
	static const char *const args[] = { "--appendonly", "yes", "--appendfsync", "always",
					    NULL };
	struct ob_err err = OB_ERR_INIT;
	struct rows rows = { 0 };

	server.args = args;
	redis_server_start(&server);
	db = ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = 8 });
	ck_assert_int_ge(ob_store_memory_open(db, &writer, &err), 0);
	push_all();
	struct ob_relay *relay = make_relay();
	ck_assert_int_eq(ob_relay_start(relay, &err), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		wait_published(i * 3000);
		redis_server_kill(&server);
		redis_server_restart(&server);
	}
	wait_published(MANY);
	ob_relay_stop(relay, OB_STOP_DRAIN);
	ck_assert_msg(ob_relay_join(relay, &err) == 0, "%s", err.msg);
	struct ob_metrics_data metrics;
	ob_relay_metrics(relay, &metrics);
	ck_assert_uint_gt(metrics.breaker_opened, 0); /* it did meet an outage */
	ob_relay_free(relay);
	ob_memdb_each(db, count_row, &rows);
	ck_assert_uint_eq(rows.dead, 0);
	ck_assert_uint_eq(rows.attempts, 0);
	ck_assert_uint_ge(check_stream(), MANY);
	ob_store_free(writer);
	ob_memdb_free(db);
	redis_server_end(&server);
}
OB_TEST_END

OB_SUITE_NEEDS("redis relay", redis_server_missing(), a_server_killed_three_times_loses_nothing)
