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
 *  - `reader` names whose progress and exceptions are meant and is never NULL unless the contract
 * says so. Rows of the log never change; a reader reads one target of it.
 *  - A lease and a heartbeat are valid while their end lies ahead of
 *    now; at the exact instant they are over. A message is due from its instant on.
 *  - Without our tables every operation but setup is OUTBOX_ESCHEMA (FATAL).
 *  - Empty input (no partition, no outcome, a limit of 0 where 0 means none) is
 *    success without a call of the backend: store.c sees to it.
 */
#ifndef OB_STORE_STORE_H
#define OB_STORE_STORE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/finding.h"
#include "base/layout.h"
#include "base/message.h"
#include "base/opt.h"
#include "base/worker_report.h"
#include "log/exception.h"
#include "log/progress.h"

struct ob_store;
struct ob_sql_driver;

enum {
	OB_PARTITIONS_MAX = 1024,
	OB_SCHEMA_VERSION = 2,
	OB_LAST_ERROR_MAX = 1024,
	OB_WORKER_STATE_MAX = OB_WORKER_REPORT_BYTES,
};

/* Numbers in each partition of a partitioned log, and the most. */
#define OB_PARTITION_ROWS     INT64_C(1000000)
#define OB_PARTITION_ROWS_MAX INT64_C(1000000000000)

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
	bool partitioned; /* a new log is a table partitioned by seq; OUTBOX_EINVAL where there is
			     none */
	int64_t partition_rows; /* numbers of each of these; 0: OB_PARTITION_ROWS */
	bool events; /* what an event store needs besides; OUTBOX_EINVAL for a partitioned log */
	bool inbox;  /* what a consumer's database needs besides: store/inbox.h */
};

struct ob_setup_done {
	uint32_t from_version; /* 0: there was nothing */
	uint32_t to_version;
	bool partitioned; /* the log is, whether or not it was asked for */
};

/*
 * Create what is missing or upgrade an older version, in one transaction, except on MySQL, which
 * commits with every CREATE and ALTER: there it is steps under a lock, the version written last,
 * and one that was interrupted is finished by the next. Does nothing when the schema is current;
 * safe when several run at once. A newer version, or a table of ours that is not ours, is
 * OUTBOX_ESCHEMA and nothing is changed. An existing outbox keeps its partition count, and
 * is partitioned by number or not as it was made.
 * A partitioned log refuses a repeated id or sequence number within one table partition
 * (PostgreSQL) or not at all (MySQL): the databases have no unique index over all of them without
 * the number. With layout->source, the trigger that copies its new rows is made too; a table or
 * column of it that is missing, or cannot be copied, is OUTBOX_ESCHEMA before anything is changed.
 */
typedef int ob_store_setup_fn(struct ob_store *store, const struct ob_setup *setup,
			      struct ob_setup_done *ret_done, struct ob_err *err);

/* Optional. The SQL that setup would run on an empty database, ready for the database's own shell.
 * No connection. */
typedef int ob_store_setup_sql_fn(const struct ob_layout *layout, const struct ob_setup *setup,
				  struct ob_buf *out, struct ob_err *err);

/* Optional. The SQL that makes the roles of producers and relays and grants them what they need, on
 * a log that was set up like that. */
typedef int ob_store_grants_sql_fn(const struct ob_layout *layout, const struct ob_setup *setup,
				   struct ob_buf *out, struct ob_err *err);

/*
 * The start-up checks: tables there, of this version, with the properties the
 * promises rest on. OUTBOX_ESCHEMA says which is wrong and what to do, OUTBOX_ESTORE which right
 * this user lacks or what the server does not keep.
 */
typedef int ob_store_check_fn(struct ob_store *store, struct ob_err *err);

/*
 * Optional. What works, and yet weakens a promise or will bite later, on top of check: a finding
 * of ops->checks for each into `out`, and one that is ok for what was found in order. Reads only,
 * and only what costs the same with any number of rows. What this user may not see is left out.
 */
typedef int ob_store_diagnose_fn(struct ob_store *store, struct ob_findings *out,
				 struct ob_err *err);

/* Optional. The age of the oldest transaction that is open; below 0: not known, or this user may
 * not see it. Messages of such a transaction come late, and nothing of the database can be cleaned
 * up behind it. */
typedef int ob_store_oldest_fn(struct ob_store *store, int64_t *ret_age_us, struct ob_err *err);

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
/*
 * Optional. The public library's handle on this connection, for the open transaction: to append
 * events and to read streams. It is the store's, and valid until the transaction ends.
 */
typedef int ob_store_tx_writer_fn(struct ob_store *store, outbox **ret_writer, struct ob_err *err);

