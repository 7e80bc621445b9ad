/* SPDX-License-Identifier: MIT */
/*
 * The server's counter of numbers. It goes back with TRUNCATE, and when a server comes up without
 * the last transactions of the one before. Then numbers that a reader passed are used again.
 */
#ifndef OB_STORE_MYSQL_COUNTER_H
#define OB_STORE_MYSQL_COUNTER_H

#include "log/gaps.h"
#include "store/mysql/conn.h"

/* After a read that found nothing: if the counter is at or below a position, the numbers that may
 * come again, into `reused`, which is empty. Asks once a second at most. */
int my_counter_check(struct my_store *s, const struct ob_read *read, struct ob_gaps *reused,
		     struct ob_err *err);

/*
 * Before the first read of a connection that was made anew: is the last row that was read still
 * there? If not, the server has lost it, and its number may be in use again, as may all that was
 * read and is not recorded.
 */
int my_counter_reconnected(struct my_store *s, const struct ob_read *read, struct ob_gaps *reused,
			   struct ob_err *err);

#endif
