/* SPDX-License-Identifier: MIT */
/*
 * The relay inside your own program: committed messages come to a function of
 * yours, at least once, in order per key. Link with liboutbox-relay; nothing of this is needed
 * where `outbox work` delivers.
 */
#ifndef OUTBOX_RELAY_H
#define OUTBOX_RELAY_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct outbox_relay outbox_relay;

/* One call of a handler; valid until the handler returns. */
typedef struct outbox_relay_call outbox_relay_call;

/*
 * A message as it is handed out; valid during the callback. Text is NUL-terminated and may be
 * NULL where the column may be; payload and headers have a size and no NUL behind them.
 */
struct outbox_relay_message {
	const char *id; /* what to deduplicate on */
	const char *aggregate_type, *aggregate_id, *event_type;
	const void *payload; /* NULL: a tombstone */
	size_t payload_size;
	const char *headers; /* a JSON object, or NULL */
	size_t headers_size;
	const char *correlation_id, *causation_id;
	const char *key; /* the ordering key, or NULL */
	const char *target;
	int64_t sequence_number; /* 0: none */
	int64_t occurred_at_us, created_at_us;
	int32_t revision, priority;
	uint32_t attempts; /* that failed before this one */
};

enum outbox_relay_result {
	OUTBOX_RELAY_OK =
		0, /* done: it will not come again, unless we crash before that is stored */
	OUTBOX_RELAY_RETRY,  /* failed, try again later: costs an attempt, holds its key */
	OUTBOX_RELAY_REJECT, /* it can never succeed: dead at once */
	OUTBOX_RELAY_DOWN,   /* what we need is away: wait for it, costs this message nothing */
};

/*
 * Handle one message. Called on the relay's threads: with several workers, several at a time, of
 * one key one after the other. After a lost lease (the process was paused, or its database
 * was cut off or stood still) another worker may be called with the same key while this call still
 * runs; nothing that this one returns is stored then. May take its time: leases are renewed
 * meanwhile. Must not call outbox_relay_free().
 */
typedef enum outbox_relay_result outbox_relay_handler(void *arg,
						      const struct outbox_relay_message *message,
						      outbox_relay_call *call);

/*
 * Say why, for people: stored with the message (at most 500 characters, made printable) and shown
 * by `outbox show`. Without it only a fixed text is stored, so that nothing
 * confidential gets there by accident.
 */
OUTBOX_API void outbox_relay_reason(outbox_relay_call *call, const char *reason);
/*
 * Milliseconds until handler_timeout_ms is over: 0 when it is, -1 when there is no limit. Nobody
 * interrupts a handler; one that is late may still return OUTBOX_RELAY_OK, and it counts.
 */
OUTBOX_API int64_t outbox_relay_time_left(const outbox_relay_call *call);
/*
 * 1 when the relay was told to stop. A handler may then return RETRY or DOWN early: nothing is
 * charged, stored or reported, the message comes again with the next start.
 */
OUTBOX_API int outbox_relay_stopping(const outbox_relay_call *call);

/*
 * With OUTBOX_RELAY_IN_TRANSACTION: the connection, as the database's own library has it: a sqlite3
 * *, PGconn * or MYSQL *; and the handle to push and append with, in the same transaction. NULL
 * without that flag.
 */
OUTBOX_API void *outbox_relay_connection(const outbox_relay_call *call);
OUTBOX_API outbox *outbox_relay_writer(const outbox_relay_call *call);

/*
 * A handler did not return OK, and what follows is certain: a dead message is recorded as such, any
 * other comes again. A failure that is taken for an outage (most keys fail, or nothing passes) is
 * reported with is_last 0, whatever its attempt. One that another worker has taken over meanwhile
 * is not reported.
 */
struct outbox_relay_failure {
	enum outbox_relay_result result; /* after the classifier */
	const char *reason;              /* the handler's own, or the fixed text */
	uint32_t attempt;                /* from 1 */
	int is_last;                     /* 1: the message is dead */
	int timed_out;                   /* 1: the handler was over its time */
};

struct outbox_relay_metrics {
	int64_t span_ms; /* the counts below are of this time */
	uint64_t published, failed, retries, dead, down;
	uint64_t published_total, failed_total, dead_total;
	uint64_t in_flight, partitions;
	int64_t backoff_ms; /* nothing to do: the longest wait between two reads; else 0 */
	int64_t pending;    /* messages not yet out, delayed ones too; counting stops at 10001;
			       -1: not sampled */
	int breaker_open;
};

enum outbox_relay_level {
	OUTBOX_RELAY_ERROR = 1,
	OUTBOX_RELAY_WARN,
	OUTBOX_RELAY_INFO,
	OUTBOX_RELAY_DEBUG,
};

enum outbox_relay_ordering {
	OUTBOX_RELAY_BY_KEY = 0,   /* a failing message holds its key */
	OUTBOX_RELAY_BY_PARTITION, /* ... its partition */
	OUTBOX_RELAY_UNORDERED,    /* ... nothing */
};

/* Flags of the options. */
#define OUTBOX_RELAY_HOLD_DEAD      0x1u /* a dead message holds its key until somebody decides */
#define OUTBOX_RELAY_HOLD_DELAYED   0x2u /* a delayed message holds its key until it is due */
#define OUTBOX_RELAY_SAMPLE_PENDING 0x4u /* count what is pending for each metrics callback */
/*
 * Call the handler inside a transaction of the log's own database, in which the relay also records
 * its progress: what the handler writes through outbox_relay_connection() happens exactly once for
 * every message, or not at all. One transaction has up to batch_size messages; when a handler of it
 * fails, all of it is undone and run again without that message. The handler must not end the
 * transaction. For what it does elsewhere the promise stays: at least once.
 */
