/* SPDX-License-Identifier: MIT */
/*
 * What the files of the SQLite store share: the connection, its prepared
 * statements, transactions, and the one function that reads SQLite's codes.
 *
 * Time is the host's clock: an SQLite database has no other. Every statement
 * gets it as :now, in microseconds since 1970.
 */
#ifndef OB_STORE_SQLITE_H
#define OB_STORE_SQLITE_H

#include "outbox/sqlite.h"
#include "store/store.h"

#include <sqlite3.h>
#include <sys/types.h>

/* Statement (also its template in sql/sqlite), and what it does, for messages. */
#define OB_SQLITE_MAP(X) \
	X(begin_write, "beginning a transaction") \
	X(begin_read, "beginning to read") \
	X(commit, "committing") \
	X(rollback, "rolling back") \
	X(wal, "switching to WAL") \
	X(synchronous_full, "setting up the connection") \
	X(synchronous_normal, "setting up the connection") \
	X(data_version, "looking for news") \
	X(object, "reading the schema") \
	X(columns, "reading the schema") \
	X(meta_get, "reading the schema version") \
	X(meta_set, "changing the schema") \
	X(any_lease, "looking for leases") \
	X(candidates, "fetching") \
	X(load, "fetching") \
	X(load_all, "listing") \
	X(claim, "claiming") \
	X(publish, "settling") \
	X(publish_delete, "settling") \
	X(publish_claimed, "settling") \
	X(publish_claimed_delete, "settling") \
	X(row_state, "settling") \
	X(row_published, "settling") \
	X(row_delete, "settling") \
	X(row_failed, "settling") \
	X(row_unclaim, "settling") \
	X(park_keys, "parking") \
	X(park_partition, "parking") \
	X(release_key, "releasing a key") \
	X(release_partition, "releasing a partition") \
	X(count_minute, "counting") \
	X(beat, "writing the heartbeat") \
	X(forget_workers, "removing dead workers") \
	X(leave_leases, "leaving") \
	X(leave_worker, "leaving") \
	X(workers, "listing workers") \
	X(seed, "making lease rows") \
	X(prune, "dropping lease rows") \
	X(take, "taking leases") \
	X(renew, "renewing leases") \
	X(release, "releasing leases") \
	X(fence, "checking leases") \
	X(partitions, "listing partitions") \
	X(verb_retry, "retrying") \
	X(verb_skip, "skipping") \
	X(verb_discard, "discarding") \
	X(verb_priority, "changing the priority") \
	X(next_published_target, "cleaning up") \
	X(next_dead_target, "cleaning up") \
	X(clean_published, "cleaning up") \
	X(clean_dead, "cleaning up") \
	X(clean_throughput, "cleaning up") \
	X(stats_waiting, "counting") \
	X(stats_published, "counting") \
	X(stats_exceptions, "counting") \
	X(stats_claims, "counting") \
	X(stats_held, "counting") \
	X(created_at, "counting") \
	X(throughput, "reading the throughput")

enum ob_sqlite_id {
#define X(name, doing) OB_SQLITE_##name,
	OB_SQLITE_MAP(X)
#undef X
	OB_SQLITE_COUNT
};

struct ob_sqlite {
	struct ob_store base;
	int64_t busy_timeout_ms; /* options */
	int synchronous;

	sqlite3 *db;                            /* NULL: not connected (any more) */
	sqlite3_stmt *stmt[OB_SQLITE_COUNT];    /* prepared on first use */
	sqlite3_stmt *pick;                     /* the statement of a filter, one at a time */
	outbox *writer;                         /* for tx_push, made on first use */
	dev_t dev;                              /* the file that is open: */
	ino_t ino;                              /* another one under its name is noticed */
	bool seen;                              /* there was a database once */
	bool broken;                            /* connect again before the next call */
	bool in_tx;                             /* between tx_begin and tx_end */
	int64_t busy_until_us;                  /* deadline of the wait for a lock */
	int watch_fd, watch_wal, watch_dir;     /* inotify; -1: none */
	bool watching;                          /* the caller asked for wake_fd */
	int64_t data_version;                   /* -1: not known */
};

/* ---- connection: sqlite.c -------------------------------------------- */

/* The path of "sqlite:PATH" or "sqlite:///PATH", or NULL. */
const char *ob_sqlite_path(const char *url);
/* The name of a filesystem on which SQLite's locks and shared memory do not work, or NULL. */
const char *ob_sqlite_network_fs(unsigned long magic);
/* Connected, or connect; only `create` may make the file. */
int ob_sqlite_ready(struct ob_sqlite *s, bool create, struct ob_err *err);
/* Turn an SQLite code into *err; `doing` is what failed. */
int ob_sqlite_err(struct ob_sqlite *s, int code, const char *doing, struct ob_err *err);
int64_t ob_sqlite_now(const struct ob_sqlite *s);

/* ---- statements: sqlite_stmt.c --------------------------------------- */

/* The statement, reset and without bindings. */
int ob_sqlite_prepare(struct ob_sqlite *s, enum ob_sqlite_id id, sqlite3_stmt **ret_stmt,
		      struct ob_err *err);