/*
 * SQL of the operator's with values of a message in it, parsed once: names with a colon, outside of
 * quotes and comments. Texts: :id (canonical) :type :payload :headers :key :aggregate_type
 * :aggregate_id :correlation_id :causation_id :target; numbers: :sequence (NULL: none) :revision
 * :position; :occurred_at and :created_at, as the log's columns have them (SQLite: microseconds
 * since 1970). An unknown name, a quote without end and a second statement are OUTBOX_ECONFIG. The
 * caller frees it, after the stores that ran it or before.
 */
struct ob_message_sql;
struct ob_store_ops;
int ob_message_sql_parse(const struct ob_store_ops *ops, const char *text,
			 struct ob_message_sql **ret_sql, struct ob_err *err);
void ob_message_sql_free(struct ob_message_sql *sql); /* NULL is allowed */
/*
 * Optional. Run it in the open transaction with the values of `message`, as parameters. Rows that
 * it returns are dropped. After a failure the transaction can only be ended by end(false). Kinds:
 * DOWN as everywhere; FATAL if it can never run (a table or a right is missing, a mistake in the
 * SQL); RETRY for all else: it is about this message. *ret_changed: rows, as the database counts
 * them.
 */
typedef int ob_store_tx_exec_fn(struct ob_store *store, const struct ob_message_sql *sql,
				const struct ob_message *message, uint64_t *ret_changed,
				struct ob_err *err);

/* Optional. The connection in the database's own library: sqlite3 *, PGconn *, MYSQL *. In the open
 * transaction whoever gets it may do anything but end that. */
typedef void *ob_store_tx_native_fn(struct ob_store *store);

/* ---- readers --------------------------------------------------------- */

enum ob_start {
	OB_START_BEGINNING, /* everything that is in the log */
	OB_START_END,       /* what commits from now on, also of transactions that are open now */
	OB_START_TIME,      /* what was created at or after a time */
	OB_START_SEQ,       /* what stands at or after a number */
};

struct ob_place {
	enum ob_start start;
	int64_t at; /* TIME: microseconds since 1970; SEQ: the number */
};

struct ob_reader {
	struct ob_str name, target;
	struct ob_str filter; /* what it reads, for people: one line; "" is everything */
	bool temporary;       /* a replay: does not hold retention once it has ended */
	int64_t created_at_us;
	/* filled by readers(): */
	int64_t low_pos, high_pos; /* of its partitions */
	int64_t moved_at_us;       /* its newest journal row */
	uint32_t workers;          /* whose heartbeat is valid */
	uint64_t exceptions;       /* that are not DONE or DISCARDED; capped at 10001 */
	int64_t held_seq; /* retention may remove nothing from here on because of this reader */
};

/*
 * Make a reader that is not there yet: its row, and for each partition (of all lanes, see partition
 * numbers below) journal row 0 with the progress of `place`, epoch 0 and no owner. One that is
 * there keeps its progress; another target is OUTBOX_ECONFIG (FATAL) and names both. Safe when
 * several do it at once. *ret_made: it was not there.
 */
typedef int ob_store_reader_make_fn(struct ob_store *store, const struct ob_reader *reader,
				    const struct ob_place *place, bool *ret_made,
				    struct ob_err *err);
/* All readers, by name; memory is the arena's. */
typedef int ob_store_readers_fn(struct ob_store *store, struct ob_arena *arena,
				struct ob_reader **ret_readers, size_t *ret_count,
				struct ob_err *err);
/*
 * Move a reader to a place, in all partitions: its leases lose their owner and their epoch grows by
 * one, journal rows with that epoch and the new progress are inserted (so that a worker that still
 * runs is LOST at its next settle and takes over from the new place), those before are removed (or
 * retention would go by them), and exceptions of rows that the new progress does not cover are
 * removed: these rows are read again. Those that it covers
 * stay. Unknown reader: OUTBOX_EINVAL.
 */
typedef int ob_store_reader_seek_fn(struct ob_store *store, const char *reader,
				    const struct ob_place *place, struct ob_err *err);
/* Remove a reader with its journal, exceptions, leases, workers. OUTBOX_EBUSY (DOWN) while a worker
 * of it has a valid heartbeat; unknown: OUTBOX_EINVAL. */
typedef int ob_store_reader_remove_fn(struct ob_store *store, const char *reader,
				      struct ob_err *err);

/* ---- reading --------------------------------------------------------- */

/*
 * Partition numbers. The log's partition_no is lane * partition_count + hash of the key. Lane 0:
 * priority 0; lane 1: above; lane 2: below. A lease is for a hash (0..partition_count - 1) and
 * covers its number in every lane. Journal and exceptions are kept by partition_no. OB_LANES lanes.
 */
