/* SPDX-License-Identifier: MIT */
/* The relay beside the bare loop: they take turns, and the order of the turns changes. */
#include "bench/cases.h"
#include "bench/drain.h"

#include <stdio.h>

/* Names of one subject's figures. */
struct names {
	const char *rate, *first_ms, *cpu, *store_cpu, *broker_cpu, *log, *dead, *peak;
};

static const struct names subject_names[] = {
	{ "relay_rate", "relay_first_ms", "relay_cpu_us", "relay_store_cpu_us",
	  "relay_broker_cpu_us", "relay_log_bytes", "relay_dead_rows", "relay_peak_mb" },
	{ "bare_rate", "bare_first_ms", "bare_cpu_us", "bare_store_cpu_us", "bare_broker_cpu_us",
	  "bare_log_bytes", "bare_dead_rows", "bare_peak_mb" },
};

static void note(struct bench_result *result, const struct names *names,
		 const struct bench_drained *d)
{
	bench_result_add(result, names->rate, d->rate);
	bench_result_add(result, names->first_ms, d->first_ms);
	bench_result_add(result, names->cpu, d->cpu_us);
	bench_result_add(result, names->store_cpu, d->store_cpu_us);
	bench_result_add(result, names->broker_cpu, d->broker_cpu_us);
	if (d->log_bytes >= 0)
		bench_result_add(result, names->log, d->log_bytes);
	if (d->dead_rows >= 0)
		bench_result_add(result, names->dead, d->dead_rows);
	bench_result_add(result, names->peak, d->peak_mb);
}

/* Cores that each part kept busy while the relay worked. */
static void describe_limit(const struct bench_subject *subject, struct bench_result *result)
{
	double rate = bench_result_median(result, "relay_rate") / 1e6;
	double relay = bench_result_median(result, "relay_cpu_us") * rate;
	double store = bench_result_median(result, "relay_store_cpu_us") * rate;
	double broker = bench_result_median(result, "relay_broker_cpu_us") * rate;
	int n = snprintf(result->limit, sizeof(result->limit), "busy cores: relay %.2f", relay);

	if (subject->store->pid)
		n += snprintf(result->limit + n, sizeof(result->limit) - (size_t)n, ", %s %.2f",
			      subject->store->ops->title, store);
	if (subject->broker->pid)
		(void)snprintf(result->limit + n, sizeof(result->limit) - (size_t)n, ", %s %.2f",
			       subject->broker->ops->title, broker);
}

static bool run_round(struct bench_env *env, const struct bench_case *c,
		      struct bench_subject *subject, uint32_t round, struct bench_result *result)
{
	const struct bench_load load = { .pending = bench_case_messages(env, c),
					 .payload_size = c->payload_size,
					 .one_key = c->one_key };
	struct bench_drained drained[2];
	char reason[BENCH_TEXT_SIZE];

	for (uint32_t turn = 0; turn < 2; turn++) {
		subject->bare = (turn + round) % 2;
		bench_case_fill(subject, &load);
		if (!bench_drain(env, subject, load.pending, false, &drained[subject->bare],
				 reason)) {
			bench_result_miss(result, "%s: %.150s",
					  subject->bare ? "the bare loop" : "the relay", reason);
			return false;
		}
		note(result, &subject_names[subject->bare], &drained[subject->bare]);
	}
	bench_result_add(result, "ratio", drained[0].rate / drained[1].rate);
	return true;
}

void bench_run_drain(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	struct bench_subject subject;

	if (!bench_case_subject(env, c, &subject, result))
		return;
	for (uint32_t round = 0; round < env->rounds; round++) {
		if (!run_round(env, c, &subject, round, result))
			return;
	}
	describe_limit(&subject, result);
}
