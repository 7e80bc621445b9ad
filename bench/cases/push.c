/* SPDX-License-Identifier: MIT */
/* Writing messages: outbox_push() beside a prepared INSERT, by producers that work at once. */
#include "bench/cases/cases.h"
#include "bench/drain.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/schema.h"
#include "bench/usage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCERS_MAX = 16, EACH_MAX = 1000 };

struct producing {
	const struct bench_store_ops *ops;
	void *producer;
	pthread_t thread;
	const char *payload;
	uint64_t first, count; /* numbers of its messages, for keys of their own */
	uint32_t each;
};

static void *produce(void *arg)
{
	struct producing *p = arg;
	struct outbox_message *messages = bench_need(calloc(p->each, sizeof(*messages)));
	char(*keys)[24] = bench_need(calloc(p->each, sizeof(*keys)));

	for (uint64_t done = 0; done < p->count;) {
		size_t n = p->count - done < p->each ? p->count - done : p->each;

		for (size_t i = 0; i < n; i++) {
			(void)snprintf(keys[i], sizeof(keys[i]), "%llu",
				       (unsigned long long)(p->first + done + i));
			messages[i] = (struct outbox_message){ .aggregate_type = "order",
							       .aggregate_id = keys[i],
							       .event_type = "OrderPlaced",
							       .payload = p->payload };
		}
		p->ops->producer.produce(p->producer, messages, n);
		done += n;
	}
	free(keys);
	free(messages);
	return NULL;
}

/* Messages a second; connections are open before the clock runs. */
static double push_all(const struct bench_case *c, struct bench_store *store, uint64_t messages,
		       bool bare, const char *payload)
{
	struct producing all[PRODUCERS_MAX];
	uint64_t share = messages / c->producers;

	for (uint32_t i = 0; i < c->producers; i++)
		all[i] = (struct producing){ .ops = store->ops,
					     .producer = store->ops->producer.open(
						     store, bare ? BENCH_BARE : BENCH_LIBRARY),
					     .payload = payload,
					     .first = i * share + 1,
					     .count = share,
					     .each = c->each };
	double from_us = bench_now_us();
	for (uint32_t i = 0; i < c->producers; i++) {
		if (pthread_create(&all[i].thread, NULL, produce, &all[i]) != 0)
			bench_fatal("cannot start a thread");
	}
	for (uint32_t i = 0; i < c->producers; i++)
		(void)pthread_join(all[i].thread, NULL);
	double rate = (double)(share * c->producers) * 1e6 / (bench_now_us() - from_us);
	for (uint32_t i = 0; i < c->producers; i++)
		store->ops->producer.close(all[i].producer);
	return rate;
}

static void measure(const struct bench_case *c, struct bench_store *store, uint64_t messages,
		    bool bare, const char *payload, struct bench_result *result)
{
	const struct bench_store_ops *ops = store->ops;
	double count = (double)messages;

	bench_schema_clear(store);
	double cpu_us = store->pid ? bench_cpu_us(store->pid) : 0;
	double log = ops->log_bytes ? (double)ops->log_bytes(store) : 0;
	double rate = push_all(c, store, messages, bare, payload);

	bench_result_add(result, bare ? "bare_rate" : "push_rate", rate);
	if (store->pid)
		bench_result_add(result, bare ? "bare_store_cpu_us" : "push_store_cpu_us",
				 (bench_cpu_us(store->pid) - cpu_us) / count);
	if (ops->log_bytes)
		bench_result_add(result, bare ? "bare_log_bytes" : "push_log_bytes",
				 ((double)ops->log_bytes(store) - log) / count);
}

void bench_run_push(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	uint64_t messages = bench_case_messages(env, c);
	struct bench_subject subject;
	char payload[4096];

	if (!bench_case_subject(env, c, BENCH_RELAY, &subject, result))
		return;
	size_t pad = c->payload_size < sizeof(payload) - 32 ? c->payload_size : 300;
	int n = snprintf(payload, sizeof(payload), "{\"note\": \"");

	memset(payload + n, 'x', pad);
	(void)snprintf(payload + (size_t)n + pad, 3, "\"}");
	for (uint32_t round = 0; round < env->rounds; round++) {
		for (uint32_t turn = 0; turn < 2; turn++)
			measure(c, subject.store, messages, (turn + round) % 2, payload, result);
		bench_result_add(result, "ratio",
				 bench_result_get(result, "push_rate")->values[round] /
					 bench_result_get(result, "bare_rate")->values[round]);
	}
}