enum { OB_LANES = 3 };

struct ob_owned {
	uint32_t partition; /* partition_no */
	uint64_t epoch;     /* of the lease */
	/* filled by take_over(): */
	bool lost;                   /* a higher epoch is in the journal, or no row: not ours */
	uint64_t batch;              /* of the row that was inserted */
	struct ob_progress progress; /* written unless lost; the caller owns its references */
};

/*
 * The fence. For each of `owned`, insert journal row newest batch + 1 with the newest row's
 * progress, our owner and epoch, and return it. Whatever the owner before tries to record
 * afterwards collides. An own row of the same owner and epoch that is the newest already is taken
 * as it is (a repeat after a lost reply). If someone inserted in between, try again. One
 * transaction. Also checks that the database is the one that the progress is of (PostgreSQL: system
 * identifier; xmax of a stored snapshot above the current one): OUTBOX_ESTORE (FATAL) naming
 * `outbox adopt`.
 */
typedef int ob_store_take_over_fn(struct ob_store *store, const char *reader,
				  const struct ob_uuid *owner, struct ob_owned *owned, size_t count,
				  struct ob_err *err);

struct ob_read_part {
	uint32_t partition;
	struct ob_progress from;  /* borrowed: where to go on; may be ahead of what is recorded */
	struct ob_progress after; /* written on success; the caller owns its references */
	bool reached; /* filled: `after` differs from `from` or something of it was returned */
};

struct ob_read {
	const char *reader, *target;
	struct ob_read_part *parts; /* 0: nothing is read, never everything */
	size_t part_count;
	uint32_t limit;   /* messages from the log; 0: none */
	size_t max_bytes; /* of payload and headers of all messages; one message always fits */
	uint32_t exception_limit; /* due exceptions; 0: they are not read */
	const int64_t *exclude;   /* seq of exceptions that are in memory, ascending */
	size_t exclude_count;
	enum ob_ordering ordering;
	int64_t end_seq; /* > 0: nothing above it (replay); progress does not pass it */
};

struct ob_read_done {
	bool more;            /* the log may have more right now: read again */
	bool more_exceptions; /* so may the exceptions */
};

/*
 * Read one snapshot; writes nothing. Into `batch` (reset first), in this order:
 *
 *  1. due exceptions of these partitions (ob_message.excepted, with attempts and state): rows
 * without a queue whose due has come (WAITING, FAILED, DELAYED), and for each queue whose head's
 *     due has come, the head and the WAITING rows (or DELAYED ones that are due) directly after it,
 * up to exception_limit in all, a queue's rows together and by seq. Not those of `exclude`, nor
 * what comes after one of them in its queue.
 *  2. late: rows that are visible now, that `from` does not cover although seq <= from.pos, by seq;
 *  3. next: rows with seq > from.pos, by seq, `limit` with 2 together.
 *
 * Rows of 2 and 3 that have an exception of their own are left out. A row of 2 and 3 has `held` set
 * if its queue (by `ordering`) has an exception, and `delayed` if its available_at lies ahead of
 * now. `after` is the progress that holds when all of 2 and 3 that was returned for the partition
 * has an outcome. If late does not fit, `after` keeps pos and seen and says in late_seen, late_pos
 * how far it got, and no next is returned for that partition. A read that finds fewer than `limit`
 * moves pos to the end of what it has walked, also where nothing was returned, so that a reader
 * with nothing to do does not fall behind. A message that passes max_bytes ends the read before it
 * (never between a row and an earlier one of its key). All partitions are read in one walk by seq;
 * `from` may differ from partition to partition.
 *
 * Why P3 holds: if A committed before B's insert ran, A has the lower number and every snapshot
 * that shows B shows A: A is delivered, or stands before B in this read, or is an exception and B
 * is held.
 */
typedef int ob_store_read_fn(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
			     struct ob_read_done *ret_done, struct ob_err *err);

/* ---- recording ------------------------------------------------------- */

enum ob_settled {
	OB_SETTLED,
	OB_SETTLE_LOST,  /* another owner took over: nothing of this partition was written */
	OB_SETTLE_MOVED, /* an operator's row took the number: nothing was written; `batch` is the
			    newest now; settle again with it + 1 */
};

struct ob_settle_part {
	uint32_t partition;
	uint64_t epoch;
	uint64_t batch; /* in: the number to insert; out: see MOVED */
	struct ob_progress progress;
	uint32_t published, failed; /* for people */
	enum ob_settled settled;    /* filled */
};

