/* SPDX-License-Identifier: MIT */
/*
 * From the moment an application asks for its COMMIT until a reader of the broker has the
 * message: the commit itself and the reader's wake-up are in it. Also what the database spends on a
 * message there: with a relay, and with none, which leaves the relay's share.
 */
#include "bench/broker/follow.h"
#include "bench/cases/cases.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/usage.h"

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
	double start_us, cpu_us; /* cpu: the database's, a message */
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

/* Names of one subject's figures. */
struct names {
	const char *p50, *p99, *max, *commit, *late, *cpu, *share;
};

static const struct names relay_names = { "p50_ms",        "p99_ms",           "max_ms",
					  "commit_p50_ms", "producer_late_ms", "store_cpu_us",
					  "store_share" };
static const struct names keep_names = { "keep_p50_ms",           "keep_p99_ms",
					 "keep_max_ms",           "keep_commit_p50_ms",
					 "keep_producer_late_ms", "keep_store_cpu_us",
					 "keep_store_share" };

static double store_cpu_us(const struct watch *w)
{
	return w->store->pid ? bench_cpu_us(w->store->pid) : 0;
}

/* At their pace; `relay`: one is running, and what it delivers is read. */
static bool run_messages(struct watch *w, bool relay)
{
	produce(w, w->pacers[0].producer, 0);
	if (relay && !read_messages(w, 1))
		return false;
	w->cpu_us = store_cpu_us(w);
	w->start_us = bench_now_us();
	for (uint32_t i = 0; i < w->producers; i++) {
		if (pthread_create(&w->pacers[i].thread, NULL, pace, &w->pacers[i]) != 0)
			bench_fatal("cannot start a thread");
	}
	bool all = !relay || read_messages(w, w->count);
	for (uint32_t i = 0; i < w->producers; i++)
		(void)pthread_join(w->pacers[i].thread, NULL);
	w->cpu_us = (store_cpu_us(w) - w->cpu_us) / (double)w->count;
	return all;
}

static void note(struct watch *w, const struct names *names, struct bench_result *result)
{
	double *delays_ms = w->seen_us + 1;
	double late_us = 0;

	for (uint64_t i = 0; i < w->count; i++)
		delays_ms[i] = (w->seen_us[i + 1] - w->commit_us[i + 1]) / 1e3;
	bench_sort(delays_ms, w->count);
	bench_result_add(result, names->p50, bench_percentile(delays_ms, w->count, 0.50));
	bench_result_add(result, names->p99, bench_percentile(delays_ms, w->count, 0.99));
	bench_result_add(result, names->max, delays_ms[w->count - 1]);
	bench_sort(w->took_us + 1, w->count);
	bench_result_add(result, names->commit,
			 bench_percentile(w->took_us + 1, w->count, 0.50) / 1e3);
	for (uint32_t i = 0; i < w->producers; i++)
		late_us = fmax(late_us, w->pacers[i].late_us);
	bench_result_add(result, names->late, late_us / 1e3);
}

static void open_watch(struct watch *w, const struct bench_subject *subject)
{
	w->commit_us = bench_need(calloc(w->count + 1, sizeof(*w->commit_us)));
	w->seen_us = bench_need(calloc(w->count + 1, sizeof(*w->seen_us)));
	w->took_us = bench_need(calloc(w->count + 1, sizeof(*w->took_us)));
	w->follower = w->follow->open(subject->broker->address, "aggregate_id");
	w->producers = (w->per_second + PER_PRODUCER - 1) / PER_PRODUCER;
	for (uint32_t i = 0; i < w->producers; i++) {
		/* by a plain INSERT: the library is of one of the two schemas */
		void *producer = w->store->ops->producer.open(w->store, BENCH_BARE);

		w->pacers[i] = (struct pacer){ .watch = w, .producer = producer, .first = i + 1 };
	}
}

static void close_watch(struct watch *w)
{
	for (uint32_t i = 0; i < w->producers; i++)
		w->store->ops->producer.close(w->pacers[i].producer);
	w->follow->close(w->follower);
	free(w->commit_us);
	free(w->seen_us);
	free(w->took_us);
}

/* The database's CPU for a message, in us; negative: they do not arrive. */
static double run_turn(struct bench_env *env, const struct bench_case *c,
		       const struct bench_subject *subject, bool relay, struct bench_result *result)
{
	static const struct bench_load nothing = { 0 };
	struct watch w = { .store = subject->store,
			   .follow = &bench_follow_file,
			   .per_second = c->each,
			   .count = bench_case_messages(env, c) };
	struct ob_child child = { 0 };

#if BENCH_REDIS
	if (strcmp(c->broker, "redis") == 0)
		w.follow = &bench_follow_redis;
#endif
	bench_subject_fill(subject, &nothing);
	open_watch(&w, subject);
	if (relay)
		bench_subject_start(env, subject, &child);
	bool ok = run_messages(&w, relay);
	if (ok && relay)
		note(&w, subject->kind == BENCH_RELAY ? &relay_names : &keep_names, result);
	if (relay && ok)
		bench_subject_stop(env, &child);
	ob_child_done(&child);
	close_watch(&w);
	bench_subject_clear(subject);
	if (!ok)
		bench_result_miss(result, "%s: messages do not arrive",
				  bench_kind_titles[subject->kind]);
	return ok ? w.cpu_us : -1;
}

static bool measure(struct bench_env *env, const struct bench_case *c,
		    const struct bench_subject *subject, struct bench_result *result)
{
	const struct names *names = subject->kind == BENCH_RELAY ? &relay_names : &keep_names;
	double with_us = run_turn(env, c, subject, true, result);

	if (with_us < 0)
		return false;
	if (subject->store->pid == 0)
		return true;
	bench_result_add(result, names->cpu, with_us);
	bench_result_add(result, names->share, with_us - run_turn(env, c, subject, false, result));
	return true;
}

/* c->each messages a second, c->messages in all; the relay and the baseline take turns. */
void bench_run_latency(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	static const enum bench_kind kinds[] = { BENCH_RELAY, BENCH_KEEP };
	struct bench_subject subjects[2];
	size_t count = 0;

	for (size_t i = 0; i < 2; i++)
		count += bench_case_subject(env, c, kinds[i], &subjects[count], result);
	for (uint32_t round = 0; !result->missing[0] && round < env->rounds; round++) {
		for (size_t turn = 0; turn < count; turn++) {
			if (!measure(env, c, &subjects[(turn + round) % count], result))
				return;
		}
	}
	double keep_us = bench_result_median(result, "keep_store_cpu_us");
	double keep_share = bench_result_median(result, "keep_store_share");

	if (keep_us > 0)
		bench_result_add(result, "ratio_cpu",
				 bench_result_median(result, "store_cpu_us") / keep_us);
	if (keep_share > 0)
		bench_result_add(result, "ratio_share",
				 bench_result_median(result, "store_share") / keep_share);
}
