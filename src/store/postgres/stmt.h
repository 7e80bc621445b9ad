/* SPDX-License-Identifier: MIT */
/*
 * Statements of the PostgreSQL store, their parameters and results.
 *
 * An operation is one transaction. Its statements are queued and sent together with the
 * BEGIN before them, the settings that the session must have, and mostly the COMMIT after
 * them: one round trip. Statements are unnamed and settings end with the transaction, so
 * that a pooler may hand every transaction to another connection; on a connection that is
 * ours alone, what runs all the time finds its plans and settings there. All results are
 * binary. Time is the server's, in the statements themselves.
 */
#ifndef OB_STORE_POSTGRES_STMT_H
#define OB_STORE_POSTGRES_STMT_H

#include "base/pgarray.h"
#include "store/postgres/conn.h"
#include "store/sql/sql.h"

/* Parameters of one statement; borrowed, but for the arrays. */
struct pg_params {
	int count;
	unsigned arrays; /* bits: which are arrays */
	const char *values[PG_PARAMS_MAX];
	int lengths[PG_PARAMS_MAX];
	int formats[PG_PARAMS_MAX];
	char ints[PG_PARAMS_MAX][8];
	struct ob_pgarray array[PG_PARAMS_MAX];
};

void pg_int(struct pg_params *p, int64_t value);
void pg_str(struct pg_params *p, struct ob_str value);
void pg_text(struct pg_params *p, const char *value); /* NULL is NULL */
/* In the text form of its type; NULL is NULL. */
void pg_literal(struct pg_params *p, const char *value);
/* The next parameter is an array: fill it. Whoever adds the statement, which must follow, frees it.
 */
struct ob_pgarray *pg_array(struct pg_params *p, enum ob_pgtype type);
struct ob_pgarray *pg_ints(struct pg_params *p); /* of numbers */

/* Begin a transaction: queue its first statements. Refused while tx_begin's is open. */
int pg_begin(struct pg_store *s, struct ob_err *err);
/* The same for what runs all the time; `relaxed`: a crash of the server may undo it. */
int pg_begin_batch(struct pg_store *s, bool relaxed, struct ob_err *err);
/* The same for statements that must all see the same, and only read. */
int pg_begin_snapshot(struct pg_store *s, struct ob_err *err);
/* Settings of a connection that nobody else uses. */
int pg_pin_session(struct pg_store *s, struct ob_err *err);
/* Queue a statement (enum pg_id, or ob_sql_id where the driver has made its text); its result is
 * s->results[n] of the next flush, n counted from 0. */
int pg_add(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err);
/* The same with SQL that was put together from templates. */
int pg_add_sql(struct pg_store *s, const char *sql, const char *doing, struct pg_params *p,
	       struct ob_err *err);
/* Send and wait for the results. A failure rolls back and drops them all. */
int pg_flush(struct pg_store *s, struct ob_err *err);
/* Queue one and flush. */
int pg_ask(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err);
/* Begin, run one statement, commit; its result is s->results[0]. */
int pg_run_one(struct pg_store *s, int id, struct pg_params *p, struct ob_err *err);
/* Flush with a COMMIT after it. */
int pg_commit(struct pg_store *s, struct ob_err *err);
/* r < 0: roll back, keep *err and return r; else commit and return r. */
int pg_finish(struct pg_store *s, int r, struct ob_err *err);
void pg_rollback(struct pg_store *s);
void pg_clear(struct pg_store *s);
/* Run statements without parameters that stand in one text; inside a transaction. */
int pg_script(struct pg_store *s, const char *sql, const char *doing, struct ob_err *err);
int pg_expand(const struct ob_layout *layout, const char *tmpl, int64_t partition_count,
	      struct ob_buf *out, struct ob_err *err);

/* The template of a statement of all databases. */
const char *pg_template(enum ob_sql_id id);

/* Cells of a result. NULL is 0. */
int64_t pg_get_int(const PGresult *r, int row, int column);
struct ob_str pg_get_str(const PGresult *r, int row, int column);
int64_t pg_get_time(const PGresult *r, int row, int column); /* us since 1970 */
bool pg_get_uuid(const PGresult *r, int row, int column, struct ob_uuid *ret);
/* Rows that the statement changed. */
uint64_t pg_changed(PGresult *r);

#endif
