/* SPDX-License-Identifier: MIT */
/* The thread that asks the stores how much waits, who works, and who has which partition. */
#include "cli/work/work.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum {
	ARENA_MAX = 16 << 20,
	REST_US = 1000000, /* between two rounds at least */
	REST_FACTOR = 10,  /* and so many times as long as the round took */
};

struct source {
	struct ob_sample_job job;
	struct ob_store *store; /* the thread's */
	struct ob_arena arena;  /* the thread's */
	struct ob_sample made;  /* the thread's: the next sample while it is made */
	struct ob_sample sample;
};

struct ob_sampler {
	pthread_mutex_t lock; /* guards every source's sample, asked and stop */
	pthread_cond_t wake;
	bool asked, stop;
	struct source *sources;
	size_t count;
	int fd;
	pthread_t thread;
	bool started;
	int64_t rest_until_us; /* the thread's */
};

/* ---- one sample ---------------------------------------------------------- */

static bool is_own(const struct ob_sample_job *job, const struct ob_uuid *id)
{
	for (size_t i = 0; i < job->own_count; i++) {
		if (ob_uuid_eq(&job->own[i], id))
			return true;
	}
	return false;
}

static int take_counts(struct source *s, int64_t *ret_now_us, struct ob_err *err)
{
	struct ob_stats *stats;
	size_t count;
	int r = ob_store_stats(s->store, s->job.reader, OB_DASH_CAP, &s->arena, &stats, &count,
			       ret_now_us, err);

	if (r < 0 || count == 0)
		return r;
	const uint64_t *n = stats[0].count;
	s->made.backlog = n[OB_VIEW_PENDING] + n[OB_VIEW_FAILED] + n[OB_VIEW_PARKED];
	s->made.capped = s->made.backlog >= OB_DASH_CAP;
	if (s->made.capped)
		s->made.backlog = OB_DASH_CAP - 1;
	s->made.delayed = n[OB_VIEW_DELAYED];
	s->made.dead = n[OB_VIEW_DEAD];
	s->made.held_keys = stats[0].held_keys;
	if (stats[0].oldest_due_us && *ret_now_us > stats[0].oldest_due_us)
		s->made.oldest_us = *ret_now_us - stats[0].oldest_due_us;
	return 0;
}

static int take_workers(struct source *s, int64_t now_us, struct ob_err *err)
{
	struct ob_worker *workers;
	size_t count;
	int r = ob_store_workers(s->store, s->job.reader, &s->arena, &workers, &count, err);

	if (r < 0)
		return r;
	s->made.worker_count = count;
	for (size_t i = 0; i < count && i < OB_DASH_WORKERS; i++) {
		struct ob_dash_worker *worker = &s->made.workers[i];
		size_t n = workers[i].hostname.n;

		*worker = (struct ob_dash_worker){
			.id = workers[i].id,
			.pid = workers[i].pid,
			.mine = is_own(&s->job, &workers[i].id),
			.beat_us = workers[i].heartbeat_until_us - now_us,
			.published = workers[i].published,
			.failed = workers[i].failed,
		};
		if (n >= OB_DASH_HOST)
			n = OB_DASH_HOST - 1;
		if (n)
			memcpy(worker->host, workers[i].hostname.p, n);
		worker->told = ob_worker_report_read(&worker->report, workers[i].state);
	}
	return 0;
}

static int take_partitions(struct source *s, struct ob_err *err)
{
	struct ob_partition *parts;
	size_t count;
	int r = ob_store_partitions(s->store, s->job.reader, &s->arena, &parts, &count, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].number >= OB_PARTITIONS_MAX)
			continue;
		if (parts[i].number >= s->made.partition_count)
			s->made.partition_count = parts[i].number + 1;
		if (!parts[i].leased)
			continue;
		s->made.owners[parts[i].number] =
			is_own(&s->job, &parts[i].owner) ? OB_DASH_MINE : OB_DASH_OTHER;
		for (size_t w = 0; w < s->made.worker_count && w < OB_DASH_WORKERS; w++)
			s->made.workers[w].partitions +=
				ob_uuid_eq(&s->made.workers[w].id, &parts[i].owner);
	}
	return 0;
}

/* A store that does not answer is asked again the next time; the relay itself says what is wrong.
 */
static bool take_sample(struct source *s)
{
	struct ob_err err = OB_ERR_INIT;
	int64_t now_us = 0;

	if (!s->store && ob_store_connect(s->job.store, &s->store, &err) < 0)
		return false;
	ob_arena_reset(&s->arena, 1 << 20);
	s->made = (struct ob_sample){ 0 };
	if (take_counts(s, &now_us, &err) < 0 || take_workers(s, now_us, &err) < 0 ||
	    take_partitions(s, &err) < 0)
		return false;
	s->made.valid = true;
	s->made.taken_us = ob_clock_boot_us(&ob_clock_system);
	return true;
}

