/* SPDX-License-Identifier: MIT */
/*
 * The sampler: one thread that asks every store how it is, so that the cost does not depend on how
 * many look. Workers and leases each second, counts each five; both less often where they take
 * long, so that together they cost at most one percent of the time.
 */
#ifndef OB_MONITOR_WATCH_H
#define OB_MONITOR_WATCH_H

#include "operate/consumers.h"
#include "operate/snapshot.h"

#include <pthread.h>

struct ob_pool;
struct ob_monitor;

enum { OB_RATE_RING = 16, OB_WATCH_ERROR = 512 };

/* What is known of a reader besides its row in the snapshot. */
struct ob_sight_reader {
	double rate; /* published a second; below 0: not known yet */
	int64_t oldest_dead_us;
	uint64_t published_hour, failed_hour;
};

/* The consumers of a store, read with the counts and shared by the sights up to the next ones. */
struct ob_sight_consumers {
	int refs;
	struct ob_consumers list;
};

/* One store at one moment. Never changes once it is shown; shared by reference. */
struct ob_sight {
	int refs;
	struct ob_snapshot snapshot;
	struct ob_sight_reader *readers; /* of snapshot.rows */
	struct ob_partition *partitions;
	size_t partition_count;
	struct ob_sight_consumers *consumers; /* NULL: they could not be read */
	int64_t counted_us;                   /* wall clock of the counts */
	int64_t leased_us;                    /* of workers and leases */
	int64_t skew_us;                      /* of the database's clock against ours */
	int64_t oldest_transaction_us;        /* age; below 0: not known */
};

/* What is told of a store. */
struct ob_watch_store {
	const struct ob_config_store *entry;
	struct ob_sight *sight; /* NULL: never seen; a reference of the caller's */
	bool ok;
	char error[OB_WATCH_ERROR]; /* why not ok */
};

struct ob_watch;

/* `changed` is called on the sampler's thread after each round, at least once a second. */
int ob_watch_new(struct ob_pool *pools, size_t count, void (*changed)(void *arg), void *arg,
		 struct ob_watch **ret_watch, struct ob_err *err);
void ob_watch_free(struct ob_watch *watch);
size_t ob_watch_count(const struct ob_watch *watch);
/* How the store of that number is; give the sight back. */
void ob_watch_read(struct ob_watch *watch, size_t index, struct ob_watch_store *ret);
void ob_sight_unref(struct ob_sight *sight);
/* Grows with each round. */
uint64_t ob_watch_round(struct ob_watch *watch);

/* Ask one store once, on this thread. */
int ob_watch_once(struct ob_store *store, struct ob_sight **ret_sight, struct ob_err *err);

#endif
