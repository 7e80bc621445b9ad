/* SPDX-License-Identifier: MIT */
/*
 * The store: what the relay, the command line and the monitor need of a
 * database. One struct ob_store is one connection and belongs to one thread.
 *
 * Each operation below has a function type with its whole contract. A backend
 * fills a struct ob_store_ops; only store.c calls through it. A slot may be
 * NULL only where its contract says "optional".
 *
 * Rules that hold for every operation:
 *  - Time is the database's clock. Callers give durations, never instants.
 *  - An operation that changes anything is one transaction: all of it or
 *    nothing, also when it fails or the process dies in the middle. (setup and
 *    resize are not on MySQL: see there.)
 *  - Kinds of failure: DOWN when it may pass by itself (locked, connection
 *    gone, deadlock, disk full, timeout): the caller may call again with the
 *    same arguments. After a failed commit the outcome may be unknown; every
 *    operation here may be repeated without harm. FATAL when a person must act
 *    (schema missing or changed, no rights, corrupt). A backend reconnects
 *    by itself on the next call after it lost its connection.
 *  - `target` names a relay's rows and is never NULL unless the contract says so.
 *  - A lease, a row claim and a heartbeat are valid while their end lies ahead of
 *    now; at the exact instant they are over. A message is due from its instant on.
 *  - Without our tables every operation but setup is OUTBOX_ESCHEMA (FATAL).
 *  - Empty input (no partition, no outcome, a limit of 0 where 0 means none) is
 *    success without a call of the backend: store.c sees to it.
 */
#ifndef OB_STORE_STORE_H
#define OB_STORE_STORE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/layout.h"
#include "base/message.h"
#include "base/opt.h"

struct ob_store;

enum { OB_PARTITIONS_MAX = 1024, OB_SCHEMA_VERSION = 1, OB_LAST_ERROR_MAX = 1024 };

/* ---- opening --------------------------------------------------------- */

/*
 * Connect. The options of the backend's table are already set in its struct.
 * Needs no tables. Bad address, rights or file are FATAL and say what to do;
 * a server that is away is DOWN.
 */
typedef int ob_store_open_fn(struct ob_store *store, struct ob_err *err);

/* Give back what is held; called once, also on a store whose open failed. */
typedef void ob_store_close_fn(struct ob_store *store);

/* ---- schema ---------------------------------------------------------- */

struct ob_setup {
	uint32_t partition_count; /* of a new outbox; 1..OB_PARTITIONS_MAX */
};

struct ob_setup_done {
	uint32_t from_version; /* 0: there was nothing */
	uint32_t to_version;
};

/*
 * Create what is missing or upgrade an older version, in one transaction, except on MySQL, which
 * commits with every CREATE and ALTER: there it is steps under a lock, the version written last,
 * and one that was interrupted is finished by the next. Does nothing when the schema is current;
 * safe when several run at once. A newer version, or a table of ours that is not ours, is
 * OUTBOX_ESCHEMA and nothing is changed. An existing outbox keeps its partition count.
 * With layout->source, the trigger that copies its new rows is made too; a table or column of it
 * that is missing, or cannot be copied, is OUTBOX_ESCHEMA before anything is changed.
 */
typedef int ob_store_setup_fn(struct ob_store *store, const struct ob_setup *setup,
			      struct ob_setup_done *ret_done, struct ob_err *err);

/* Optional. The SQL that setup would run on an empty database, ready for the database's own shell.
 * No connection. */
typedef int ob_store_setup_sql_fn(const struct ob_layout *layout, const struct ob_setup *setup,
				  struct ob_buf *out, struct ob_err *err);

/* Optional. The SQL that makes the roles of producers and relays and grants them what they need. */
typedef int ob_store_grants_sql_fn(const struct ob_layout *layout, struct ob_buf *out,
				   struct ob_err *err);

/*
 * The start-up checks: tables there, of this version, with the properties the
 * promises rest on. OUTBOX_ESCHEMA says which is wrong and what to do, OUTBOX_ESTORE which right
 * this user lacks or what the server does not keep.
 */
typedef int ob_store_check_fn(struct ob_store *store, struct ob_err *err);

/*
 * Optional. What works, and yet weakens a promise or will bite later: a line for each into `out`,
 * with what to do about it. Nothing to say is success.
 */
