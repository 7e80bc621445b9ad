/* SPDX-License-Identifier: MIT */
/* The pen keeps its column, so that no line passes the edge. */
#include "cli/out/pen.h"

#include "cli/out/columns.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { GAP = 3 };

static const char *const inks[] = {
	[OB_INK_PLAIN] = "",        [OB_INK_BOLD] = "\033[1m",  [OB_INK_DIM] = "\033[2m",
	[OB_INK_GOOD] = "\033[32m", [OB_INK_WARN] = "\033[33m", [OB_INK_BAD] = "\033[1;31m",
};

size_t ob_pen_room(const struct ob_pen *pen)
{
	return pen->width > pen->column ? pen->width - pen->column : 0;
}

void ob_pen_fit(struct ob_pen *pen, enum ob_ink ink, struct ob_str text, size_t columns)
{
	bool inked = pen->colour && ink != OB_INK_PLAIN;
	size_t room = ob_pen_room(pen);

	if (columns > room)
		columns = room;
	if (columns == 0 || text.n == 0)
		return;
	if (inked)
		ob_buf_adds(pen->out, inks[ink]);
	pen->column += ob_columns_fit(pen->out, text, columns, pen->ascii);
	if (inked)
		ob_buf_adds(pen->out, "\033[0m");
}

void ob_pen_text(struct ob_pen *pen, enum ob_ink ink, struct ob_str text)
{
	ob_pen_fit(pen, ink, text, pen->width);
}

void ob_pen_printf(struct ob_pen *pen, enum ob_ink ink, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ob_pen_text(pen, ink, ob_str(text));
}

void ob_pen_to(struct ob_pen *pen, size_t column)
{
	while (pen->column < column && pen->column < pen->width) {
		ob_buf_addc(pen->out, ' ');
		pen->column++;
	}
}

void ob_pen_end(struct ob_pen *pen)
{
	ob_buf_addc(pen->out, '\n');
	pen->column = 0;
	pen->lines++;
}

void ob_pen_field(struct ob_pen *pen, size_t indent, const char *label, enum ob_ink ink,
		  const char *value)
{
	size_t need = strlen(label) + (*label && *value) + strlen(value);

	if (pen->column > indent && pen->column + GAP + need > pen->width) {
		ob_pen_end(pen);
		ob_pen_to(pen, indent);
	} else if (pen->column > indent) {
		ob_pen_to(pen, pen->column + GAP);
	}
	ob_pen_text(pen, OB_INK_DIM, ob_str(label));
	if (*label && *value)
		ob_pen_text(pen, OB_INK_PLAIN, OB_STR(" "));
	ob_pen_text(pen, ink, ob_str(value));
}

void ob_pen_rule(struct ob_pen *pen)
{
	if (pen->colour)
		ob_buf_adds(pen->out, inks[OB_INK_DIM]);
	while (ob_pen_room(pen)) {
		ob_buf_adds(pen->out, pen->ascii ? "-" : "\xE2\x94\x80");
		pen->column++;
	}
	if (pen->colour)
		ob_buf_adds(pen->out, "\033[0m");
	ob_pen_end(pen);
}

void ob_pen_spark(struct ob_pen *pen, const double *values, size_t count, size_t columns)
{
	static const char *const bars[] = { "\xE2\x96\x81", "\xE2\x96\x82", "\xE2\x96\x83",
					    "\xE2\x96\x84", "\xE2\x96\x85", "\xE2\x96\x86",
					    "\xE2\x96\x87", "\xE2\x96\x88" };
	static const char ascii_bars[] = "_.,-=+*#";
	double most = 0;

	if (columns > ob_pen_room(pen))
		columns = ob_pen_room(pen);
	size_t first = count > columns ? count - columns : 0;
	for (size_t i = first; i < count; i++)
		most = values[i] > most ? values[i] : most;
	if (pen->colour && count > first)
		ob_buf_adds(pen->out, inks[OB_INK_GOOD]);
	for (size_t i = first; i < count; i++) {
		size_t bar = most > 0 ? (size_t)(values[i] / most * 7.0 + 0.5) : 0;

		if (pen->ascii)
			ob_buf_addc(pen->out, ascii_bars[bar]);
		else
			ob_buf_adds(pen->out, bars[bar]);
		pen->column++;
	}
	if (pen->colour && count > first)
		ob_buf_adds(pen->out, "\033[0m");
}

void ob_format_count(uint64_t n, char out[OB_COUNT_SIZE])
{
	char digits[24];
	int count = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	size_t at = 0;

	for (int i = 0; i < count; i++) {
		if (i > 0 && (count - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
}

void ob_format_rate(double per_second, char out[OB_COUNT_SIZE])
{
	char count[OB_COUNT_SIZE];

	if (per_second < 0.05) {
		(void)snprintf(out, OB_COUNT_SIZE, "0/s");
	} else if (per_second < 99.95) {
		(void)snprintf(out, OB_COUNT_SIZE, "%.1f/s", per_second);
	} else {
		ob_format_count((uint64_t)(per_second + 0.5), count);
		(void)snprintf(out, OB_COUNT_SIZE, "%.28s/s", count);
	}
}
