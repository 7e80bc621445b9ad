/* SPDX-License-Identifier: MIT */
/*
 * The inbox: count each message once. Messages are delivered at least once; a consumer asks here,
 * in the transaction in which it does its work, whether a message is new. On your own connection,
 * with the handle of outbox_sqlite_open(), outbox_postgres_open() or outbox_mysql_open(). The
 * tables are made by `outbox setup --inbox`.
 */
#ifndef OUTBOX_INBOX_H
#define OUTBOX_INBOX_H

#include <outbox/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOX_CONSUMER_MAX 200 /* characters of a consumer's name */

/*
 * Is the message `id` new to `consumer`? *ret_is_new is 1: handle it now, in this transaction; if
 * it commits, the message counts as handled, if it rolls back, it is new again. 0: it was handled
 * before, pass it over (and acknowledge it).
 *
 * Refused (OUTBOX_ENOTRANSACTION) when no transaction is open. Never commits.
 *
 * When another transaction is handling the same id, the call waits for its end and then answers: of
 * any number of concurrent deliveries exactly one is new. Where the database does not wait that
 * long (SQLite's busy timeout, MySQL's innodb_lock_wait_timeout, PostgreSQL in REPEATABLE READ or
 * above) it is OUTBOX_EBUSY: roll back and come back later; nothing was decided.
 *
 * `id` is the message's id as it came: a UUID in any form is taken for the same UUID. Rows are kept
 * for the `inbox` time of the store's retention, 7 days unless you say otherwise: a copy that comes
 * later counts as new. When the call fails, roll the transaction back. *ret_is_new is written only
 * on success.
 */
OUTBOX_API OUTBOX_NODISCARD int outbox_inbox(outbox *ob, const char *consumer, const char *id,
					     int *ret_is_new, struct outbox_error *err);

#ifdef __cplusplus
}
#endif
#endif
