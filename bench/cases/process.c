/* SPDX-License-Identifier: MIT */
/* What the relay's process takes: memory for large messages, an idle hour, a start. */
#include "bench/cases/cases.h"
#include "bench/drain.h"
#include "bench/now.h"
#include "bench/usage.h"

enum { SETTLE_US = 2000000, IDLE_US = 10000000, IDLE_QUICK_US = 2000000 };

void bench_run_memory(struct bench_env *env, const struct bench_case *c,
		      struct bench_result *result)
{
	const struct bench_load load = { .count = bench_case_messages(env, c),
					 .payload_size = c->payload_size };
	struct bench_subject subject;
	struct bench_drained drained;
	char reason[BENCH_TEXT_SIZE];

	if (!bench_case_subject(env, c, BENCH_RELAY, &subject, result))
		return;
	subject.more_sink = ", max_len: 1000"; /* the broker's memory is not the question */
	bench_subject_fill(&subject, &load);
	if (!bench_drain(env, &subject, load.count, false, &drained, reason)) {
		bench_result_miss(result, "%s", reason);
		return;
	}
	bench_result_add(result, "relay_rate", drained.rate);
	bench_result_add(result, "relay_peak_mb", drained.peak_mb);
}

void bench_run_idle(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	const struct bench_load load = { .count = 1, .payload_size = c->payload_size };
	struct bench_subject subject;
	struct ob_child child = { 0 };
	char reason[BENCH_TEXT_SIZE];

	if (!bench_case_subject(env, c, BENCH_RELAY, &subject, result))
		return;
	bench_subject_fill(&subject, &load);
	bench_subject_start(env, &subject, &child);
	if (bench_drain_first(env, subject.broker, &child, reason)) {
		bench_pause_us(SETTLE_US);
		double from_us = bench_now_us(), cpu_us = bench_cpu_us(child.pid);

		bench_pause_us(env->quick ? IDLE_QUICK_US : IDLE_US);
		bench_result_add(result, "idle_cpu_percent",
				 (bench_cpu_us(child.pid) - cpu_us) * 100 /
					 (bench_now_us() - from_us));
		bench_result_add(result, "resident_mb",
				 (double)bench_resident_kb(child.pid) / 1024);
		bench_subject_stop(env, &child);
	} else {
		bench_result_miss(result, "%s", reason);
	}
	ob_child_done(&child);
}

void bench_run_start(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	const struct bench_load load = { .count = 1, .payload_size = c->payload_size };
	struct bench_subject subject;
	char reason[BENCH_TEXT_SIZE];

	if (!bench_case_subject(env, c, BENCH_RELAY, &subject, result))
		return;
	for (uint32_t round = 0; round < env->rounds * 3; round++) {
		struct ob_child child = { 0 };

		bench_subject_fill(&subject, &load);
		double from_us = bench_now_us();

		bench_subject_start(env, &subject, &child);
		if (bench_drain_first(env, subject.broker, &child, reason)) {
			bench_result_add(result, "first_ms", (bench_now_us() - from_us) / 1e3);
			bench_subject_stop(env, &child);
		} else {
			bench_result_miss(result, "%s", reason);
		}
		ob_child_done(&child);
	}
}