/* A queue whose lowest row becomes due if it is WAITING without due. */
struct ob_promote {
	uint32_t partition;
	struct ob_str queue;
};

struct ob_settle {
	const char *reader;
	struct ob_uuid owner;
	struct ob_settle_part *parts; /* by partition, ascending: all writers lock in this order */
	size_t part_count;
	const struct ob_change *changes; /* of these partitions */
	size_t change_count;
	const struct ob_promote *promotes;
	size_t promote_count;
};

/*
 * Insert a journal row for each part: INSERT that does nothing on a conflict of (reader, partition,
 * batch). That row is the fence and the progress. For the parts that were inserted, and in the same
 * transaction, apply the changes, then the promotions. Without changes it is one statement and one
 * round trip. With changes too where the protocol allows, so that a client that freezes holds no
 * lock. Only a number above the newest row's is inserted: a lower one may be free because its row
 * was pruned. A part that was not inserted: if the newest row has another epoch than ours, or
 * there is none because the partition is gone (resize), LOST. If
 * the row there is our own (owner and epoch) it was a repeat: SETTLED, its changes are applied
 * again without harm. Else MOVED.
 */
typedef int ob_store_settle_fn(struct ob_store *store, struct ob_settle *settle,
			       struct ob_err *err);

/*
 * Optional: tx_settle. The same in the open transaction of tx_begin, so that progress is recorded
 * if and only if what else was written there commits: a handler in this database has its effect
 * exactly once. A part that is not SETTLED was taken by someone else: end the transaction by
 * end(false). The rows are inserted last, so that a takeover never waits for a handler.
 */

/* ---- workers and leases ---------------------------------------------- */

struct ob_worker {
	struct ob_uuid id; /* random per process start and thread, never a hostname */
	struct ob_str reader, hostname;
	int32_t pid;
	int64_t started_at_us, heartbeat_until_us; /* filled by the store */
	uint64_t published, failed;                /* since it started */
	/* What it knows of its sink and itself, as JSON (base/worker_report.h); absent or "":
	 * nothing. */
	struct ob_str state;
};

/*
 * Join, or renew the heartbeat for ttl_ms and write the counters; what they grew by since the last
 * beat is added to the throughput of this minute (row: minute, reader, worker). Its `state`
 * replaces the one before; at most OB_WORKER_STATE_MAX bytes. A worker that was removed joins
 * again. On a connection that keeps its session (not behind a pooler), the connection
 * from now on holds a session lock in the worker's name; the workers row says whether.
 */
typedef int ob_store_beat_fn(struct ob_store *store, const struct ob_worker *worker, int64_t ttl_ms,
			     struct ob_err *err);
/*
 * Forget workers of the reader whose heartbeat is over, or who hold a session lock no more (their
 * connection is gone), and free their leases, so that they can be taken at once. Cheap: called
 * twice a second. Not on `self`. *ret_gone: how many.
 */
typedef int ob_store_reap_fn(struct ob_store *store, const char *reader, const struct ob_uuid *self,
			     uint32_t *ret_gone, struct ob_err *err);
/* Release the worker's leases and remove it. Not there is success; nobody else is touched. */
typedef int ob_store_leave_fn(struct ob_store *store, const char *reader,
			      const struct ob_uuid *worker, struct ob_err *err);
/* Workers whose heartbeat is valid, ordered by id; reader NULL: of all. Memory is the arena's. */
typedef int ob_store_workers_fn(struct ob_store *store, const char *reader, struct ob_arena *arena,
				struct ob_worker **ret_workers, size_t *ret_count,
				struct ob_err *err);

struct ob_lease {
	uint32_t partition; /* a hash: 0..partition_count - 1 */
	uint64_t epoch;     /* grows with every change of owner, never falls */
};

/*
 * Make the lease rows of `reader` for 0..count-1, count as stored in the schema, and drop those at
 * or above it that nobody holds. A new one begins with the highest epoch that the journal has of
 * its partition (in any lane), or its taker would be LOST for ever. Idempotent.
 */
typedef int ob_store_seed_fn(struct ob_store *store, const char *reader, uint32_t *ret_count,
			     struct ob_err *err);
/*
 * Take up to `want` partitions that are free or expired, lowest first, for
 * ttl_ms; the epoch of each grows by one. Rows that someone has locked are passed over.
 * *ret_leases: those taken by this call, by number. After a lost reply renew tells what is held.
 */
typedef int ob_store_take_fn(struct ob_store *store, const char *reader,
			     const struct ob_uuid *owner, uint32_t want, int64_t ttl_ms,
			     struct ob_arena *arena, struct ob_lease **ret_leases,
			     size_t *ret_count, struct ob_err *err);