/* ---- the thread ------------------------------------------------------------ */

static void sample_all(struct ob_sampler *sampler)
{
	int64_t start_us = ob_clock_boot_us(&ob_clock_system);

	if (start_us < sampler->rest_until_us)
		return;
	for (size_t i = 0; i < sampler->count; i++) {
		struct source *s = &sampler->sources[i];
		bool taken = take_sample(s);

		(void)pthread_mutex_lock(&sampler->lock);
		if (taken)
			s->sample = s->made;
		else
			s->sample.valid = false;
		(void)pthread_mutex_unlock(&sampler->lock);
	}
	int64_t end_us = ob_clock_boot_us(&ob_clock_system);
	int64_t rest_us = (end_us - start_us) * REST_FACTOR;
	/* From its start, so that somebody who asks every second is answered every second. */
	sampler->rest_until_us = rest_us > REST_US ? end_us + rest_us : start_us + REST_US * 9 / 10;
}

static void *sampler_main(void *arg)
{
	struct ob_sampler *sampler = arg;

	(void)pthread_mutex_lock(&sampler->lock);
	while (!sampler->stop) {
		if (!sampler->asked) {
			(void)pthread_cond_wait(&sampler->wake, &sampler->lock);
			continue;
		}
		sampler->asked = false;
		(void)pthread_mutex_unlock(&sampler->lock);
		sample_all(sampler);
		(void)eventfd_write(sampler->fd, 1);
		(void)pthread_mutex_lock(&sampler->lock);
	}
	(void)pthread_mutex_unlock(&sampler->lock);
	for (size_t i = 0; i < sampler->count; i++)
		ob_store_free(sampler->sources[i].store);
	return NULL;
}

/* ---- from outside ------------------------------------------------------------ */

int ob_sampler_new(const struct ob_sample_job *jobs, size_t count, struct ob_sampler **ret_sampler,
		   struct ob_err *err)
{
	struct ob_sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	(void)pthread_mutex_init(&sampler->lock, NULL);
	(void)pthread_cond_init(&sampler->wake, NULL);
	sampler->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sampler->sources = calloc(count ? count : 1, sizeof(*sampler->sources));
	sampler->count = sampler->sources ? count : 0;
	for (size_t i = 0; i < sampler->count; i++) {
		sampler->sources[i].job = jobs[i];
		sampler->sources[i].arena = OB_ARENA_INIT(ARENA_MAX);
	}
	if (sampler->sources && sampler->fd >= 0)
		sampler->started =
			pthread_create(&sampler->thread, NULL, sampler_main, sampler) == 0;
	if (!sampler->started) {
		ob_sampler_free(sampler);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting the sampler");
	}
	*ret_sampler = sampler;
	return 0;
}

void ob_sampler_free(struct ob_sampler *sampler)
{
	if (!sampler)
		return;
	if (sampler->started) {
		(void)pthread_mutex_lock(&sampler->lock);
		sampler->stop = true;
		(void)pthread_cond_signal(&sampler->wake);
		(void)pthread_mutex_unlock(&sampler->lock);
		(void)pthread_join(sampler->thread, NULL);
	}
	for (size_t i = 0; i < sampler->count; i++)
		ob_arena_done(&sampler->sources[i].arena);
	if (sampler->fd >= 0)
		(void)close(sampler->fd);
	(void)pthread_cond_destroy(&sampler->wake);
	(void)pthread_mutex_destroy(&sampler->lock);
	free(sampler->sources);
	free(sampler);
}

void ob_sampler_ask(struct ob_sampler *sampler)
{
	(void)pthread_mutex_lock(&sampler->lock);
	sampler->asked = true;
	(void)pthread_cond_signal(&sampler->wake);
	(void)pthread_mutex_unlock(&sampler->lock);
}

int ob_sampler_fd(const struct ob_sampler *sampler)
{
	return sampler->fd;
}

void ob_sampler_consume(struct ob_sampler *sampler)
{
	eventfd_t value;

	(void)eventfd_read(sampler->fd, &value);
}

void ob_sampler_read(struct ob_sampler *sampler, size_t index, struct ob_sample *ret)
{
	(void)pthread_mutex_lock(&sampler->lock);
	*ret = sampler->sources[index].sample;
	(void)pthread_mutex_unlock(&sampler->lock);
}
