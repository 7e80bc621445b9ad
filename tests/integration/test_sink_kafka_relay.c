/* SPDX-License-Identifier: MIT */
/* The whole relay, from SQLite to a Kafka cluster that fails again and again: nothing is lost. */
#include "kafka_mock.h"
#include "relay_fixture.h"
#include "store_sqlite_fixture.h"

#include <poll.h>
#include <stdlib.h>

enum { PAUSE_MS = 1500 };

static struct kafka_mock mock;

static int store_of(void *arg, struct ob_store **ret_store, struct ob_err *e)
{
	static char url[160];
	const struct ob_store_conf conf = { .url = url };

	(void)arg;
	(void)snprintf(url, sizeof(url), "sqlite:%s", file("relay.db"));
	return ob_store_connect(&conf, ret_store, e);
}

static int sink_of(void *arg, struct ob_sink **ret_sink, struct ob_err *e)
{
	const struct ob_opt_value options[] = { { "brokers", mock.brokers },
						{ "timeout", "1s" },
						{ "connect_timeout", "2s" } };

	(void)arg;
	return ob_sink_new(&ob_sink_kafka, options, 3, &ob_clock_system, ret_sink, e);
}

/* Everything is there, and first copies of a key are in order. */
static void check_log(void)
{
	struct ob_arena arena = OB_ARENA_INIT((size_t)1 << 28);
	struct kafka_record *records;
	struct relay_order order;
	size_t count = kafka_mock_read(&mock, &arena, &records);

	relay_order_init(&order);
	for (size_t i = 0; i < count; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%.*s", (int)records[i].value.n,
			       records[i].value.p);
		relay_order_see(&order, (int)strtol(text, NULL, 10));
	}
	relay_order_end(&order);
	ob_arena_done(&arena);
}

OB_TEST(a_cluster_that_fails_three_times_loses_nothing)
{
	kafka_mock_start(&mock);
	struct ob_store *writer = new_store("relay.db", NULL);
	relay_push(writer);
	ob_store_free(writer);
	struct ob_relay *relay = relay_make(store_of, sink_of);
	ok(ob_relay_start(relay, &err));
	/* it hangs past the timeout, is cut off, and loses its answers past the timeout */
	relay_wait_published(relay, 3000);
	kafka_mock_pause(&mock);
	(void)poll(NULL, 0, PAUSE_MS);
	kafka_mock_continue(&mock);
	relay_wait_published(relay, 6000);
	kafka_mock_tell(&mock, "down");
	(void)poll(NULL, 0, PAUSE_MS);
	kafka_mock_tell(&mock, "up");
	relay_wait_published(relay, 9000);
	kafka_mock_tell(&mock, "rtt %d", 2 * PAUSE_MS);
	(void)poll(NULL, 0, PAUSE_MS);
	kafka_mock_tell(&mock, "rtt 0");
	relay_wait_published(relay, RELAY_MANY);
	relay_end(relay);
	check_log();
	kafka_mock_end(&mock);
}
OB_TEST_END

LITE_SUITE("kafka relay", a_cluster_that_fails_three_times_loses_nothing)
