/* SPDX-License-Identifier: MIT */
/*
 * The memory store: the contract of store.h at its plainest. The reference for the contract suite,
 * and the database of the simulator. Everything happens under one mutex; numbers are drawn when a
 * message is pushed and rows show when they are committed, as on a database with concurrent
 * writers. It plays each of the three ways in which a database tells what a reader has seen. Out of
 * memory ends the program: this is a double.
 */
#ifndef OB_DOUBLES_MEMORY_STORE_H
#define OB_DOUBLES_MEMORY_STORE_H

#include "store/store.h"

/* The database that any number of connections share. */
struct ob_memdb;

enum ob_memdb_kind {
	OB_MEMDB_SNAPSHOT, /* as PostgreSQL: `seen` is a snapshot */
	OB_MEMDB_GAPS,     /* as MySQL: `seen` is the numbers that were not there */
	OB_MEMDB_PLAIN,    /* as SQLite: one writer at a time, `seen` is NULL */
};

/* What made a row change for the reader that is watched. */
enum ob_memdb_cause {
	OB_MEMDB_PUSHED,   /* committed by its writer */
	OB_MEMDB_TAKEN,    /* no row: `owner` took the journal of `partition` over */
	OB_MEMDB_SETTLED,  /* by `owner` */
	OB_MEMDB_OPERATED, /* a verb of an operator */
	OB_MEMDB_SOUGHT,   /* the reader was moved */
	OB_MEMDB_MOVED,    /* resized, or adopted */
	OB_MEMDB_RETAINED, /* by retention */
};

/* A row as the reader has it. */
struct ob_memdb_state {
	bool delivered; /* covered by its progress, and no exception but DONE */
	bool excepted;
	enum ob_state state; /* of the exception */
	uint32_t attempts;
};

struct ob_memdb_change {
	enum ob_memdb_cause cause;
	const struct ob_message *row; /* NULL: TAKEN */
	struct ob_memdb_state before, after;
	bool exists;                 /* false: it has gone from the log */
	uint32_t partition;          /* TAKEN */
	const struct ob_uuid *owner; /* TAKEN, SETTLED */
};

/* Called under the database's mutex: must not call back into the store. */
typedef void ob_memdb_history_fn(void *arg, const struct ob_memdb_change *change);

struct ob_memdb_conf {
	enum ob_memdb_kind kind;
	const struct ob_clock *clock; /* the database's clock; NULL: the system's */
	uint32_t partition_count;     /* 0: empty, somebody must call setup */
	/* Makes the ids of messages that bring none; NULL: ob_uuid_new(). */
	struct ob_uuid (*new_id)(void *arg);
	void *new_id_arg;
	/* Optional: told of every change of a row for the reader `watch`. */
	ob_memdb_history_fn *history;
	void *history_arg;
	const char *watch;
	/*
	 * Optional. Called before and after each operation, without the mutex: for a simulator,
	 * whose clock moves while an operation runs.
	 */
	void (*pass_time)(void *arg);
	void *pass_time_arg;
};

/* Never NULL. */
struct ob_memdb *ob_memdb_new(const struct ob_memdb_conf *conf);
/* After its last connection was freed; NULL is allowed. */
void ob_memdb_free(struct ob_memdb *db);
/* One more connection. The caller frees it with ob_store_free(). */
int ob_store_memory_open(struct ob_memdb *db, struct ob_store **ret_store, struct ob_err *err);

/* Every committed row by seq; false from `fn` ends it. Under the database's mutex. */
void ob_memdb_each(struct ob_memdb *db, bool (*fn)(void *arg, const struct ob_message *row),
		   void *arg);
/* How many journal rows there are. */
size_t ob_memdb_journal_count(struct ob_memdb *db);
/* Pretend that the schema has another version. */
void ob_memdb_set_version(struct ob_memdb *db, uint32_t version);
/* The connection was lost and made anew: its session lock is gone. */
void ob_memdb_cut(struct ob_store *store);
/* The rows were restored into another cluster, whose transaction ids begin again (SNAPSHOT). */
void ob_memdb_move_cluster(struct ob_memdb *db);

#endif
