/* SPDX-License-Identifier: MIT */
/*
 * One configured relay: its workers, each on a thread with its own store and
 * sink connections, one control thread with its own connection for
 * heartbeats and leases, and one for retention.
 */
#ifndef OB_RELAY_RELAY_H
#define OB_RELAY_RELAY_H

#include "relay/worker.h"

struct ob_relay;

/* One more connection, instead of the configured one; the relay frees it. For embedding and tests.
 */
typedef int ob_relay_store_fn(void *arg, struct ob_store **ret_store, struct ob_err *err);
typedef int ob_relay_sink_fn(void *arg, struct ob_sink **ret_sink, struct ob_err *err);

struct ob_relay_conf {
	const struct ob_config_relay
		*relay;           /* borrowed, with its store and sink; outlives the relay */
	const struct ob_log *log; /* NULL: silent */
	ob_classify_fn *classify; /* called on worker threads */
	void *classify_arg;
	ob_failed_fn *failed; /* likewise; NULL: nobody is told */
	void *failed_arg;
	ob_relay_store_fn *open_store; /* NULL: relay->store; called on threads of the relay too */
	ob_relay_sink_fn *open_sink;   /* NULL: relay->sink */
	void *open_arg;
	const struct ob_config_retention *retention; /* borrowed; NULL: nothing is removed */
	int64_t end_seq; /* > 0: a replay: a temporary reader that ends after this number */
	const struct ob_place *place; /* where a new reader begins; NULL: as configured */
	ob_wants_fn *wants;           /* NULL: everything that the configuration lets through */
	void *wants_arg;
};

/*
 * Connect everything, check the schema and make the reader if it is new, but start nothing. A sink
 * that is away is no error. On success the caller owns *ret_relay.
 */
int ob_relay_new(const struct ob_relay_conf *conf, struct ob_relay **ret_relay, struct ob_err *err);
/* Stops at once if it still runs; NULL is allowed. */
void ob_relay_free(struct ob_relay *relay);

/* Start the threads. Signals should be blocked already. */
int ob_relay_start(struct ob_relay *relay, struct ob_err *err);
/*
 * Ask it to end; any thread, also again with more urgency. DRAIN: no more reads, wait for
 * confirmations up to shutdown_timeout, settle, release the leases. NOW: leave what is in
 * flight; leases are still released when the store answers at once.
 */
void ob_relay_stop(struct ob_relay *relay, enum ob_stop how);
/* Readable once every thread has ended by itself or by a stop. */
int ob_relay_done_fd(const struct ob_relay *relay);
/* Wait for the threads. Returns 0, or why a worker or the control thread ended by itself. */
int ob_relay_join(struct ob_relay *relay, struct ob_err *err);

/*
 * Instead of start: on this thread, join, take what is free, deliver until nothing that is due is
 * left, drain and leave. Returns how many messages were settled in any way, or an error: a sink or
 * a store that is down ends it. So does ob_relay_stop(), which is no error. Another
 * worker's partitions are left alone.
 */
int ob_relay_once(struct ob_relay *relay, struct ob_err *err);

/* Afterwards: how many partitions others held, of which one may be dead and its lease not over. */
uint32_t ob_relay_elsewhere(const struct ob_relay *relay);

/*
 * For a watchdog: how long ago the worker that is slowest to do so went through its loop. 0 before
 * the start and after the end. Any thread.
 */
int64_t ob_relay_stalled_us(const struct ob_relay *relay);

/* All workers added up; any thread. */
void ob_relay_metrics(struct ob_relay *relay, struct ob_metrics_data *ret_data);
/* One of them; false when there is no such worker. */
bool ob_relay_worker_metrics(struct ob_relay *relay, uint32_t index, struct ob_uuid *ret_id,
			     struct ob_metrics_data *ret_data);
const char *ob_relay_name(const struct ob_relay *relay);
uint32_t ob_relay_workers(const struct ob_relay *relay);
/* A replay: all workers have delivered and recorded everything up to its end. Any thread, after
 * start. */
bool ob_relay_has_ended(struct ob_relay *relay);
/* One line for people about its sink; borrowed. */
const char *ob_relay_sink(const struct ob_relay *relay);

#endif
