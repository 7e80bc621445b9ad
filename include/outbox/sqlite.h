/* SPDX-License-Identifier: MIT */
/* outbox on SQLite: link with `pkg-config --libs outbox-sqlite`. */
#ifndef OUTBOX_SQLITE_H
#define OUTBOX_SQLITE_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3;

/*
 * Bind a writer to your own connection. It only prepares statements: the
 * tables must exist (`outbox setup`), else OUTBOX_ESCHEMA. Call outbox_close()
 * before you close the connection. `options` may be NULL and is not kept.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_sqlite_open(struct sqlite3 *db,
						   const struct outbox_options *options,
						   outbox **ret_ob, struct outbox_error *err);

#ifdef __cplusplus
}
#endif
#endif
