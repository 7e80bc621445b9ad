/* SPDX-License-Identifier: MIT */
/* Does the rate last? With a growing backlog, finished rows, and transactions that stay open. */
#include "bench/cases.h"
#include "bench/drain.h"
#include "bench/now.h"

enum { HELD_US = 60000000, HELD_QUICK_US = 2000000, PART = 100000, PART_QUICK = 2000 };

/* The broker's memory is not the question. */
static const char trimmed[] = ", max_len: 100000";

static bool drain_part(struct bench_env *env, const struct bench_subject *subject, uint64_t count,
		       const char *name, struct bench_result *result)
{
	struct bench_drained drained;
	char reason[BENCH_TEXT_SIZE];

	subject->broker->ops->clear(subject->broker);
	if (!bench_drain(env, subject, count, true, &drained, reason)) {
		bench_result_miss(result, "%s: %.150s", name, reason);
		return false;
	}
	bench_result_add(result, name, drained.rate);
	return true;
}

static bool drain_fresh(struct bench_env *env, const struct bench_subject *subject,
			const struct bench_load *load, const char *name,
			struct bench_result *result)
{
	bench_case_fill(subject, load);
	return drain_part(env, subject, load->pending, name, result);
}

/* A million at once, all of it, for the memory it takes. */
static bool drain_million(struct bench_env *env, const struct bench_subject *subject,
			  const struct bench_load *load, struct bench_result *result)
{
	struct bench_drained drained;
	char reason[BENCH_TEXT_SIZE];

	bench_case_fill(subject, load);
	if (!bench_drain(env, subject, load->pending, true, &drained, reason)) {
		bench_result_miss(result, "a large backlog: %.150s", reason);
		return false;
	}
	bench_result_add(result, "rate_1m", drained.rate);
	bench_result_add(result, "relay_peak_mb", drained.peak_mb);
	return true;
}

/* The rate before, and after a minute of work behind two transactions that never end. */
static void drain_held(struct bench_env *env, const struct bench_subject *subject, uint64_t part,
		       struct bench_result *result)
{
	struct bench_store *store = subject->store;
	struct ob_child child = { 0 };
	char reason[BENCH_TEXT_SIZE];

	subject->broker->ops->clear(subject->broker);
	store->ops->hold(store);
	bench_subject_start(env, subject, &child);
	bool ok = bench_drain_first(env, subject->broker, &child, reason);
	if (ok)
		bench_pause_us(env->quick ? HELD_QUICK_US : HELD_US);
	double rate = ok ? bench_drain_rate(env, subject->broker, &child, part, reason) : -1;
	if (rate < 0)
		bench_result_miss(result, "with open transactions: %.150s", reason);
	else
		bench_result_add(result, "rate_held", rate);
	if (rate >= 0)
		bench_subject_stop(env, &child);
	ob_child_done(&child);
	store->ops->let_go(store);
}

static void compare(struct bench_result *result, const char *name, const char *of,
		    const char *against)
{
	double base = bench_result_median(result, against);

	if (bench_result_get(result, of) && base > 0)
		bench_result_add(result, name, bench_result_median(result, of) / base);
}

/* c->messages is the largest backlog. */
void bench_run_backlog(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	uint64_t most = bench_case_messages(env, c), part = env->quick ? PART_QUICK : PART;
	struct bench_load load = { .payload_size = c->payload_size };
	struct bench_subject subject;
	bool ok = true;

	if (!bench_case_subject(env, c, &subject, result))
		return;
	subject.more_sink = trimmed;
	for (uint32_t round = 0; ok && round < env->rounds; round++) {
		load.pending = part / 10;
		ok = drain_fresh(env, &subject, &load, "rate_10k", result);
		load.pending = part;
		ok = ok && drain_fresh(env, &subject, &load, "rate_100k", result);
	}
	load.pending = part * 10;
	if (!ok || !drain_million(env, &subject, &load, result))
		return;
	load.pending = most;
	bench_case_fill(&subject, &load);
	for (uint32_t round = 0; ok && round < env->rounds; round++)
		ok = drain_part(env, &subject, part, "rate_largest", result);
	compare(result, "ratio_largest", "rate_largest", "rate_100k");
	if (ok && subject.store->ops->hold) {
		drain_held(env, &subject, part, result);
		compare(result, "ratio_held", "rate_held", "rate_largest");
	}
}

/* c->messages finished rows. */
void bench_run_published(struct bench_env *env, const struct bench_case *c,
			 struct bench_result *result)
{
	uint64_t part = env->quick ? PART_QUICK : PART;
	struct bench_load load = { .pending = part, .payload_size = c->payload_size };
	struct bench_subject subject;
	bool ok = true;

	if (!bench_case_subject(env, c, &subject, result))
		return;
	subject.more_sink = trimmed;
	for (uint32_t round = 0; ok && round < env->rounds; round++)
		ok = drain_fresh(env, &subject, &load, "rate_fresh", result);
	load.published = bench_case_messages(env, c);
	for (uint32_t round = 0; ok && round < env->rounds; round++) {
		if (round == 0)
			bench_case_fill(&subject, &load);
		else
			subject.store->ops->load(subject.store, &load);
		load.published = 0;
		ok = drain_part(env, &subject, part, "rate_published", result);
	}
	compare(result, "ratio_published", "rate_published", "rate_fresh");
}
