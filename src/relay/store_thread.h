/* SPDX-License-Identifier: MIT */
/*
 * Store calls that run while the worker goes on: settling what was published, reading what
 * comes next. One job at a time; what it points to stays as it is until the job has ended.
 *
 * The real one is a thread, which starts with the first job. A settler opens a connection of its
 * own, and gives it back when there was no job for a while: an idle worker has one connection. A
 * reader is lent the worker's connection, which the worker does not touch while a job runs.
 */
#ifndef OB_RELAY_STORE_THREAD_H
#define OB_RELAY_STORE_THREAD_H

#include "store/store.h"

struct ob_store_job {
	/* Called by the thread; < 0 and *err when it failed. */
	int (*call)(struct ob_store_job *job, struct ob_store *store, struct ob_err *err);
	struct ob_err err; /* FATAL only from the call itself, not from connecting */
	int r;             /* what the call returned */
};

struct ob_settle_job {
	struct ob_store_job base;
	struct ob_settle settle;
};

struct ob_read_job {
	struct ob_store_job base;
	struct ob_read read;
	struct ob_batch *batch;
	struct ob_read_done done;
};

/* For base.call: ob_store_settle() and ob_store_read(). */
int ob_settle_job_call(struct ob_store_job *job, struct ob_store *store, struct ob_err *err);
int ob_read_job_call(struct ob_store_job *job, struct ob_store *store, struct ob_err *err);

struct ob_store_thread {
	/* Take a job; false: not now, make the call yourself. */
	bool (*start)(struct ob_store_thread *thread, struct ob_store_job *job);
	/* Has it ended? With `wait`, not before it has. */
	bool (*ended)(struct ob_store_thread *thread, bool wait);
};

typedef int ob_store_thread_open_fn(void *arg, struct ob_store **ret_store, struct ob_err *err);

struct ob_store_thread_conf {
	/* Called by the thread, which owns what it returns. NULL: `store` is used. */
	ob_store_thread_open_fn *open;
	void *arg;
	struct ob_store *store; /* borrowed */
	int wake_fd;            /* an eventfd, written when a job has ended */
	int64_t idle_ms; /* an own connection is given back when there was no job for so long */
};

/* On success the caller owns *ret_thread. */
int ob_store_thread_new(const struct ob_store_thread_conf *conf,
			struct ob_store_thread **ret_thread, struct ob_err *err);
/* Waits for the job that runs. NULL is allowed. */
void ob_store_thread_free(struct ob_store_thread *thread);

#endif
