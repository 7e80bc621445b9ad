/* SPDX-License-Identifier: MIT */
/* Two relays of one process read the same messages into two streams, beside one relay alone. */
#include "bench/broker/parts.h"
#include "bench/cases/cases.h"
#include "bench/drain.h"
#include "bench/now.h"

#include <stdio.h>

enum { LOOK_US = 2000, SILENCE_US = 60000000, STREAMS = 2 };

static const char *const streams[STREAMS] = { "order", "other" };

/* The second one goes elsewhere; both read the messages that the one relay reads. */
static const char two_relays[] =
	"  - { name: one, reads: default, sink: out, batch_size: 1000 }\n"
	"  - { name: two, reads: default, sink: out, batch_size: 1000, "
	"route: { destination: other } }\n";

/* What is known of one stream. */
struct flow {
	bool begun, over;
	uint64_t first; /* there when it was seen to begin */
	double from_us, to_us;
};

/* Watch both until they have all; false: one makes no progress. */
static bool watch(struct bench_env *env, const struct bench_subject *subject,
		  struct ob_child *child, uint64_t messages, struct flow flows[STREAMS],
		  char reason[BENCH_TEXT_SIZE])
{
	double end_us = bench_now_us() + SILENCE_US;
	uint64_t seen = 0;

	while (!flows[0].over || !flows[1].over) {
		uint64_t sum = 0;

		for (int i = 0; i < STREAMS; i++) {
			uint64_t count = bench_redis_added(subject->broker, streams[i]);
			double now_us = bench_now_us();

			if (count > 0 && !flows[i].begun)
				flows[i] = (struct flow){ .begun = true,
							  .first = count,
							  .from_us = now_us };
			if (count >= messages && !flows[i].over) {
				flows[i].over = true;
				flows[i].to_us = now_us;
			}
			sum += count;
		}
		if (sum > seen)
			end_us = bench_now_us() + SILENCE_US;
		seen = sum;
		if (ob_child_look(child) == OB_CHILD_ENDED || bench_now_us() > end_us) {
			bench_subject_words(env, reason);
			return false;
		}
		bench_pause_us(LOOK_US);
	}
	return true;
}

/* The rate of the slower stream. */
static bool run_two(struct bench_env *env, const struct bench_subject *subject,
		    const struct bench_load *load, double *ret_rate, struct bench_result *result)
{
	struct flow flows[STREAMS] = { 0 };
	char reason[BENCH_TEXT_SIZE] = "";
	struct ob_child child = { 0 };

	bench_subject_fill(subject, load);
	bench_subject_start(env, subject, &child);
	bool ok = watch(env, subject, &child, load->count, flows, reason);
	if (ok)
		bench_subject_stop(env, &child);
	else
		bench_result_miss(result, "two relays: %.150s", reason);
	ob_child_done(&child);
	for (int i = 0; ok && i < STREAMS; i++) {
		double rate = (double)(load->count - flows[i].first) * 1e6 /
			      (flows[i].to_us - flows[i].from_us);

		*ret_rate = i == 0 || rate < *ret_rate ? rate : *ret_rate;
	}
	return ok;
}

static bool run_round(struct bench_env *env, const struct bench_subject *one,
		      const struct bench_subject *two, const struct bench_load *load,
		      uint32_t round, struct bench_result *result)
{
	struct bench_drained drained = { 0 };
	char reason[BENCH_TEXT_SIZE];
	double slower = 0;

	for (uint32_t turn = 0; turn < 2; turn++) {
		if ((turn + round) % 2) {
			if (!run_two(env, two, load, &slower, result))
				return false;
			continue;
		}
		bench_subject_fill(one, load);
		if (!bench_drain(env, one, load->count, false, &drained, reason)) {
			bench_result_miss(result, "%.150s", reason);
			return false;
		}
	}
	bench_result_add(result, "one_rate", drained.rate);
	bench_result_add(result, "each_rate", slower);
	bench_result_add(result, "ratio", slower / drained.rate);
	return true;
}

void bench_run_fanout(struct bench_env *env, const struct bench_case *c,
		      struct bench_result *result)
{
	const struct bench_load load = { .count = bench_case_messages(env, c),
					 .payload_size = c->payload_size };
	struct bench_subject one, two;

	if (!bench_case_subject(env, c, BENCH_RELAY, &one, result))
		return;
	if (!one.store->log) {
		bench_result_miss(result, "this program has one relay for a message");
		return;
	}
	two = one;
	two.relays = two_relays;
	for (uint32_t round = 0; round < env->rounds; round++) {
		if (!run_round(env, &one, &two, &load, round, result))
			return;
	}
	bench_subject_clear(&one);
}
