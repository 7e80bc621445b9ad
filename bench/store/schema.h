/* SPDX-License-Identifier: MIT */
/*
 * The tables of the two cores, in SQL that every database reads: the log with its journal, and the
 * rows with a state that the baseline has. Which of them a store has is seen from its tables.
 */
#ifndef OB_BENCH_SCHEMA_H
#define OB_BENCH_SCHEMA_H

#include "bench/store/store.h"

/* After `outbox setup`: see which core it is, and make the bench's own tables. */
void bench_schema_open(struct bench_store *store);
/* No rows, no progress, no workers. */
void bench_schema_clear(struct bench_store *store);
/* Put rows in and remember, for is_settled, how far each partition must get. */
void bench_schema_load(struct bench_store *store, const struct bench_load *load);

/* Is every row recorded as delivered by the relay `default`, and nothing left to be tried again? */
bool bench_schema_is_settled(struct bench_store *store);
/* How many are recorded as delivered. Reads all rows. */
uint64_t bench_schema_recorded(struct bench_store *store);
/* Workers that have joined. */
uint64_t bench_schema_workers(struct bench_store *store);
/* The process that owns the partition of the first row; 0: none does. */
pid_t bench_schema_owner(struct bench_store *store);
/* As if the leases of all workers had run out. Of the log's core on SQLite only: the others see
 * that a worker is gone. */
void bench_schema_free_leases(struct bench_store *store);
/* The last number that the bare loop stored as its position is the last there is. */
bool bench_schema_is_passed(struct bench_store *store);

#endif
