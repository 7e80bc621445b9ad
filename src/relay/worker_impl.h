/* SPDX-License-Identifier: MIT */
/* The worker's inside, shared by its files: one for each side it talks to. */
#ifndef OB_RELAY_WORKER_IMPL_H
#define OB_RELAY_WORKER_IMPL_H

#include "base/rng.h"
#include "relay/breaker.h"
#include "relay/flight.h"
#include "relay/policy.h"
#include "relay/route.h"
#include "relay/suspects.h"
#include "relay/worker.h"

enum {
	OB_WORKER_ACKS = 256,        /* outcomes of one poll */
	OB_WORKER_RUN = 256,         /* messages of one send step */
	OB_WORKER_SETTLE_US = 5000,  /* an outcome waits no longer than this */
	OB_WORKER_SINK_US = 20000,   /* look at the sink's own timers while outcomes are awaited */
	OB_WORKER_KEEP_US = 1000000, /* let a sink with nothing under way keep its connection */
	OB_WORKER_CHECK_US = 5000,   /* ask a store that has no fd for news */
	OB_WORKER_IDLE_MS = 10,      /* first wait after finding nothing */
	OB_WORKER_STORE_MS = 50,     /* first wait after a store error */
	OB_WORKER_STORE_CAP_MS = 1000,
	OB_WORKER_ALONE_MS =
		10000, /* settle without the settler after it has failed; then longer */
	OB_WORKER_ALONE_CAP_MS = 300000,
};

/* A partition as the worker knows it. */
struct ob_worker_part {
	uint64_t epoch, grant;
	int64_t deadline_us;
	bool owned, draining;
	bool said; /* drained, and the view knows */
};

struct ob_relay_worker {
	struct ob_worker_conf conf;
	struct ob_flight flight;
	struct ob_breaker breaker;
	struct ob_suspects suspects;
	struct ob_policy policy;
	struct ob_route route;
	struct ob_rng rng;
	struct ob_metrics_data data; /* counters, published after each step */

	_Atomic int stop; /* enum ob_stop, written by any thread */
	_Atomic bool nudged;
	enum ob_stop stopping; /* as far as it was acted upon */
	enum ob_worker_state state;
	struct ob_err err;

	/* leases */
	uint64_t view_version;
	struct ob_uuid owner;
	struct ob_worker_part parts[OB_PARTITIONS_MAX];
	struct ob_view_lease view[OB_PARTITIONS_MAX];
	size_t view_count;
	uint32_t partition_count, draining, rotation;
	bool view_waits; /* a lease in it cannot be taken before the settle that runs has ended */

	/* store */
	int64_t store_retry_us; /* 0: it is well */
	struct ob_backoff store_backoff, idle_backoff;
	uint64_t generation;   /* of fetches, with what the flight has forgotten */
	bool hungry;           /* there may be work */
	int64_t idle_until_us; /* look again then in any case */
	int64_t retry_due_us;  /* the next retry that we know of */
	struct ob_uuid token;  /* of the next row claim */
	uint64_t forgotten;    /* as far as hunger knows */
	uint32_t held_keys;

	/* sink */
	bool sink_ready, sink_full, probing;
	int64_t sink_polled_us;
	uint64_t probe; /* its tag */
	uint64_t alone; /* the tag of the suspect that has the sink for itself */

	/* room for one call each */
	struct ob_ack acks[OB_WORKER_ACKS];
	uint32_t fetch_parts[OB_PARTITIONS_MAX];
	uint64_t fetch_epochs[OB_PARTITIONS_MAX];
	struct ob_outcome *outcomes;
	struct ob_entry **settling;
	struct ob_lease leases[OB_PARTITIONS_MAX];
	bool lost[OB_PARTITIONS_MAX];
	size_t settling_count, lease_count;

	/* the settle that runs beside us, with the room above */
	struct ob_settle_job job;
	bool job_runs;
	int64_t job_began_us, alone_until_us;
	struct ob_backoff alone_backoff;
};

static inline int64_t ob_worker_now(const struct ob_relay_worker *worker)
{
	return ob_clock_boot_us(worker->conf.clock);
}

static inline bool ob_worker_claims(const struct ob_relay_worker *worker)
{
	return !worker->conf.view;
}

/* worker.c: what goes wrong for good: what is known is still settled, then the state is FAILED. */
void ob_worker_fail(struct ob_relay_worker *worker, const struct ob_err *err);
/* worker.c: the sink forgets everything, and so do we. */
void ob_worker_reset_sink(struct ob_relay_worker *worker);
/* worker.c: a store call failed: wait, or fail. */
void ob_worker_store_failed(struct ob_relay_worker *worker, const char *doing,
			    const struct ob_err *err);
void ob_worker_store_ok(struct ob_relay_worker *worker);

/* worker_lease.c */
bool ob_worker_take_view(struct ob_relay_worker *worker);
void ob_worker_lose(struct ob_relay_worker *worker, uint32_t partition);
void ob_worker_say_drained(struct ob_relay_worker *worker);
void ob_worker_say_lost(struct ob_relay_worker *worker, uint32_t partition);
bool ob_worker_may_send(const struct ob_relay_worker *worker, const struct ob_entry *entry);

/* worker_sink.c: true when something was done */
bool ob_worker_poll(struct ob_relay_worker *worker, int timeout_ms);
/* A probe is no suspect, unless `any` may go: when nothing else can be had. */
bool ob_worker_send(struct ob_relay_worker *worker, bool any);
/* worker_sink.c: the next message that is no suspect, among the first few; or NULL. */
struct ob_entry *ob_worker_probe(struct ob_relay_worker *worker);

/* worker_settle.c */
bool ob_worker_settle_due(const struct ob_relay_worker *worker);
bool ob_worker_settle(struct ob_relay_worker *worker);
/* Is something of this partition being settled beside us? */
bool ob_worker_is_settling(const struct ob_relay_worker *worker, uint32_t partition);
/* Take in what was settled beside us. */
bool ob_worker_settle_end(struct ob_relay_worker *worker);

/* worker_fetch.c */
bool ob_worker_fetch(struct ob_relay_worker *worker);
bool ob_worker_check_news(struct ob_relay_worker *worker);
/* Would it look at them? */
bool ob_worker_wants_news(const struct ob_relay_worker *worker);
/* Something may be there for us to fetch, sooner or later: false without partitions. */
bool ob_worker_can_fetch(const struct ob_relay_worker *worker);

#endif
