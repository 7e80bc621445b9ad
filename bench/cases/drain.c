/* SPDX-License-Identifier: MIT */
/* The relay beside the baseline and the loops: they take turns, and who begins changes. */
#include "bench/drain.h"
#include "bench/cases/cases.h"

#include <stdio.h>

/* Names of one subject's figures. */
struct names {
	const char *rate, *first_ms, *cpu, *store_cpu, *broker_cpu, *log, *dead, *peak, *ratio;
};

#define NAMES(who) \
	{ \
		who "_rate", who "_first_ms", who "_cpu_us", who "_store_cpu_us", \
			who "_broker_cpu_us", who "_log_bytes", who "_dead_rows", who "_peak_mb", \
			"ratio_" who \
	}

static const struct names kind_names[BENCH_KINDS] = {
	[BENCH_RELAY] = NAMES("relay"),   [BENCH_KEEP] = NAMES("keep"),
	[BENCH_DELETE] = NAMES("delete"), [BENCH_CURSOR] = NAMES("cursor"),
	[BENCH_NODE] = NAMES("node"),
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

static bool run_turn(struct bench_env *env, const struct bench_case *c,
		     const struct bench_subject *subject, struct bench_drained *drained,
		     struct bench_result *result)
{
	const struct bench_load load = { .count = bench_case_messages(env, c),
					 .payload_size = c->payload_size,
					 .keys = c->keys };
	char reason[BENCH_TEXT_SIZE];

	bench_subject_fill(subject, &load);
	bool ok = bench_drain(env, subject, load.count, false, drained, reason);
	if (ok)
		note(result, &kind_names[subject->kind], drained);
	else
		bench_result_miss(result, "%s: %.150s", bench_kind_titles[subject->kind], reason);
	bench_subject_clear(subject);
	return ok;
}

static bool run_round(struct bench_env *env, const struct bench_case *c,
		      const struct bench_subject *subjects, size_t count, uint32_t round,
		      struct bench_result *result)
{
	struct bench_drained drained[BENCH_KINDS] = { 0 };

	for (size_t turn = 0; turn < count; turn++) {
		const struct bench_subject *subject = &subjects[(turn + round) % count];

		if (!run_turn(env, c, subject, &drained[subject->kind], result))
			return false;
	}
	for (size_t i = 1; i < count; i++)
		bench_result_add(result, kind_names[subjects[i].kind].ratio,
				 drained[BENCH_RELAY].rate / drained[subjects[i].kind].rate);
	return true;
}

void bench_run_drain(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	struct bench_subject subjects[BENCH_KINDS];
	size_t count = 0;

	for (unsigned kind = 0; kind < BENCH_KINDS; kind++) {
		if (!(c->kinds >> kind & 1))
			continue;
		if (bench_case_subject(env, c, kind, &subjects[count], result))
			count++;
		else if (kind == BENCH_RELAY)
			return;
	}
	for (uint32_t round = 0; round < env->rounds; round++) {
		if (!run_round(env, c, subjects, count, round, result))
			return;
	}
	describe_limit(&subjects[0], result);
}
