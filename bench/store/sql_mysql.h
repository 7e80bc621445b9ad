/* SPDX-License-Identifier: MIT */
/* MariaDB by libmariadb, for the bench's own statements: what fails ends it. */
#ifndef OB_BENCH_SQL_MYSQL_H
#define OB_BENCH_SQL_MYSQL_H

#include "bench/store/store.h"

#include <mysql.h>

/* "mysql://USER@/DATABASE?socket=PATH" */
MYSQL *bench_mysql_connect(const char *url);
void bench_mysql_do(MYSQL *db, const char *sql);
/* The value in that column of the first row as a number; 0 for no row. */
uint64_t bench_mysql_number(MYSQL *db, const char *sql, unsigned column);
void bench_mysql_fail(MYSQL *db) __attribute__((noreturn));

/* ---- push_mysql.c ------------------------------------------------------- */

void *bench_mysql_producer_open(struct bench_store *store, enum bench_writer writer);
double bench_mysql_produce(void *producer, const struct outbox_message *messages, size_t count);
void bench_mysql_producer_close(void *producer);

#endif
