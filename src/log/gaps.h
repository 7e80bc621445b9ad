/* SPDX-License-Identifier: MIT */
/*
 * Gaps: numbers that were not there when a reader passed them, as ranges, ascending. In text
 * "7,12-15,40". A gap is a transaction that had not committed, or one that rolled back.
 */
#ifndef OB_LOG_GAPS_H
#define OB_LOG_GAPS_H

#include "log/progress.h"

enum { OB_GAPS_MAX = 100000 }; /* ranges; more is an error that says what to do */

struct ob_gap {
	int64_t low, high; /* both belong to it */
};

struct ob_gaps {
	struct ob_gap *ranges;
	size_t count, capacity;
};

void ob_gaps_done(struct ob_gaps *gaps);
/* Replaces *gaps. False: not a gap list, or out of memory. */
bool ob_gaps_parse(struct ob_gaps *gaps, struct ob_str text);
void ob_gaps_format(const struct ob_gaps *gaps, struct ob_buf *out);
/* Add low..high, which lies above everything that is in it. False: out of memory or full. */
bool ob_gaps_add(struct ob_gaps *gaps, int64_t low, int64_t high);
/* The number is there now, or proven dead: take it out. False: out of memory. */
bool ob_gaps_remove(struct ob_gaps *gaps, int64_t low, int64_t high);
bool ob_gaps_has(const struct ob_gaps *gaps, int64_t seq);
/* All numbers of `other` too. */
bool ob_gaps_merge(struct ob_gaps *gaps, const struct ob_gaps *other);

#endif
