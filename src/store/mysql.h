/* SPDX-License-Identifier: MIT */
/*
 * What the files of the MySQL store share: the connection, its prepared
 * statements, transactions, and the one function that reads the server's codes.
 *
 * Time is the server's: UTC_TIMESTAMP(6), the moment a statement began.
 */
#ifndef OB_STORE_MYSQL_H
#define OB_STORE_MYSQL_H

#include "outbox/mysql.h"
#include "store/store.h"

#include <mysql.h>

/*
 * Statement (also its template in sql/mysql), and what it does, for messages.
 * A template with a list (:name*) is prepared for 1, 8, 64 or 512 values.
 */
#define MY_MAP(X) \
	X(now, "reading the clock") \
	X(server, "reading the server's settings") \
	X(durability, "reading the server's settings") \
	X(lock_setup, "waiting for another setup") \
	X(unlock_setup, "ending the setup") \
	X(table_info, "reading the schema") \
	X(column_info, "reading the schema") \
	X(index_info, "reading the schema") \
	X(procedure_info, "reading the schema") \
	X(copy_trigger, "reading the schema") \
	X(meta_get, "reading the schema version") \
	X(meta_lock, "reading the schema version") \
	X(meta_set, "changing the schema") \
	X(lock_leases, "changing the partitions") \
	X(any_lease, "looking for leases") \
	X(free_leases, "changing the partitions") \
	X(moved, "changing the partitions") \
	X(rows_unpark, "changing the partitions") \
	X(load, "fetching") \
	X(load_claim, "claiming") \
	X(claim, "claiming") \
	X(look, "settling") \
	X(rows_published, "settling") \
	X(rows_plainly_published, "settling") \
	X(rows_delete, "settling") \
	X(rows_unclaim, "settling") \
	X(row_failed, "settling") \
	X(waiting_of_key, "parking") \
	X(waiting_of_partition, "parking") \
	X(rows_park, "parking") \
	X(holder_of_key, "releasing a key") \
	X(holder_of_partition, "releasing a partition") \
	X(release_key, "releasing a key") \
	X(release_partition, "releasing a partition") \
	X(count_minute, "counting") \
	X(beat, "writing the heartbeat") \
	X(dead_workers, "removing dead workers") \
	X(forget_worker, "removing dead workers") \
	X(leave_leases, "leaving") \
	X(leave_worker, "leaving") \
	X(workers, "listing workers") \
	X(lease_rows, "making lease rows") \
	X(seed, "making lease rows") \
	X(prune, "dropping lease rows") \
	X(take_look, "taking leases") \
	X(take, "taking leases") \
	X(renew_look, "renewing leases") \
	X(renew, "renewing leases") \
	X(release, "releasing leases") \
	X(fence, "checking leases") \
	X(partitions, "listing partitions") \
	X(verb_retry, "retrying") \
	X(verb_skip, "skipping") \
	X(verb_priority, "changing the priority") \
	X(next_target, "reading the targets") \
	X(clean, "cleaning up") \
	X(clean_throughput, "cleaning up") \
	X(stats_open, "counting") \
	X(stats_published, "counting") \
	X(stats_held, "counting") \
	X(created_at, "counting") \
	X(throughput, "reading the throughput")

enum my_id {
#define X(name, doing) MY_##name,
	MY_MAP(X)
#undef X
		MY_COUNT
};

/* How rows that may be sent are found; each is a statement of several templates. */
enum my_search {
	MY_SEARCH_FREE,      /* nothing is held */
	MY_SEARCH_NONE,      /* holding does not matter */
	MY_SEARCH_KEY,       /* some keys are held */
	MY_SEARCH_PARTITION, /* some partitions are held */
	MY_SEARCH_CLAIM,
	MY_SEARCH_BEFORE, /* what stands before positions */
	MY_SEARCH_COUNT
};

enum {
	MY_LIST_SIZES = 4,
	MY_LIST_MAX = 512,
	MY_LANES_MAX = 64, /* of one search */
	MY_COLUMNS_MAX = 32,
};

struct my_query;

/* A message that was handed out. */
struct my_handed {
	int64_t seq, priority;
	uint32_t partition;
};

/* A place in a lane, in the order of the ready index. */
struct my_position {
	int64_t priority, seq;
};

/* What the last fetch says about where the next one may begin. */
struct my_lane {
	struct my_position last; /* that was returned */
	bool known;
	uint32_t closed; /* so many fetches do not use it */
};

/* Where the server is, from the URL. */
struct my_address {
	char *host, *user, *password, *database; /* owned; NULL: not given */
	uint32_t port;                           /* 0: the default */
};

struct my_store {
	struct ob_store base;
	int64_t connect_timeout_ms, timeout_ms, lock_timeout_ms; /* options */
	char *password, *socket, *ssl_ca, *ssl_cert, *ssl_key;
	bool ssl_verify;