typedef int ob_store_advise_fn(struct ob_store *store, struct ob_buf *out, struct ob_err *err);

/* ---- writing, for the command line and tests ------------------------- */

/*
 * Begin a write transaction; push messages into it; end it. What outbox_push()
 * checks is checked here too and leaves the transaction usable. A failing
 * message's index is *ret_index (always set then). end(commit = false) is always allowed and
 * cannot fail. Closing the store rolls back. After a failed commit the caller calls
 * end(false) and may run the whole transaction again; a message with an id of
 * the caller's that did get in is then OUTBOX_EDUPID. Push without begin is
 * OUTBOX_ENOTRANSACTION. While a transaction is open no other operation is called
 * on this store.
 */
typedef int ob_store_tx_begin_fn(struct ob_store *store, struct ob_err *err);
typedef int ob_store_tx_push_fn(struct ob_store *store, const struct outbox_message *messages,
				size_t count, struct outbox_id *ret_ids, size_t *ret_index,
				struct ob_err *err);
typedef int ob_store_tx_end_fn(struct ob_store *store, bool commit, struct ob_err *err);

/* ---- taking work out ------------------------------------------------- */

enum ob_ordering {
	OB_ORDER_KEY,       /* a failing message holds its key */
	OB_ORDER_PARTITION, /* a failing message holds its partition */
	OB_ORDER_NONE,      /* a failing message holds nothing */
};

struct ob_fetch {
	const char *target;
	const uint32_t *partitions; /* those whose lease we hold; served in this order */
	size_t partition_count;     /* 0: nothing is fetched, never everything */
	const uint64_t *epochs; /* other ones for another lease; NULL: nothing may be remembered */
	uint64_t generation;    /* 0: none; see below */
	const int64_t *exclude; /* seq of the messages in flight, ascending */
	size_t exclude_count;
	uint32_t limit;   /* messages; 0: none */
	size_t max_bytes; /* of payload and headers; one message always fits */
	enum ob_ordering ordering;
};

/*
 * With `epochs` a store may remember from one fetch to the next what it need not read again, as
 * long as an epoch stays the same: a message that an operator brought back from the dead
 * may then come some seconds later. While `generation` stays the same too, every message that such
 * fetches have returned is in `exclude` or was settled as published, and all outcomes were so; 0
 * promises nothing.
 *
 * The messages that may be sent now, into `batch` (reset first; no work is
 * success with an empty batch). Writes nothing. From the given partitions
 * only, and none of `exclude`:
 *  - pending messages that are due and whose key nothing holds;
 *  - failed messages whose retry is due (due exactly at the instant).
 * A row under a valid row claim is left out.
 * A key is held by a failed message (2), or a dead one with hold (-2), of the
 * same target. Without a key a message holds nothing and is held by nothing.
 * With OB_ORDER_PARTITION the partition stands for the key, also for messages
 * without one; with OB_ORDER_NONE nothing is held. A failed message is not held
 * by another. Rows stay parked (3) until they are released, whatever the ordering.
 * Ordered by partition (as given), priority (higher first), seq. A partition with work
 * gets at least limit / partition_count (rounded down, at least 1) before
 * another gets more, as long as the limits last. A message that passes max_bytes
 * ends its partition's part: nothing behind it overtakes it.
 * Reads one snapshot: a message that committed before another's insert ran is
 * never missing while the other is returned.
 * How a store finds the rows is its own affair; the caller may not conclude
 * anything from seq but insert order.
 */
typedef int ob_store_fetch_fn(struct ob_store *store, const struct ob_fetch *fetch,
			      struct ob_batch *batch, struct ob_err *err);

enum ob_outcome_kind {
	OB_OUTCOME_PUBLISHED, /* the sink has it */
	OB_OUTCOME_RETRY,     /* failed; attempts + 1; due again after delay_ms */
	OB_OUTCOME_DEAD,      /* given up; attempts + 1 */
	OB_OUTCOME_RELEASE,   /* not sent: only gives a row claim back, charges nothing */
};

struct ob_outcome {
	const struct ob_message *message; /* as fetched or claimed */
	enum ob_outcome_kind kind;
	int64_t delay_ms;    /* RETRY */
	struct ob_str error; /* RETRY, DEAD: any bytes; stored sanitised and cut */
};

struct ob_lease {
	uint32_t partition;
	uint64_t epoch; /* grows with every change of owner, never falls */
};

