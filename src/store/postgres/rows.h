/* SPDX-License-Identifier: MIT */
/* Messages in results of the PostgreSQL store. */
#ifndef OB_STORE_POSTGRES_ROWS_H
#define OB_STORE_POSTGRES_ROWS_H

#include "store/postgres/conn.h"
#include "store/sql/message.h"

/* Everything in *m points into the result. */
int pg_read_message(const struct pg_store *s, const PGresult *r, int row, struct ob_message *m,
		    struct ob_err *err);
/* The one copy of a row: from libpq's memory into the batch. */
int pg_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err);

#endif