	struct my_address address;
	MYSQL *db; /* NULL: not connected (any more) */
	struct my_query *query[MY_COUNT][MY_LIST_SIZES];
	struct my_query *search[MY_SEARCH_COUNT][MY_LIST_SIZES];
	outbox *writer;           /* for tx_push, made on first use */
	bool broken;              /* connect again before the next call */
	bool patient;             /* this connection has no time limit for a statement */
	bool in_tx;               /* between tx_begin and tx_end */
	bool held;                /* the last fetch found something held */
	unsigned code;            /* of the last failure: the server's number */
	size_t row_bytes;         /* of a message, lately: how many to load at once */
	struct my_handed *handed; /* by seq: what is in flight, as far as it is known */
	size_t handed_count, handed_room;
	struct my_lane lanes[OB_PARTITIONS_MAX];
	char version[64];
};

/* ---- address: mysql_url.c -------------------------------------------- */

/* Read the store's URL into its address, and what stands behind '?' into its options. */
int my_url_parse(struct my_store *s, const struct ob_opt *opts, struct ob_err *err);
void my_url_done(struct my_address *address);
/* The place for messages, without the password: "db1:3306/shop". */
const char *my_place(const struct my_store *s, char out[256]);

/* ---- connection: mysql_connect.c ------------------------------------- */

/* Connected, or connect. */
int my_ready(struct my_store *s, bool patient, struct ob_err *err);
/* One more connection with the same settings; the caller closes it. */
int my_connect(struct my_store *s, bool patient, MYSQL **ret_db, struct ob_err *err);
void my_disconnect(struct my_store *s);
/* Turn a number of the server or the client library into *err; `doing` is what failed. */
int my_err(struct my_store *s, unsigned code, const char *text, const char *doing,
	   struct ob_err *err);
/* Run a text without parameters or rows. */
int my_exec(struct my_store *s, MYSQL *db, const char *sql, const char *doing, struct ob_err *err);
/* A duration in microseconds, cut to a hundred years. */
int64_t my_us(int64_t ms);

/* ---- statements: mysql_stmt.c ---------------------------------------- */

/* The statement with all parameters NULL, for `count` values of its list (at most MY_LIST_MAX). */
int my_prepare(struct my_store *s, enum my_id id, size_t count, struct my_query **ret_query,
	       struct ob_err *err);
int my_prepare_search(struct my_store *s, enum my_search search, size_t lanes,
		      struct my_query **ret_query, struct ob_err *err);
/*
 * It found so many rows. MariaDB (10.11) forgets with the first execution that the index covers the
 * statement, and looks at each row: three times the pages. Where that costs more than preparing it
 * anew, it is not used again.
 */
void my_search_done(struct my_store *s, struct my_query *query, size_t rows);
/* How many lanes the statement for `lanes` of them has. */
size_t my_lane_size(size_t lanes);
/* A statement of templates that is not kept: the caller frees it. */
int my_prepare_parts(struct my_store *s, const char *const *parts, size_t part_count, size_t count,
		     struct my_query **ret_query, struct ob_err *err);
void my_query_free(struct my_query *query);
/* Forget all of them. */
void my_finalize(struct my_store *s);

/*
 * Bind by name, wherever it stands. A name that the statement does not have is
 * skipped. Text and bytes are borrowed until it was run.
 */
void my_bind_int(struct my_query *query, const char *name, int64_t value);
void my_bind_str(struct my_query *query, const char *name, struct ob_str value);
void my_bind_text(struct my_query *query, const char *name, const char *value);
void my_bind_uuid(struct my_query *query, const char *name, const struct ob_uuid *value);
/* A list: value k at the k-th place; places left over repeat the last one. */
void my_bind_list(struct my_query *query, const char *name, const int64_t *values, size_t count);
/* Ids as the layout stores them; `texts` has room for as many, borrowed until it was run. */
void my_bind_ids(struct my_store *s, struct my_query *query, const char *name,
		 const struct ob_uuid *const *ids, size_t count, char (*texts)[OB_UUID_TEXT_SIZE]);
void my_bind_texts(struct my_query *query, const char *name, const char *const *values,
		   size_t count);

/* Run one without rows: how many rows it changed, or a failure. */
int my_run(struct my_store *s, struct my_query *query, struct ob_err *err);
/* Run one with rows, and hold all of them; then step until it returns 0. */
int my_open(struct my_store *s, struct my_query *query, struct ob_err *err);
/* 1: a row; 0: no more. */
int my_step(struct my_store *s, struct my_query *query, struct ob_err *err);
/* Open and step once: for statements with one row. */
int my_first(struct my_store *s, struct my_query *query, struct ob_err *err);
/* Values of the row, valid until the next step. */
int64_t my_int(const struct my_query *query, int column);
struct ob_str my_str(const struct my_query *query, int column);