struct ob_settle {
	const char *target;
	struct ob_uuid owner;          /* the worker */
	const struct ob_lease *leases; /* of the outcomes' partitions */
	size_t lease_count;
	const struct ob_uuid
		*token; /* set: the rows were claimed with it; leases are not looked at */
	const struct ob_outcome *outcomes;
	size_t outcome_count;
	enum ob_ordering ordering;
	bool delete_published; /* after_publish: delete */
	bool hold_dead;        /* on_dead: hold */
};

struct ob_settled {
	uint32_t applied;
	uint32_t lost;     /* not applied: the lease or claim is no longer ours */
	uint32_t vanished; /* ours, but the row is gone, settled already, or an operator decided
			      otherwise */
};

/*
 * Record outcomes, in one transaction that first locks the lease rows and
 * compares owner and epoch (an expired lease that nobody took is still ours):
 * outcomes of a partition that fails the test (or has no lease in the list) are
 * dropped and counted as lost, the others are applied. *ret_lost (lease_count
 * entries, may be NULL) says which leases failed. With a token, each row is
 * guarded by its own token: another's is lost, a row that is gone has vanished,
 * an expired one that nobody took is still ours. The row is found by seq and must carry the
 * message's id, else it has vanished: a database that lost its tail hands numbers out again.
 *  - PUBLISHED: published, last_error cleared, attempts kept (or the row is
 *    deleted). If the row held its key, the key is released. Applies to pending,
 *    failed and parked rows; else vanished.
 *  - RETRY: failed; its key's (or partition's) other pending rows are parked.
 *  - DEAD: dead; with hold_dead and an ordering, dead-hold and the rest is
 *    parked; else the key is released. A row without a key has nothing to hold
 *    under OB_ORDER_KEY and is plain dead. published_at is the time of death.
 *  - RETRY and DEAD apply to pending, failed and parked rows whose attempts are
 *    still message->attempts; else vanished. So a repeat charges nothing.
 *  - RELEASE without a token changes nothing and counts as applied.
 * Every outcome that applies ends the row's claim. Releasing: when a row stops
 * holding, the parked rows of its key turn pending if no other row holds the key,
 * and all parked rows of its partition if no row of the partition holds anything; in
 * the same transaction. Counts PUBLISHED as published, RETRY and DEAD as failed, in the
 * throughput of this minute. Settling an outcome twice changes nothing (the
 * second time it counts as vanished, or lost with a token).
 */
typedef int ob_store_settle_fn(struct ob_store *store, const struct ob_settle *settle,
			       bool *ret_lost, struct ob_settled *ret_settled, struct ob_err *err);

/* ---- row claims, without leasing ------------------------------------- */

struct ob_claim {
	const char *target;
	struct ob_uuid token; /* new for every claim */
	const char *worker;   /* for readers: locked_by */
	uint32_t limit;       /* 0: none */
	size_t max_bytes;
	int64_t ttl_ms;
};

/*
 * Claim due rows (pending or failed, no claim that is still valid; a claim is
 * free at the exact instant it expires) for ttl_ms: higher priority first,
 * then seq. Committed before it returns. Any number of claimers may run: no row is
 * handed out twice, none is left out. A claimed row keeps its state, readers see
 * it as processing. Holding keys is not looked at. Rows that carry this very token are
 * handed out again, so that a claim whose reply was lost can be repeated. The first
 * message always fits; the first that passes max_bytes ends the claim.
 */
typedef int ob_store_claim_fn(struct ob_store *store, const struct ob_claim *claim,
			      struct ob_batch *batch, struct ob_err *err);

/* ---- workers and leases ---------------------------------------------- */

struct ob_worker {
	struct ob_uuid id; /* random per process start and thread, never a hostname */
	struct ob_str target, hostname;
	int32_t pid;
	int64_t started_at_us, heartbeat_until_us; /* filled by the store */
	uint64_t published, failed;                /* since it started */
};

/*
 * Join, or renew the heartbeat for ttl_ms and write the counters. A worker that
 * was removed joins again. Forgets workers of the target whose heartbeat is over.
 */
typedef int ob_store_beat_fn(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
			     struct ob_err *err);
/* Release the worker's leases and remove it. Not there is success; nobody else is touched. */
typedef int ob_store_leave_fn(struct ob_store *store, const char *target,
			      const struct ob_uuid *worker, struct ob_err *err);
