/* SPDX-License-Identifier: MIT */
/*
 * Connections to one store for requests: a few, each used by one thread at a time. Reading ones
 * cannot write and give a statement up after OB_POOL_LIMIT_MS.
 */
#ifndef OB_MONITOR_POOL_H
#define OB_MONITOR_POOL_H

#include "config/config.h"

#include <pthread.h>

enum { OB_POOL_SIZE = 4, OB_POOL_LIMIT_MS = 5000 };

struct ob_pool {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t back;
	const struct ob_config_store *entry;
	struct ob_store *idle[OB_POOL_SIZE];
	size_t idle_count, used;
};

void ob_pool_init(struct ob_pool *pool, const struct ob_config_store *entry);
void ob_pool_done(struct ob_pool *pool);
/* A connection for reading; waits a while for one. On success give it back. */
int ob_pool_take(struct ob_pool *pool, struct ob_store **ret_store, struct ob_err *err);
/* `broken`: it is closed. */
void ob_pool_give(struct ob_pool *pool, struct ob_store *store, bool broken);
/* A connection of its own that can write, for verbs; the caller frees it. */
int ob_pool_open_writer(struct ob_pool *pool, struct ob_store **ret_store, struct ob_err *err);
/* The same that can only read. */
int ob_pool_open_reader(struct ob_pool *pool, struct ob_store **ret_store, struct ob_err *err);

#endif