/* Rows become an array in an arena; see the same of the SQLite store. */
struct my_rows {
	struct ob_arena *arena;
	size_t size; /* of one */
	char *data;
	size_t count, capacity;
};

void *my_rows_add(struct my_rows *rows);
int my_oom(const char *doing, struct ob_err *err);

/* ---- transactions: mysql_tx.c ---------------------------------------- */

/*
 * Run `work` in a transaction that commits when it returns >= 0. After a
 * deadlock it is rolled back and run again, a few times: `work` starts afresh each time.
 */
typedef int my_work_fn(struct my_store *s, void *arg, struct ob_err *err);
int my_transact(struct my_store *s, my_work_fn *work, void *arg, struct ob_err *err);
/* The same for reading one snapshot. */
int my_read(struct my_store *s, my_work_fn *work, void *arg, struct ob_err *err);

/* ---- schema: mysql_schema.c, mysql_check.c --------------------------- */

/* A number of the meta table; OUTBOX_ESCHEMA when it is not there. */
int my_meta(struct my_store *s, enum my_id id, const char *name, int64_t *ret_value,
	    struct ob_err *err);

/* What is there under our names. */
struct my_found {
	bool table[OB_TABLE_COUNT];
	bool any;
	int64_t version;         /* 0: none, or a setup that did not end */
	int64_t partition_count; /* of the meta table */
	int64_t modulus;         /* of the column partition_no; 0: not known */
};

int my_look_schema(struct my_store *s, struct my_found *found, struct ob_err *err);
/* Are the tables ours? Fills found->modulus. */
int my_check_columns(struct my_store *s, struct my_found *found, struct ob_err *err);
/* The columns of an index, "" when there is none. */
int my_index_columns(struct my_store *s, const char *suffix, char out[1024], struct ob_err *err);
/* The schema's name for messages and lookups; NULL: the connection's own. */
const char *my_schema(const struct my_store *s);

/* ---- the table that is copied from, if the layout has one: mysql_source.c */

/* Is it there, with columns that can be copied? */
int my_source_look(struct my_store *s, struct ob_err *err);
/*
 * Make the trigger if it is not there. Without the right to make one a user does not see it
 * either, so the start-up checks of a relay cannot ask for it.
 */
int my_source_attach(struct my_store *s, struct ob_err *err);
int my_source_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *err);

/* ---- rows: mysql_row.c ----------------------------------------------- */

/* A row that may be sent. */
struct my_candidate {
	int64_t seq, priority;
	uint32_t partition;
	uint32_t lane; /* index in the search */
	bool skip;     /* its lane has ended */
};

/* Read the message of the row on which `query` stands; `all`: every field. */
int my_read_message(struct my_store *s, const struct my_query *query, bool all,
		    struct ob_message *ret_message, struct ob_err *err);
int my_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err);

/*
 * Load candidates into the batch, in their order, up to `limit` messages and
 * `max_bytes`. What passes max_bytes ends its lane, or everything when `stop` is
 * set. `token`: claim the rows (the caller updates them), else only read.
 */
struct my_loading {
	struct my_store *s;
	struct ob_batch *batch;
	struct my_candidate *list;
	size_t count;
	uint32_t limit;
	size_t max_bytes;
	const struct ob_uuid *token;
	bool full; /* out: max_bytes was reached */
};

int my_load(struct my_loading *l, struct ob_err *err);

/* Search one set of lanes; appends to `out` (struct my_candidate). *ret_held: something is. */
struct my_searching {
	enum my_search search;
	const char *target;
	const uint32_t *partitions; /* at most MY_LANES_MAX */
	size_t lanes;
	uint32_t first_lane;
	uint32_t limit;                 /* of each lane (of MY_SEARCH_BEFORE: of all), */
	const uint32_t *more;           /* and so many more, by partition; NULL: none */
	const struct my_position *from; /* by partition; NULL: of a search that has none */
	const struct ob_uuid *token;
};

int my_search(struct my_store *s, const struct my_searching *search, struct my_rows *out,
	      bool *ret_held, struct ob_err *err);

/* ---- what is in flight: mysql_flight.c ------------------------------- */

/* The message of that number, or NULL: not known. */
const struct my_handed *my_flight_find(const struct my_store *s, int64_t seq);
/* Remember where the messages of the batch stand, and those of before that are still in flight. */
void my_flight_note(struct my_store *s, const struct ob_fetch *fetch, const struct ob_batch *batch);

/* ---- where a fetch begins: mysql_ahead.c ----------------------------- */

/* All but the first two by partition. */
struct my_ahead {
	bool any;         /* some lane begins at a position */
	uint32_t unknown; /* in flight, and nobody knows where */
	struct my_position from[OB_PARTITIONS_MAX];
	/* In flight: not read by this fetch; to be read past. */
	uint32_t before[OB_PARTITIONS_MAX], behind[OB_PARTITIONS_MAX];
};

