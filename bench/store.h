/* SPDX-License-Identifier: MIT */
/*
 * A database to measure on: a private server, the outbox that `outbox setup` makes in it, rows in
 * bulk, and what only the database knows. A failing statement ends the bench.
 */
#ifndef OB_BENCH_STORE_H
#define OB_BENCH_STORE_H

#include "bench/result.h"
#include "outbox/outbox.h"

#include <stdint.h>
#include <sys/types.h>

struct bench_store;

/* Rows to put in, behind what is there. */
struct bench_load {
	uint64_t published; /* long finished ones, first */
	uint64_t pending;
	size_t payload_size; /* bytes, about */
	bool one_key;        /* else each message has a key of its own */
};

/* An application that writes messages, each call one transaction. */
struct bench_producer_ops {
	/* `bare`: a prepared INSERT of many rows instead of outbox_push(). */
	void *(*open)(struct bench_store *store, bool bare);
	/* Returns when it asked for the COMMIT, in us. */
	double (*produce)(void *producer, const struct outbox_message *messages, size_t count);
	void (*close)(void *producer);
};

struct bench_store_ops {
	const char *name;  /* "postgres" */
	const char *title; /* "PostgreSQL" */
	/* Start the server; false when there is none, and store->reason says what is missing. */
	bool (*start)(struct bench_store *store);
	void (*stop)(struct bench_store *store);
	/* After `outbox setup`. */
	void (*connect)(struct bench_store *store);
	/* No rows, and nothing of what was before is left to be written. */
	void (*clear)(struct bench_store *store);
	void (*load)(struct bench_store *store, const struct bench_load *load);
	/* Is every row settled? */
	bool (*is_settled)(struct bench_store *store);
	/* Bytes of the database's log so far; NULL: it does not say. */
	uint64_t (*log_bytes)(struct bench_store *store);
	/* Row versions that died so far; NULL: it does not say. Counts when its writers are gone.
	 */
	uint64_t (*dead_rows)(struct bench_store *store);
	/* Open a transaction that has written, and one with a snapshot; end both. NULL: cannot. */
	void (*hold)(struct bench_store *store);
	void (*let_go)(struct bench_store *store);
	void (*version)(struct bench_store *store, char out[BENCH_TEXT_SIZE]);
	struct bench_producer_ops producer;
};

struct bench_store {
	const struct bench_store_ops *ops;
	bool tried, there; /* start() was called; it worked */
	char url[256];
	pid_t pid; /* of the server; 0: the database is a library */
	char reason[BENCH_TEXT_SIZE];
	uint64_t rows; /* loaded since clear(), so that keys and ids go on */
	void *impl;
};

extern const struct bench_store_ops bench_store_postgres;
extern const struct bench_store_ops bench_store_mysql;
extern const struct bench_store_ops bench_store_sqlite;

#endif
