/* SPDX-License-Identifier: MIT */
/* PostgreSQL by libpq, for the bench's own statements: what fails ends it. */
#ifndef OB_BENCH_SQL_POSTGRES_H
#define OB_BENCH_SQL_POSTGRES_H

#include "bench/store/store.h"

#include <libpq-fe.h>

PGconn *bench_pg_connect(const char *url);
void bench_pg_do(PGconn *conn, const char *sql);
/* The first value of the answer as a number; 0 for no row. */
uint64_t bench_pg_number(PGconn *conn, const char *sql);
/* Fail unless it went well; returns it. */
PGresult *bench_pg_check(PGconn *conn, PGresult *result);

/* ---- push_postgres.c ---------------------------------------------------- */

void *bench_pg_producer_open(struct bench_store *store, enum bench_writer writer);
double bench_pg_produce(void *producer, const struct outbox_message *messages, size_t count);
void bench_pg_producer_close(void *producer);

#endif
