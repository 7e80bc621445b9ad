/* SPDX-License-Identifier: MIT */
/*
 * A log that is a table partitioned by number: which partitions it should have. Each holds the
 * numbers from `low` up to, but without, `high`; one more takes every number that fits into none of
 * them, so that an insert is never refused.
 */
#ifndef OB_STORE_PARTS_H
#define OB_STORE_PARTS_H

#include "base/buf.h"
#include "base/err.h"

enum { OB_PARTS_FIRST = 4 }; /* of a new log: the one that is filled, and three ahead of it */

struct ob_part {
	int64_t low, high;
	bool rest; /* the one for all other numbers; it has no bounds */
};

/*
 * What is to be made: the first one, and where the last one ends; equal: nothing. At least two
 * beyond that of the number `last` are kept. `top` is where the highest ends that is there, `rows`
 * what each holds. With `apart` they begin well above `last` when that number is beyond `top`:
 * whoever draws a number at this moment still finds it in no partition.
 */
struct ob_part ob_parts_ahead(int64_t rows, int64_t last, int64_t top, bool apart);

/* Can it be named in SQL? [A-Za-z_][A-Za-z0-9_$]*, at most 64 characters. */
bool ob_part_name_valid(struct ob_str name);
/* A bound as the database writes it: a number of 64 bits, "MAXVALUE" (INT64_MAX). */
bool ob_part_bound(struct ob_str text, int64_t *ret_bound);

/* The table is partitioned, and not as `outbox setup --partitioned` does it: `why`. */
int ob_parts_foreign(const char *table, const char *why, struct ob_err *err);

#endif
