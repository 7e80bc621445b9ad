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

#include "base/lockwait.h"
#include "outbox/sqlite.h"
#include "store/store.h"

#include <sqlite3.h>
#include <sys/types.h>

/* Statement (also its template in sql/sqlite), and what it does, for messages. */
#define LITE_MAP(X) \
	X(begin_write, "beginning a transaction") \
	X(begin_read, "beginning to read") \
	X(commit, "committing") \
	X(rollback, "rolling back") \
	X(wal, "switching to WAL") \
	X(synchronous_full, "setting up the connection") \
	X(synchronous_normal, "setting up the connection") \
	X(cache, "setting up the connection") \
	X(data_version, "looking for news") \
	X(object, "reading the schema") \
	X(columns, "reading the schema") \
	X(copy_table, "reading the schema") \
	X(meta_get, "reading the schema version") \
	X(meta_set, "changing the schema") \
	X(any_lease, "looking for leases") \
	X(free_leases, "changing the partitions") \
	X(release_moved, "changing the partitions") \
	X(candidates, "fetching") \
	X(load, "fetching") \
	X(load_all, "listing") \
	X(claim, "claiming") \
	X(stamp, "pushing") \
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
	X(next_target, "cleaning up") \
	X(clean, "cleaning up") \
	X(clean_throughput, "cleaning up") \
	X(stats_waiting, "counting") \
	X(stats_published, "counting") \
	X(stats_exceptions, "counting") \
	X(stats_claims, "counting") \
	X(stats_held, "counting") \
	X(created_at, "counting") \
	X(throughput, "reading the throughput")

enum lite_id {
#define X(name, doing) LITE_##name,
	LITE_MAP(X)
#undef X
		LITE_COUNT
};

struct lite_store {
	struct ob_store base;
	struct ob_lock_wait busy; /* options */
	int synchronous;
	bool settle_durable;

	sqlite3 *db;                        /* NULL: not connected (any more) */
	sqlite3_stmt *stmt[LITE_COUNT];     /* prepared on first use */
	sqlite3_stmt *pick;                 /* the statement of a filter, one at a time */
	char pick_id[OB_UUID_TEXT_SIZE];    /* bound to it */
	outbox *writer;                     /* for tx_push, made on first use */
	dev_t dev;                          /* the file that is open: */
	ino_t ino;                          /* another one under its name is noticed */
	bool seen;                          /* there was a database once */
	bool broken;                        /* connect again before the next call */
	bool in_tx;                         /* between tx_begin and tx_end */
	int watch_fd, watch_wal, watch_dir; /* inotify; -1: none */
	int look_fd, wake_fd; /* a timer for another look; epoll over both; -1: none */
	int look_ms;          /* until that look; 0: none is planned */
	bool watching;        /* the caller asked for wake_fd */
	int64_t data_version; /* -1: not known */
};

/* ---- connection: sqlite.c -------------------------------------------- */

/* The path of "sqlite:PATH" or "sqlite:///PATH", or NULL. */
const char *lite_path(const char *url);
/* The name of a filesystem on which SQLite's locks and shared memory do not work, or NULL. */
const char *lite_network_fs(unsigned long magic);
/* Connected, or connect; only `create` may make the file. */
int lite_ready(struct lite_store *s, bool create, struct ob_err *err);
/* Turn an SQLite code into *err; `doing` is what failed. */
int lite_err(struct lite_store *s, int code, const char *doing, struct ob_err *err);
int64_t lite_now(const struct lite_store *s);
/* A duration in microseconds, cut so that adding it to a time cannot overflow. */
int64_t lite_us(int64_t ms);

/* ---- statements: sqlite_stmt.c --------------------------------------- */

/* The statement, reset and without bindings. */
int lite_prepare(struct lite_store *s, enum lite_id id, sqlite3_stmt **ret_stmt,
		 struct ob_err *err);
/* 1: a row; 0: no more, and reset. A failure resets too. */
int lite_step(struct lite_store *s, enum lite_id id, struct ob_err *err);
/* Step a statement without rows; how many rows it changed, or a failure. */
int lite_run(struct lite_store *s, enum lite_id id, struct ob_err *err);
/* sqlite.c: how commits reach the disk, as the option says. */
int lite_set_synchronous(struct lite_store *s, struct ob_err *err);
/* Prepare and run one without parameters; 0 on success. */
int lite_simple(struct lite_store *s, enum lite_id id, struct ob_err *err);
void lite_reset(struct lite_store *s, enum lite_id id);
/* Finalize all of them. */
void lite_finalize(struct lite_store *s);
/* What a statement does, for messages. */
const char *lite_doing(enum lite_id id);

/*
 * Bind by name. A name that the statement does not have (its column is
 * switched off) is skipped. Text and blobs are borrowed until the next prepare.
 */
void lite_bind_int(sqlite3_stmt *stmt, const char *name, int64_t value);
void lite_bind_str(sqlite3_stmt *stmt, const char *name, struct ob_str value);
void lite_bind_text(sqlite3_stmt *stmt, const char *name, const char *value);
void lite_bind_uuid(sqlite3_stmt *stmt, const char *name, const struct ob_uuid *value);
/* A message's id as the table holds it: bytes, or text kept in `text`. */
void lite_bind_id(const struct lite_store *s, sqlite3_stmt *stmt, const struct ob_uuid *id,
		  char text[OB_UUID_TEXT_SIZE]);
