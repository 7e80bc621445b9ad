/* SPDX-License-Identifier: MIT */
/* The worker's inside, shared by its files: one for each side it talks to. */
#ifndef OB_RELAY_WORKER_IMPL_H
#define OB_RELAY_WORKER_IMPL_H

#include "base/rng.h"
#include "log/may_send.h"
#include "log/track.h"
#include "relay/breaker.h"
#include "relay/flight.h"
#include "relay/policy.h"
#include "relay/route.h"
#include "relay/suspects.h"
#include "relay/worker.h"

enum {
	OB_WORKER_ACKS = 256,          /* outcomes of one poll */
	OB_WORKER_RUN = 256,           /* messages of one send step */
	OB_WORKER_SETTLE_US = 5000,    /* an outcome waits no longer than this */
	OB_WORKER_FLUSH_US = 10000000, /* progress over what was not ours is recorded this often */
	OB_WORKER_SPILL_US = 1000000,  /* what is confirmed is recorded after this time, even if
					  one before it is not */
	OB_WORKER_LANE_US = 20000,     /* during a backlog, how often the lanes above it are read */
	OB_WORKER_SINK_US = 20000,     /* serve the sink's own timers while outcomes are awaited */
	OB_WORKER_KEEP_US = 1000000,   /* let a sink with nothing under way keep its connection */
	OB_WORKER_CHECK_US = 5000,     /* ask a store that has no fd for news */
	OB_WORKER_SILENT_MS = 30000,   /* nothing passed for so long: an outage */
	OB_WORKER_LAST_MS = 1000,      /* the same before a message is given up */
	OB_WORKER_IDLE_MS = 10,        /* first wait after finding nothing */
	OB_WORKER_STORE_MS = 50,       /* first wait after a store error */
	OB_WORKER_STORE_CAP_MS = 1000,
	OB_WORKER_ALONE_MS =
		10000, /* settle without the settler after it has failed; then longer */
	OB_WORKER_ALONE_CAP_MS = 300000,
};

/* A partition (by hash) as the worker knows it. */
struct ob_worker_part {
	uint64_t epoch, grant;
	int64_t deadline_us;
	bool owned, draining;
	bool taken; /* its journal is ours: it may be read */
	bool said;  /* drained, and the view knows */
};

/* What has an outcome that the journal does not say yet, by partition number. */
struct ob_worker_tally {
	uint32_t unrecorded, published, failed;
	bool changed; /* its exceptions change with the settle that is being collected */
};

/* An outcome, or a spill, of the settle that runs. */
struct ob_settling {
	struct ob_entry *entry;
	uint64_t order;                /* tells whether the entry is still the same message */
	struct ob_flight_batch *batch; /* a spill: kept, whatever becomes of the entry */
};

struct ob_relay_worker {
	struct ob_tx_worker *tx; /* its handler is in the database: all else is unused */
	struct ob_worker_conf conf;
	struct ob_flight flight;
	struct ob_track *track;
	struct ob_breaker breaker;
	struct ob_suspects suspects;
	struct ob_policy policy;
	struct ob_decide decide;
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
	uint32_t partition_count, draining, untaken;
	bool view_waits; /* a lease in it cannot be taken before the settle that runs has ended */

	/* store */
	int64_t store_retry_us, store_said_us; /* 0: it is well */
	struct ob_backoff store_backoff, idle_backoff;
	bool hungry[OB_LANES]; /* the log may have more for this lane */
	bool apart;            /* the lanes stand at different places: each is read by itself */
	bool exceptions_due;   /* there may be more of them */
	int64_t lane_read_us[OB_LANES]; /* when it was last read */
	int64_t idle_until_us;          /* read again then in any case */
	int64_t retry_due_us;           /* the next retry that we know of */

	/* sink */
	bool sink_ready, sink_full, probing;
	enum ob_why_reason gate; /* why the last send step ended */
	int64_t sink_polled_us;
	uint64_t probe; /* its tag */
	uint64_t alone; /* the tag of the suspect that has the sink for itself */
	int64_t started_us;
	_Atomic int64_t own_passed_us, *passed_us; /* see conf */
	int64_t silent_us; /* when it was taken for an outage that nothing passed; 0: it was not */

	/* room for one call each */
	struct ob_ack acks[OB_WORKER_ACKS];
	struct ob_read_part read_parts[OB_FLIGHT_PARTITIONS];

	/* the read that runs */
	struct ob_read_job read_job;
	struct ob_flight_batch *read_batch; /* what it fills */
	int read_lane;
	int64_t read_began_us;
	bool reading; /* read_ahead has it, and the store with it: see work() in worker.c */

