/* SPDX-License-Identifier: MIT */
/*
 * From the moment an application asks for its COMMIT until a reader of the broker has the
 * message: the commit itself and the reader's wake-up are in it.
 */
#include "bench/cases.h"
#include "bench/fatal.h"
#include "bench/follow.h"
#include "bench/now.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	READ_MS = 100,
	PATIENCE_US = 60000000,
	PAYLOAD_SIZE = 400,
	PER_PRODUCER = 500, /* messages a second that one connection can surely commit */
	PRODUCERS_MAX = 8,
};

struct watch;

/* One of the producers that take turns. */
struct pacer {
	struct watch *watch;
	void *producer;
	pthread_t thread;
	uint64_t first;
	double late_us; /* the most that it was behind its clock */
};

struct watch {
	struct bench_store *store;
	const struct bench_follow_ops *follow;
	void *follower;
	struct pacer pacers[PRODUCERS_MAX];
	uint32_t producers, per_second;
	double start_us;
	uint64_t count;
	/* By number. The first, 0, only shows that all are running. */
	double *commit_us, *seen_us;
	double *took_us; /* the commit itself */
};

static void produce(struct watch *w, void *producer, uint64_t number)
{
	char key[24], payload[PAYLOAD_SIZE];

	(void)snprintf(key, sizeof(key), "%llu", (unsigned long long)number);
	(void)snprintf(payload, sizeof(payload), "{\"order\": %s, \"note\": \"%0270d\"}", key, 0);
	w->commit_us[number] = w->store->ops->producer.produce(
		producer,
		&(struct outbox_message){ .aggregate_type = "order",
					  .aggregate_id = key,
					  .event_type = "OrderPlaced",
					  .payload = payload },
		1);
	w->took_us[number] = bench_now_us() - w->commit_us[number];
}

static void *pace(void *arg)
{
	struct pacer *p = arg;
	struct watch *w = p->watch;

	for (uint64_t i = p->first; i <= w->count; i += w->producers) {
		double due_us = w->start_us + (double)i * 1e6 / w->per_second;

		bench_pause_until(due_us);
		p->late_us = fmax(p->late_us, bench_now_us() - due_us);
		produce(w, p->producer, i);
	}
	return NULL;
}

/* So many messages; false: they do not come. */
static bool read_messages(struct watch *w, uint64_t wanted)
{
	uint64_t numbers[BENCH_FOLLOW_MAX];
	double last_us = bench_now_us();

	for (uint64_t seen = 0; seen < wanted;) {
		size_t n = w->follow->read(w->follower, numbers, READ_MS);
		double now_us = bench_now_us();

		last_us = n ? now_us : last_us;
		seen += n;
		for (size_t i = 0; i < n; i++) {
			if (numbers[i] <= w->count)
				w->seen_us[numbers[i]] = now_us;
		}
		if (now_us - last_us > PATIENCE_US)
			return false;
	}
	return true;
}

static bool run_messages(struct watch *w)
{
	produce(w, w->pacers[0].producer, 0);
	if (!read_messages(w, 1))
		return false;
	w->start_us = bench_now_us();
	for (uint32_t i = 0; i < w->producers; i++) {
		if (pthread_create(&w->pacers[i].thread, NULL, pace, &w->pacers[i]) != 0)
			bench_fatal("cannot start a thread");
	}
	bool all = read_messages(w, w->count);
	for (uint32_t i = 0; i < w->producers; i++)
		(void)pthread_join(w->pacers[i].thread, NULL);
	return all;
}

static void note(struct watch *w, struct bench_result *result)
{
	double *delays_ms = w->seen_us + 1;
	double late_us = 0;

	for (uint64_t i = 0; i < w->count; i++)
		delays_ms[i] = (w->seen_us[i + 1] - w->commit_us[i + 1]) / 1e3;
	bench_sort(delays_ms, w->count);
	bench_result_add(result, "p50_ms", bench_percentile(delays_ms, w->count, 0.50));
	bench_result_add(result, "p99_ms", bench_percentile(delays_ms, w->count, 0.99));
	bench_result_add(result, "max_ms", delays_ms[w->count - 1]);
	bench_sort(w->took_us + 1, w->count);
	bench_result_add(result, "commit_p50_ms",
			 bench_percentile(w->took_us + 1, w->count, 0.50) / 1e3);
	for (uint32_t i = 0; i < w->producers; i++)
		late_us = fmax(late_us, w->pacers[i].late_us);
	bench_result_add(result, "producer_late_ms", late_us / 1e3);
}

static void run_round(struct bench_env *env, const struct bench_subject *subject, struct watch *w,
		      struct bench_result *result)
{
	struct ob_child child = { 0 };

	w->commit_us = bench_need(calloc(w->count + 1, sizeof(*w->commit_us)));
	w->seen_us = bench_need(calloc(w->count + 1, sizeof(*w->seen_us)));
	w->took_us = bench_need(calloc(w->count + 1, sizeof(*w->took_us)));
	w->follower = w->follow->open(subject->broker->address);
	w->producers = (w->per_second + PER_PRODUCER - 1) / PER_PRODUCER;
	for (uint32_t i = 0; i < w->producers; i++) {
		void *producer = w->store->ops->producer.open(w->store, false);

		w->pacers[i] = (struct pacer){ .watch = w, .producer = producer, .first = i + 1 };
	}
	bench_subject_start(env, subject, &child);
	if (run_messages(w))
		note(w, result);
	else
		bench_result_miss(result, "messages do not arrive");
	bench_subject_stop(env, &child);
	for (uint32_t i = 0; i < w->producers; i++)
		w->store->ops->producer.close(w->pacers[i].producer);
	w->follow->close(w->follower);
	free(w->commit_us);
	free(w->seen_us);
	free(w->took_us);
}

/* c->each messages a second, c->messages in all. */
void bench_run_latency(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	static const struct bench_load nothing = { 0 };
	const struct bench_follow_ops *follow = &bench_follow_file;
	struct bench_subject subject;

	if (!bench_case_subject(env, c, &subject, result))
		return;
#if BENCH_REDIS
	if (strcmp(c->broker, "redis") == 0)
		follow = &bench_follow_redis;
#endif
	for (uint32_t round = 0; round < env->rounds; round++) {
		struct watch watch = { .store = subject.store,
				       .follow = follow,
				       .per_second = c->each,
				       .count = bench_case_messages(env, c) };

		bench_case_fill(&subject, &nothing);
		run_round(env, &subject, &watch, result);
	}
}
