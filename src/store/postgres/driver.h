/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store under store/sql, and the session lock of a worker. */
#ifndef OB_STORE_POSTGRES_DRIVER_H
#define OB_STORE_POSTGRES_DRIVER_H

#include "store/postgres/stmt.h"

extern const struct ob_sql_driver pg_driver;

/* The key of a worker's advisory lock. */
int64_t pg_session_key(const struct ob_uuid *worker);
int pg_hold_session(struct ob_store *store, const struct ob_uuid *worker, struct ob_err *err);
void pg_left_session(struct ob_store *store, const struct ob_uuid *worker);
/* Is the CACHE of the sequence 1? Else numbers are not in the order of inserts. */
int pg_check_numbering(struct ob_store *store, int64_t cache, struct ob_err *err);

#endif
