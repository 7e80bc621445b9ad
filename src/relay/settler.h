/* SPDX-License-Identifier: MIT */
/*
 * Recording outcomes while the worker goes on: what was published is settled beside the
 * next fetch. One job at a time; what it points to stays as it is until it has ended.
 *
 * The real one is a thread with a store connection of its own. Both come with the first job, and
 * the connection goes when there was none for a while: an idle worker has one connection.
 */
#ifndef OB_RELAY_SETTLER_H
#define OB_RELAY_SETTLER_H

#include "store/store.h"

/* What goes into ob_store_settle() and what came of it. */
struct ob_settle_job {
	struct ob_settle settle;
	struct ob_err err; /* FATAL only from the settle itself, not from connecting */
	int r;
};

struct ob_settler {
	/* Take a job; false: not now, settle it yourself. */
	bool (*start)(struct ob_settler *settler, struct ob_settle_job *job);
	/* Has it ended? With `wait`, not before it has. */
	bool (*ended)(struct ob_settler *settler, bool wait);
};

typedef int ob_settler_open_fn(void *arg, struct ob_store **ret_store, struct ob_err *err);

struct ob_settler_conf {
	ob_settler_open_fn *open; /* called by the settler's thread, which owns what it returns */
	void *arg;
	int wake_fd;     /* an eventfd, written when a job has ended */
	int64_t idle_ms; /* the connection is given back when there was no job for so long */
};

/* On success the caller owns *ret_settler. */
int ob_settler_new(const struct ob_settler_conf *conf, struct ob_settler **ret_settler,
		   struct ob_err *err);
/* Waits for the job that runs. NULL is allowed. */
void ob_settler_free(struct ob_settler *settler);

#endif
