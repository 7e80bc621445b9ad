/* SPDX-License-Identifier: MIT */
/*
 * What the files of the PostgreSQL store share: the connection, statements and their
 * results, transactions, and the one function that reads SQLSTATEs.
 *
 * An operation is one transaction. Its statements are queued and sent together with the
 * BEGIN before them, the settings that the session must have, and mostly the COMMIT behind
 * them: one round trip. Statements are unnamed and settings end with the transaction, so
 * that a pooler may hand every transaction to another connection; on a connection that is
 * ours alone, what runs all the time finds its plans and settings there. All results are
 * binary. Time is the server's, in the statements themselves.
 */
#ifndef OB_STORE_POSTGRES_H
#define OB_STORE_POSTGRES_H

#include "base/pgarray.h"
#include "outbox/postgres.h"
#include "store/mark.h"

#include <libpq-fe.h>

/* Statement (also its template in sql/postgres), and what it does, for messages. */
#define PG_MAP(X) \
	X(begin, "beginning a transaction") \
	X(begin_snapshot, "beginning a transaction") \
	X(pins, "beginning a transaction") \
	X(commit, "committing") \
	X(rollback, "rolling back") \
	X(hello, "connecting") \
	X(listen, "listening") \
	X(notify, "listening") \
	X(ping, "looking for news") \
	X(advise, "reading the server's settings") \
	X(setup_lock, "waiting for another setup") \
	X(lock_table, "waiting for the table") \
	X(object, "reading the schema") \
	X(columns, "reading the schema") \
	X(table_indexes, "reading the schema") \
	X(copy_trigger, "reading the schema") \
	X(meta_get, "reading the schema version") \
	X(meta_set, "changing the schema") \
	X(any_lease, "looking for leases") \
	X(free_leases, "changing the partitions") \
	X(release_moved, "changing the partitions") \
	X(fetch, "fetching") \
	X(fetch_rest, "fetching") \
	X(fetch_any_rest, "fetching") \
	X(fetch_large, "fetching") \
	X(snapshot, "fetching") \
	X(look_number, "fetching") \
	X(look_writers, "fetching") \
	X(look, "fetching") \
	X(claim, "claiming") \
	X(now, "listing") \
	X(fence, "checking leases") \
	X(publish, "settling") \
	X(publish_delete, "settling") \
	X(rows_state, "settling") \
	X(rows_published, "settling") \
	X(rows_delete, "settling") \
	X(rows_failed, "settling") \
	X(rows_unclaim, "settling") \
	X(park_keys, "parking") \
	X(park_partitions, "parking") \
	X(release_keys, "releasing keys") \
	X(release_partitions, "releasing partitions") \
	X(count_minute, "counting") \
	X(beat, "writing the heartbeat") \
	X(forget_workers, "removing dead workers") \
	X(leave_leases, "leaving") \
	X(leave_worker, "leaving") \
	X(workers, "listing workers") \
	X(seed, "making lease rows") \
	X(prune, "dropping lease rows") \
	X(partition_count, "reading the partition count") \
	X(take, "taking leases") \
	X(renew, "renewing leases") \
	X(release, "releasing leases") \
	X(partitions, "listing partitions") \
	X(verb_retry, "retrying") \
	X(verb_skip, "skipping") \
	X(verb_discard, "discarding") \
	X(verb_priority, "changing the priority") \
	X(clean, "cleaning up") \
	X(clean_throughput, "cleaning up") \
	X(stats, "counting") \
	X(throughput, "reading the throughput")

enum pg_id {
#define X(name, doing) PG_##name,
	PG_MAP(X)
#undef X
		PG_COUNT
};

enum { PG_QUEUE_MAX = 24, PG_PARAMS_MAX = 16 };

/* Parameters of one statement, all binary and borrowed. */
struct pg_params {
	int count;
	const char *values[PG_PARAMS_MAX];
	int lengths[PG_PARAMS_MAX];
	int formats[PG_PARAMS_MAX];
	char ints[PG_PARAMS_MAX][8];
};

struct pg_store {
	struct ob_store base;
	int64_t timeout_ms, lock_timeout_ms; /* options */
	int notify;
	bool settle_durable;
	char *listen_url, *search_path;