/* :target_min and :target_max; NULL: every target. */
void lite_bind_targets(sqlite3_stmt *stmt, const char *target);
/* The value, valid until the next step; NULL is absent. */
struct ob_str lite_str(sqlite3_stmt *stmt, int column);

/*
 * Rows of a statement become an array in an arena. Its size is not known before,
 * so it doubles; what it leaves behind dies with the arena.
 */
struct lite_rows {
	struct ob_arena *arena;
	size_t size; /* of one */
	char *data;
	size_t count, capacity;
};

/* A zeroed one at the end; NULL when out of memory. Earlier pointers may move. */
void *lite_rows_add(struct lite_rows *rows);
int lite_oom(const char *doing, struct ob_err *err);

/* Every write is begin, work, end(result of the work): commits when r >= 0, else rolls back. */
int lite_begin(struct lite_store *s, struct ob_err *err);
int lite_end(struct lite_store *s, int r, struct ob_err *err);
/* The same for reading one snapshot. */
int lite_begin_read(struct lite_store *s, struct ob_err *err);
int lite_end_read(struct lite_store *s, int r, struct ob_err *err);
/* Roll back if a transaction is open. */
void lite_rollback(struct lite_store *s);

/* ---- schema: sqlite_schema.c ----------------------------------------- */

/* A number of the meta table; OUTBOX_ESCHEMA when it is not there. */
int lite_meta(struct lite_store *s, const char *name, int64_t *ret_value, struct ob_err *err);

/* One column as the database has it. */
struct lite_column {
	bool exists, generated;
	char type[64];
};

int lite_column(struct lite_store *s, const char *table, const char *name, struct lite_column *ret,
		struct ob_err *err);

/* ---- the table that is copied from, if the layout has one: sqlite_source.c */

/* Make the trigger if it is not there; inside a write transaction. */
int lite_source_attach(struct lite_store *s, struct ob_err *err);
int lite_source_check(struct lite_store *s, struct ob_err *err);
int lite_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err);

/* ---- shared by settle and operate: sqlite_settle.c ------------------- */

/* A row as it is now, before it changes. */
struct lite_row {
	bool exists;
	enum ob_state state;
	uint32_t attempts, partition;
	bool claimed; /* there is a token, valid or not */
	struct ob_uuid token, id;
	struct ob_str key, target; /* valid until the next look */
};

int lite_look(struct lite_store *s, int64_t seq, struct lite_row *ret_row, struct ob_err *err);

/*
 * Keys that rows stopped holding. They are released behind all changes of a
 * transaction, so that what matches or applies is not changed underway.
 */
struct lite_freed {
	struct ob_arena arena;
	struct lite_freed_key *list;
};

void lite_freed_init(struct lite_freed *freed);
void lite_freed_done(struct lite_freed *freed);
/* Remember that the row stopped holding its key. */
int lite_freed_add(struct lite_freed *freed, const struct lite_row *row, struct ob_err *err);
/* Let the keys go on that nothing else holds, and the partitions in which nothing holds. */
int lite_freed_release(struct lite_store *s, const struct lite_freed *freed, struct ob_err *err);

/* ---- filters: sqlite_filter.c ---------------------------------------- */

/* A row that matches a filter. */
struct lite_pick {
	int64_t seq;
	enum ob_state state;
	bool claimed; /* by a claim that is valid now */
};

/* Run the filter, with its order and limit; then next() until it returns 0; then done(). */
int lite_pick(struct lite_store *s, const struct ob_filter *filter, int64_t now_us,
	      struct ob_err *err);
int lite_pick_next(struct lite_store *s, int64_t now_us, struct lite_pick *ret_pick,
		   struct ob_err *err);
void lite_pick_done(struct lite_store *s);

/* ---- waking: sqlite_wake.c ------------------------------------------- */

/* Close what wake_fd made. */
void lite_unwatch(struct lite_store *s);
/* Watch the files of the database that is open now; nothing unless wake_fd was asked for. */
void lite_watch(struct lite_store *s);
/* A number that changes when another connection commits. */
int lite_data_version(struct lite_store *s, int64_t *ret_version, struct ob_err *err);

/* ---- the operations -------------------------------------------------- */

ob_store_setup_fn lite_setup;
ob_store_setup_sql_fn lite_setup_sql;
ob_store_grants_sql_fn lite_grants_sql;
ob_store_check_fn lite_check;
ob_store_resize_fn lite_resize;
ob_store_tx_begin_fn lite_tx_begin;
ob_store_tx_push_fn lite_tx_push;
ob_store_tx_end_fn lite_tx_end;
ob_store_fetch_fn lite_fetch;
ob_store_claim_fn lite_claim;
ob_store_list_fn lite_list;
ob_store_settle_fn lite_settle;
ob_store_beat_fn lite_beat;
ob_store_leave_fn lite_leave;
ob_store_workers_fn lite_workers;
ob_store_seed_fn lite_seed;
ob_store_take_fn lite_take;
ob_store_renew_fn lite_renew;
ob_store_release_fn lite_release;
ob_store_partitions_fn lite_partitions;
ob_store_stats_fn lite_stats;
ob_store_throughput_fn lite_throughput;
ob_store_operate_fn lite_operate;
ob_store_cleanup_fn lite_cleanup;
ob_store_wake_fd_fn lite_wake_fd;
ob_store_wake_check_fn lite_wake_check;

extern const struct ob_store_ops ob_store_sqlite;

#endif
