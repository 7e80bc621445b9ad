/* SPDX-License-Identifier: MIT */
/*
 * What a worker did and does, readable from any thread. A worker and its leaser write,
 * dashboards take snapshots; snapshots of several workers can be added up.
 */
#ifndef OB_RELAY_METRICS_H
#define OB_RELAY_METRICS_H

#include "base/err.h"
#include "base/uuid.h"

#include <pthread.h>
#include <stdbool.h>

enum { OB_LAST_ERRORS = 5, OB_LAST_ERROR_TEXT = 160 };

/* Counters since the start, added up over workers. */
#define OB_COUNTER_MAP(X) \
	X(fetched, "messages read from the store") \
	X(sent, "messages handed to the sink") \
	X(published, "messages settled as published") \
	X(failed, "attempts settled as failed, the last ones included") \
	X(retries, "attempts settled as failed that will be tried again") \
	X(dead, "messages given up") \
	X(down, "deliveries that met a sink that was down; they cost no attempt") \
	X(parked, "messages put behind an exception of their key") \
	X(forgotten, "messages dropped unsettled; they are read again") \
	X(lost, "outcomes that were refused: another worker had taken over") \
	X(fetches, "read calls") \
	X(settles, "settle calls that were recorded") \
	X(store_errors, "store calls that failed") \
	X(breaker_opened, "times the circuit breaker opened") \
	X(alarms, "times most keys failed at once") \
	X(cleaned, "rows removed by retention")

/* Gauges: the state now, added up over workers. */
#define OB_GAUGE_MAP(X) \
	X(queued, "messages in memory, not yet sent") \
	X(in_flight, "messages at the sink") \
	X(unsettled, "outcomes not yet recorded") \
	X(memory_bytes, "payload and headers in memory") \
	X(held_keys, "keys held back in memory") \
	X(partitions, "partitions owned") \
	X(share, "partitions that should be owned")

enum ob_breaker_state { OB_BREAKER_CLOSED, OB_BREAKER_HALF_OPEN, OB_BREAKER_OPEN };

struct ob_last_error {
	int64_t at_us; /* wall clock */
	enum ob_err_kind kind;
	struct ob_uuid message; /* nil: not about a message */
	uint32_t times;         /* how often, when it came again and again; at_us: the last */
	char text[OB_LAST_ERROR_TEXT]; /* valid UTF-8; longer text is cut with an ellipsis */
};

struct ob_metrics_data {
#define X(name, help) uint64_t name;
	OB_COUNTER_MAP(X)
	OB_GAUGE_MAP(X)
#undef X
	uint64_t fetch_us, settle_us; /* time spent in the store's calls */
	int64_t last_fetch_us, last_settle_us;
	int64_t oldest_unsettled_us;   /* age of the oldest outcome not yet recorded; 0: none */
	enum ob_breaker_state breaker; /* of several workers: the worst */
	bool alarm;
	bool store_down;      /* the store takes no heartbeat: nothing is sent */
	uint32_t error_count; /* of errors[], newest last */
	struct ob_last_error errors[OB_LAST_ERRORS];
};

struct ob_metrics {
	pthread_mutex_t lock; /* guards data */
	struct ob_uuid worker;
	struct ob_metrics_data data;
};

void ob_metrics_init(struct ob_metrics *metrics, const struct ob_uuid *worker);
void ob_metrics_done(struct ob_metrics *metrics);
/* A consistent copy. */
void ob_metrics_read(struct ob_metrics *metrics, struct ob_metrics_data *ret);
/* Add one worker's data to a sum; keeps the newest five errors. */
void ob_metrics_add(struct ob_metrics_data *sum, const struct ob_metrics_data *part);

/* Remember an error; `message` may be NULL. False if it is one of those remembered already: then
 * that one has happened once more. Takes the lock. `metrics` NULL: nothing, true. */
bool ob_metrics_error(struct ob_metrics *metrics, int64_t at_us, const struct ob_err *err,
		      const struct ob_uuid *message);

static inline struct ob_metrics_data *ob_metrics_lock(struct ob_metrics *metrics)
{
	(void)pthread_mutex_lock(&metrics->lock);
	return &metrics->data;
}

static inline void ob_metrics_unlock(struct ob_metrics *metrics)
{
	(void)pthread_mutex_unlock(&metrics->lock);
}

#endif