/* Workers whose heartbeat is valid, ordered by id; target NULL: of all. Memory is the arena's. */
typedef int ob_store_workers_fn(struct ob_store *store, const char *target, struct ob_arena *arena,
				struct ob_worker **ret_workers, size_t *ret_count,
				struct ob_err *err);

/*
 * Make the lease rows of `target` for partitions 0..count-1, count as stored
 * in the schema, and drop those at or above it that nobody holds. Idempotent.
 */
typedef int ob_store_seed_fn(struct ob_store *store, const char *target, uint32_t *ret_count,
			     struct ob_err *err);
/*
 * Take up to `want` partitions that are free or expired, lowest first, for
 * ttl_ms; the epoch of each grows by one. *ret_leases: those taken by this call,
 * by number. After a lost reply renew tells what is held.
 */
typedef int ob_store_take_fn(struct ob_store *store, const char *target,
			     const struct ob_uuid *owner, uint32_t want, int64_t ttl_ms,
			     struct ob_arena *arena, struct ob_lease **ret_leases,
			     size_t *ret_count, struct ob_err *err);
/*
 * Extend every lease that is the owner's and not expired; the epoch stays.
 * *ret_leases: all that are held after the call, by number. An expired one is not ours
 * any more, even if nobody took it.
 */
typedef int ob_store_renew_fn(struct ob_store *store, const char *target,
			      const struct ob_uuid *owner, int64_t ttl_ms, struct ob_arena *arena,
			      struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err);
/* Give up these partitions at once; those of another owner stay as they are. */
typedef int ob_store_release_fn(struct ob_store *store, const char *target,
				const struct ob_uuid *owner, const uint32_t *partitions,
				size_t count, struct ob_err *err);

struct ob_partition {
	struct ob_str target;
	uint32_t number;
	bool leased; /* valid now */
	struct ob_uuid owner;
	uint64_t epoch;
	int64_t until_us;
};

/* All lease rows, by target and number; target NULL: of all. */
typedef int ob_store_partitions_fn(struct ob_store *store, const char *target,
				   struct ob_arena *arena, struct ob_partition **ret_partitions,
				   size_t *ret_count, struct ob_err *err);
/*
 * Change the number of partitions, for all targets. OUTBOX_EBUSY (DOWN) while any
 * lease is valid: then nothing changes. Every row gets its new partition in
 * the same transaction, so none is stranded (on MySQL the ALTER commits by itself: if the process
 * dies before the rest is committed, check refuses until the resize is run again); parked rows
 * whose key no row holds turn pending. Every lease loses its owner and its epoch grows, so that an
 * expired owner cannot settle rows that moved. Lease rows are made and dropped by seed. The count
 * that is there already is success and changes nothing. A count outside 1..OB_PARTITIONS_MAX is
 * OUTBOX_EINVAL.
 */
typedef int ob_store_resize_fn(struct ob_store *store, uint32_t partition_count,
			       struct ob_err *err);

/* ---- looking --------------------------------------------------------- */

struct ob_stats {
	struct ob_str target;
	uint64_t count[OB_VIEW_COUNT];
	uint64_t held_keys;    /* distinct keys of failed and dead-hold rows */
	int64_t oldest_due_us; /* lowest created_at of pending, failed and parked rows that are due;
				  0: none */
};

/* One entry per target that has rows, ordered by name; `target` NULL: of all. *ret_now_us: the
 * database's clock. */
typedef int ob_store_stats_fn(struct ob_store *store, const char *target, struct ob_arena *arena,
			      struct ob_stats **ret_stats, size_t *ret_count, int64_t *ret_now_us,
			      struct ob_err *err);

struct ob_minute {
	int64_t minute_us; /* its start */
	uint64_t published, failed;
};

/* Of the last `minutes` minutes (this one is the last) those in which something happened, oldest
 * first; target NULL: summed. */
typedef int ob_store_throughput_fn(struct ob_store *store, const char *target, uint32_t minutes,
				   struct ob_arena *arena, struct ob_minute **ret_minutes,
				   size_t *ret_count, struct ob_err *err);

