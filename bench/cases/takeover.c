/* SPDX-License-Identifier: MIT */
/*
 * Two relays run, messages of one key are committed all the time, and the relay that owns its
 * partition is killed with -9: how long until a message arrives that was committed after that?
 */
#include "bench/broker/follow.h"
#include "bench/cases/cases.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/schema.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	EVERY_US = 5000,      /* between two commits */
	MESSAGES_MAX = 40000, /* three minutes of them */
	READ_MS = 20,
	JOIN_US = 30000000,     /* patience until both have joined and share the partitions */
	BALANCE_US = 4000000,   /* after that nothing moves any more */
	PHASE_US = 382000,      /* each turn kills that much later, and a second is the whole: */
	PHASE_END_US = 1000000, /* a relay looks at the others at a pace, so the place counts */
	TURNS = 3,              /* of the relay in each round; one of the baseline */
	OUTAGE_US = 100000000,  /* patience after the kill */
};

struct traffic {
	struct bench_store *store;
	void *producer;
	pthread_t thread;
	atomic_bool stop;
	/* When its COMMIT was asked for, by number from 1; written before the message is visible.
	 */
	_Atomic double *commit_us;
};

/* One key, so one partition; the number travels as the type. */
static void *produce(void *arg)
{
	struct traffic *t = arg;

	for (uint64_t i = 1; i < MESSAGES_MAX && !t->stop; i++) {
		char number[24];

		(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)i);
		t->commit_us[i] = bench_now_us();
		(void)t->store->ops->producer.produce(
			t->producer,
			&(struct outbox_message){ .aggregate_type = "order",
						  .aggregate_id = "1",
						  .event_type = number,
						  .payload = "{}" },
			1);
		bench_pause_us(EVERY_US);
	}
	return NULL;
}

/* Until a message arrives that was committed after that instant; how long that was, or negative. */
static double wait_for_flow(struct traffic *t, void *follower, double since_us, double patience_us)
{
	uint64_t numbers[BENCH_FOLLOW_MAX];

	while (bench_now_us() < since_us + patience_us) {
		size_t n = bench_follow_redis.read(follower, numbers, READ_MS);
		double now_us = bench_now_us();

		for (size_t i = 0; i < n; i++) {
			if (numbers[i] < MESSAGES_MAX && t->commit_us[numbers[i]] > since_us)
				return now_us - since_us;
		}
	}
	return -1;
}

static bool start_both(struct bench_env *env, const struct bench_subject *subject,
		       struct traffic *t, void *follower, uint32_t turn,
		       struct ob_child children[2])
{
	double end_us = bench_now_us() + JOIN_US;

	bench_subject_start(env, subject, &children[0]);
	if (wait_for_flow(t, follower, bench_now_us(), JOIN_US) < 0)
		return false;
	bench_subject_start(env, subject, &children[1]);
	while (bench_schema_workers(subject->store) < 2) {
		if (bench_now_us() > end_us)
			return false;
		bench_pause_us(EVERY_US);
	}
	bench_pause_us(BALANCE_US + (long)turn * PHASE_US % PHASE_END_US);
	return wait_for_flow(t, follower, bench_now_us(), JOIN_US) >= 0;
}

/* The outage in ms, or negative. */
static double kill_owner(const struct bench_subject *subject, struct traffic *t, void *follower,
			 struct ob_child children[2])
{
	pid_t owner = bench_schema_owner(subject->store);

	for (int i = 0; i < 2; i++) {
		if (children[i].pid != owner)
			continue;
		double from_us = bench_now_us();

		ob_child_signal(&children[i], SIGKILL);
		ob_child_done(&children[i]);
		/* counted from before the kill, seen by what was committed after the end */
		double over_us = bench_now_us();
		double outage_us = wait_for_flow(t, follower, over_us, OUTAGE_US);

		return outage_us < 0 ? -1 : (over_us - from_us + outage_us) / 1e3;
	}
	return -1;
}

static double run_turn(struct bench_env *env, const struct bench_subject *subject, uint32_t turn)
{
	static const struct bench_load nothing = { 0 };
	struct traffic t = { .store = subject->store };
	struct ob_child children[2] = { 0 };

	bench_subject_fill(subject, &nothing);
	t.commit_us = bench_need(calloc(MESSAGES_MAX, sizeof(*t.commit_us)));
	t.producer = t.store->ops->producer.open(t.store, BENCH_BARE);
	void *follower = bench_follow_redis.open(subject->broker->address, "event_type");
	if (pthread_create(&t.thread, NULL, produce, &t) != 0)
		bench_fatal("cannot start a thread");
	double outage_ms = start_both(env, subject, &t, follower, turn, children)
				   ? kill_owner(subject, &t, follower, children)
				   : -1;
	t.stop = true;
	(void)pthread_join(t.thread, NULL);
	for (int i = 0; i < 2; i++)
		ob_child_done(&children[i]);
	bench_follow_redis.close(follower);
	t.store->ops->producer.close(t.producer);
	free(t.commit_us);
	bench_subject_clear(subject);
	return outage_ms;
}

void bench_run_takeover(struct bench_env *env, const struct bench_case *c,
			struct bench_result *result)
{
	static const enum bench_kind kinds[] = { BENCH_RELAY, BENCH_KEEP };
	static const char *const names[] = {
		[BENCH_RELAY] = "outage_s", [BENCH_KEEP] = "keep_outage_s"
	};
	struct bench_subject subjects[2];
	uint32_t turns = env->quick ? 1 : TURNS;
	double worst = 0;
	size_t count = 0;

	for (size_t i = 0; i < 2; i++)
		count += bench_case_subject(env, c, kinds[i], &subjects[count], result);
	for (uint32_t i = 0; !result->missing[0] && i < env->rounds * (turns + 1); i++) {
		bool relay = i % (turns + 1) < turns;

		if (!relay && count == 1)
			continue;
		const struct bench_subject *subject = &subjects[relay ? 0 : 1];
		double outage_ms = run_turn(env, subject, i);

		if (outage_ms < 0) {
			bench_result_miss(result, "%s: messages do not flow",
					  bench_kind_titles[subject->kind]);
			return;
		}
		bench_result_add(result, names[subject->kind], outage_ms / 1e3);
		if (subject->kind == BENCH_RELAY)
			worst = fmax(worst, outage_ms / 1e3);
	}
	bench_result_add(result, "outage_worst_s", worst);
}
