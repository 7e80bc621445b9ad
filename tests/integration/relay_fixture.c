/* SPDX-License-Identifier: MIT */
/* The fixture of the tests of a whole relay. */
#include "relay_fixture.h"

#include <poll.h>
#include <stdio.h>

enum { PATIENCE_MS = 50000, LOOK_MS = 5 };

struct ob_relay *relay_make(int (*open_store)(void *, struct ob_store **, struct ob_err *),
			    int (*open_sink)(void *, struct ob_sink **, struct ob_err *))
{
	static char destination[] = "{aggregate_type}";
	static struct ob_config_relay config;
	struct ob_err err = OB_ERR_INIT;
	struct ob_relay *relay = NULL;

	config = (struct ob_config_relay){
		.name = "default",
		.reads = "default",
		.workers = 2,
		.ordering = OB_ORDER_KEY,
		.batch_size = 500,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 100,
		.shutdown_timeout_ms = 5000,
		.leasing = { RELAY_PARTITIONS, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0.25 },
		.route = { .destination = destination },
	};
	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = open_store,
				      .open_sink = open_sink };
	ck_assert_msg(ob_relay_new(&conf, &relay, &err) >= 0, "%s", err.msg);
	return relay;
}

void relay_push(struct ob_store *writer)
{
	struct ob_err err = OB_ERR_INIT;

	for (int i = 0; i < RELAY_MANY;) {
		ck_assert_int_ge(ob_store_tx_begin(writer, &err), 0);
		for (int k = 0; k < 500; k++, i++) {
			char key[16], payload[16];
			struct outbox_id id;
			size_t index;

			(void)snprintf(key, sizeof(key), "k%d", i % RELAY_KEYS);
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

void relay_wait_published(struct ob_relay *relay, uint64_t count)
{
	struct ob_metrics_data metrics = { 0 };

	for (int ms = 0; ms < PATIENCE_MS; ms += LOOK_MS) {
		ob_relay_metrics(relay, &metrics);
		if (metrics.published >= count)
			return;
		(void)poll(NULL, 0, LOOK_MS);
	}
	ck_abort_msg("only %lu of %lu published", (unsigned long)metrics.published,
		     (unsigned long)count);
}

void relay_end(struct ob_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_metrics_data metrics;

	ob_relay_stop(relay, OB_STOP_DRAIN);
	ck_assert_msg(ob_relay_join(relay, &err) == 0, "%s", err.msg);
	ob_relay_metrics(relay, &metrics);
	ck_assert_uint_gt(metrics.breaker_opened, 0);
	ck_assert_uint_eq(metrics.failed, 0); /* an outage costs no message an attempt */
	ck_assert_uint_eq(metrics.dead, 0);
	ob_relay_free(relay);
}

void relay_order_init(struct relay_order *order)
{
	for (int k = 0; k < RELAY_KEYS; k++)
		order->next[k] = k;
}

void relay_order_see(struct relay_order *order, int n)
{
	int *next = &order->next[n % RELAY_KEYS];

	ck_assert_msg(n <= *next, "%d before %d", n, *next);
	if (n == *next)
		*next += RELAY_KEYS;
}

void relay_order_end(const struct relay_order *order)
{
	for (int k = 0; k < RELAY_KEYS; k++)
		ck_assert_int_ge(order->next[k], RELAY_MANY);
}