/* Every member that is set narrows. All zero: every row. */
struct ob_filter {
	const struct ob_uuid *id;
	const char *target;
	unsigned views; /* bits 1 << OB_VIEW_...; 0: any */
	const char *key, *aggregate_type, *aggregate_id, *event_type;
	int64_t after_seq; /* > 0: rows behind it, in the order of the listing */
	bool newest_first; /* else oldest first */
	uint32_t limit;    /* 0: no limit */
};

/* Rows with all their fields, by seq. *ret_now_us: the clock for ob_message_view(). */
typedef int ob_store_list_fn(struct ob_store *store, const struct ob_filter *filter,
			     struct ob_batch *batch, int64_t *ret_now_us, struct ob_err *err);

/* ---- operator verbs -------------------------------------------------- */

enum ob_verb {
	OB_VERB_RETRY, /* failed, dead: pending now, attempts 0, last_error kept, published_at
			  cleared */
	OB_VERB_SKIP, /* pending, delayed, failed, parked, dead: dead, attempts kept, key goes on */
	OB_VERB_DISCARD,  /* anything not published: the row is deleted, key goes on */
	OB_VERB_PRIORITY, /* pending, delayed, failed, parked */
};

struct ob_operate {
	enum ob_verb verb;
	struct ob_filter
		filter;   /* limit counts rows changed; after_seq and newest_first are not used */
	int32_t priority; /* PRIORITY: -32768..32767, else OUTBOX_EINVAL */
};

/*
 * Apply a verb to the rows that match and whose state allows it, oldest first; a
 * row under a valid row claim is refused. Releases the keys of rows that held them,
 * as settle does, and ends claims that are over. *ret_changed counts the rows it was
 * applied to, also when they were so already; *ret_refused all rows that match but
 * whose state does not allow it, whatever the limit.
 */
typedef int ob_store_operate_fn(struct ob_store *store, const struct ob_operate *operate,
				uint64_t *ret_changed, uint64_t *ret_refused, struct ob_err *err);

/* ---- keeping the table small ----------------------------------------- */

struct ob_cleanup {
	const char *target;   /* NULL: all */
	int64_t published_ms; /* delete rows published at least this long ago; OB_NEVER_MS: none */
	int64_t dead_ms;      /* the same for rows that died and hold no key */
	uint32_t limit;       /* rows of one call, published first; 0: nothing is deleted */
};

/* One batch. Fewer than `limit` deleted means that nothing is left to do. */
typedef int ob_store_cleanup_fn(struct ob_store *store, const struct ob_cleanup *cleanup,
				uint64_t *ret_published, uint64_t *ret_dead, struct ob_err *err);

/* ---- waking ---------------------------------------------------------- */

/* Optional. An fd to poll for reading: readable means wake_check() may have news. -1: none, poll by
 * time. */
typedef int ob_store_wake_fd_fn(struct ob_store *store);
/*
 * Has another connection committed anything since the last call that found
 * something? Cheap enough to call every millisecond; consumes what made the
 * fd readable. A hint only: true may be wrong, and false may be late by one poll.
 */
typedef int ob_store_wake_check_fn(struct ob_store *store, bool *ret_news, struct ob_err *err);

/* One line about the database for people: "SQLite 3.40.1, /var/lib/shop.db". */
typedef void ob_store_describe_fn(struct ob_store *store, struct ob_buf *out);

/* ---- the table ------------------------------------------------------- */

enum {
	OB_STORE_CONCURRENT_WRITERS = 1 << 0, /* two write transactions may be open at once */
};

struct ob_store_ops {
	const char *name; /* "sqlite": also the scheme of its URLs */
	unsigned caps;
	size_t size; /* of the backend's struct, whose first member is struct ob_store */
	const struct ob_opt *opts; /* what a `stores:` entry may hold besides url */
	ob_store_open_fn *open;
	ob_store_close_fn *close;
	ob_store_setup_fn *setup;
	ob_store_setup_sql_fn *setup_sql;
	ob_store_grants_sql_fn *grants_sql;
	ob_store_check_fn *check;
	ob_store_advise_fn *advise;
	ob_store_tx_begin_fn *tx_begin;
	ob_store_tx_push_fn *tx_push;
	ob_store_tx_end_fn *tx_end;
	ob_store_fetch_fn *fetch;
	ob_store_settle_fn *settle;
	ob_store_claim_fn *claim;
	ob_store_beat_fn *beat;
	ob_store_leave_fn *leave;
	ob_store_workers_fn *workers;
	ob_store_seed_fn *seed;
	ob_store_take_fn *take;
	ob_store_renew_fn *renew;
	ob_store_release_fn *release;
	ob_store_partitions_fn *partitions;
	ob_store_resize_fn *resize;
	ob_store_stats_fn *stats;
	ob_store_throughput_fn *throughput;
	ob_store_list_fn *list;
	ob_store_operate_fn *operate;
	ob_store_cleanup_fn *cleanup;
	ob_store_wake_fd_fn *wake_fd;
	ob_store_wake_check_fn *wake_check;
	ob_store_describe_fn *describe;
};

