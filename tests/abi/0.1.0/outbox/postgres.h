/* SPDX-License-Identifier: MIT */
/* outbox on PostgreSQL: link with `pkg-config --libs outbox-postgres`. */
#ifndef OUTBOX_POSTGRES_H
#define OUTBOX_POSTGRES_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pg_conn;

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
 * the connection, and it must not be in pipeline mode.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_postgres_open(struct pg_conn *conn,
						     const struct outbox_options *options,
						     outbox **ret_ob, struct outbox_error *err);

#ifdef __cplusplus
}
#endif
#endif
