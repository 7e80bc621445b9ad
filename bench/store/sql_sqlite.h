/* SPDX-License-Identifier: MIT */
/* SQLite for the bench's own statements: what fails ends it. */
#ifndef OB_BENCH_SQL_SQLITE_H
#define OB_BENCH_SQL_SQLITE_H

#include "bench/store/store.h"

#include <sqlite3.h>

/* "sqlite:PATH", durable as the relay's default is (synchronous FULL, WAL). */
sqlite3 *bench_sqlite_connect(const char *url);
void bench_sqlite_do(sqlite3 *db, const char *sql);
sqlite3_stmt *bench_sqlite_prepare(sqlite3 *db, const char *sql);
/* Run it to its end and make it ready again; its first column as a number, 0 for no row. */
int64_t bench_sqlite_step(sqlite3 *db, sqlite3_stmt *stmt);
void bench_sqlite_fail(sqlite3 *db) __attribute__((noreturn));

/* ---- push_sqlite.c ------------------------------------------------------ */

void *bench_sqlite_producer_open(struct bench_store *store, enum bench_writer writer);
double bench_sqlite_produce(void *producer, const struct outbox_message *messages, size_t count);
void bench_sqlite_producer_close(void *producer);

#endif