/*
 * Extend every lease that is the owner's and not expired; the epoch stays.
 * *ret_leases: all that are held after the call, by number. An expired one is not ours
 * any more, even if nobody took it.
 */
typedef int ob_store_renew_fn(struct ob_store *store, const char *reader,
			      const struct ob_uuid *owner, int64_t ttl_ms, struct ob_arena *arena,
			      struct ob_lease **ret_leases, size_t *ret_count, struct ob_err *err);
/* Give up these partitions at once; those of another owner stay as they are. */
typedef int ob_store_release_fn(struct ob_store *store, const char *reader,
				const struct ob_uuid *owner, const uint32_t *partitions,
				size_t count, struct ob_err *err);

struct ob_partition {
	struct ob_str reader;
	uint32_t number; /* a hash */
	bool leased;     /* valid now */
	struct ob_uuid owner;
	uint64_t epoch;
	int64_t until_us;
	int64_t pos;         /* of lane 0 */
	int64_t moved_at_us; /* newest journal row of lane 0 */
};

/* All lease rows, by reader and number; reader NULL: of all. */
typedef int ob_store_partitions_fn(struct ob_store *store, const char *reader,
				   struct ob_arena *arena, struct ob_partition **ret_partitions,
				   size_t *ret_count, struct ob_err *err);
/* Free these leases whoever holds them (an operator, after the database's clock was set back):
 * owner gone, epoch + 1. count 0: all of the reader. Who held one is forgotten as a worker, so that
 * it has no share until its next beat. */
typedef int ob_store_free_leases_fn(struct ob_store *store, const char *reader,
				    const uint32_t *partitions, size_t count, struct ob_err *err);
/*
 * Change the number of partitions, for all readers. OUTBOX_EBUSY (DOWN) while any
 * lease is valid: then nothing changes. Every row gets its new partition in
 * the same transaction, so none is stranded (on MySQL the ALTER commits by itself: if the process
 * dies before the rest is committed, check refuses until the resize is run again). For each reader
 * the new partitions begin at the oldest progress of its old ones (lowest pos, oldest seen); rows
 * above it that their old partition's progress covered become exceptions DONE, so nothing is
 * delivered twice; other exceptions move with their rows, and every queue is promoted: its head may
 * have gone to another partition. Epochs grow, so that an expired owner is LOST. Lease rows are
 * made and dropped by seed. The count that is there already is success and
 * changes nothing. A count outside 1..OB_PARTITIONS_MAX is OUTBOX_EINVAL.
 */
typedef int ob_store_resize_fn(struct ob_store *store, uint32_t partition_count,
			       struct ob_err *err);
/*
 * Optional (PostgreSQL). After a restore into another cluster, where transaction ids mean nothing
 * any more: each reader goes on before the first row that its progress does not cover, rows above
 * that which it covers become exceptions DONE (as by a resize), all rows get txid 3, each partition
 * a journal row with a new snapshot, the meta table the new identifier. *ret_rows: messages that
 * readers have still to deliver, without the exceptions they had. In the cluster that the progress
 * is of, success without a change.
 */
typedef int ob_store_adopt_fn(struct ob_store *store, uint64_t *ret_rows, struct ob_err *err);

/* ---- listing --------------------------------------------------------- */

struct ob_stats {
	struct ob_str reader, target;
	uint64_t count[OB_VIEW_COUNT]; /* PUBLISHED: not counted, 0 */
	bool capped[OB_VIEW_COUNT];    /* the count stopped at `cap` */
	uint64_t held_keys; /* queues with a head that is FAILED, DELAYED or DEAD_HOLD; capped alike
			     */
	int64_t oldest_due_us; /* lowest created_at of PENDING, PARKED, and FAILED that is due; 0:
				  none */
};

/* One entry per reader, ordered by name; `reader` NULL: all. Counting stops at `cap` (0: never).
 * *ret_now_us: the database's clock. */
typedef int ob_store_stats_fn(struct ob_store *store, const char *reader, uint64_t cap,
			      struct ob_arena *arena, struct ob_stats **ret_stats,
			      size_t *ret_count, int64_t *ret_now_us, struct ob_err *err);

struct ob_minute {
	int64_t minute_us; /* its start */
	uint64_t published, failed;
};

/* Of the last `minutes` minutes (this one is the last) those in which something happened, oldest
 * first; reader NULL: summed. */
typedef int ob_store_throughput_fn(struct ob_store *store, const char *reader, uint32_t minutes,
				   struct ob_arena *arena, struct ob_minute **ret_minutes,
				   size_t *ret_count, struct ob_err *err);

