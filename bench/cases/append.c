/* SPDX-License-Identifier: MIT */
/*
 * Appending events, one in a transaction: outbox_append() with an expected version; bare, a
 * prepared INSERT of an event with its version into the same table, so with the same columns and
 * indexes, which checks nothing; and twice, as others store it: a row of a table of events, and one
 * of an outbox.
 */
#include "bench/cases/cases.h"
#include "bench/drain.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/schema.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITERS_MAX = 16, STREAM_EVENTS = 100 };

struct appending {
	const struct bench_store_ops *ops;
	void *producer;
	pthread_t thread;
	const char *payload;
	uint32_t writer;
	uint64_t count;
	double *times_us; /* of each append, its commit included */
};

static void *append(void *arg)
{
	struct appending *a = arg;
	char id[48];

	for (uint64_t i = 0; i < a->count; i++) {
		(void)snprintf(id, sizeof(id), "%u-%llu", a->writer,
			       (unsigned long long)(i / STREAM_EVENTS));
		const struct outbox_message event = {
			.aggregate_type = "account",
			.aggregate_id = id,
			.event_type = "Deposited",
			.payload = a->payload,
			.sequence_number = (int64_t)(i % STREAM_EVENTS) + 1,
		};
		double from_us = bench_now_us();

		(void)a->ops->producer.produce(a->producer, &event, 1);
		a->times_us[i] = bench_now_us() - from_us;
	}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* How each writer's figures are called. */
static const struct naming {
	const char *rate, *p50, *p99, *p999;
} names[] = {
	[BENCH_LIBRARY] = { "append_rate", "p50_ms", "p99_ms", "p999_ms" },
	[BENCH_BARE] = { "bare_rate", "bare_p50_ms", NULL, NULL },
	[BENCH_TWICE] = { "twice_rate", "twice_p50_ms", NULL, NULL },
};

static void add_times(struct bench_result *result, const struct naming *naming, double *times,
		      uint64_t count)
{
	const struct {
		const char *name;
		double share;
	} marks[] = { { naming->p50, 0.5 }, { naming->p99, 0.99 }, { naming->p999, 0.999 } };

	qsort(times, count, sizeof(*times), by_time);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && marks[i].name; i++)
		bench_result_add(result, marks[i].name,
				 times[(size_t)((double)(count - 1) * marks[i].share)] / 1000);
}

static void measure(const struct bench_case *c, struct bench_store *store, uint64_t events,
		    enum bench_writer writer, const char *payload, struct bench_result *result)
{
	struct appending all[WRITERS_MAX];
	uint64_t share = events / c->producers;
	double *times = bench_need(calloc(share * c->producers, sizeof(*times)));

	bench_schema_clear(store);
	store->ops->empty(store, "bench_events");
	for (uint32_t i = 0; i < c->producers; i++)
		all[i] = (struct appending){ .ops = store->ops,
					     .producer = store->ops->producer.open(store, writer),
					     .payload = payload,
					     .writer = i,
					     .count = share,
					     .times_us = times + i * share };
	double from_us = bench_now_us();
	for (uint32_t i = 0; i < c->producers; i++) {
		if (pthread_create(&all[i].thread, NULL, append, &all[i]) != 0)
			bench_fatal("cannot start a thread");
	}
	for (uint32_t i = 0; i < c->producers; i++)
		(void)pthread_join(all[i].thread, NULL);
	bench_result_add(result, names[writer].rate,
			 (double)(share * c->producers) * 1e6 / (bench_now_us() - from_us));
	for (uint32_t i = 0; i < c->producers; i++)
		store->ops->producer.close(all[i].producer);
	add_times(result, &names[writer], times, share * c->producers);
	free(times);
}

static void add_ratio(struct bench_result *result, const char *name, const char *beside,
		      uint32_t round)
{
	bench_result_add(result, name,
			 bench_result_get(result, "append_rate")->values[round] /
				 bench_result_get(result, beside)->values[round]);
}

void bench_run_append(struct bench_env *env, const struct bench_case *c,
		      struct bench_result *result)
{
	uint64_t events = bench_case_messages(env, c);
	struct bench_subject subject;
	char payload[300];

	if (!bench_case_subject(env, c, BENCH_RELAY, &subject, result))
		return;
	int n = snprintf(payload, sizeof(payload), "{\"note\": \"");
	memset(payload + n, 'x', 230);
	(void)snprintf(payload + n + 230, 3, "\"}");
	subject.store->ops->run(subject.store, subject.store->ops->make_events);
	for (uint32_t round = 0; round < env->rounds; round++) {
		for (uint32_t turn = 0; turn < 3; turn++)
			measure(c, subject.store, events, (turn + round) % 3, payload, result);
		add_ratio(result, "ratio", "bare_rate", round);
		add_ratio(result, "twice_ratio", "twice_rate", round);
	}
}
