/* SPDX-License-Identifier: MIT */
/* Gap lists as SQL, and finding the numbers that are missing from the log. */
#ifndef OB_STORE_MYSQL_GAPS_H
#define OB_STORE_MYSQL_GAPS_H

#include "store/mysql/sql.h"

/* Ranges in one statement: with more, the servers stop to plan them as ranges. */
enum { MY_GAPS_PIECE = 500 };

int my_gaps_full(struct my_store *s, struct ob_err *err);
/* "m.`seq` IN (...) OR m.`seq` BETWEEN ..." of the ranges first .. first + MY_GAPS_PIECE. */
void my_gaps_where(const struct my_store *s, const struct ob_gaps *gaps, size_t first,
		   struct ob_buf *out);
/* " OR ..." of all of them, for conditions of `column`; nothing when there is none. */
void my_gaps_or(const char *column, const struct ob_gaps *gaps, struct ob_buf *out);

/* Numbers in ascending order, of which those that are missing become gaps. */
struct my_walk {
	struct ob_gaps *gaps; /* all above what it holds */
	int64_t at;           /* the last number that was accounted for */
};

/* The number is there. False: too many gaps. */
bool my_walk_step(struct my_walk *walk, int64_t seq);
/* So is the end of the range, or it is missing too. */
bool my_walk_end(struct my_walk *walk, int64_t last);

/* All numbers of the log up to `last` that are missing. Reads the whole log. */
int my_gaps_scan(struct my_store *s, int64_t last, struct ob_gaps *gaps, struct ob_err *err);

#endif