#define OUTBOX_RELAY_IN_TRANSACTION 0x8u

/* Instead of milliseconds, in keep_published_ms and keep_dead_ms. */
#define OUTBOX_RELAY_FOR_EVER   (-1)
#define OUTBOX_RELAY_NOT_AT_ALL (-2)

/*
 * What is left out is zero, and zero means the default. Everything is copied. Relays of one name
 * share the work, wherever they run; relays of different names each get every message.
 */
struct outbox_relay_options {
	const char *store;             /* required: "sqlite:shop.db" */
	const char *name;              /* of its reader: "default" */
	const char *reads;             /* the target of its messages: "default" */
	outbox_relay_handler *handler; /* required */
	void *arg;                     /* of every callback */
	/* All of these may be NULL. on_failure: on the thread of a worker, between handlers. */
	void (*on_failure)(void *arg, const struct outbox_relay_message *message,
			   const struct outbox_relay_failure *failure);
	/* Turn a result that is not OK into another one. On the handler's thread. */
	enum outbox_relay_result (*classify)(void *arg, const struct outbox_relay_message *message,
					     enum outbox_relay_result result, const char *reason);
	/* A line without a line break, from any thread. NULL: silence. */
	void (*log)(void *arg, enum outbox_relay_level level, const char *line);
	/* On the thread that called run or process_once. */
	void (*metrics)(void *arg, const struct outbox_relay_metrics *metrics);
	enum outbox_relay_level log_level; /* info */
	uint32_t metrics_interval_ms;      /* 10000 */
	uint32_t handler_timeout_ms;       /* no limit */
	uint32_t workers;                  /* 1 */
	uint32_t batch_size;               /* 500 */
	enum outbox_relay_ordering ordering;
	uint32_t max_attempts;              /* 20 */
	uint32_t base_delay_ms;             /* 5000 */
	uint32_t max_backoff_ms;            /* one hour */
	double multiplier;                  /* 2 */
	double jitter;                      /* 0.25; negative: none */
	uint32_t idle_backoff_ms;           /* 1000 */
	uint32_t shutdown_timeout_ms;       /* 10000 */
	uint32_t lease_ttl_ms;              /* 15000 */
	unsigned flags;                     /* OUTBOX_RELAY_HOLD_DEAD ... */
	const struct outbox_options *table; /* how the tables look; flags other than the column
					       types have no meaning here */
	const char *start; /* of a reader that is new: "beginning", "end", or an RFC 3339 time */
	const char *const *types; /* patterns of event_type to deliver; none: any */
	size_t type_count;
	const char *const *aggregates; /* of aggregate_type */
	size_t aggregate_count;
	/* The relay removes old rows, of all targets, in the background. Rows stay in the log this
	   long after every reader has passed them: 168 hours */
	int64_t keep_published_ms;
	int64_t keep_dead_ms; /* dead messages are kept: for ever */
};

/*
 * outbox_relay_new(); the sizes are sizeof(struct outbox_relay_options) and, for its member
 * `table`, sizeof(struct outbox_options) of the program that calls.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_relay_new_sized(const void *options, size_t options_size,
						       size_t table_size, outbox_relay **ret_relay,
						       struct outbox_error *err);

/*
 * Check the options, connect, check the tables. OUTBOX_ECONFIG, OUTBOX_ESCHEMA, OUTBOX_ESTORE
 * say what is wrong. On success the caller owns *ret_relay.
 */
OUTBOX_NODISCARD static inline int outbox_relay_new(const struct outbox_relay_options *options,
						    outbox_relay **ret_relay,
						    struct outbox_error *err)
{
	return outbox_relay_new_sized(options, sizeof(struct outbox_relay_options),
				      sizeof(struct outbox_options), ret_relay, err);
}

/*
 * Deliver until outbox_relay_stop(), which gives OUTBOX_OK; anything else says why it ended by
 * itself. A store that is away is waited for. One run or process_once at a time.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_relay_run(outbox_relay *relay, struct outbox_error *err);
/*
 * Deliver what is due now and leave. Returns how many messages were decided (0: there was
 * nothing to do), or why not: OUTBOX_ESINK when the handler said DOWN, OUTBOX_ESTORE.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_relay_process_once(outbox_relay *relay,
							  struct outbox_error *err);
/*
 * End the run under way, or the next one if none is: what is in the hands of a handler is
 * waited for (up to shutdown_timeout_ms) and stored, leases are given back. Called again: at once.
 * From any thread, from a handler, and from a signal handler.
 */
OUTBOX_API void outbox_relay_stop(outbox_relay *relay);
/*
 * For tests: wait until a reader of a store ("sqlite:shop.db") has delivered everything that was
 * committed when the wait began; dead, discarded and delayed messages are not waited for. 1: it
 * has; 0: the time is over.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_wait_caught_up(const char *store, const char *reader,
						      uint32_t timeout_ms,
						      struct outbox_error *err);
/* NULL is allowed. Nothing may be under way. */
OUTBOX_API void outbox_relay_free(outbox_relay *relay);

#ifdef __cplusplus
}
#endif
#endif
