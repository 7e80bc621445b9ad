/* SPDX-License-Identifier: MIT */
/* Text in the columns of a terminal: how wide it is, and how it is cut to fit. */
#ifndef OB_CLI_OUT_COLUMNS_H
#define OB_CLI_OUT_COLUMNS_H

#include "base/buf.h"

/* Columns of a code point: 0 (marks, joiners, direction marks), 1, or 2 (wide). */
size_t ob_columns_of(uint32_t code);
/*
 * Append `s` in at most `max` columns and return how many it takes. Made safe first:
 * control characters become spaces, invalid bytes U+FFFD, what has no column of its own is left
 * out. What does not fit is cut, with an ellipsis as the last character. `ascii`: every other
 * character becomes '?', the ellipsis '~'.
 */
size_t ob_columns_fit(struct ob_buf *out, struct ob_str s, size_t max, bool ascii);

#endif