	/* what is not recorded yet, and the settle that runs */
	struct ob_worker_tally tally[OB_FLIGHT_PARTITIONS];
	uint32_t unrecorded; /* of all partitions */
	int64_t flush_us, spill_us;
	struct ob_settling *settling;
	struct ob_change *changes;
	struct ob_promote *promotes;
	struct ob_settle_part settle_parts[OB_FLIGHT_PARTITIONS];
	uint64_t settle_spans[OB_FLIGHT_PARTITIONS]; /* how far each goes */
	size_t settling_count, change_count, promote_count, part_count;
	struct ob_settle_job job;
	bool settles;  /* it was collected and the store has not answered it */
	bool job_runs; /* the settler has it */
	int64_t settle_began_us, alone_until_us;
	int64_t settle_slow_us; /* the slowest settle of late */
	struct ob_backoff alone_backoff;
};

static inline int64_t ob_worker_now(const struct ob_relay_worker *worker)
{
	return ob_clock_boot_us(worker->conf.clock);
}

/* The hash of a partition number; its number in a lane. */
static inline uint32_t ob_worker_hash(const struct ob_relay_worker *worker, uint32_t partition)
{
	return partition % worker->partition_count;
}

static inline uint32_t ob_worker_number(const struct ob_relay_worker *worker, uint32_t hash,
					uint32_t lane)
{
	return lane * worker->partition_count + hash;
}

/* worker.c: what goes wrong for good: what is known is still settled, then the state is FAILED. */
void ob_worker_fail(struct ob_relay_worker *worker, enum ob_error_of of, const struct ob_err *err);
/* worker.c: the sink forgets everything; what was sent is queued again. */
void ob_worker_reset_sink(struct ob_relay_worker *worker);
/* worker.c: a store call failed: wait, or fail. */
void ob_worker_store_failed(struct ob_relay_worker *worker, const char *doing,
			    const struct ob_err *err);
void ob_worker_store_ok(struct ob_relay_worker *worker);

/* worker_lease.c */
bool ob_worker_take_view(struct ob_relay_worker *worker);
/* Take the journal of new partitions over: the fence. */
bool ob_worker_take_over(struct ob_relay_worker *worker);
/* A partition (by hash) is not ours any more, and the leaser is told if `say`. */
void ob_worker_lose(struct ob_relay_worker *worker, uint32_t hash, bool say);
void ob_worker_say_drained(struct ob_relay_worker *worker);
/* What is queued of partitions that we are leaving; true when something was done. */
bool ob_worker_give_up_queued(struct ob_relay_worker *worker);
/* Until when what is sent of a partition (by hash) can be settled before its lease ends. */
int64_t ob_worker_send_until(const struct ob_relay_worker *worker, uint32_t hash, int64_t now);

/* worker_sink.c: true when something was done */
bool ob_worker_poll(struct ob_relay_worker *worker, int timeout_ms);
/* A probe is no suspect, unless `any` may go: when nothing else can be had. */
bool ob_worker_send(struct ob_relay_worker *worker, bool any);
/* Is there a message to probe the sink with that is no suspect? */
bool ob_worker_has_probe(struct ob_relay_worker *worker);

/* worker_sink.c: most keys fail, or nothing passes: an outage. What is not settled is undone. */
void ob_worker_outage(struct ob_relay_worker *worker, const char *why, const char *error);
/* Tell the caller of a failure. */
void ob_worker_tell(const struct ob_relay_worker *worker, const struct ob_entry *entry, bool dead);

/* worker_settle.c */
bool ob_worker_settle_due(struct ob_relay_worker *worker);
bool ob_worker_settle(struct ob_relay_worker *worker);
/* Is something of this partition (by hash) being settled concurrently? */
bool ob_worker_is_settling(const struct ob_relay_worker *worker, uint32_t hash);
/* Take in what was settled concurrently. */
bool ob_worker_settle_end(struct ob_relay_worker *worker);
/* Is there progress of this partition (by hash) over messages that is not recorded? */
bool ob_worker_has_unrecorded(const struct ob_relay_worker *worker, uint32_t hash);

/* worker_read.c */
/* The reader's filter: what it does not want counts as behind it. */
bool ob_worker_is_wanted(const struct ob_worker_conf *conf, const struct ob_message *message);
bool ob_worker_read(struct ob_relay_worker *worker);
/* Is the sink busy enough for a read on another thread? */
bool ob_worker_reads_ahead(const struct ob_relay_worker *worker);
/* Take in what was read concurrently, if the read has ended; only while `reading`. */
bool ob_worker_read_end(struct ob_relay_worker *worker);
bool ob_worker_check_news(struct ob_relay_worker *worker);
/* There may be something in every lane. */
void ob_worker_make_hungry(struct ob_relay_worker *worker);
bool ob_worker_is_hungry(const struct ob_relay_worker *worker);
/* True if a store notification would cause a read now. */
bool ob_worker_wants_news(const struct ob_relay_worker *worker);
/* Something may be there for us to read, sooner or later: false without partitions. */
bool ob_worker_can_read(const struct ob_relay_worker *worker);

#endif
