/* SPDX-License-Identifier: MIT */
/* What the files of the memory store share. Everything here is called under the database's mutex.
 */
#ifndef OB_STORE_MEMORY_IMPL_H
#define OB_STORE_MEMORY_IMPL_H

#include "base/cleanup.h"
#include "store/mark.h"
#include "store/memory.h"

#include <pthread.h>
#include <sys/queue.h>

/*
 * Deliberate bugs, to prove that the simulator's checker sees them; only test builds with
 * -DOB_MUTANT=n have one. The numbers are among those of relay/mutants.h.
 */
#ifndef OB_MUTANT
#define OB_MUTANT 0
#endif
#define MEM_UNFENCED_SETTLE (OB_MUTANT == 2) /* settle does not look at the lease */
#define MEM_STALE_FENCE     (OB_MUTANT == 3) /* settle looks at the leases as fetch saw them */

enum mem_index_kind { MEM_BY_ID, MEM_BY_SEQUENCE, MEM_INDEX_COUNT };

struct mem_store;

struct mem_row {
	struct ob_message m; /* texts point into `text`, `error` and `locked_by` */
	char *text, *error, *locked_by;
	bool claimed; /* a row claim was given out and not ended; it may be over */
	struct ob_uuid token;
	bool live;                      /* in the list of live rows */
	const struct mem_store *writer; /* the open transaction it belongs to; NULL: committed */
	TAILQ_ENTRY(mem_row) all_link;  /* all rows by seq, or its transaction's */
	TAILQ_ENTRY(mem_row) live_link; /* rows that are not settled, by seq */
	struct mem_row *next[MEM_INDEX_COUNT];
	uint64_t hash[MEM_INDEX_COUNT];
};

TAILQ_HEAD(mem_rows, mem_row);

struct mem_index {
	struct mem_row **buckets;
	size_t size, count; /* size is a power of two */
};

struct mem_lease {
	char *target;
	uint32_t number;
	bool owned;
	struct ob_uuid owner;
	uint64_t epoch;
	int64_t until_us;
};

struct mem_worker {
	struct ob_uuid id;
	char *target, *hostname;
	int32_t pid;
	int64_t started_us, until_us;
	uint64_t published, failed;
};

struct mem_minute {
	char *target;
	struct ob_minute minute;
};

struct ob_memdb {
	pthread_mutex_t lock; /* guards everything below */
	struct ob_memdb_conf conf;
	uint32_t version; /* 0: not set up */
	uint32_t partition_count;
	int64_t last_seq;
	uint64_t last_writer;                  /* the last identity given to a transaction */
	uint64_t writers[OB_MARK_WRITERS_MAX]; /* those that have pushed and are open, ascending */
	size_t writer_count;
	uint64_t commits; /* transactions that changed something */
	struct mem_rows all, live;
	size_t all_count, live_count;
	struct mem_index index[MEM_INDEX_COUNT];
	struct mem_lease *leases; /* by target and number */
	size_t lease_count, lease_capacity;
	struct mem_worker *workers; /* by id */
	size_t worker_count, worker_capacity;
	struct mem_minute *minutes; /* by minute and target */
	size_t minute_count, minute_capacity;
};

/* One connection. */
struct mem_store {
	struct ob_store base;
	struct ob_memdb *db;
	bool in_tx;
	uint64_t writer;         /* identity of the open transaction; 0: it has pushed nothing */
	struct mem_rows pushed;  /* by the open transaction */
	struct ob_marks marks;   /* where fetches begin */
	struct ob_arena scratch; /* of the operation that runs */
	uint64_t own_commits;    /* how many of db->commits are ours */
	uint64_t seen_commits;   /* how many of others were reported by wake_check */
#if MEM_STALE_FENCE
	struct mem_lease stale[64]; /* at the last fetch */
#endif
};

static inline struct mem_store *mem_of(struct ob_store *store)
{
	return (struct mem_store *)store;
}

