/* SPDX-License-Identifier: MIT */
/* What the files of the memory store share. Everything here is called under the database's mutex.
 */
#ifndef OB_DOUBLES_MEMORY_STORE_IMPL_H
#define OB_DOUBLES_MEMORY_STORE_IMPL_H

#include "base/cleanup.h"
#include "doubles/memory_store.h"
#include "log/cover.h"
#include "store/share.h"

#include <pthread.h>

struct mem_store;

/* A row of the log. */
struct mem_row {
	struct ob_message m;            /* texts point into `text` */
	char *text;                     /* all of them */
	uint64_t txid;                  /* of its transaction */
	const struct mem_store *writer; /* that transaction, while it is open; NULL: committed */
	struct ob_memdb_state told;     /* of the reader that is watched */
};

/* A row of the journal. */
struct mem_batch {
	uint64_t batch, epoch;
	struct ob_uuid owner; /* nil: an operator, or nobody */
	int64_t at_us;
	struct ob_progress progress; /* shared with nobody: references are not atomic */
};

struct mem_journal {
	struct mem_batch *rows; /* by batch; never empty */
	size_t count, capacity;
};

struct mem_exception {
	int64_t seq;
	uint32_t partition;
	enum ob_state state;
	uint32_t attempts;
	int64_t due_us; /* 0: NULL */
	char *queue;    /* NULL: none; keys hold no NUL */
	char *error;
	int64_t since_us;
};

struct mem_lease {
	uint32_t number;
	bool owned;
	struct ob_uuid owner;
	uint64_t epoch;
	int64_t until_us;
};

/* A reader and all that is its own. */
struct mem_reader {
	char *name, *target, *filter;
	bool temporary;
	int64_t created_us;
	struct mem_journal *journals;     /* by partition_no: OB_LANES * partition_count */
	struct mem_exception *exceptions; /* by seq */
	size_t exception_count, exception_capacity;
	struct mem_lease *leases; /* by number */
	size_t lease_count, lease_capacity;
};

struct mem_worker {
	struct ob_uuid id;
	char *reader, *hostname, *state;
	int32_t pid;
	int64_t started_us, until_us;
	uint64_t published, failed;
	uint64_t session; /* the connection that holds its session lock */
};

struct mem_minute {
	char *reader;
	struct ob_minute minute;
};

struct ob_memdb {
	pthread_mutex_t lock; /* guards everything below */
	struct ob_memdb_conf conf;
	uint32_t version;         /* 0: not set up */
	uint32_t partition_count; /* without lanes */
	bool foreign;             /* restored into another cluster, and not adopted */
	int64_t last_seq;
	uint64_t next_txid, ended_txid; /* to give out; the highest that has ended */
	uint64_t commits;               /* transactions that changed something */
	uint64_t last_session;
	const struct mem_store *writer; /* PLAIN: the one that writes */
	struct mem_store *stores;       /* open connections */
	struct mem_row **rows;          /* by seq, also those that are not committed */
	size_t row_count, row_capacity;
	struct mem_reader **readers; /* by name */
	size_t reader_count, reader_capacity;
	struct mem_worker *workers; /* by id */
	size_t worker_count, worker_capacity;
	struct mem_minute *minutes; /* by minute and reader */
	size_t minute_count, minute_capacity;
	struct ob_audit_row *audit; /* by number; the texts are its own */
	size_t audit_count, audit_capacity;
	int64_t last_audit;
};

/* One connection. */
struct mem_store {
	struct ob_store base;
	struct ob_memdb *db;
	struct mem_store *next; /* of db->stores */
	uint64_t session;
	bool in_tx;
	uint64_t txid;         /* of the open transaction; 0: it has pushed nothing */
	uint64_t own_commits;  /* how many of db->commits are ours */
	uint64_t seen_commits; /* how many of others were reported by wake_check */
};

static inline struct mem_store *mem_of(struct ob_store *store)
{
	return (struct mem_store *)store;
}

/* Lock the database; fails (unlocked) when it is not set up. */
int mem_enter(struct ob_store *store, struct ob_memdb **ret_db, struct ob_err *err);
/* Unlock; for OB_CLEANUP. */
void mem_leave(struct ob_memdb **db);
/* A transaction of this connection changed something. */
void mem_committed(struct ob_store *store);
int64_t mem_now(const struct ob_memdb *db);
/* now + ms, without overflow. */
int64_t mem_after(int64_t now_us, int64_t ms);
/* Room for one more element of an array; the new array. */
void *mem_grow(void *array, size_t count, size_t *capacity, size_t size);
/* A copy; NULL of an absent one. */
char *mem_dup(struct ob_str text);
/* Zeroed memory of an arena. */
void *mem_alloc(struct ob_arena *arena, size_t count, size_t size);
struct ob_str mem_copy(struct ob_arena *arena, const char *text);

/* ---- rows, memory_store_write.c -------------------------------------- */

struct mem_row *mem_row_find(const struct ob_memdb *db, int64_t seq);
/* Index of the first row with a number above this one. */
size_t mem_row_after(const struct ob_memdb *db, int64_t seq);
/* The row goes from the log. */
void mem_row_free(struct mem_row *row);
uint32_t mem_partition(const struct ob_memdb *db, const struct ob_message *message);

/* ---- what a reader has seen, memory_store_seen.c --------------------- */

