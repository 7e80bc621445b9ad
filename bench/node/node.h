/* SPDX-License-Identifier: MIT */
/*
 * The loop in Node (loop.js): what it needs, and its own narrow table. PostgreSQL to Redis only.
 * Needs node and the packages that bench/node/install brings.
 */
#ifndef OB_BENCH_NODE_H
#define OB_BENCH_NODE_H

#include "bench/store/store.h"

#define BENCH_NODE_LOOP BENCH_SOURCE "/bench/node/loop.js"

/* Can it run with these two? If not, *ret_reason says what is missing. */
bool bench_node_finds(const char *store, const char *broker, const char **ret_reason);
/* The path of node. */
const char *bench_node_program(void);

/* Make its table if there is none, and empty it. */
void bench_node_clear(struct bench_store *store);
void bench_node_load(struct bench_store *store, const struct bench_load *load);
bool bench_node_is_through(struct bench_store *store);

#endif
