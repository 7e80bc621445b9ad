/* SPDX-License-Identifier: MIT */
/* The thread of retention. */
#include "relay/retention.h"

#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
	PACE_PERCENT = 25, /* of the time may go to removing: the rest is the writers' */
};

#define HELD_SAY_US   (INT64_C(3600) * 1000000) /* how often a reader that holds rows is named */
#define HELD_STILL_US (INT64_C(60) * 1000000)   /* one that moved since is on its way */

struct ob_retention {
	struct ob_retention_conf conf;
	pthread_t thread;
	struct ob_store *store; /* the thread's */
	int64_t said_us;        /* the thread's: when it last named a reader */
	pthread_mutex_t lock;   /* guards quit */
	pthread_cond_t changed;
	bool quit;
};

/* Wait, or until it is time to quit; then true. */
static bool retention_wait_ms(struct ob_retention *retention, int64_t ms)
{
	struct timespec until;
	bool quit;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_mutex_lock(&retention->lock);
	while (!retention->quit &&
	       pthread_cond_timedwait(&retention->changed, &retention->lock, &until) != ETIMEDOUT)
		;
	quit = retention->quit;
	(void)pthread_mutex_unlock(&retention->lock);
	return quit;
}

/* A reader that nobody runs keeps the log growing: someone must know. */
static void log_held_rows(struct ob_retention *retention, const struct ob_retained *done)
{
	int64_t now = ob_clock_boot_us(retention->conf.clock);
	int64_t still_us = ob_clock_real_us(retention->conf.clock) - done->held_us;

	if (done->held_by.n == 0 || still_us < HELD_STILL_US || !retention->conf.log ||
	    (retention->said_us > 0 && now - retention->said_us < HELD_SAY_US))
		return;
	retention->said_us = now;

	char reader[256];

	(void)snprintf(reader, sizeof(reader), "%.*s", (int)done->held_by.n, done->held_by.p);
	ob_log(retention->conf.log, OB_LOG_WARN,
	       "a reader that does not move keeps old rows: run it, or remove it with 'outbox "
	       "readers remove'",
	       OB_KV("relay", retention->conf.relay), OB_KV("reader", reader),
	       OB_KI("still_ms", still_us / 1000));
}

static int retain_one_batch(struct ob_retention *retention, struct ob_retained *done,
			    struct ob_arena *arena, struct ob_err *err)
{
	const struct ob_config_retention *conf = retention->conf.retention;
	struct ob_retain retain = {
		.published_ms = conf->published_ms,
		.dead_ms = conf->dead_ms,
		.limit = conf->batch,
	};
	int r = 0;

	if (!retention->store)
		r = retention->conf.open(retention->conf.arg, &retention->store, err);
	if (r >= 0)
		r = ob_store_retain(retention->store, &retain, arena, done, err);
	return r;
}

static void retention_failed(struct ob_retention *retention, const struct ob_err *err)
{
	ob_metrics_error(retention->conf.metrics, OB_ERROR_OF_STORE,
			 ob_clock_real_us(retention->conf.clock), err, NULL);
	if (retention->conf.log)
		ob_log(retention->conf.log, OB_LOG_WARN, "retention failed, trying again later",
		       OB_KV("relay", retention->conf.relay), OB_KV("error", err->msg));
}

/* `rows`, `parts`: of this pass so far. A pass that another relay makes is not ours to tell. */
static void note_pass(struct ob_retention *retention, const struct ob_retained *done, uint64_t rows,
		      uint64_t parts)
{
	int64_t now = ob_clock_real_us(retention->conf.clock);
	struct ob_metrics_data *data = ob_metrics_lock(retention->conf.metrics);

	data->cleaned += done->rows;
	if (!done->busy) {
		data->retained_us = now;
		data->retained_rows = rows;
		data->retained_parts = parts;
		data->retained_held[0] = '\0';
		if (done->held_by.n)
			ob_worker_text(data->retained_held, sizeof(data->retained_held),
				       done->held_by);
	}
	ob_metrics_unlock(retention->conf.metrics);
}

/* All that may go, batch by batch; false: time to quit. */
static bool remove_all(struct ob_retention *retention)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_retained done = { 0 };
	uint64_t rows = 0, parts = 0;
	bool quit = false;

	do {
		struct ob_err err = OB_ERR_INIT;
		int64_t began = ob_clock_boot_us(retention->conf.clock);

		ob_arena_reset(&arena, SIZE_MAX);
		if (retain_one_batch(retention, &done, &arena, &err) < 0) {
			retention_failed(retention, &err);
			break;
		}
		rows += done.rows;
		parts += done.parts_dropped;
		note_pass(retention, &done, rows, parts);
		log_held_rows(retention, &done);

		int64_t took_ms = (ob_clock_boot_us(retention->conf.clock) - began) / 1000;

		quit = retention_wait_ms(
			retention, done.more ? took_ms * (100 - PACE_PERCENT) / PACE_PERCENT : 0);
	} while (done.more && !quit);
	ob_arena_done(&arena);
	/* Seldom used: the server gets its connection back. */
	ob_store_free(OB_TAKE(retention->store));
	return !quit;
}

static void *retention_main(void *arg)
{
	struct ob_retention *retention = arg;

	while (!retention_wait_ms(retention, retention->conf.retention->every_ms) &&
	       remove_all(retention))
		;
	return NULL;
}

int ob_retention_new(const struct ob_retention_conf *conf, struct ob_retention **ret_retention,
		     struct ob_err *err)
{
	struct ob_retention *retention = calloc(1, sizeof(*retention));
	pthread_condattr_t attr;

	if (!retention)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating retention");
	retention->conf = *conf;
	(void)pthread_mutex_init(&retention->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&retention->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	errno = pthread_create(&retention->thread, NULL, retention_main, retention);
	if (errno != 0) {
		int r = ob_err_errno(err, OUTBOX_ENOMEM, OB_ERR_FATAL,
				     "starting the thread of retention");

		(void)pthread_cond_destroy(&retention->changed);
		(void)pthread_mutex_destroy(&retention->lock);
		free(retention);
		return r;
	}
	*ret_retention = retention;
	return 0;
}

void ob_retention_free(struct ob_retention *retention)
{
	if (!retention)
		return;
	(void)pthread_mutex_lock(&retention->lock);
	retention->quit = true;
	(void)pthread_cond_broadcast(&retention->changed);
	(void)pthread_mutex_unlock(&retention->lock);
	(void)pthread_join(retention->thread, NULL);
	(void)pthread_cond_destroy(&retention->changed);
	(void)pthread_mutex_destroy(&retention->lock);
	free(retention);
}
