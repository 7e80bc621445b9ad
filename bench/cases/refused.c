/* SPDX-License-Identifier: MIT */
/*
 * A receiver that refuses 15 of 1,000 messages at their first attempt, over few keys, beside one
 * that takes everything. A refused message holds its key, so what follows it waits.
 */
#include "bench/broker/parts.h"
#include "bench/cases/cases.h"
#include "bench/drain.h"

enum { PER_MILLE = 15 };

/* The wait is short against the drain: what is measured is the work, not the waiting. */
static const char retry[] = "    retry: { base_delay: 20ms, multiplier: 1, jitter: 0 }\n";

/* Names of one subject's figures. */
static const char *const names[][3] = {
	[BENCH_RELAY] = { "clean_rate", "refused_rate", "ratio" },
	[BENCH_KEEP] = { "keep_clean_rate", "keep_refused_rate", "keep_ratio" },
};

static bool run_turn(struct bench_env *env, const struct bench_case *c,
		     const struct bench_subject *subject, bool refuse, double *ret_rate,
		     struct bench_result *result)
{
	const struct bench_load load = { .count = bench_case_messages(env, c),
					 .payload_size = c->payload_size,
					 .keys = c->keys };
	struct bench_drained drained;
	char reason[BENCH_TEXT_SIZE];

	bench_subject_fill(subject, &load);
	bench_exec_refuse(subject->broker, refuse ? PER_MILLE : 0);
	bool ok = bench_drain(env, subject, load.count, false, &drained, reason);
	if (ok)
		*ret_rate = drained.rate;
	else
		bench_result_miss(result, "%s: %.150s", bench_kind_titles[subject->kind], reason);
	bench_subject_clear(subject);
	return ok;
}

void bench_run_refused(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	static const enum bench_kind kinds[] = { BENCH_RELAY, BENCH_KEEP };
	struct bench_subject subjects[2];
	size_t count = 0;

	for (size_t i = 0; i < 2; i++) {
		if (bench_case_subject(env, c, kinds[i], &subjects[count], result))
			subjects[count++].more_relay = retry;
	}
	for (uint32_t turn = 0; !result->missing[0] && turn < env->rounds * count; turn++) {
		const struct bench_subject *subject = &subjects[turn % count];
		double rates[2] = { 0 };

		for (uint32_t i = 0; i < 2; i++) {
			bool refuse = (i + turn) % 2;

			if (!run_turn(env, c, subject, refuse, &rates[refuse], result))
				return;
		}
		bench_result_add(result, names[subject->kind][0], rates[0]);
		bench_result_add(result, names[subject->kind][1], rates[1]);
		bench_result_add(result, names[subject->kind][2], rates[1] / rates[0]);
	}
}
