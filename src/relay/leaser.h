/* SPDX-License-Identifier: MIT */
/*
 * Leases of one worker: heartbeat, renewal, balance. Step-driven and without a
 * thread of its own; the relay steps it on another thread and another connection
 * than the worker's, so that a slow sink cannot starve the renewal.
 *
 * The leaser publishes what it holds in a struct ob_lease_view; the worker
 * reads it there and answers there (drained, lost).
 */
#ifndef OB_RELAY_LEASER_H
#define OB_RELAY_LEASER_H

#include "base/backoff.h"
#include "base/log.h"
#include "relay/metrics.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* One partition that is ours. */
struct ob_view_lease {
	uint32_t partition;
	uint64_t epoch;
	uint64_t grant;      /* of this process: tells it from the one before, whatever the epoch */
	int64_t deadline_us; /* boot clock: from here on nothing more may be sent */
	bool draining;       /* by the leaser: send no more, finish, then say drained */
	bool drained;        /* by the worker: nothing of it is in memory any more */
	bool lost;           /* by the worker: a settle was refused; the leaser drops it */
};

/* What leaser and worker share. */
struct ob_lease_view {
	pthread_mutex_t lock;     /* guards leases, count and partition_count */
	_Atomic uint64_t version; /* grows with every change by the leaser; read without the lock */
	_Atomic uint64_t answers; /* grows with every answer by the worker */
	_Atomic bool cut;         /* the leaser cannot reach the store: send nothing */
	struct ob_view_lease *leases; /* by partition, OB_PARTITIONS_MAX of room */
	size_t count;
	uint32_t partition_count; /* of the log; 0: not yet known */
	uint64_t grants;          /* so far */
	struct ob_uuid owner;     /* set once, by ob_leaser_init() */
};

int ob_lease_view_init(struct ob_lease_view *view, struct ob_err *err);
void ob_lease_view_done(struct ob_lease_view *view);

/* How many of `partitions` the worker at `index` (by id) of `workers` shall hold; the remainder
 * goes to the first. */
uint32_t ob_fair_share(uint32_t partitions, uint32_t workers, uint32_t index);

struct ob_leaser_conf {
	const char *reader;
	struct ob_uuid owner; /* random per process start and worker */
	const char *hostname; /* for readers */
	int32_t pid;
	int64_t lease_ttl_ms, lease_renew_ms, heartbeat_ttl_ms;
	struct ob_store *store; /* borrowed; may be shared by the leasers of one thread */
	uint32_t sharers;       /* leasers that step by turns on this connection; 0: one */
	const struct ob_clock *clock;
	struct ob_lease_view *view; /* borrowed */
	struct ob_metrics *metrics; /* borrowed; may be NULL */
	const struct ob_log *log;   /* borrowed; NULL: silent */
	/* What is told of the worker with its heartbeat, besides its metrics; each may be NULL. */
	const char *sink_type, *sink_name, *sink_text;
	struct ob_metrics *relay_metrics; /* of the whole relay: retention */
};

struct ob_leaser {
	struct ob_leaser_conf conf;
	struct ob_uuid owner;
	struct ob_arena arena;
	int64_t beat_us, renew_us, balance_us; /* boot clock: when each is due */
	int64_t retry_us;                      /* after a store error: nothing before */
	struct ob_backoff backoff;
	int64_t slow_us;    /* the slowest call of late */
	int64_t spared_us;  /* boot clock: when we last did what could wait */
	int64_t renewed_us; /* the end of the last renewal */
	uint64_t answers;   /* of the view, as far as they are dealt with */
	uint32_t share, want;
	bool seeded, has_free; /* the lease rows exist; some partition was free when last asked */
	bool reaped;           /* since the last balance */
	bool leaving;          /* its share is none */
	int64_t said_us;       /* when the log last heard of a failing store; 0: never */
	bool away;             /* the log has heard of it, and not that it is back */
	uint32_t errors;       /* calls of the store that failed, since the start */
	uint64_t told;         /* messages published as of the last beat */
	int64_t told_us;       /* when that was; 0: there was none */
	bool failed;           /* FATAL: see err */
	struct ob_err err;     /* why it failed */
};

void ob_leaser_init(struct ob_leaser *leaser, const struct ob_leaser_conf *conf);
void ob_leaser_done(struct ob_leaser *leaser);

/*
 * Do at most one store operation. True: call again at once. False: nothing is due before
 * *ret_wake_us of the boot clock, or before view->answers changes. A store that is DOWN is
 * tried again later and extends no deadline; FATAL sets leaser->failed, and
 * from then on nothing is renewed.
 *
 * Leases are renewed at least every third of lease_ttl. While calls are so slow that the next
 * renewal could come too late, what can wait (balance, taking more, giving back) waits, at most
 * for lease_ttl at a time.
 *
 * A heartbeat is valid for min(heartbeat_ttl, lease_ttl): a dead worker must not count in
 * the shares longer than its leases last.
 */
bool ob_leaser_step(struct ob_leaser *leaser, int64_t *ret_wake_us);

/* Is a heartbeat or a renewal due now? Among leasers that share a connection it comes first. */
bool ob_leaser_is_urgent(const struct ob_leaser *leaser);

/* The worker is about to stop: take nothing more, and release each partition as soon as it is
 * drained. */
void ob_leaser_drain(struct ob_leaser *leaser);

/*
 * Give everything up at once and remove the worker: after its worker has drained. The view becomes
 * empty. On failure the leases expire by themselves; calling again is allowed.
 */
int ob_leaser_leave(struct ob_leaser *leaser, struct ob_err *err);

#endif