/* 1: a row; 0: no more, and reset. A failure resets too. */
int ob_sqlite_step(struct ob_sqlite *s, enum ob_sqlite_id id, struct ob_err *err);
/* Step a statement without rows; how many rows it changed, or a failure. */
int ob_sqlite_run(struct ob_sqlite *s, enum ob_sqlite_id id, struct ob_err *err);
/* Prepare and run one without parameters. */
int ob_sqlite_simple(struct ob_sqlite *s, enum ob_sqlite_id id, struct ob_err *err);
void ob_sqlite_reset(struct ob_sqlite *s, enum ob_sqlite_id id);
/* Finalize all of them. */
void ob_sqlite_finalize(struct ob_sqlite *s);
/* What a statement does, for messages. */
const char *ob_sqlite_doing(enum ob_sqlite_id id);

/*
 * Bind by name. A name that the statement does not have (its column is
 * switched off) is skipped. Text and blobs are borrowed until the next prepare.
 */
void ob_sqlite_bind_int(sqlite3_stmt *stmt, const char *name, int64_t value);
void ob_sqlite_bind_str(sqlite3_stmt *stmt, const char *name, struct ob_str value);
void ob_sqlite_bind_text(sqlite3_stmt *stmt, const char *name, const char *value);
void ob_sqlite_bind_uuid(sqlite3_stmt *stmt, const char *name, const struct ob_uuid *value);
/* :target_min and :target_max; NULL: every target. */
void ob_sqlite_bind_targets(sqlite3_stmt *stmt, const char *target);
/* The value, valid until the next step; NULL is absent. */
struct ob_str ob_sqlite_str(sqlite3_stmt *stmt, int column);

/* Every write is begin, work, end(result of the work): commits when r >= 0, else rolls back. */
int ob_sqlite_begin(struct ob_sqlite *s, struct ob_err *err);
int ob_sqlite_end(struct ob_sqlite *s, int r, struct ob_err *err);
/* The same for reading one snapshot. */
int ob_sqlite_begin_read(struct ob_sqlite *s, struct ob_err *err);
int ob_sqlite_end_read(struct ob_sqlite *s, int r, struct ob_err *err);
/* Roll back if a transaction is open. */
void ob_sqlite_rollback(struct ob_sqlite *s);

/* ---- schema: sqlite_schema.c ----------------------------------------- */

/* A number of the meta table; OUTBOX_ESCHEMA when it is not there. */
int ob_sqlite_meta(struct ob_sqlite *s, const char *name, int64_t *ret_value, struct ob_err *err);

/* ---- shared by settle and operate: sqlite_settle.c ------------------- */

/* A row stopped holding: let its key go on, or its partition (key absent), unless another row holds it. */
int ob_sqlite_release_key(struct ob_sqlite *s, struct ob_str target, uint32_t partition,
			  struct ob_str key, struct ob_err *err);

/* ---- filters: sqlite_filter.c ---------------------------------------- */

struct ob_sqlite_pick {
	int64_t seq;
	enum ob_state state;
	bool claimed; /* by a claim that is valid now */
	uint32_t partition;
	struct ob_str key, target; /* valid until the next call */
};

/* Run the filter for rows behind `after_seq`; then next() until it returns 0; then done(). */
int ob_sqlite_pick(struct ob_sqlite *s, const struct ob_filter *filter, int64_t now_us,
		   struct ob_err *err);
int ob_sqlite_pick_next(struct ob_sqlite *s, int64_t now_us, struct ob_sqlite_pick *ret_pick,
			struct ob_err *err);
void ob_sqlite_pick_done(struct ob_sqlite *s);

/* ---- waking: sqlite_wake.c ------------------------------------------- */

/* Watch the files of the database that is open now; nothing unless wake_fd was asked for. */
void ob_sqlite_watch(struct ob_sqlite *s);
/* A number that changes when another connection commits. */
int ob_sqlite_data_version(struct ob_sqlite *s, int64_t *ret_version, struct ob_err *err);

/* ---- the operations -------------------------------------------------- */

ob_store_setup_fn ob_sqlite_setup;
ob_store_setup_sql_fn ob_sqlite_setup_sql;
ob_store_check_fn ob_sqlite_check;
ob_store_resize_fn ob_sqlite_resize;
ob_store_tx_begin_fn ob_sqlite_tx_begin;
ob_store_tx_push_fn ob_sqlite_tx_push;
ob_store_tx_end_fn ob_sqlite_tx_end;
ob_store_fetch_fn ob_sqlite_fetch;
ob_store_claim_fn ob_sqlite_claim;
ob_store_list_fn ob_sqlite_list;
ob_store_settle_fn ob_sqlite_settle;
ob_store_beat_fn ob_sqlite_beat;
ob_store_leave_fn ob_sqlite_leave;
ob_store_workers_fn ob_sqlite_workers;
ob_store_seed_fn ob_sqlite_seed;
ob_store_take_fn ob_sqlite_take;
ob_store_renew_fn ob_sqlite_renew;
ob_store_release_fn ob_sqlite_release;
ob_store_partitions_fn ob_sqlite_partitions;
ob_store_stats_fn ob_sqlite_stats;
ob_store_throughput_fn ob_sqlite_throughput;
ob_store_operate_fn ob_sqlite_operate;
ob_store_cleanup_fn ob_sqlite_cleanup;
ob_store_wake_fd_fn ob_sqlite_wake_fd;
ob_store_wake_check_fn ob_sqlite_wake_check;

extern const struct ob_store_ops ob_store_sqlite;

#endif