/* Is it delivered, exceptions aside? */
bool mem_progress_covers(const struct ob_progress *progress, const struct mem_row *row);
/* What a reader has seen that is at `pos` now; a new reference, or NULL. */
struct ob_seen *mem_seen_now(const struct ob_memdb *db, int64_t pos);
/* *to is its own copy. */
void mem_progress_copy(struct ob_progress *to, const struct ob_progress *from);
/* *oldest covers only what both cover. */
void mem_progress_older(const struct ob_memdb *db, struct ob_progress *oldest,
			const struct ob_progress *other);
/* The highest number that a read can see. */
int64_t mem_end(const struct ob_memdb *db);

/* ---- readers, memory_store_readers.c --------------------------------- */

struct mem_reader *mem_reader_find(const struct ob_memdb *db, const char *name);
/* The same; OUTBOX_EINVAL. */
int mem_reader_need(const struct ob_memdb *db, const char *name, struct mem_reader **ret,
		    struct ob_err *err);
void mem_reader_drop(struct ob_memdb *db, const char *name);
void mem_reader_free(struct mem_reader *reader, uint32_t partition_count);
/* Has it a worker with a valid heartbeat? */
uint32_t mem_reader_workers(const struct ob_memdb *db, const char *name);

/* ---- the journal and the exceptions, memory_store_settle.c ----------- */

struct mem_batch *mem_newest(const struct mem_reader *reader, uint32_t partition);
/* Insert the row after the newest; a copy of `progress`. */
void mem_journal_add(const struct ob_memdb *db, struct mem_reader *reader, uint32_t partition,
		     uint64_t epoch, const struct ob_uuid *owner,
		     const struct ob_progress *progress);
struct mem_exception *mem_exception_find(const struct mem_reader *reader, int64_t seq);
void mem_exception_remove(struct mem_reader *reader, int64_t seq);
/* A row that is not there yet. */
struct mem_exception *mem_exception_add(struct mem_reader *reader, int64_t seq);
void mem_exception_set_queue(struct mem_exception *exception, struct ob_str queue);
/* The lowest row of the queue, or NULL. */
struct mem_exception *mem_queue_head(const struct mem_reader *reader, uint32_t partition,
				     struct ob_str queue);
void mem_promote(const struct ob_memdb *db, struct mem_reader *reader, uint32_t partition,
		 struct ob_str queue);
void mem_promote_all(const struct ob_memdb *db, struct mem_reader *reader);
/* `decided`: of a verb, which has seen the row as it is. */
void mem_apply(const struct ob_memdb *db, struct mem_reader *reader, const struct ob_change *change,
	       bool decided);

/* ---- listing, memory_store_list.c ------------------------------------ */

/* What people see of a row; `covered` by the newest progress of its partition. `reader` NULL: one
 * that has read nothing. */
enum ob_view mem_view(const struct ob_memdb *db, const struct mem_reader *reader,
		      const struct mem_row *row, bool covered);
bool mem_matches(const struct ob_filter *filter, const struct mem_reader *reader,
		 const struct mem_row *row, enum ob_view view);
/* Is it behind the reader, by its newest journal row? */
bool mem_covered(const struct mem_reader *reader, const struct mem_row *row);

/* ---- watching, memory_store_watch.c ----------------------------------- */

/* Tell what has changed for the reader, if it is the one that is watched. */
void mem_tell(struct ob_memdb *db, const struct mem_reader *reader, enum ob_memdb_cause cause,
	      const struct ob_uuid *owner);
void mem_tell_taken(struct ob_memdb *db, const struct mem_reader *reader, uint32_t partition,
		    const struct ob_uuid *owner);
/* The row is new, or goes. */
void mem_tell_row(struct ob_memdb *db, const struct mem_row *row, enum ob_memdb_cause cause);

/* ---- the audit, memory_store_audit.c --------------------------------- */

/* An entry, or `more` for the one of its plan. */
void mem_audit_add(struct ob_memdb *db, const struct ob_audit_row *entry, uint64_t more);
/* Those that are old go; `all`: every one. */
void mem_audit_prune(struct ob_memdb *db, bool all);

/* ---- the operations, see store.h ------------------------------------- */

ob_store_tx_begin_fn mem_tx_begin;
ob_store_tx_push_fn mem_tx_push;
ob_store_tx_end_fn mem_tx_end;
ob_store_reader_make_fn mem_reader_make;
ob_store_readers_fn mem_readers;
ob_store_reader_seek_fn mem_reader_seek;
ob_store_reader_remove_fn mem_reader_remove;
ob_store_take_over_fn mem_take_over;
ob_store_read_fn mem_read;
ob_store_settle_fn mem_settle;
ob_store_beat_fn mem_beat;
ob_store_reap_fn mem_reap;
ob_store_leave_fn mem_leave_worker;
ob_store_workers_fn mem_workers;
ob_store_seed_fn mem_seed;
ob_store_take_fn mem_take;
ob_store_renew_fn mem_renew;
ob_store_release_fn mem_release;
ob_store_partitions_fn mem_partitions;
ob_store_free_leases_fn mem_free_leases;
ob_store_resize_fn mem_resize;
ob_store_adopt_fn mem_adopt;
ob_store_stats_fn mem_stats;
ob_store_throughput_fn mem_throughput;
ob_store_list_fn mem_list;
ob_store_operate_fn mem_operate;
ob_store_audit_fn mem_audit;
ob_store_audits_fn mem_audits;
ob_store_retain_fn mem_retain;

#endif
