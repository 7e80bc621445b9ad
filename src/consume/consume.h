/* SPDX-License-Identifier: MIT */
/*
 * The consumer: messages of a source to a handler, each counted once, in order of their key.
 *
 * A state machine without threads: ob_consumer_step() does what can be done now and says how long
 * it could wait. What it promises:
 *  - An entry is acknowledged only after its effect, or its parked copy, is committed in the
 *    consumer's database.
 *  - Of one key, one message after the other. A message that fails is parked in the consumer's
 *    database, and so is all that comes after it with its key; other keys go on.
 *  - A parked message comes again when it is due; after max_attempts it is dead. A dead one holds
 * its key (on_dead: hold) or becomes a letter that holds nothing.
 *  - An outage of the handler charges nobody: the breaker and the policy are the relay's.
 *  - One owner: the lease in the consumer's database, whose epoch is checked in every transaction.
 */
#ifndef OB_CONSUME_CONSUME_H
#define OB_CONSUME_CONSUME_H

#include "base/consumer_report.h"
#include "base/log.h"
#include "config/config.h"
#include "consume/handler.h"
#include "feed/feed.h"
#include "relay/metrics.h"
#include "relay/policy.h"

/* The source, or the handler: is it there, and since when? */
struct ob_consume_side {
	bool up;
	int64_t since_us;         /* real time; 0: nothing is known yet */
	char why[OB_WORKER_TEXT]; /* while it is down */
};

/* The state now. */
struct ob_consume_metrics {
#define X(name, help) uint64_t name;
	OB_CONSUME_COUNTER_MAP(X)
#undef X
	uint64_t in_memory, in_flight; /* messages; with the handler */
	uint64_t parked_now, dead_now; /* rows in the parked table */
	uint64_t held_keys;
	int64_t lag, oldest_us; /* of the source; -1: unknown */
	bool owner;             /* the lease is ours */
	struct ob_consume_side source, handler;
	bool store_up;
	bool full; /* the parked table is full: the source is paused */
	char last_error[256];
	int64_t last_error_us; /* real time; 0: none */
	enum ob_breaker_state breaker;
	bool alarm;               /* open because most keys fail */
	int64_t breaker_since_us; /* real time; 0: it is closed */
	int64_t probe_us;         /* when the next message is tried; 0: none waits */
	char breaker_why[OB_WORKER_TEXT];
};

struct ob_consumer_conf {
	const char *name;
	enum ob_dedup dedup;
	bool ordered; /* by key; else every message stands alone, and members share the source */
	bool hold;    /* a dead message holds its key */
	struct ob_policy policy;
	const struct ob_config_failure *failures;
	size_t failure_count;
	uint32_t batch;       /* entries of one read */
	uint32_t window;      /* messages in memory */
	uint32_t max_per_key; /* parked */
	uint32_t max_parked;  /* in all */
	int64_t lease_ttl_ms;
	int64_t retention_ms; /* of the inbox; OB_NEVER_MS */
	uint32_t purge_batch;
	const char *letter_destination; /* with a sink for letters */
	const char *source;             /* its description, for people */
};

struct ob_consumer;

/*
 * All pointers are borrowed, and must outlive the consumer; `letters` may be NULL. `lease` is the
 * consumer's to write; a handler that settles reads its epoch.
 */
struct ob_consumer_parts {
	struct ob_feed *feed;
	struct ob_handler *handler;
	struct ob_store *store;
	struct ob_sink *letters;
	struct ob_consumer_lease *lease;
	const struct ob_clock *clock;
	const struct ob_log *log; /* NULL: silence */
};

int ob_consumer_new(const struct ob_consumer_conf *conf, const struct ob_consumer_parts *parts,
		    struct ob_consumer **ret_consumer, struct ob_err *err);
/* Drops what is under way. The lease is given back if it is held. */
void ob_consumer_free(struct ob_consumer *consumer);

/*
 * Do what can be done now, waiting up to wait_ms for news of the handler or the source when there
 * is nothing. 1: something was done, 0: nothing; or FATAL: why it must stop.
 */
int ob_consumer_step(struct ob_consumer *consumer, int wait_ms, struct ob_err *err);
/* Read nothing more; finish what is with the handler. */
void ob_consumer_drain(struct ob_consumer *consumer);
/* Nothing is with the handler, and nothing is left to acknowledge or to park. */
bool ob_consumer_is_drained(const struct ob_consumer *consumer);
/* Nothing is under way, the source was empty at the last read, and no parked message is due. */
bool ob_consumer_is_idle(const struct ob_consumer *consumer);
/* Settings that may change while it runs: policy, failures, limits, retention. */
void ob_consumer_reload(struct ob_consumer *consumer, const struct ob_consumer_conf *conf);

const struct ob_consume_metrics *ob_consumer_metrics(const struct ob_consumer *consumer);
/* All of it, as it is told to others. */
void ob_consumer_report(struct ob_consumer *consumer, struct ob_consumer_report *ret);

#endif
