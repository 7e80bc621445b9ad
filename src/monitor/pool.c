/* SPDX-License-Identifier: MIT */
#include "monitor/pool.h"

#include <time.h>

enum { WAIT_S = 5 };

void ob_pool_init(struct ob_pool *pool, const struct ob_config_store *entry)
{
	*pool = (struct ob_pool){ .entry = entry };
	(void)pthread_mutex_init(&pool->lock, NULL);
	(void)pthread_cond_init(&pool->back, NULL);
}

void ob_pool_done(struct ob_pool *pool)
{
	for (size_t i = 0; i < pool->idle_count; i++)
		ob_store_free(pool->idle[i]);
	(void)pthread_cond_destroy(&pool->back);
	(void)pthread_mutex_destroy(&pool->lock);
}

int ob_pool_open_reader(struct ob_pool *pool, struct ob_store **ret_store, struct ob_err *err)
{
	struct ob_store_conf conf = pool->entry->conf;

	conf.read_limit_ms = OB_POOL_LIMIT_MS;
	int r = ob_store_connect(&conf, ret_store, err);
	if (r == 0)
		(*ret_store)->looks_only = true;
	return r;
}

int ob_pool_open_writer(struct ob_pool *pool, struct ob_store **ret_store, struct ob_err *err)
{
	return ob_store_connect(&pool->entry->conf, ret_store, err);
}

/* Locked; false when none came back in time. */
static bool wait_for_one(struct ob_pool *pool)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	while (pool->idle_count == 0 && pool->used >= OB_POOL_SIZE) {
		if (pthread_cond_timedwait(&pool->back, &pool->lock, &until) != 0)
			break;
	}
	return pool->idle_count || pool->used < OB_POOL_SIZE;
}

int ob_pool_take(struct ob_pool *pool, struct ob_store **ret_store, struct ob_err *err)
{
	struct ob_store *store = NULL;

	(void)pthread_mutex_lock(&pool->lock);
	bool room = wait_for_one(pool);
	if (room && pool->idle_count)
		store = pool->idle[--pool->idle_count];
	pool->used += room;
	(void)pthread_mutex_unlock(&pool->lock);
	if (!room)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "all connections to store %s are busy; try again",
				  pool->entry->name);
	int r = store ? 0 : ob_pool_open_reader(pool, &store, err);
	if (r < 0) {
		ob_pool_give(pool, NULL, true);
		return r;
	}
	*ret_store = store;
	return 0;
}

void ob_pool_give(struct ob_pool *pool, struct ob_store *store, bool broken)
{
	if (broken)
		ob_store_free(store);
	(void)pthread_mutex_lock(&pool->lock);
	pool->used--;
	if (!broken)
		pool->idle[pool->idle_count++] = store;
	(void)pthread_cond_signal(&pool->back);
	(void)pthread_mutex_unlock(&pool->lock);
}
