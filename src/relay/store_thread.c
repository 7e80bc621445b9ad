/* SPDX-License-Identifier: MIT */
/* A thread that makes store calls for a worker. */
#include "relay/store_thread.h"

#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

struct store_thread {
	struct ob_store_thread base;
	struct ob_store_thread_conf conf;
	pthread_t thread;
	bool started;           /* the caller's */
	struct ob_store *store; /* the thread's own; NULL: not connected */
	pthread_mutex_t lock;   /* guards what follows */
	pthread_cond_t changed;
	struct ob_store_job *job;
	bool quit;
};

int ob_settle_job_call(struct ob_store_job *job, struct ob_store *store, struct ob_err *err)
{
	return ob_store_settle(store, &((struct ob_settle_job *)job)->settle, err);
}

int ob_read_job_call(struct ob_store_job *job, struct ob_store *store, struct ob_err *err)
{
	struct ob_read_job *own = (struct ob_read_job *)job;

	return ob_store_read(store, &own->read, own->batch, &own->done, err);
}

/* ---- the thread ------------------------------------------------------ */

static void run_job(struct store_thread *s, struct ob_store_job *job)
{
	job->err = (struct ob_err)OB_ERR_INIT;
	job->r = s->store || !s->conf.open ? 0 : s->conf.open(s->conf.arg, &s->store, &job->err);
	if (job->r < 0) {
		/* The worker goes on with the connection that it has; if that is refused, it knows.
		 */
		job->err.kind = OB_ERR_DOWN;
		return;
	}
	job->r = job->call(job, s->conf.open ? s->store : s->conf.store, &job->err);
}

static struct timespec idle_end(const struct store_thread *s)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += s->conf.idle_ms / 1000;
	until.tv_nsec += s->conf.idle_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return until;
}

/* A job, or NULL to end. */
static struct ob_store_job *next_job(struct store_thread *s)
{
	struct timespec until = idle_end(s);

	while (!s->job && !s->quit) {
		if (!s->store) {
			(void)pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		if (pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT || s->job)
			continue;

		struct ob_store *store = OB_TAKE(s->store);

		/* Not under the lock: a worker with a job should not wait for a farewell. */
		(void)pthread_mutex_unlock(&s->lock);
		ob_store_free(store);
		(void)pthread_mutex_lock(&s->lock);
	}
	return s->job;
}

static void *store_thread_main(void *arg)
{
	struct store_thread *s = arg;
	struct ob_store_job *job;

	(void)pthread_mutex_lock(&s->lock);
	while ((job = next_job(s)) != NULL) {
		(void)pthread_mutex_unlock(&s->lock);
		run_job(s, job);
		(void)pthread_mutex_lock(&s->lock);
		s->job = NULL;
		(void)pthread_cond_broadcast(&s->changed);
		/* Full is as good as written. */
		(void)!eventfd_write(s->conf.wake_fd, 1);
	}
	(void)pthread_mutex_unlock(&s->lock);
	ob_store_free(s->store);
	return NULL;
}

/* ---- the caller's side ----------------------------------------------- */

static bool start_job(struct ob_store_thread *thread, struct ob_store_job *job)
{
	struct store_thread *s = (struct store_thread *)thread;

	if (!s->started)
		s->started = pthread_create(&s->thread, NULL, store_thread_main, s) == 0;
	if (!s->started)
		return false;
	(void)pthread_mutex_lock(&s->lock);
	s->job = job;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	return true;
}

static bool job_ended(struct ob_store_thread *thread, bool wait)
{
	struct store_thread *s = (struct store_thread *)thread;

	(void)pthread_mutex_lock(&s->lock);
	while (wait && s->job)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	bool done = !s->job;
	(void)pthread_mutex_unlock(&s->lock);
	return done;
}

int ob_store_thread_new(const struct ob_store_thread_conf *conf,
			struct ob_store_thread **ret_thread, struct ob_err *err)
{
	struct store_thread *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating a store thread");
	s->base = (struct ob_store_thread){ start_job, job_ended };
	s->conf = *conf;
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	*ret_thread = &s->base;
	return 0;
}

void ob_store_thread_free(struct ob_store_thread *thread)
{
	struct store_thread *s = (struct store_thread *)thread;

	if (!s)
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->quit = true;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	if (s->started)
		(void)pthread_join(s->thread, NULL);
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}