/* First member of every backend's own struct. */
struct ob_store {
	const struct ob_store_ops *ops;
	const char *url; /* all four: the caller's, alive as long as the store */
	const struct ob_layout *layout;
	const struct ob_clock *clock;
	unsigned writer_flags; /* OUTBOX_NO_PAYLOAD_CHECK ... for tx_push */
};

/* What it takes to open one more connection. Everything is borrowed. */
struct ob_store_conf {
	const char *url; /* "sqlite:outbox.db" */
	const struct ob_opt_value *options;
	size_t option_count;
	const struct ob_layout *layout; /* NULL: the default names */
	const struct ob_clock *clock;   /* NULL: the system's; used where the database has none */
};

/* A backend this program knows, built in or not. */
struct ob_store_backend {
	const char *name;
	const struct ob_store_ops *ops; /* NULL: not in this build */
	const char *scheme;             /* another scheme of its URLs, or NULL */
	const char *package;            /* the Debian package that brings its library, or NULL */
	const char *help;               /* one line */
};

/* All of them; the last has no name. */
extern const struct ob_store_backend ob_store_backends[];

/* The backend of a URL; the error names what is unknown, or the package that is missing. */
int ob_store_find(const char *url, const struct ob_store_backend **ret_backend, struct ob_err *err);
/* Make, set options, open. On success the caller owns *ret_store. */
int ob_store_connect(const struct ob_store_conf *conf, struct ob_store **ret_store,
		     struct ob_err *err);
/* For backends and tests: a store of these ops with its default options, not opened. */
int ob_store_new(const struct ob_store_ops *ops, const struct ob_store_conf *conf,
		 struct ob_store **ret_store, struct ob_err *err);
/* Close and free; NULL is allowed. */
void ob_store_free(struct ob_store *store);
/* The ops' setup_sql; OUTBOX_EINVAL for a backend that has none. `layout` NULL: the default names.
 */
int ob_store_setup_sql(const struct ob_store_ops *ops, const struct ob_layout *layout,
		       const struct ob_setup *setup, struct ob_buf *out, struct ob_err *err);

/* The ops' grants_sql, likewise. */
int ob_store_grants_sql(const struct ob_store_ops *ops, const struct ob_layout *layout,
			struct ob_buf *out, struct ob_err *err);

/* The operations; see the function types above. */
ob_store_setup_fn ob_store_setup;
ob_store_check_fn ob_store_check;
ob_store_advise_fn ob_store_advise;
ob_store_tx_begin_fn ob_store_tx_begin;
ob_store_tx_push_fn ob_store_tx_push;
ob_store_tx_end_fn ob_store_tx_end;
ob_store_fetch_fn ob_store_fetch;
ob_store_settle_fn ob_store_settle;
ob_store_claim_fn ob_store_claim;
ob_store_beat_fn ob_store_beat;
ob_store_leave_fn ob_store_leave;
ob_store_workers_fn ob_store_workers;
ob_store_seed_fn ob_store_seed;
ob_store_take_fn ob_store_take;
ob_store_renew_fn ob_store_renew;
ob_store_release_fn ob_store_release;
ob_store_partitions_fn ob_store_partitions;
ob_store_resize_fn ob_store_resize;
ob_store_stats_fn ob_store_stats;
ob_store_throughput_fn ob_store_throughput;
ob_store_list_fn ob_store_list;
ob_store_operate_fn ob_store_operate;
ob_store_cleanup_fn ob_store_cleanup;
ob_store_wake_fd_fn ob_store_wake_fd;
ob_store_wake_check_fn ob_store_wake_check;
ob_store_describe_fn ob_store_describe;

/* "p07" into out (at least 8 bytes). */
void ob_partition_label(uint32_t partition, char out[8]);

#endif
