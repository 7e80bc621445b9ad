/* SPDX-License-Identifier: MIT */
/*
 * Which message made a unique index refuse, and of what it is a duplicate: found by
 * looking rows up, never by reading the text of an error.
 */
#ifndef OB_LIB_DUPLICATE_H
#define OB_LIB_DUPLICATE_H

#include "lib/driver.h"

/* What the database is asked, inside the caller's own transaction. */
struct ob_duplicate_lookup {
	void *arg;
	bool (*id_stored)(void *arg, const struct ob_push_row *row);
	/* NULL: the table has no sequence numbers. */
	bool (*sequence_stored)(void *arg, const struct ob_push_row *row);
};

/*
 * The rows of the statement that was refused, `first` being the index of rows[0] in the
 * caller's messages: OUTBOX_EDUPID or OUTBOX_EDUPSEQUENCE for the first that is stored
 * already or stands twice among them. 0: none, so it is an index of the user's.
 */
int ob_duplicate_find(const struct ob_duplicate_lookup *lookup, const struct ob_push_row *rows,
		      size_t count, size_t first, struct outbox_error *err);

/* The target that a row is stored with. */
const char *ob_push_target(const struct ob_push_row *row);

#endif
