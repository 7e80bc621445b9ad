/* SPDX-License-Identifier: MIT */
/*
 * What a worker did and does, readable from any thread. A worker and its leaser write,
 * dashboards take snapshots; snapshots of several workers can be added up.
 */
#ifndef OB_RELAY_METRICS_H
#define OB_RELAY_METRICS_H

#include "base/err.h"
#include "base/uuid.h"
#include "base/worker_report.h"
#include "log/may_send.h"
#include "relay/histogram.h"

#include <pthread.h>
#include <stdbool.h>

enum { OB_LAST_ERRORS = 5, OB_LAST_ERROR_TEXT = OB_WORKER_TEXT };

/* Where an error came from. */
enum ob_error_of { OB_ERROR_OF_SINK, OB_ERROR_OF_STORE, OB_ERROR_ORIGINS };

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
	X(cleaned, "rows removed by retention") \
	X(bytes, "payload of messages settled as published") \
	X(said_down, "times the sink said that it is down") \
	X(said_retry, "messages that the sink failed for now") \
	X(said_reject, "messages that the sink refused for good") \
	X(woken, "times the store told of new messages")

/* Gauges: the state now, added up over workers. */
#define OB_GAUGE_MAP(X) \
	X(queued, "messages in memory, not yet sent") \
	X(in_flight, "messages at the sink") \
	X(unsettled, "outcomes not yet recorded") \
	X(memory_bytes, "payload and headers in memory") \
	X(held_keys, "keys held back in memory") \
	X(partitions, "partitions owned") \
	X(share, "partitions that should be owned")

/* Distributions since the start, added up over workers. */
#define OB_HISTOGRAM_MAP(X) \
	X(delivery, us, "from insert to confirmation") \
	X(sink, us, "at the sink") \
	X(fetch, us, "of a read") \
	X(settle, us, "of recording outcomes") \
	X(batch, messages, "messages of a read")

struct ob_histograms {
#define X(name, unit, help) struct ob_histogram name;
	OB_HISTOGRAM_MAP(X)
#undef X
};

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
	uint64_t waits[OB_WHY_COUNT]; /* messages in memory, not yet sent, by what they wait for */
	struct ob_histograms times;
	uint64_t fetch_us, settle_us; /* time spent in the store's calls */
	int64_t last_fetch_us, last_settle_us;
	int64_t oldest_unsettled_us;   /* age of the oldest outcome not yet recorded; 0: none */
	enum ob_breaker_state breaker; /* of several workers: the worst */
	bool alarm;
	int64_t breaker_since_us; /* wall clock: when it left closed; 0: it is closed */
	int64_t probe_us;         /* wall clock: when an open one is tried again; 0: not open */
	char breaker_why[OB_LAST_ERROR_TEXT];
	bool store_down;      /* the store takes no heartbeat: nothing is sent */
	uint32_t error_count; /* of errors[], newest last */
	struct ob_last_error errors[OB_LAST_ERRORS];
	struct ob_last_error last[OB_ERROR_ORIGINS]; /* of each origin; times 0: none */
	/* The last pass of retention, wall clock; 0: none yet. */
	int64_t retained_us;
	uint64_t retained_rows, retained_parts;
	char retained_held[OB_WORKER_NAME]; /* the reader that kept rows; "": none */
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
bool ob_metrics_error(struct ob_metrics *metrics, enum ob_error_of of, int64_t at_us,
		      const struct ob_err *err, const struct ob_uuid *message);

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
