/* SPDX-License-Identifier: MIT */
/* Messages in results of the PostgreSQL store. */
#ifndef OB_STORE_POSTGRES_ROWS_H
#define OB_STORE_POSTGRES_ROWS_H

#include "store/postgres/conn.h"

/* The columns of {>message_columns} in their order: member of struct ob_message, how it is read. */
#define PG_MESSAGE_MAP(X) \
	X(seq, INT) \
	X(txid, INT) \
	X(id, UUID) \
	X(aggregate_type, STR) \
	X(aggregate_id, STR) \
	X(event_type, STR) \
	X(key, STR) \
	X(target, STR) \
	X(partition, INT) \
	X(priority, INT) \
	X(created_at_us, TIME) \
	X(available_at_us, TIME) \
	X(occurred_at_us, TIME) \
	X(revision, INT) \
	X(sequence_number, INT) \
	X(correlation_id, STR) \
	X(causation_id, STR) \
	X(payload, STR) \
	X(headers, STR)

/* Those of a list after them. */
#define PG_LIST_MAP(X) \
	X(partition_key, STR) \
	X(snapshot, STR) \
	X(last_error, STR) \
	X(view, INT) \
	X(state, INT) \
	X(attempts, INT) \
	X(due_us, TIME) \
	X(since_us, TIME) \
	X(published_at_us, TIME)

enum pg_col {
#define X(name, how) PG_COL_##name,
	PG_MESSAGE_MAP(X)
#undef X
		PG_COL_COUNT
};

enum pg_list_col {
	PG_LIST_BEFORE = PG_COL_COUNT - 1,
#define X(name, how) PG_LIST_##name,
	PG_LIST_MAP(X)
#undef X
};

/* Everything in *m points into the result; `list`: with the columns of a list. */
int pg_read_message(const struct pg_store *s, const PGresult *r, int row, bool list,
		    struct ob_message *m, struct ob_err *err);
/* The one copy of a row: from libpq's memory into the batch. */
int pg_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err);

#endif
