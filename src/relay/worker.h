/* SPDX-License-Identifier: MIT */
/*
 * One worker: moves messages from one store connection to one sink, step by
 * step. It has no thread and never waits by itself: whoever drives it (a thread
 * of the relay, or the simulator with a virtual clock) calls ob_worker_step().
 *
 * Nothing here is written to the store but by take_over and settle, so
 * freeing a worker at any moment is a crash: nothing is lost.
 */
#ifndef OB_RELAY_WORKER_H
#define OB_RELAY_WORKER_H

#include "base/log.h"
#include "base/signals.h"
#include "config/config.h"
#include "relay/leaser.h"
#include "relay/metrics.h"
#include "relay/store_thread.h"

/* The failure classifier: may turn the kind that the sink gave into another one. */
typedef enum ob_err_kind ob_classify_fn(void *arg, const struct ob_message *message,
					const struct ob_err *err);

/*
 * A message failed and what follows is certain: with `dead` it is recorded as dead, else it will be
 * tried again. What a takeover discards is not told. On the worker's thread.
 */
struct ob_worker_failure {
	const struct ob_message *message;
	enum ob_err_kind kind; /* after the classifier */
	const char *error;
	bool timed_out, dead;
};
typedef void ob_failed_fn(void *arg, const struct ob_worker_failure *failure);

/* A filter of the caller's besides the configured one: what it refuses is passed over. Called on
 * worker threads. */
typedef bool ob_wants_fn(void *arg, const struct ob_message *message);

struct ob_worker_conf {
	const struct ob_config_relay *relay; /* its store and sink members are not used */
	struct ob_uuid id;                   /* the owner of the leases */
	struct ob_store *store;              /* all borrowed, and outlive the worker */
	struct ob_sink *sink;
	struct ob_store_thread *settler;    /* NULL: the worker settles by itself */
	struct ob_store_thread *read_ahead; /* NULL: it reads by itself; else lent `store` */
	uint32_t read_ahead_from; /* unconfirmed messages from which on that is worth it */
	const struct ob_clock *clock;
	struct ob_lease_view *view;
	struct ob_metrics *metrics; /* NULL: none */
	const struct ob_log *log;   /* NULL: silent */
	_Atomic bool *sink_advised; /* shared by the workers of a relay, of which one tells what the
				       sink advises; NULL: nobody does */
	ob_classify_fn *classify;   /* NULL: the sink's kinds stand */
	void *classify_arg;
	ob_failed_fn *failed; /* NULL: nobody is told */
	void *failed_arg;
	/* When the last delivery succeeded, of all workers of the relay; 0: never. NULL: of this
	 * one alone. */
	_Atomic int64_t *passed_us;
	ob_wants_fn *wants; /* NULL: everything */
	void *wants_arg;
	int64_t end_seq;  /* > 0: read no further than this number of the log (replay) */
	uint64_t seed;    /* of jitter and probes; another one for each worker */
	int sink_wait_ms; /* how long a step may wait in the sink's poll when it has no fd; 0 in the
			     simulator */
};

enum ob_worker_state {
	OB_WORKER_RUNNING,
	OB_WORKER_STOPPED, /* drained (or told to leave): everything known is settled, nothing is
			      held */
	OB_WORKER_FAILED,  /* FATAL: see ob_worker_error() */
};

/* What a step says to its driver. */
struct ob_step {
	enum ob_worker_state state;
	bool worked;     /* something was done: call again at once */
	int64_t wake_us; /* else: nothing to do before this time of the boot clock, unless an fd is
			    readable, the view has a new version, or stop was called */
	int store_fd, sink_fd; /* to wait on for reading; -1: none */
	int64_t beside_us;     /* start of the oldest concurrent store call; 0 if none */
};

struct ob_relay_worker;

/* On success the caller owns *ret_worker. */
int ob_worker_new(const struct ob_worker_conf *conf, struct ob_relay_worker **ret_worker,
		  struct ob_err *err);
/* Forget everything, as a crash would; the sink is reset, the store is not called, a settle or read
 * that runs is waited for. NULL is allowed. */
void ob_worker_free(struct ob_relay_worker *worker);

/*
 * Do at most one of: take in a new view of the leases, take a journal over, poll the sink, send
 * a run of messages, settle (or begin to), read. At most one store call that reads or writes rows.
 */
void ob_worker_step(struct ob_relay_worker *worker, struct ob_step *ret_step);

/*
 * DRAIN: read and send no more, wait for what is in flight, settle, then the state is
 * STOPPED. NOW: also forget what is in flight; settle what is known, once. Any thread.
 */
void ob_worker_stop(struct ob_relay_worker *worker, enum ob_stop how);

/* Read the log at the next step, whatever the idle backoff says. Any thread. */
void ob_worker_nudge(struct ob_relay_worker *worker);

/* Nothing in memory, and the last read of every partition found nothing. */
bool ob_worker_is_idle(const struct ob_relay_worker *worker);
/* With an end: how many partitions it holds, once everything up to it has been read and recorded in
 * all of them; 0 before. */
uint32_t ob_worker_ended(const struct ob_relay_worker *worker);
/* Why it failed; kind NONE while it has not. */
const struct ob_err *ob_worker_error(const struct ob_relay_worker *worker);

#endif
