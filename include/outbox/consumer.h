/* SPDX-License-Identifier: MIT */
/*
 * A consumer inside your own program: messages of a source (a Redis stream, a Kafka topic, a
 * RabbitMQ queue, a NATS stream) come to a function of yours, in order per key, and count once. It
 * is the engine of `outbox consume`. Link with liboutbox-relay; the handler, its results and what
 * it may ask during a call are those of outbox/relay.h.
 */
#ifndef OUTBOX_CONSUMER_H
#define OUTBOX_CONSUMER_H

#include <outbox/relay.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct outbox_consumer outbox_consumer;

/* How a copy of a message is told from a new one. */
enum outbox_consumer_dedup {
	OUTBOX_CONSUMER_IDS = 0,  /* by a row for each id in the inbox */
	OUTBOX_CONSUMER_POSITION, /* by one row for each part of the source */
	OUTBOX_CONSUMER_NONE,     /* not at all */
};

/* Flags of the options. */
/*
 * Call the handler inside a transaction of the consumer's own database, on threads of the consumer:
 * messages of one key one after the other, other keys at the same time (not with SQLite, which has
 * one writer). The row in the inbox, or the position, is part of it: what the handler writes
 * through outbox_relay_connection() and outbox_relay_writer() happens exactly once for every
 * message, or not at all. One transaction has up to batch_size messages; when a handler of it
 * fails, all of it is undone and run again without that message. The handler must not end the
 * transaction.
 *
 * Without this flag the handler is called on the thread that called run or process_once, one
 * message after the other, and dedup is the handler's own: it asks outbox_inbox() in its own
 * transaction.
 */
#define OUTBOX_CONSUMER_IN_TRANSACTION 0x1u
#define OUTBOX_CONSUMER_RELEASE_DEAD   0x2u /* a dead message lets its key go on */
#define OUTBOX_CONSUMER_UNORDERED      0x4u /* no order: processes of one name share the source */

/* What is left out is zero, and zero means the default. Everything is copied. */
struct outbox_consumer_options {
	const char *store;             /* required: "sqlite:billing.db", set up with --inbox */
	const char *name;              /* required: of its inbox and its group in the source */
	const char *source;            /* required, as in outbox.yaml, on one line:
					  "{ type: redis, url: 'redis://localhost', stream: orders }" */
	outbox_relay_handler *handler; /* required */
	void *arg;                     /* of every callback */
	/* Both may be NULL. Turn a result that is not OK into another one; on the handler's thread.
	 */
	enum outbox_relay_result (*classify)(void *arg, const struct outbox_relay_message *message,
					     enum outbox_relay_result result, const char *reason);
	/* A line without a line break, from any thread. NULL: silence. */
	void (*log)(void *arg, enum outbox_relay_level level, const char *line);
	enum outbox_relay_level log_level; /* info */
	enum outbox_consumer_dedup dedup;
	unsigned flags;               /* OUTBOX_CONSUMER_IN_TRANSACTION ... */
	uint32_t handler_timeout_ms;  /* no limit; see outbox_relay_time_left() */
	uint32_t lanes;               /* 4: threads of handlers, with IN_TRANSACTION */
	uint32_t batch_size;          /* 100 */
	uint32_t window;              /* 1000: messages in memory */
	uint32_t max_attempts;        /* 20 */
	uint32_t base_delay_ms;       /* 1000 */
	uint32_t max_backoff_ms;      /* one hour */
	double multiplier;            /* 2 */
	double jitter;                /* 0.25; negative: none */
	uint32_t lease_ttl_ms;        /* 15000 */
	uint32_t shutdown_timeout_ms; /* 10000 */
};

/* outbox_consumer_new(); the size is sizeof(struct outbox_consumer_options) of the program. */
OUTBOX_API OUTBOX_NODISCARD int outbox_consumer_new_sized(const void *options, size_t options_size,
							  outbox_consumer **ret_consumer,
							  struct outbox_error *err);

/*
 * Check the options, connect to the database, check its tables. OUTBOX_ECONFIG, OUTBOX_ESCHEMA,
 * OUTBOX_ESTORE say what is wrong. On success the caller owns *ret_consumer.
 */
OUTBOX_NODISCARD static inline int
outbox_consumer_new(const struct outbox_consumer_options *options, outbox_consumer **ret_consumer,
		    struct outbox_error *err)
{
	return outbox_consumer_new_sized(options, sizeof(struct outbox_consumer_options),
					 ret_consumer, err);
}

/*
 * Consume until outbox_consumer_stop(), which gives OUTBOX_OK; anything else says why it ended by
 * itself. A database or a source that is away is waited for, and so is the lease while another
 * process of the same name has it. One run or process_once at a time.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_consumer_run(outbox_consumer *consumer,
						    struct outbox_error *err);
/*
 * Handle what is there now and leave. Returns how many messages were decided: handled, seen before,
 * or parked. OUTBOX_ESINK when the handler said DOWN, OUTBOX_ESTORE when the database or the source
 * is away, OUTBOX_ELEASE when another process has the lease, for ten seconds each.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_consumer_process_once(outbox_consumer *consumer,
							     struct outbox_error *err);
/*
 * End the run under way, or the next one if none is: what is in the hands of a handler is waited
 * for (up to shutdown_timeout_ms) and acknowledged, the lease is given back. Called again: at once.
 * From any thread, from a handler, and from a signal handler.
 */
OUTBOX_API void outbox_consumer_stop(outbox_consumer *consumer);
/* NULL is allowed. Nothing may be under way. */
OUTBOX_API void outbox_consumer_free(outbox_consumer *consumer);

#ifdef __cplusplus
}
#endif
#endif