	PGconn *conn;           /* NULL: not connected (any more) */
	char *sql[PG_COUNT];    /* expanded on first use */
	bool planned[PG_COUNT]; /* this connection knows them by name */
	char *path;             /* the search_path of every transaction */
	int version;            /* 150020 */
	bool pooled;            /* someone stands between us and the server */
	char database[64], server[48];
	bool broken;    /* connect again before the next call */
	bool in_tx;     /* between tx_begin and tx_end */
	bool bare;      /* what is queued has no BEGIN, and needs no COMMIT */
	bool unlimited; /* this transaction may take as long as it needs */
	outbox *writer; /* for tx_push, made on first use */

	struct {
		const char *doing;
		bool hidden; /* begin and pins: nobody asked for their results */
		bool *plans; /* set when it has succeeded */
	} queue[PG_QUEUE_MAX + 4];
	int queued;
	PGresult *results[PG_QUEUE_MAX + 4]; /* of the last flush */
	int result_count;

	struct ob_marks marks;             /* where fetches begin */
	uint32_t parts[OB_PARTITIONS_MAX]; /* how many each partition is good for */
	uint32_t rest_left; /* fetches that read everything; 0: first see whether there is more */

	PGconn *listener; /* NULL: none; may be conn */
	bool listening, listen_tried, watched;
};

/* ---- connection: postgres_conn.c ------------------------------------- */

/* Turn what a result or (result NULL) the connection reports into *err. */
int pg_err(struct pg_store *s, const PGresult *result, const char *doing, struct ob_err *err);
int pg_oom(const char *doing, struct ob_err *err);
/* Connected, or connect. */
int pg_ready(struct pg_store *s, struct ob_err *err);
void pg_disconnect(struct pg_store *s);
/* Wait until the socket is readable (or, with `write`, writable); false at the deadline. */
bool pg_wait(PGconn *conn, bool write, int64_t deadline_us);
/* Make a connection with our settings. The deadline is connect_timeout's or ours. */
int pg_connect(struct pg_store *s, const char *url, PGconn **ret_conn, struct ob_err *err);

/* ---- statements: postgres_stmt.c ------------------------------------- */

void pg_int(struct pg_params *p, int64_t value);
void pg_str(struct pg_params *p, struct ob_str value);
void pg_text(struct pg_params *p, const char *value); /* NULL is NULL */
void pg_uuid(struct pg_params *p, const struct ob_uuid *value);
/* Ends the array; it must live until the statement is added. */
void pg_array(struct pg_params *p, struct ob_pgarray *array);

/* Begin a transaction: queue its first statements. Refused while tx_begin's is open. */
int pg_begin(struct pg_store *s, struct ob_err *err);
/* The same for what runs all the time; `relaxed`: a crash of the server may undo it. */
int pg_begin_batch(struct pg_store *s, bool relaxed, struct ob_err *err);
/* Settings of a connection that nobody else uses. */
int pg_pin_session(struct pg_store *s, struct ob_err *err);
/* The same for statements that must all see the same, and only read. */
int pg_begin_snapshot(struct pg_store *s, struct ob_err *err);
/* Queue a statement; its result is s->results[n] of the next flush, n counted from 0. */
int pg_add(struct pg_store *s, enum pg_id id, const struct pg_params *p, struct ob_err *err);
/* The same with SQL that was put together from templates. */
int pg_add_sql(struct pg_store *s, const char *sql, const char *doing, const struct pg_params *p,
	       struct ob_err *err);
/* Send and wait for the results. A failure rolls back and drops them all. */
int pg_flush(struct pg_store *s, struct ob_err *err);
/* Begin, run one statement, commit; its result is s->results[0]. */
int pg_run_one(struct pg_store *s, enum pg_id id, const struct pg_params *p, struct ob_err *err);
/* Flush with a COMMIT behind it. */
int pg_commit(struct pg_store *s, struct ob_err *err);
/* r < 0: roll back, keep *err and return r; else commit and return r. */
int pg_finish(struct pg_store *s, int r, struct ob_err *err);
void pg_rollback(struct pg_store *s);
void pg_clear(struct pg_store *s);
/* Run statements without parameters that stand in one text; inside a transaction. */
int pg_script(struct pg_store *s, const char *sql, const char *doing, struct ob_err *err);
int pg_expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
	      struct ob_buf *out, struct ob_err *err);

/* Cells of a result. */
int64_t pg_get_int(const PGresult *r, int row, int column);
struct ob_str pg_get_str(const PGresult *r, int row, int column);
/* us since 1970; NULL is 0. */
int64_t pg_get_time(const PGresult *r, int row, int column);
bool pg_get_uuid(const PGresult *r, int row, int column, struct ob_uuid *ret);
/* A duration in us that can be added to any time. */
int64_t pg_us(int64_t ms);

