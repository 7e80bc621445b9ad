/* SPDX-License-Identifier: MIT */
/* A thread that makes a relay as soon as its store is there: connecting may take long. */
#include "cli/work/work.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

enum { WAIT_MS = 250, WAIT_MAX_MS = 5000 };

struct ob_opener {
	const struct ob_config_relay *conf;
	const struct ob_log *log;
	int fd; /* eventfd: the thread is through */
	pthread_t thread;
	bool started;
	struct ob_relay *relay; /* the thread's until it is through, and so is err */
	struct ob_err err;
	pthread_mutex_t lock; /* guards quit */
	pthread_cond_t changed;
	bool quit;
};

/* True when it shall end. */
static bool wait_ms(struct ob_opener *opener, int64_t ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_mutex_lock(&opener->lock);
	while (!opener->quit &&
	       pthread_cond_timedwait(&opener->changed, &opener->lock, &until) == 0)
		;
	bool quit = opener->quit;
	(void)pthread_mutex_unlock(&opener->lock);
	return quit;
}

static void *opener_main(void *arg)
{
	struct ob_opener *opener = arg;
	int64_t ms = WAIT_MS;

	while (!wait_ms(opener, ms)) {
		opener->err = (struct ob_err)OB_ERR_INIT;
		if (ob_work_make(opener->conf, opener->log, &opener->relay, &opener->err) >= 0 ||
		    opener->err.kind == OB_ERR_FATAL)
			break;
		opener->err = (struct ob_err)OB_ERR_INIT;
		ms = ms * 2 < WAIT_MAX_MS ? ms * 2 : WAIT_MAX_MS;
	}
	(void)eventfd_write(opener->fd, 1);
	return NULL;
}

int ob_opener_new(const struct ob_config_relay *conf, const struct ob_log *log,
		  struct ob_opener **ret_opener, struct ob_err *err)
{
	struct ob_opener *opener = calloc(1, sizeof(*opener));
	pthread_condattr_t attr;

	if (!opener)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	opener->conf = conf;
	opener->log = log;
	(void)pthread_mutex_init(&opener->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&opener->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	opener->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (opener->fd >= 0)
		opener->started = pthread_create(&opener->thread, NULL, opener_main, opener) == 0;
	if (!opener->started) {
		ob_opener_free(opener);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "starting a thread");
	}
	*ret_opener = opener;
	return 0;
}

int ob_opener_fd(const struct ob_opener *opener)
{
	return opener->fd;
}

void ob_opener_stop(struct ob_opener *opener)
{
	(void)pthread_mutex_lock(&opener->lock);
	opener->quit = true;
	(void)pthread_cond_broadcast(&opener->changed);
	(void)pthread_mutex_unlock(&opener->lock);
}

struct ob_relay *ob_opener_take(struct ob_opener *opener, struct ob_err *err)
{
	*err = opener->err;
	return OB_TAKE(opener->relay);
}

void ob_opener_free(struct ob_opener *opener)
{
	if (!opener)
		return;
	if (opener->started) {
		ob_opener_stop(opener);
		(void)pthread_join(opener->thread, NULL);
	}
	ob_relay_free(opener->relay);
	if (opener->fd >= 0)
		(void)close(opener->fd);
	(void)pthread_cond_destroy(&opener->changed);
	(void)pthread_mutex_destroy(&opener->lock);
	free(opener);
}