/* Lock the database; fails (unlocked) when it is not set up. */
int mem_enter(struct ob_store *store, struct ob_memdb **ret_db, struct ob_err *err);
/* Unlock; for OB_CLEANUP. */
void mem_leave(struct ob_memdb **db);
/* Zeroed memory until the next operation of this connection; NULL when there is none. */
void *mem_scratch(struct ob_store *store, size_t count, size_t size);
/* A transaction of this connection changed something. */
void mem_committed(struct mem_store *store);
int64_t mem_now(const struct ob_memdb *db);
/* now + ms, without overflow. */
int64_t mem_after(int64_t now_us, int64_t ms);
int mem_oom(struct ob_err *err);
/* Make room for one more element; false when out of memory. */
bool mem_reserve(void **array, size_t *capacity, size_t count, size_t size);

/* ---- rows: memory_rows.c --------------------------------------------- */

struct mem_cause {
	enum ob_memdb_cause cause;
	const struct ob_uuid *owner;
	uint64_t epoch;
};

/* A row with its own copy of the texts of *message; NULL when out of memory. */
struct mem_row *mem_row_new(const struct ob_message *message);
void mem_row_free(struct mem_row *row);
/* Enter an uncommitted row into the unique indexes; false when out of memory. */
bool mem_row_index(struct ob_memdb *db, struct mem_row *row);
void mem_row_unindex(struct ob_memdb *db, struct mem_row *row);
struct mem_row *mem_row_by_id(const struct ob_memdb *db, const struct ob_uuid *id,
			      struct ob_str target);
/* Another row of the same aggregate, target and sequence number, or NULL. */
struct mem_row *mem_row_by_sequence(const struct ob_memdb *db, const struct ob_message *message);
/* The row is committed: it shows from now on. */
void mem_row_commit(struct ob_memdb *db, struct mem_row *row);
/* Change the state (and tell the history, also when it stays the same). */
void mem_row_set(struct ob_memdb *db, struct mem_row *row, enum ob_state state,
		 const struct mem_cause *cause);
void mem_row_delete(struct ob_memdb *db, struct mem_row *row, const struct mem_cause *cause);
void mem_row_unclaim(struct mem_row *row);

bool mem_holds(const struct mem_row *row);
bool mem_claim_valid(const struct mem_row *row, int64_t now_us);
/* Park the other pending rows that `row` holds under this ordering. */
void mem_park(struct ob_memdb *db, const struct mem_row *row, enum ob_ordering ordering);
/* `row` holds nothing any more: free what nothing else holds. */
void mem_release(struct ob_memdb *db, const struct mem_row *row);
uint32_t mem_partition(const struct ob_memdb *db, const struct ob_message *message);
/* Append a copy of the row to a batch; with `whole` also the fields that a fetch leaves out. */
bool mem_copy_out(struct ob_batch *batch, const struct mem_row *row, bool whole);

/* ---- counters: memory_look.c ----------------------------------------- */

/* The entry of this minute, made when missing; NULL when out of memory. */
struct ob_minute *mem_minute(struct ob_memdb *db, const char *target);
bool mem_match(const struct ob_filter *filter, const struct mem_row *row, int64_t now_us);

/* ---- leases: memory_leases.c ----------------------------------------- */

struct mem_lease *mem_lease_find(struct ob_memdb *db, const char *target, uint32_t number);

/* ---- the operations, see store.h ------------------------------------- */

ob_store_tx_begin_fn mem_tx_begin;
ob_store_tx_push_fn mem_tx_push;
ob_store_tx_end_fn mem_tx_end;
ob_store_fetch_fn mem_fetch;
ob_store_settle_fn mem_settle;
ob_store_claim_fn mem_claim;
ob_store_beat_fn mem_beat;
ob_store_leave_fn mem_leave_worker;
ob_store_workers_fn mem_workers;
ob_store_seed_fn mem_seed;
ob_store_take_fn mem_take;
ob_store_renew_fn mem_renew;
ob_store_release_fn mem_release_leases;
ob_store_partitions_fn mem_partitions;
ob_store_resize_fn mem_resize;
ob_store_stats_fn mem_stats;
ob_store_throughput_fn mem_throughput;
ob_store_list_fn mem_list;
ob_store_operate_fn mem_operate;
ob_store_cleanup_fn mem_cleanup;

#endif
