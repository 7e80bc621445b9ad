/* SPDX-License-Identifier: MIT */
/*
 * kill -9 in the middle of a drain, and another relay finishes it: how many messages does the
 * stream have twice? Each round kills at another place. What was sent and not recorded at the kill
 * must come again, and nothing else may.
 */
#include "bench/broker/follow.h"
#include "bench/cases/cases.h"
#include "bench/drain.h"
#include "bench/fatal.h"
#include "bench/now.h"
#include "bench/store/schema.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20, ROUNDS_QUICK = 2, LOOK_US = 300, ECHO_US = 200000, READ_MS = 50 };

struct count {
	double repeats, in_flight;
	uint64_t lost;
};

/* Names of one subject's figures. */
static const struct {
	const char *repeats, *worst, *in_flight;
} names[] = {
	[BENCH_RELAY] = { "repeats", "repeats_worst", "in_flight" },
	[BENCH_KEEP] = { "keep_repeats", "keep_repeats_worst", "keep_in_flight" },
};

/* At this place of the drain, in parts of 100: spread over 10 to 80. */
static uint64_t place_of(uint32_t round, uint64_t messages)
{
	return messages * (10 + round * 37 % 71) / 100;
}

static bool wait_for(struct bench_env *env, const struct bench_subject *subject,
		     struct ob_child *child, uint64_t goal, char reason[BENCH_TEXT_SIZE])
{
	struct bench_broker *broker = subject->broker;

	if (!bench_drain_first(env, broker, child, reason))
		return false;
	while (broker->ops->count(broker) < goal && ob_child_look(child) == OB_CHILD_RUNS)
		bench_pause_us(LOOK_US);
	return true;
}

/* Messages have the numbers 1 to `messages`. */
static void count_stream(const struct bench_subject *subject, uint64_t messages,
			 struct count *count)
{
	bool *seen = bench_need(calloc(messages + 1, sizeof(*seen)));
	void *follower = bench_follow_redis.open(subject->broker->address, "aggregate_id");
	uint64_t numbers[BENCH_FOLLOW_MAX];
	size_t n;

	count->repeats = 0;
	count->lost = messages;
	while ((n = bench_follow_redis.read(follower, numbers, READ_MS)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (numbers[i] > messages || seen[numbers[i]]) {
				count->repeats++;
				continue;
			}
			seen[numbers[i]] = true;
			count->lost--;
		}
	}
	bench_follow_redis.close(follower);
	free(seen);
}

/* The first relay is killed at its place. */
static bool kill_first(struct bench_env *env, const struct bench_subject *subject, uint64_t goal,
		       char reason[BENCH_TEXT_SIZE])
{
	struct ob_child child = { 0 };

	bench_subject_start(env, subject, &child);
	bool ok = wait_for(env, subject, &child, goal, reason);
	ob_child_signal(&child, SIGKILL);
	ob_child_done(&child);
	bench_pause_us(ECHO_US); /* what it had written to its sockets is worked off */
	return ok;
}

static bool finish(struct bench_env *env, const struct bench_subject *subject, uint64_t messages,
		   char reason[BENCH_TEXT_SIZE])
{
	struct bench_drained drained;

	/* where leases must run out, that takes 15 s, which is not the question here */
	if (!subject->store->log || subject->store->pid == 0)
		bench_schema_free_leases(subject->store);
	return bench_drain(env, subject, messages, false, &drained, reason);
}

static bool run_turn(struct bench_env *env, const struct bench_case *c,
		     const struct bench_subject *subject, uint32_t round, struct count *count,
		     struct bench_result *result)
{
	const struct bench_load load = { .count = bench_case_messages(env, c),
					 .payload_size = c->payload_size };
	struct bench_broker *broker = subject->broker;
	char reason[BENCH_TEXT_SIZE];

	bench_subject_fill(subject, &load);
	if (!kill_first(env, subject, place_of(round, load.count), reason)) {
		bench_result_miss(result, "%.150s", reason);
		return false;
	}
	count->in_flight =
		(double)broker->ops->count(broker) - (double)bench_schema_recorded(subject->store);
	if (!finish(env, subject, load.count, reason)) {
		bench_result_miss(result, "after the kill: %.150s", reason);
		return false;
	}
	count_stream(subject, load.count, count);
	bench_subject_clear(subject);
	if (count->lost > 0)
		bench_result_miss(result, "%s lost %llu messages", bench_kind_titles[subject->kind],
				  (unsigned long long)count->lost);
	return count->lost == 0;
}

void bench_run_repeats(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	static const enum bench_kind kinds[] = { BENCH_RELAY, BENCH_KEEP };
	double worst[2] = { 0 }, in_flight = 0;
	struct bench_subject subjects[2];
	size_t count = 0;

	for (size_t i = 0; i < 2; i++)
		count += bench_case_subject(env, c, kinds[i], &subjects[count], result);
	for (uint32_t i = 0;
	     !result->missing[0] && i < (env->quick ? ROUNDS_QUICK : ROUNDS) * count; i++) {
		const struct bench_subject *subject = &subjects[i % count];
		struct count found;

		if (!run_turn(env, c, subject, (uint32_t)(i / count), &found, result))
			return;
		bench_result_add(result, names[subject->kind].repeats, found.repeats);
		bench_result_add(result, names[subject->kind].in_flight, found.in_flight);
		worst[i % count] = fmax(worst[i % count], found.repeats);
		if (subject->kind == BENCH_RELAY)
			in_flight = fmax(in_flight, found.in_flight);
	}
	for (size_t i = 0; i < count; i++)
		bench_result_add(result, names[subjects[i].kind].worst, worst[i]);
	bench_result_add(result, "in_flight_worst", in_flight);
}
