/* SPDX-License-Identifier: MIT */
/* Does the rate last? With a large backlog, finished rows, and transactions that stay open. */
#include "bench/cases/cases.h"
#include "bench/drain.h"
#include "bench/now.h"
#include "bench/store/schema.h"

enum {
	HELD_US = 60000000,
	HELD_QUICK_US = 2000000,
	PART = 100000,
	PART_QUICK = 2000,
	TURNS = 3,                   /* in each round: parts are small, so their rates scatter */
	STOPPING = 20 * BENCH_BATCH, /* what a relay may still send when it is told to stop */
};

/* The broker's memory is not the question. */
static const char trimmed[] = ", max_len: 100000";

/* The large table and the small one that takes turns with it. */
struct pair {
	struct bench_env *env;
	struct bench_subject large, small;
	struct bench_load part;
	struct bench_result *result;
};

static bool get_pair(struct bench_env *env, const struct bench_case *c, struct pair *pair,
		     struct bench_result *result)
{
	const char *reason = "";

	*pair = (struct pair){ .env = env, .result = result };
	if (!bench_case_subject(env, c, BENCH_RELAY, &pair->large, result))
		return false;
	pair->large.more_sink = trimmed;
	pair->small = pair->large;
	pair->small.store = bench_env_store(env, BENCH_SPARE, c->store, &reason);
	if (!pair->small.store)
		bench_result_miss(result, "%s", reason);
	pair->part = (struct bench_load){ .count = env->quick ? PART_QUICK : PART,
					  .payload_size = c->payload_size };
	return pair->small.store != NULL;
}

/* So many messages of what is there. */
static bool drain_part(const struct pair *pair, const struct bench_subject *subject, uint64_t count,
		       const char *name)
{
	struct bench_drained drained;
	char reason[BENCH_TEXT_SIZE];

	subject->broker->ops->clear(subject->broker);
	if (!bench_drain(pair->env, subject, count, true, &drained, reason)) {
		bench_result_miss(pair->result, "%s: %.150s", name ? name : "before", reason);
		return false;
	}
	if (name)
		bench_result_add(pair->result, name, drained.rate);
	return true;
}

/* Does the backlog last for so many parts, and this much besides? */
static bool is_enough(const struct pair *pair, uint64_t backlog, uint64_t parts, uint64_t besides)
{
	if (backlog >= parts * (pair->part.count + STOPPING) + besides)
		return true;
	bench_result_miss(pair->result, "%llu messages are too few for %llu parts of %llu",
			  (unsigned long long)backlog, (unsigned long long)parts,
			  (unsigned long long)pair->part.count);
	return false;
}

static bool drain_fresh(const struct pair *pair, const char *name)
{
	bench_subject_fill(&pair->small, &pair->part);
	return drain_part(pair, &pair->small, pair->part.count, name);
}

/* Of the round's rates; the order of the two changes. */
static bool take_turns(const struct pair *pair, uint32_t turn, bool load, const char *large,
		       const char *small)
{
	for (uint32_t i = 0; i < 2; i++) {
		bool is_large = (i + turn) % 2 == 0;

		if (is_large && load)
			bench_schema_load(pair->large.store, &pair->part);
		if (is_large ? !drain_part(pair, &pair->large, pair->part.count, large)
			     : !drain_fresh(pair, small))
			return false;
	}
	return true;
}

static void compare(struct bench_result *result, const char *name, const char *of,
		    const char *against)
{
	double base = bench_result_median(result, against);

	if (bench_result_get(result, of) && base > 0)
		bench_result_add(result, name, bench_result_median(result, of) / base);
}

/* c->messages is the large backlog; a part of it is drained in each turn. */
void bench_run_backlog(struct bench_env *env, const struct bench_case *c,
		       struct bench_result *result)
{
	uint64_t messages = bench_case_messages(env, c);
	uint32_t turns = env->rounds * TURNS;
	struct pair pair;

	if (!get_pair(env, c, &pair, result) || !is_enough(&pair, messages, turns, 0))
		return;
	bench_subject_fill(&pair.large, &(struct bench_load){ .count = messages,
							      .payload_size = c->payload_size });
	for (uint32_t turn = 0; turn < turns; turn++) {
		if (!take_turns(&pair, turn, false, "rate_large", "rate_small"))
			break;
	}
	compare(result, "ratio", "rate_large", "rate_small");
	bench_subject_clear(&pair.large);
	bench_subject_clear(&pair.small);
}

/* c->messages finished rows: the relay itself delivers them first. */
void bench_run_finished(struct bench_env *env, const struct bench_case *c,
			struct bench_result *result)
{
	uint64_t finished = bench_case_messages(env, c);
	struct pair pair;

	if (!get_pair(env, c, &pair, result))
		return;
	bench_subject_fill(&pair.large, &(struct bench_load){ .count = finished,
							      .payload_size = c->payload_size });
	bool ok = drain_part(&pair, &pair.large, finished, NULL);
	for (uint32_t turn = 0; ok && turn < env->rounds * TURNS; turn++)
		ok = take_turns(&pair, turn, true, "rate_large", "rate_small");
	compare(result, "ratio", "rate_large", "rate_small");
	bench_subject_clear(&pair.large);
	bench_subject_clear(&pair.small);
}

static bool drain_parts(const struct pair *pair, const char *name)
{
	bool ok = true;

	for (uint32_t turn = 0; ok && turn < pair->env->rounds * TURNS; turn++)
		ok = drain_part(pair, &pair->large, pair->part.count, name);
	return ok;
}

/*
 * The rate before, and again after, two transactions were open for a minute: one has written and
 * one has a snapshot. Meanwhile a fifth of the backlog is worked off, so that there is much which
 * cannot be cleaned up.
 */
void bench_run_held(struct bench_env *env, const struct bench_case *c, struct bench_result *result)
{
	uint64_t messages = bench_case_messages(env, c);
	uint32_t turns = env->rounds * TURNS;
	struct bench_store *store;
	struct pair pair;

	if (!get_pair(env, c, &pair, result) ||
	    !is_enough(&pair, messages, UINT64_C(3) * turns, messages / 5))
		return;
	store = pair.large.store;
	bench_subject_fill(&pair.large, &(struct bench_load){ .count = messages,
							      .payload_size = c->payload_size });
	bool ok = drain_parts(&pair, "rate_small");
	store->ops->hold(store);
	double old_us = bench_now_us() + (env->quick ? HELD_QUICK_US : HELD_US);
	ok = ok && drain_part(&pair, &pair.large, messages / 5, NULL);
	if (ok)
		bench_pause_until(old_us);
	ok = ok && drain_parts(&pair, "rate_large");
	store->ops->let_go(store);
	if (ok)
		(void)drain_parts(&pair, "rate_small");
	compare(result, "ratio", "rate_large", "rate_small");
	bench_subject_clear(&pair.large);
}