/* Every member that is set narrows. */
struct ob_filter {
	/* Whose states; only rows of its target; unknown: OUTBOX_EINVAL. NULL (list only): rows of
	 * every target, as a reader that has read nothing would see them: pending or delayed. */
	const char *reader;
	const struct ob_uuid *id;
	unsigned views; /* bits 1 << OB_VIEW_...; 0: any */
	const char *key, *aggregate_type, *aggregate_id, *event_type, *correlation_id;
	const char *error; /* text that the last error contains, byte by byte */
	int64_t after_seq; /* > 0: rows after it, in the order of the listing */
	int64_t from_seq;  /* > 0: no row below it, whatever the order: bounds what is read */
	bool excepted; /* not with id: only rows with an exception of their own; no backlog is read
			*/
	bool newest_first; /* else oldest first */
	uint32_t limit;    /* 0: no limit */
	bool brief;        /* list only: without payload, headers and snapshot */
	/*
	 * List only, with newest_first: the events of the stream aggregate_type, aggregate_id of
	 * this target, found by the index of its versions, below before_version (0: all). Of the
	 * other members reader, limit and brief count.
	 */
	const char *stream;
	int64_t before_version;
};

/*
 * Messages with all their fields (`brief`: those stay absent, payload_bytes says how large it is)
 * and, for the filter's reader, view, state, attempts, due, last error and time of publication, by
 * seq. The view of a row: by its exception (WAITING: parked if a lower row of its queue exists,
 * else pending; FAILED: failed; DELAYED: delayed; DEAD, DEAD_HOLD: dead; DISCARDED: discarded;
 * DONE: published); without one, published if the newest journal row covers it, else delayed if not
 * due, else pending (or parked, if its queue has an exception). published_at: time of the first
 * journal row that is still kept and covers it; 0 if none.
 */
typedef int ob_store_list_fn(struct ob_store *store, const struct ob_filter *filter,
			     struct ob_batch *batch, int64_t *ret_now_us, struct ob_err *err);

/* ---- operator verbs -------------------------------------------------- */

/* What a person did, for those who ask later. Texts are cut to what the table takes, and made one
 * line of valid UTF-8; an absent one is "". */
struct ob_audit_row {
	int64_t number, at_us;     /* filled by audits() */
	struct ob_str who, origin; /* "anna@host"; "cli" or "monitor" */
	struct ob_str verb;        /* "retry", "readers seek" ... */
	struct ob_str reader;      /* "": it is about none, or all */
	struct ob_str filter;      /* what it was done to, for people: one line */
	uint64_t count;            /* messages or rows that it changed; partitions of a free */
	struct ob_str plan;        /* of this decision alone, at most 64 characters, never "" */
	struct ob_str reason;      /* as given */
};

/*
 * Take down an entry, with the database's time. One of the same plan that is there stays as it is:
 * a repeat is harmless. Entries are kept for OB_AUDIT_DAYS: retain prunes them.
 */
enum { OB_AUDIT_DAYS = 90 };
typedef int ob_store_audit_fn(struct ob_store *store, const struct ob_audit_row *entry,
			      struct ob_err *err);

struct ob_audit_ask {
	int64_t before;     /* > 0: entries with a lower number */
	const char *reader; /* NULL: all */
	const char *verb;   /* NULL: all */
	uint32_t limit;     /* 0: no limit */
};

/* Entries, newest first (by number); memory is the arena's. */
typedef int ob_store_audits_fn(struct ob_store *store, const struct ob_audit_ask *ask,
			       struct ob_arena *arena, struct ob_audit_row **ret_entries,
			       size_t *ret_count, struct ob_err *err);

struct ob_operate {
	enum ob_verb verb;
	/* NULL: none. Taken down in the same transaction with the number of messages that are
	 * changed as its count, if any is. One of that plan that is there: its count grows. */
	const struct ob_audit_row *audit;
	/* These numbers, ascending, instead of what the filter says (its reader counts). Only for
	 * backends of store/sql. */
	const int64_t *seqs;
	size_t seq_count;
	enum ob_ordering ordering; /* DELIVER: by it a message has its queue */
	const char *new_filter;    /* DELIVER: what the reader reads from now on; NULL: as it was */
	struct ob_filter
		filter; /* limit counts rows changed; after_seq and newest_first are not used */
};

/*
 * Apply a verb to the messages that match and whose state allows it (ob_exception_verb decides),
 * oldest first. One transaction: for each partition it inserts the next journal row (progress and
 * epoch copied, owner nil), which serialises it with settles and takeovers; then changes, then
 * promotions. *ret_changed counts what was changed, *ret_refused all that match but whose state
 * does not allow it, whatever the limit.
 */
