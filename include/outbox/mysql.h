/* SPDX-License-Identifier: MIT */
/* outbox on MySQL and MariaDB: link with `pkg-config --libs outbox-mysql`. */
#ifndef OUTBOX_MYSQL_H
#define OUTBOX_MYSQL_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_mysql; /* MYSQL of libmariadb; a handle of libmysqlclient is another type */

/* outbox_mysql_open(); `options_size` is sizeof(struct outbox_options) of the program that calls.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_mysql_open_sized(struct st_mysql *db, const void *options,
							size_t options_size, outbox **ret_ob,
							struct outbox_error *err);

/*
 * Bind a writer to your own connection. It reads the schema and prepares
 * statements, and changes nothing of the session: any character set, sql_mode,
 * time zone and isolation level will do. The table must exist with the columns of
 * `options` (`outbox setup` makes it), else OUTBOX_ESCHEMA; a bad name in the
 * options is OUTBOX_ECONFIG. `options` may be NULL and is not kept. On success
 * the caller owns *ret_ob; call outbox_close() before you close the connection.
 *
 * A push needs an open transaction: START TRANSACTION, or autocommit switched
 * off. A deadlock (OUTBOX_EBUSY, native "1213") makes the server roll the whole
 * transaction back: run it again.
 */
OUTBOX_NODISCARD static inline int outbox_mysql_open(struct st_mysql *db,
						     const struct outbox_options *options,
						     outbox **ret_ob, struct outbox_error *err)
{
	return outbox_mysql_open_sized(db, options, sizeof(struct outbox_options), ret_ob, err);
}

#ifdef __cplusplus
}
#endif
#endif
