/* SPDX-License-Identifier: MIT */
/*
 * The memory store: the contract of store.h at its plainest. The reference for
 * the contract suite, and the database of the simulator. Everything happens
 * under one mutex; sequence numbers are drawn when a message is pushed and rows
 * show when they are committed, as on a database with concurrent writers.
 */
#ifndef OB_STORE_MEMORY_H
#define OB_STORE_MEMORY_H

#include "store/store.h"

/* The database that any number of connections share. */
struct ob_memdb;

/* What made a row change. */
enum ob_memdb_cause {
	OB_MEMDB_PUSHED,   /* committed by its writer */
	OB_MEMDB_CLAIMED,  /* given out by a row claim; the state stays */
	OB_MEMDB_SETTLED,  /* an outcome */
	OB_MEMDB_PARKED,   /* another row began to hold its key */
	OB_MEMDB_RELEASED, /* nothing holds it any more */
	OB_MEMDB_OPERATED, /* a verb of an operator */
	OB_MEMDB_CLEANED,  /* deleted by cleanup */
	OB_MEMDB_MOVED,    /* got another partition */
};

struct ob_memdb_change {
	enum ob_memdb_cause cause;
	const struct ob_message *row; /* as it is after the change */
	bool existed, exists;         /* before and after */
	enum ob_state before, after;  /* equal when only other fields changed */
	const struct ob_uuid *owner;  /* SETTLED: the worker; CLAIMED: the token; else NULL */
	uint64_t epoch;               /* SETTLED under a lease: its epoch */
};

/* Called under the database's mutex: must not call back into the store. */
typedef void ob_memdb_history_fn(void *arg, const struct ob_memdb_change *change);

struct ob_memdb_conf {
	const struct ob_clock *clock; /* the database's clock; NULL: the system's */
	uint32_t partition_count;     /* 0: empty, somebody must call setup */
	/* Makes the ids of messages that bring none; NULL: ob_uuid_new(). */
	struct ob_uuid (*new_id)(void *arg);
	void *new_id_arg;
	ob_memdb_history_fn *history; /* may be NULL */
	void *history_arg;
};

/* NULL when out of memory. */
struct ob_memdb *ob_memdb_new(const struct ob_memdb_conf *conf);
/* After its last connection was freed; NULL is allowed. */
void ob_memdb_free(struct ob_memdb *db);
/* One more connection. The caller frees it with ob_store_free(). */
int ob_store_memory_open(struct ob_memdb *db, struct ob_store **ret_store, struct ob_err *err);

/* Every committed row by seq; false from `fn` ends it. Under the database's mutex. */
void ob_memdb_each(struct ob_memdb *db, bool (*fn)(void *arg, const struct ob_message *row),
		   void *arg);
/* Pretend that the schema has another version. */
void ob_memdb_set_version(struct ob_memdb *db, uint32_t version);

#endif