typedef int ob_store_operate_fn(struct ob_store *store, const struct ob_operate *operate,
				uint64_t *ret_changed, uint64_t *ret_refused, struct ob_err *err);

/* ---- retention ------------------------------------------------------- */

struct ob_retain {
	int64_t published_ms; /* remove rows that every reader had behind it this long ago; 0: at
				 once; OB_NEVER_MS: none */
	int64_t dead_ms; /* forget dead exceptions that hold no queue after this long; then their
			    rows may go */
	uint32_t limit;  /* rows of the log in one call; 0: nothing is removed */
	/* Not NULL: of the log only these numbers, ascending, at most `limit` of them, and those of
	 * them that may go. No table partition is dropped. */
	const int64_t *only;
	size_t only_count;
};

struct ob_retained {
	uint64_t rows;         /* of the log */
	uint64_t dead;         /* exceptions */
	bool more;             /* call again */
	bool busy;             /* another worker does it: nothing was done */
	struct ob_str held_by; /* the reader that holds most, if one holds rows older than
				  published_ms; else "" */
	int64_t held_us;       /* since when it stands still */
	uint64_t parts_made, parts_dropped; /* table partitions of a partitioned log */
};

/*
 * One batch of what log/retention.h allows, by the progress that the journal had published_ms ago,
 * and pruning: journal rows (of each partition stay the newest, for ever; the newest that is
 * published_ms old, which says what may go; and of younger ones the last of each minute),
 * throughput older than 25 hours, audit entries older than OB_AUDIT_DAYS, and of exceptions
 * whose row its reader's progress covers (any other would be delivered): DONE, DISCARDED older than
 * published_ms, DEAD older than dead_ms. One worker at a time (a lock that is tried, not waited
 * for). Never waits for a writer's row lock. A temporary reader that was made, moved and had a
 * valid heartbeat more than an hour ago is removed.
 *
 * A log that is partitioned by number: at least two table partitions above the highest number are
 * made, and one goes as a whole when every row of it may go, on MySQL also no number of it can
 * appear any more. Rows of a partition of which some must stay are not removed before, unless
 * published_ms is 0; those in the partition for all other numbers go one by one. The locks for it
 * are tried, for 0.1 s on PostgreSQL and 1 s on MySQL; what cannot be had is left to the next call.
 */
typedef int ob_store_retain_fn(struct ob_store *store, const struct ob_retain *retain,
			       struct ob_arena *arena, struct ob_retained *ret_done,
			       struct ob_err *err);

/* A table partition of a log that is partitioned by number. */
struct ob_table_part {
	struct ob_str name;
	int64_t low, high; /* it has the numbers from low up to, but without, high */
	bool rest;         /* the one for all other numbers: it has no bounds */
};

struct ob_table_parts {
	struct ob_table_part *list; /* from the lowest number on */
	size_t count;               /* 0: the log is not partitioned */
	int64_t last;               /* the highest number of the log so far */
};

/* Optional. The table partitions of the log; memory is the arena's. */
typedef int ob_store_parts_fn(struct ob_store *store, struct ob_arena *arena,
			      struct ob_table_parts *ret_parts, struct ob_err *err);

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
	OB_STORE_MYSQL_WORDS =
		1 << 1, /* its SQL has backslashes in texts, and # begins a comment */
};

