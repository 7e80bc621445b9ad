/* SPDX-License-Identifier: MIT */
/* outbox on SQLite: link with `pkg-config --libs outbox-sqlite`. */
#ifndef OUTBOX_SQLITE_H
#define OUTBOX_SQLITE_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3;

/* outbox_sqlite_open(); `options_size` is sizeof(struct outbox_options) of the program that calls.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_sqlite_open_sized(struct sqlite3 *db, const void *options,
							 size_t options_size, outbox **ret_ob,
							 struct outbox_error *err);

/*
 * Bind a writer to your own connection. It reads the schema and prepares
 * statements, and changes no setting of the connection. The table must exist with
 * the columns of `options` (`outbox setup` makes it), else OUTBOX_ESCHEMA; a
 * bad name in the options is OUTBOX_ECONFIG. `options` may be NULL and is not
 * kept. On success the caller owns *ret_ob; call outbox_close() before you
 * close the connection.
 *
 * Begin transactions that push with BEGIN IMMEDIATE. A plain BEGIN takes the
 * write lock with its first write, which fails with OUTBOX_EBUSY, whatever the
 * busy timeout, when another connection wrote after this one began to read.
 */
OUTBOX_NODISCARD static inline int outbox_sqlite_open(struct sqlite3 *db,
						      const struct outbox_options *options,
						      outbox **ret_ob, struct outbox_error *err)
{
	return outbox_sqlite_open_sized(db, options, sizeof(struct outbox_options), ret_ob, err);
}

#ifdef __cplusplus
}
#endif
#endif