/* Where each lane begins; `from_front`: at its front. */
void my_ahead_plan(const struct my_store *s, const struct ob_fetch *fetch, bool from_front,
		   struct my_ahead *a);
/*
 * After everything was read from those positions: 1: nothing but what is in flight stands before
 * them. 0: something does, the fetch must begin at the front.
 */
int my_ahead_check(struct my_store *s, const struct ob_fetch *fetch, const struct my_ahead *a,
		   struct ob_arena *arena, struct ob_err *err);
/* The fetch returned this, in order. */
void my_ahead_note(struct my_store *s, const struct ob_fetch *fetch, const struct ob_batch *batch);

/* ---- rows as they are, and keys: mysql_keys.c ------------------------ */

struct my_row {
	int64_t seq;
	struct ob_uuid id;
	enum ob_state state;
	uint32_t attempts, partition;
	struct ob_str key, target; /* the arena's */
	bool has_token, claimed;   /* there is a token; a claim is valid now */
	struct ob_uuid token;
};

/* Lock the rows and read them, by seq, into `out` (struct my_row). */
int my_look(struct my_store *s, const int64_t *seqs, size_t count, struct my_rows *out,
	    struct ob_err *err);
/* The row of that number in what my_look() brought, or NULL. */
const struct my_row *my_row_find(const struct my_rows *rows, int64_t seq);
/* Run a statement with a list of rows, in pieces; `priority` for the one that has it. */
int my_run_list(struct my_store *s, enum my_id id, const int64_t *seqs, size_t count,
		int64_t priority, struct ob_err *err);

/* Keys that rows began or stopped to hold, moved behind all changes of a transaction. */
struct my_keys {
	struct ob_arena arena;
	struct my_key *freed, *held;
};

/* Run `read` for the numbers of rows (the query is bound), then `write` on them. */
int my_run_found(struct my_store *s, struct my_query *read, enum my_id write,
		 struct ob_arena *arena, struct ob_err *err);

void my_keys_init(struct my_keys *keys);
void my_keys_done(struct my_keys *keys);
int my_keys_add_freed(struct my_keys *keys, const struct my_row *row, struct ob_err *err);
/* `whole`: the partition is held, not the key. */
int my_keys_add_held(struct my_keys *keys, const struct my_row *row, bool whole,
		     struct ob_err *err);
/* First park behind what began to hold, then let go what nothing holds any more. */
int my_keys_move(struct my_store *s, struct my_keys *keys, struct ob_err *err);

/* ---- filters: mysql_filter.c ----------------------------------------- */

/* Targets that have rows. */
struct my_targets {
	struct ob_arena arena;
	const char *names[MY_LIST_MAX];
	size_t count;
	bool more; /* than fit */
};

int my_targets_read(struct my_store *s, struct my_targets *ret_targets, struct ob_err *err);
void my_targets_done(struct my_targets *targets);
/* The first target behind `after`, into `out`; 0: there is none. */
enum { MY_TARGET_SIZE = 4 * OUTBOX_TEXT_MAX + 1 };
int my_next_target(struct my_store *s, char name[MY_TARGET_SIZE], struct ob_err *err);
/* The rows of a filter: all fields, or (`pick`) only their numbers. The caller frees the query. */
int my_filter(struct my_store *s, const struct ob_filter *filter, bool pick,
	      struct my_query **ret_query, struct ob_err *err);

/* ---- the operations -------------------------------------------------- */

ob_store_setup_fn my_setup;
ob_store_setup_sql_fn my_setup_sql;
ob_store_grants_sql_fn my_grants_sql;
/* Is a server that calls itself so ("10.11.6-MariaDB-...") new enough? */
int my_check_version(const char *version, struct ob_err *err);
ob_store_check_fn my_check;
ob_store_advise_fn my_advise;
ob_store_resize_fn my_resize;
ob_store_tx_begin_fn my_tx_begin;
ob_store_tx_push_fn my_tx_push;
ob_store_tx_end_fn my_tx_end;
ob_store_fetch_fn my_fetch;
ob_store_claim_fn my_claim;
ob_store_list_fn my_list;
ob_store_settle_fn my_settle;
ob_store_beat_fn my_beat;
ob_store_leave_fn my_leave;
ob_store_workers_fn my_workers;
ob_store_seed_fn my_seed;
ob_store_take_fn my_take;
ob_store_renew_fn my_renew;
ob_store_release_fn my_release;
ob_store_partitions_fn my_partitions;
ob_store_stats_fn my_stats;
ob_store_throughput_fn my_throughput;
ob_store_operate_fn my_operate;
ob_store_cleanup_fn my_cleanup;

extern const struct ob_store_ops ob_store_mysql;

#endif
