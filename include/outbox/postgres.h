/* SPDX-License-Identifier: MIT */
/* outbox on PostgreSQL: link with `pkg-config --libs outbox-postgres`. */
#ifndef OUTBOX_POSTGRES_H
#define OUTBOX_POSTGRES_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pg_conn;

/* outbox_postgres_open(); `options_size` is sizeof(struct outbox_options) of the program that
 * calls. */
OUTBOX_API OUTBOX_NODISCARD int outbox_postgres_open_sized(struct pg_conn *conn,
							   const void *options, size_t options_size,
							   outbox **ret_ob,
							   struct outbox_error *err);

/*
 * Bind a writer to your own connection (a PGconn *). It looks for the table and
 * changes no setting of the connection. The table must exist with the columns of `options`
 * (`outbox setup` makes it), else OUTBOX_ESCHEMA; a bad name in the options is
 * OUTBOX_ECONFIG, and so is a client_encoding other than UTF8. `options` may be NULL and is not
 * kept. Without a schema in its name the table is found by search_path, at every push. On
 * success the caller owns *ret_ob; call outbox_close() before you finish the connection.
 *
 * A push is one round trip. It needs the right to INSERT into the table, no other; with SELECT
 * too, the error about a duplicate says which message it was. No command may be under way on
 * the connection, and it must not be in pipeline mode. On a non-blocking connection opening and
 * pushing block until the server has answered; for an event loop see outbox_postgres_statement().
 */
OUTBOX_NODISCARD static inline int outbox_postgres_open(struct pg_conn *conn,
							const struct outbox_options *options,
							outbox **ret_ob, struct outbox_error *err)
{
	return outbox_postgres_open_sized(conn, options, sizeof(struct outbox_options), ret_ob,
					  err);
}

/*
 * A push as one statement, for PQsendQueryParams(conn, sql, param_count, types, values, lengths,
 * formats, 1). It belongs to the handle and is valid until the next call on that.
 */
struct outbox_postgres_statement {
	const char *sql;
	int param_count;
	const unsigned *types; /* Oid */
	const char *const *values;
	const int *lengths, *formats;
};

#define OUTBOX_POSTGRES_STATEMENT_MAX 1000u /* messages of one statement */

/* outbox_postgres_statement(); `message_size` is sizeof(struct outbox_message) of the program. */
OUTBOX_API OUTBOX_NODISCARD int
outbox_postgres_statement_sized(outbox *ob, const void *messages, size_t count, size_t message_size,
				struct outbox_id *ret_ids,
				const struct outbox_postgres_statement **ret_statement,
				struct outbox_error *err);

/*
 * Push from an event loop: check the messages, give them ids, and return the statement that stores
 * them, to be sent by you. For connections in non-blocking or pipeline mode; sends and receives
 * nothing itself. `count` is 1 to OUTBOX_POSTGRES_STATEMENT_MAX, with at most 64 MiB of documents
 * before the last message.
 *
 * What outbox_push() sees to is yours then: send it between your own BEGIN and COMMIT, because
 * outside of a transaction it commits by itself; its result must be PGRES_COMMAND_OK with
 * PQcmdTuples() equal to `count`; and when it fails, the transaction has failed.
 */
OUTBOX_NODISCARD static inline int outbox_postgres_statement(
	outbox *ob, const struct outbox_message *messages, size_t count, struct outbox_id *ret_ids,
	const struct outbox_postgres_statement **ret_statement, struct outbox_error *err)
{
	return outbox_postgres_statement_sized(ob, messages, count, sizeof(struct outbox_message),
					       ret_ids, ret_statement, err);
}

#ifdef __cplusplus
}
#endif
#endif
