/* SPDX-License-Identifier: MIT */
/* Writing lines of a known width: text in colours, cut at the right edge, and the small pictures.
 */
#ifndef OB_CLI_OUT_PEN_H
#define OB_CLI_OUT_PEN_H

#include "base/buf.h"

enum ob_ink { OB_INK_PLAIN, OB_INK_BOLD, OB_INK_DIM, OB_INK_GOOD, OB_INK_WARN, OB_INK_BAD };

struct ob_pen {
	struct ob_buf *out;
	size_t width, column;
	size_t lines; /* that were ended */
	bool colour, ascii;
};

/* Text at the cursor; what passes the edge is cut. Any bytes. */
void ob_pen_text(struct ob_pen *pen, enum ob_ink ink, struct ob_str text);
/* The same in at most `columns`. */
void ob_pen_fit(struct ob_pen *pen, enum ob_ink ink, struct ob_str text, size_t columns);
void ob_pen_printf(struct ob_pen *pen, enum ob_ink ink, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Spaces up to that column. */
void ob_pen_to(struct ob_pen *pen, size_t column);
void ob_pen_end(struct ob_pen *pen);
size_t ob_pen_room(const struct ob_pen *pen);

/*
 * "label value" as one piece, three spaces behind what is before it. When it does not fit it goes
 * to a new line that begins at `indent`.
 */
void ob_pen_field(struct ob_pen *pen, size_t indent, const char *label, enum ob_ink ink,
		  const char *value);
/* A line across. */
void ob_pen_rule(struct ob_pen *pen);
/* Bars of the last values that fit in `columns`, scaled to the highest. */
void ob_pen_spark(struct ob_pen *pen, const double *values, size_t count, size_t columns);

enum { OB_COUNT_SIZE = 32 };
/* "1,234,567" */
void ob_format_count(uint64_t n, char out[OB_COUNT_SIZE]);
/* "0/s", "12.3/s", "1,234/s" */
void ob_format_rate(double per_second, char out[OB_COUNT_SIZE]);

#endif