struct ob_store_ops {
	const char *name; /* "sqlite": also the scheme of its URLs */
	unsigned caps;
	size_t size; /* of the backend's struct, whose first member is struct ob_store */
	const struct ob_opt *opts;       /* what a `stores:` entry may hold besides url */
	const struct ob_sql_driver *sql; /* of backends whose operations are store/sql's */
	const struct ob_check *checks;   /* what diagnose() checks; NULL: nothing */
	ob_store_open_fn *open;
	ob_store_close_fn *close;
	ob_store_setup_fn *setup;
	ob_store_setup_sql_fn *setup_sql;
	ob_store_grants_sql_fn *grants_sql;
	ob_store_check_fn *check;
	ob_store_diagnose_fn *diagnose;
	ob_store_oldest_fn *oldest;
	ob_store_tx_begin_fn *tx_begin;
	ob_store_tx_push_fn *tx_push;
	ob_store_tx_end_fn *tx_end;
	ob_store_tx_writer_fn *tx_writer;
	ob_store_tx_exec_fn *tx_exec;
	ob_store_reader_make_fn *reader_make;
	ob_store_readers_fn *readers;
	ob_store_reader_seek_fn *reader_seek;
	ob_store_reader_remove_fn *reader_remove;
	ob_store_take_over_fn *take_over;
	ob_store_read_fn *read;
	ob_store_settle_fn *settle;
	ob_store_settle_fn *tx_settle;
	ob_store_tx_native_fn *tx_native;
	ob_store_beat_fn *beat;
	ob_store_reap_fn *reap;
	ob_store_leave_fn *leave;
	ob_store_workers_fn *workers;
	ob_store_seed_fn *seed;
	ob_store_take_fn *take;
	ob_store_renew_fn *renew;
	ob_store_release_fn *release;
	ob_store_partitions_fn *partitions;
	ob_store_free_leases_fn *free_leases;
	ob_store_resize_fn *resize;
	ob_store_adopt_fn *adopt;
	ob_store_stats_fn *stats;
	ob_store_throughput_fn *throughput;
	ob_store_list_fn *list;
	ob_store_operate_fn *operate;
	ob_store_audit_fn *audit;
	ob_store_audits_fn *audits;
	ob_store_retain_fn *retain;
	ob_store_parts_fn *parts;
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
	bool looks_only;       /* check demands the right to read the tables, and no other */
	int64_t read_limit_ms; /* as struct ob_store_conf has it */
	struct {
		struct ob_uuid worker; /* of the last beat of this connection, and its counts */
		uint64_t published, failed;
	} beaten;
	/* Not NULL: works on what a read has brought, on this connection; see ob_store_read(). */
	int (*after_read)(struct ob_store *store, struct ob_batch *batch, const void *arg,
			  struct ob_err *err);
	const void *after_read_arg;
};

/* What it takes to open one more connection. Everything is borrowed. */
struct ob_store_conf {
	const char *url; /* "sqlite:outbox.db" */
	const struct ob_opt_value *options;
	size_t option_count;
	const struct ob_layout *layout; /* NULL: the default names */
	const struct ob_clock *clock;   /* NULL: the system's; used where the database has none */
	/* > 0: the connection can only read, and a statement that takes longer is given up (DOWN):
	 * for those who look at a database that others work on. */
	int64_t read_limit_ms;
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
			const struct ob_setup *setup, struct ob_buf *out, struct ob_err *err);

/* The operations; see the function types above. */
ob_store_setup_fn ob_store_setup;
ob_store_check_fn ob_store_check;
ob_store_diagnose_fn ob_store_diagnose;
ob_store_oldest_fn ob_store_oldest;
ob_store_tx_begin_fn ob_store_tx_begin;
ob_store_tx_push_fn ob_store_tx_push;
ob_store_tx_end_fn ob_store_tx_end;
/* OUTBOX_EINVAL for a backend that has none. */
ob_store_tx_writer_fn ob_store_tx_writer;
ob_store_tx_exec_fn ob_store_tx_exec;
ob_store_reader_make_fn ob_store_reader_make;
ob_store_readers_fn ob_store_readers;
ob_store_reader_seek_fn ob_store_reader_seek;
ob_store_reader_remove_fn ob_store_reader_remove;
ob_store_take_over_fn ob_store_take_over;
ob_store_read_fn ob_store_read;
ob_store_settle_fn ob_store_settle;
/* OUTBOX_EINVAL for a backend that has none. */
ob_store_settle_fn ob_store_tx_settle;
/* NULL for a backend that has none. */
ob_store_tx_native_fn ob_store_tx_native;
ob_store_beat_fn ob_store_beat;
ob_store_reap_fn ob_store_reap;
ob_store_leave_fn ob_store_leave;
ob_store_workers_fn ob_store_workers;
ob_store_seed_fn ob_store_seed;
ob_store_take_fn ob_store_take;
ob_store_renew_fn ob_store_renew;
ob_store_release_fn ob_store_release;
ob_store_partitions_fn ob_store_partitions;
ob_store_free_leases_fn ob_store_free_leases;
ob_store_resize_fn ob_store_resize;
/* OUTBOX_EINVAL for a backend that has none. */
ob_store_adopt_fn ob_store_adopt;
ob_store_stats_fn ob_store_stats;
ob_store_throughput_fn ob_store_throughput;
ob_store_list_fn ob_store_list;
ob_store_operate_fn ob_store_operate;
ob_store_audit_fn ob_store_audit;
ob_store_audits_fn ob_store_audits;
ob_store_retain_fn ob_store_retain;
/* None for a backend that has no such logs. */
ob_store_parts_fn ob_store_parts;
ob_store_wake_fd_fn ob_store_wake_fd;
ob_store_wake_check_fn ob_store_wake_check;
ob_store_describe_fn ob_store_describe;

/* "p07" into out (at least 8 bytes). */
void ob_partition_label(uint32_t partition, char out[8]);

#endif
