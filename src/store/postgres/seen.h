/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of several partitions in the parameters of one statement: an array of those that are
 * distinct. After a read all partitions of a worker share one; after a takeover each has its own.
 */
#ifndef OB_STORE_POSTGRES_SEEN_H
#define OB_STORE_POSTGRES_SEEN_H

#include "log/progress.h"

struct pg_seen {
	struct ob_buf text; /* the array in text, after pg_seen_end() */
	const struct ob_seen **list;
	size_t count;
};

/* For at most `most` of them; false: out of memory. */
bool pg_seen_begin(struct pg_seen *to, size_t most);
/* Its place in the array, from 1 on; 0: NULL, there is none. */
int64_t pg_seen_place(struct pg_seen *to, const struct ob_seen *seen);
/* The array; NULL: out of memory. */
const char *pg_seen_end(struct pg_seen *to);
void pg_seen_done(struct pg_seen *seen);

#endif
