/* SPDX-License-Identifier: MIT */
/*
 * From the moment an application asks for its COMMIT until a reader of the broker has the
 * message: the commit itself and the reader's wake-up are in it.
 */
#include "bench/cases.h"
#include "bench/fatal.h"
#include "bench/follow.h"
#include "bench/now.h"
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_MS = 100, PATIENCE_US = 60000000, PAYLOAD_SIZE = 400 };

struct watch {
	struct bench_store *store;
	const struct bench_follow_ops *follow;
	void *producer, *follower;
	uint32_t per_second;
	uint64_t count;
	double *commit_us,
		*seen_us; /* by number; 0 is the first one, which only shows that all run */
	double late_us;   /* the most that the producer was behind its clock */
};

static void produce(struct watch *w, uint64_t number)
{
	char key[24], payload[PAYLOAD_SIZE];

	(void)snprintf(key, sizeof(key), "%llu", (unsigned long long)number);
	(void)snprintf(payload, sizeof(payload), "{\"order\": %s, \"note\": \"%0270d\"}", key, 0);
	w->commit_us[number] = w->store->ops->producer.produce(
		w->producer,
		&(struct outbox_message){ .aggregate_type = "order",
					  .aggregate_id = key,
					  .event_type = "OrderPlaced",
					  .payload = payload },
		1);
}

static void *pace(void *arg)
{
	struct watch *w = arg;
	double start_us = bench_now_us();

	for (uint64_t i = 1; i <= w->count; i++) {
		double due_us = start_us + (double)i * 1e6 / w->per_second;

		bench_pause_until(due_us);
		w->late_us = fmax(w->late_us, bench_now_us() - due_us);
		produce(w, i);
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
	pthread_t thread;

	produce(w, 0);
	if (!read_messages(w, 1))
		return false;
	if (pthread_create(&thread, NULL, pace, w) != 0)
		bench_fatal("cannot start a thread");
	bool all = read_messages(w, w->count);
	(void)pthread_join(thread, NULL);
	return all;
}

static void note(struct watch *w, struct bench_result *result)
{
	double *delays_ms = w->seen_us + 1;

	for (uint64_t i = 0; i < w->count; i++)
		delays_ms[i] = (w->seen_us[i + 1] - w->commit_us[i + 1]) / 1e3;
	bench_sort(delays_ms, w->count);
	bench_result_add(result, "p50_ms", bench_percentile(delays_ms, w->count, 0.50));
	bench_result_add(result, "p99_ms", bench_percentile(delays_ms, w->count, 0.99));
	bench_result_add(result, "max_ms", delays_ms[w->count - 1]);
	bench_result_add(result, "producer_late_ms", w->late_us / 1e3);
}

static void run_round(struct bench_env *env, const struct bench_subject *subject, struct watch *w,
		      struct bench_result *result)
{
	struct ob_child child = { 0 };

	w->commit_us = bench_need(calloc(w->count + 1, sizeof(*w->commit_us)));
	w->seen_us = bench_need(calloc(w->count + 1, sizeof(*w->seen_us)));
	w->follower = w->follow->open(subject->broker->address);
	w->producer = w->store->ops->producer.open(w->store, false);
	bench_subject_start(env, subject, &child);
	if (run_messages(w))
		note(w, result);
	else
		bench_result_miss(result, "messages do not arrive");
	bench_subject_stop(env, &child);
	w->store->ops->producer.close(w->producer);
	w->follow->close(w->follower);
	free(w->commit_us);
	free(w->seen_us);
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
#if HAVE_REDIS
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
