/* SPDX-License-Identifier: MIT */
/*
 * A database to measure on: a private server, the outbox that `outbox setup` makes in it, rows in
 * bulk, and what only the database knows. A failing statement ends the bench. What the tables of
 * the two cores look like is in schema.h.
 */
#ifndef OB_BENCH_STORE_H
#define OB_BENCH_STORE_H

#include "bench/report/result.h"
#include "outbox/outbox.h"

#include <stdint.h>
#include <sys/types.h>

struct bench_store;

/* Each has servers of its own, so that none pays for what another left to be cleaned up. */
enum bench_side {
	BENCH_NEW,   /* the program under test */
	BENCH_OLD,   /* the baseline */
	BENCH_SPARE, /* the program under test once more: a table that takes turns with another */
	BENCH_SIDES,
};

/* Rows to put in, after what is there. */
struct bench_load {
	uint64_t count;
	size_t payload_size; /* bytes, about */
	uint64_t keys;       /* so many; 0: each message has one of its own */
};

/* Who writes. */
enum bench_writer {
	BENCH_LIBRARY, /* outbox_push(), or outbox_append() for a message with a sequence number */
	BENCH_BARE,    /* a prepared INSERT of many rows into the log */
	BENCH_TWICE,   /* a row of a table of events, and one of the log: as others store it */
};

/* An application that writes messages, each call one transaction. */
struct bench_producer_ops {
	void *(*open)(struct bench_store *store, enum bench_writer writer);
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
	/* One statement; and one whose first value is a number, 0 for no row. */
	void (*run)(struct bench_store *store, const char *sql);
	uint64_t (*number)(struct bench_store *store, const char *sql);
	/* Empty a table; its numbers begin again. */
	void (*empty)(struct bench_store *store, const char *table);
	/* Makes the table bench_events: what any table of events has, with its indexes. */
	const char *make_events;
	const char *find_log; /* is 1 when there is a table outbox_batches */
	/* Nothing of what was before is left to be written; the tables are empty. */
	void (*calm)(struct bench_store *store);
	void (*load)(struct bench_store *store, const struct bench_load *load);
	/* Bytes of the database's log so far; NULL: it does not say. */
	uint64_t (*log_bytes)(struct bench_store *store);
	/* Row versions that died so far; NULL: it does not say. Counts when its writers are gone.
	 */
	uint64_t (*dead_rows)(struct bench_store *store);
	/* Open a transaction that has written, and one with a snapshot; end both. */
	void (*hold)(struct bench_store *store);
	void (*let_go)(struct bench_store *store);
	void (*version)(struct bench_store *store, char out[BENCH_TEXT_SIZE]);
	struct bench_producer_ops producer;
};

struct bench_store {
	const struct bench_store_ops *ops;
	enum bench_side side;
	bool tried, there; /* start() was called; it worked */
	bool log;          /* its tables are those of the log, else rows have a state */
	char url[256];
	pid_t pid; /* of the server; 0: the database is a library */
	char reason[BENCH_TEXT_SIZE];
	uint64_t rows; /* loaded since it was emptied, so that keys and ids go on */
	void *impl;
};

extern const struct bench_store_ops bench_store_postgres;
extern const struct bench_store_ops bench_store_mysql;
extern const struct bench_store_ops bench_store_sqlite;

#endif