/* ---- keys that rows stopped holding: postgres_settle.c --------------- */

struct pg_freed {
	struct ob_pgarray targets, partitions, keys;
	uint32_t count;
};

void pg_freed_begin(struct pg_freed *freed);
void pg_freed_add(struct pg_freed *freed, struct ob_str target, int64_t partition,
		  struct ob_str key);
/* Queue their release. */
int pg_freed_release(struct pg_store *s, struct pg_freed *freed, struct ob_err *err);
void pg_freed_done(struct pg_freed *freed);

/* ---- marks: postgres_mark.c ------------------------------------------ */

/* Look where the fetches behind this one, which began at `lows` and returned `batch`, may begin. */
int pg_find_marks(struct pg_store *s, const struct ob_fetch *fetch, const int64_t *lows,
		  const struct ob_batch *batch, struct ob_err *err);
/* "10:20:10,14,15" as PostgreSQL writes it. */
void pg_read_snapshot(struct ob_str text, struct ob_snapshot *ret);

/* ---- rows: postgres_rows.c ------------------------------------------- */

/* The result columns of fetch, claim and list; fetch and list each have their own behind them. */
enum pg_col {
	PG_COL_SEQ,
	PG_COL_ID,
	PG_COL_AGGREGATE_TYPE,
	PG_COL_AGGREGATE_ID,
	PG_COL_EVENT_TYPE,
	PG_COL_PAYLOAD,
	PG_COL_HEADERS,
	PG_COL_CORRELATION_ID,
	PG_COL_CAUSATION_ID,
	PG_COL_KEY,
	PG_COL_TARGET,
	PG_COL_SEQUENCE_NUMBER,
	PG_COL_OCCURRED_AT,
	PG_COL_CREATED_AT,
	PG_COL_REVISION,
	PG_COL_PRIORITY,
	PG_COL_ATTEMPTS,
	PG_COL_STATUS,
	PG_COL_PARTITION,

	PG_COL_LARGE = PG_COL_PARTITION + 1,
	PG_COL_DUE, /* of `fetch` alone */

	PG_COL_PARTITION_KEY = PG_COL_PARTITION + 1,
	PG_COL_SNAPSHOT,
	PG_COL_LAST_ERROR,
	PG_COL_LOCKED_BY,
	PG_COL_AVAILABLE_AT,
	PG_COL_PUBLISHED_AT,
	PG_COL_LOCKED_UNTIL,
};

/* Everything in *m points into the result. */
int pg_read_message(const struct pg_store *s, const PGresult *r, int row, struct ob_message *m,
		    struct ob_err *err);
/* The row with that seq in a result that begins with it and is in its order; -1: none, or no
 * result. */
int pg_find_row(const PGresult *rows, int64_t seq);
/* The one copy of a row: from libpq's memory into the batch. */
int pg_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err);

/* Queue the rows of a filter, in its order: with all fields, or (lock) what operators need. */
int pg_add_filter(struct pg_store *s, const struct ob_filter *filter, bool lock,
		  struct ob_err *err);

/* ---- the operations -------------------------------------------------- */

ob_store_setup_fn pg_setup;
ob_store_setup_sql_fn pg_setup_sql;
ob_store_grants_sql_fn pg_grants_sql;
/* Is that version (150004, "15.4") new enough? */
int pg_check_version(int number, const char *text, struct ob_err *err);
ob_store_check_fn pg_check;
ob_store_advise_fn pg_advise;
ob_store_resize_fn pg_resize;
ob_store_tx_begin_fn pg_tx_begin;
ob_store_tx_push_fn pg_tx_push;
ob_store_tx_end_fn pg_tx_end;
ob_store_fetch_fn pg_fetch;
ob_store_claim_fn pg_claim;
ob_store_list_fn pg_list;
ob_store_settle_fn pg_settle;
ob_store_beat_fn pg_beat;
ob_store_leave_fn pg_leave;
ob_store_workers_fn pg_workers;
ob_store_seed_fn pg_seed;
ob_store_take_fn pg_take;
ob_store_renew_fn pg_renew;
ob_store_release_fn pg_release;
ob_store_partitions_fn pg_partitions;
ob_store_stats_fn pg_stats;
ob_store_throughput_fn pg_throughput;
ob_store_operate_fn pg_operate;
ob_store_cleanup_fn pg_cleanup;
ob_store_wake_fd_fn pg_wake_fd;
ob_store_wake_check_fn pg_wake_check;

extern const struct ob_store_ops ob_store_postgres;

#endif
