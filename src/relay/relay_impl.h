/* SPDX-License-Identifier: MIT */
/* The relay's inside: a slot for each worker, and what the control thread has. */
#ifndef OB_RELAY_RELAY_IMPL_H
#define OB_RELAY_RELAY_IMPL_H

#include "relay/decrypt.h"
#include "relay/relay.h"
#include "relay/retention.h"

/* One worker with everything that is its own. */
struct ob_relay_slot {
	struct ob_relay *relay;
	pthread_t thread;
	bool started;
	struct ob_uuid id;
	struct ob_store *store;                       /* the worker thread's */
	struct ob_sink *sink;                         /* the worker thread's */
	struct ob_store_thread *settler, *read_ahead; /* the worker thread's */
	struct ob_relay_worker *worker;
	struct ob_metrics metrics;
	bool metrics_made;
	struct ob_lease_view view;
	struct ob_leaser leaser;   /* the control thread's */
	uint64_t version_seen;     /* by the control thread, to wake the worker */
	bool left;                 /* the control thread's: its leases are given back */
	int64_t leave_us;          /* the control thread's: not tried again before */
	int wake_fd;               /* eventfd that wakes the worker thread */
	_Atomic bool finished;     /* the worker thread is through */
	_Atomic uint32_t ended;    /* a replay: partitions of which nothing is left */
	_Atomic int64_t looped_us; /* when it was last seen to get on */
};

struct ob_relay {
	struct ob_relay_conf conf;
	const struct ob_clock *clock;
	char hostname[256];
	struct ob_buf sink_text;
	_Atomic bool sink_advised;  /* a worker has told what the sink advises */
	_Atomic int64_t passed_us;  /* when the last delivery of any worker succeeded */
	struct ob_decrypt *decrypt; /* NULL: payloads go out as they are stored */
	struct ob_relay_slot *slots;
	uint32_t slot_count;
	struct ob_store *store;         /* the control thread's */
	struct ob_metrics metrics;      /* the control thread's: retention */
	struct ob_retention *retention; /* NULL: none */
	pthread_t control;
	bool control_started, running;
	int control_fd, done_fd; /* eventfds */
	_Atomic int stop;        /* enum ob_stop */
	_Atomic int64_t stop_us; /* when the first stop came */
	uint32_t elsewhere;      /* partitions that a single tick left to other workers */
	pthread_mutex_t lock;    /* guards err */
	struct ob_err err;       /* why it ended by itself */
};

/* relay_loop.c: the threads, and both in one for ob_relay_once(). */
void *ob_relay_worker_main(void *arg);  /* the slot */
void *ob_relay_control_main(void *arg); /* the relay */
/* Hand a wish to stop on to the worker; the time for confirmations is limited. Returns when it
 * ends; INT64_MAX: there is no limit, or it is over. */
int64_t ob_relay_pass_stop(struct ob_relay_slot *slot);
/* One round of leases of one slot; true when something was done, lowers *wake_us. */
bool ob_relay_step_leaser(struct ob_relay_slot *slot, int64_t *wake_us);
/* Wait for what the step names, at most until `until_us`; consumes the slot's eventfd. */
void ob_relay_wait(const struct ob_relay_slot *slot, const struct ob_step *step, int64_t until_us);
/* Something ended by itself: remember why (the first one counts) and stop the rest. */
void ob_relay_failed(struct ob_relay *relay, const struct ob_err *err);

void ob_relay_wake(int fd);

#endif
