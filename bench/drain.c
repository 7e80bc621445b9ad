/* SPDX-License-Identifier: MIT */
/* Watching a drain without disturbing it: a cheap question every few milliseconds. */
#include "bench/drain.h"

#include "bench/now.h"
#include "bench/usage.h"

#include <stdio.h>

enum { LOOK_US = 4000, FIRST_LOOK_US = 500, SILENCE_US = 120000000 };

struct sample {
	double at_us, cpu_us, store_cpu_us, broker_cpu_us, log_bytes;
	uint64_t stored;
};

static double cpu_of(pid_t pid)
{
	return pid > 0 ? bench_cpu_us(pid) : 0;
}

static void take(const struct bench_subject *subject, const struct ob_child *child,
		 struct sample *s)
{
	struct bench_store *store = subject->store;

	s->at_us = bench_now_us();
	s->stored = subject->broker->ops->count(subject->broker);
	s->cpu_us = cpu_of(child->pid);
	s->store_cpu_us = cpu_of(store->pid);
	s->broker_cpu_us = cpu_of(subject->broker->pid);
	s->log_bytes = store->ops->log_bytes ? (double)store->ops->log_bytes(store) : 0;
}

static bool has_ended(struct bench_env *env, struct ob_child *child, char reason[BENCH_TEXT_SIZE])
{
	char words[BENCH_TEXT_SIZE];

	if (ob_child_look(child) != OB_CHILD_ENDED)
		return false;
	bench_subject_words(env, words);
	(void)snprintf(reason, BENCH_TEXT_SIZE, "the process ended with %d: %.150s", child->code,
		       words);
	return true;
}

/* Until the broker has `goal`; false: ended, or no progress for a long time. */
static bool wait_stored(struct bench_env *env, struct bench_broker *broker, struct ob_child *child,
			uint64_t goal, long look_us, char reason[BENCH_TEXT_SIZE])
{
	double moved_us = bench_now_us();
	uint64_t seen = 0, count;

	while ((count = broker->ops->count(broker)) < goal) {
		if (has_ended(env, child, reason))
			return false;
		if (count > seen) {
			seen = count;
			moved_us = bench_now_us();
		} else if (bench_now_us() - moved_us > SILENCE_US) {
			char words[BENCH_TEXT_SIZE];

			bench_subject_words(env, words);
			(void)snprintf(reason, BENCH_TEXT_SIZE,
				       "nothing stored for %d s at %llu of %llu %.100s",
				       SILENCE_US / 1000000, (unsigned long long)count,
				       (unsigned long long)goal, words);
			return false;
		}
		bench_pause_us(look_us > broker->ops->look_us ? look_us : broker->ops->look_us);
	}
	return true;
}

bool bench_drain_first(struct bench_env *env, struct bench_broker *broker, struct ob_child *child,
		       char reason[BENCH_TEXT_SIZE])
{
	return wait_stored(env, broker, child, 1, FIRST_LOOK_US, reason);
}

static bool wait_settled(struct bench_env *env, const struct bench_subject *subject,
			 struct ob_child *child, char reason[BENCH_TEXT_SIZE])
{
	double end_us = bench_now_us() + SILENCE_US;

	while (!bench_subject_is_settled(subject)) {
		if (has_ended(env, child, reason))
			return false;
		if (bench_now_us() > end_us) {
			(void)snprintf(reason, BENCH_TEXT_SIZE, "rows are never settled");
			return false;
		}
		bench_pause_us(LOOK_US);
	}
	return true;
}

double bench_drain_rate(struct bench_env *env, struct bench_broker *broker, struct ob_child *child,
			uint64_t more, char reason[BENCH_TEXT_SIZE])
{
	double from_us = bench_now_us();
	uint64_t from = broker->ops->count(broker);

	if (!wait_stored(env, broker, child, from + more, LOOK_US, reason))
		return -1;
	return (double)(broker->ops->count(broker) - from) * 1e6 / (bench_now_us() - from_us);
}

static void fill(const struct sample *from, const struct sample *to, uint64_t messages,
		 struct bench_drained *out)
{
	double count = (double)(messages - from->stored);

	out->rate = count * 1e6 / (to->at_us - from->at_us);
	out->cpu_us = (to->cpu_us - from->cpu_us) / count;
	out->store_cpu_us = (to->store_cpu_us - from->store_cpu_us) / count;
	out->broker_cpu_us = (to->broker_cpu_us - from->broker_cpu_us) / count;
	out->log_bytes = (to->log_bytes - from->log_bytes) / count;
}

static bool watch(struct bench_env *env, const struct bench_subject *subject,
		  struct ob_child *child, uint64_t messages, bool part, struct bench_drained *ret,
		  char reason[BENCH_TEXT_SIZE])
{
	struct sample start, begin, end;

	take(subject, child, &start);
	start.stored = 0;
	if (!bench_drain_first(env, subject->broker, child, reason))
		return false;
	take(subject, child, &begin);
	ret->first_ms = (begin.at_us - start.at_us) / 1e3;
	if (!wait_stored(env, subject->broker, child, messages, LOOK_US, reason) ||
	    (!part && !wait_settled(env, subject, child, reason)))
		return false;
	take(subject, child, &end);
	if (part)
		messages = end.stored;
	fill(begin.stored * 2 > messages ? &start : &begin, &end, messages, ret);
	ret->peak_mb = (double)bench_resident_peak_kb(child->pid) / 1024;
	return true;
}

bool bench_drain(struct bench_env *env, const struct bench_subject *subject, uint64_t messages,
		 bool part, struct bench_drained *ret, char reason[BENCH_TEXT_SIZE])
{
	struct bench_store *store = subject->store;
	uint64_t dead = store->ops->dead_rows ? store->ops->dead_rows(store) : 0;
	struct ob_child child = { 0 };

	*ret = (struct bench_drained){ .dead_rows = -1 };
	bench_subject_start(env, subject, &child);
	bool ok = watch(env, subject, &child, messages, part, ret, reason);
	if (ok)
		bench_subject_stop(env, &child);
	ob_child_done(&child);
	if (!store->ops->log_bytes)
		ret->log_bytes = -1;
	if (ok && !part && store->ops->dead_rows)
		ret->dead_rows = (double)(store->ops->dead_rows(store) - dead) / (double)messages;
	return ok;
}
