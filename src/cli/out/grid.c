/* SPDX-License-Identifier: MIT */
/* Collects the cells, measures them in characters, then prints. */
#include "cli/out/grid.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CELLS_MAX = 64 << 20, COLUMN_MIN = 8, GAP = 2 };

void ob_grid_init(struct ob_grid *table, const struct ob_grid_column *columns, size_t count)
{
	*table = (struct ob_grid){ .columns = columns,
				   .column_count = count,
				   .cells = OB_BUF_INIT(CELLS_MAX) };
	for (size_t i = 0; i < count; i++)
		table->width[i] = strlen(columns[i].title);
}

void ob_grid_cell(struct ob_grid *table, struct ob_str text)
{
	assert(table->column_count);
	size_t start = table->cells.len;
	size_t *width = &table->width[table->cell_count % table->column_count];

	if (text.p && table->cell_count % table->column_count == table->column_count - 1)
		table->last_used = true;
	ob_utf8_sanitize(&table->cells, text.p ? text : OB_STR("-"), OB_GRID_CELL_MAX);
	if (table->cells.failed)
		return;
	size_t chars = ob_utf8_count(
		(struct ob_str){ table->cells.data + start, table->cells.len - start });
	*width = chars > *width ? chars : *width;
	ob_buf_addc(&table->cells, '\0');
	table->cell_count++;
}

void ob_grid_int(struct ob_grid *table, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	ob_grid_cell(table, ob_str(text));
}

/* Take what is too much from the columns that may shrink, the last first. */
static void fit(struct ob_grid *table, size_t columns, size_t width)
{
	size_t total = 0;

	for (size_t i = 0; i < columns; i++)
		total += table->width[i] + (i ? GAP : 0);
	for (size_t i = columns; i-- > 0 && total > width;) {
		size_t spare = table->width[i] > COLUMN_MIN ? table->width[i] - COLUMN_MIN : 0;
		size_t cut = total - width < spare ? total - width : spare;

		if (!(table->columns[i].flags & OB_GRID_SHRINK))
			continue;
		table->width[i] -= cut;
		total -= cut;
	}
}

static void pad(size_t count, FILE *out)
{
	(void)fprintf(out, "%*s", (int)count, "");
}

static void print_cell(const struct ob_grid *table, size_t column, bool last, const char *text,
		       FILE *out)
{
	size_t width = table->width[column];
	size_t chars = ob_utf8_count(ob_str(text));
	struct ob_buf cut = OB_BUF_INIT((size_t)OB_GRID_CELL_MAX * 4);

	if (column)
		pad(GAP, out);
	if (chars > width) {
		ob_utf8_sanitize(&cut, ob_str(text), width - 3);
		ob_buf_adds(&cut, "...");
		text = ob_buf_str(&cut);
		chars = width;
	}
	if (table->columns[column].flags & OB_GRID_RIGHT)
		pad(width - chars, out);
	(void)fputs(text, out);
	if (!last && !(table->columns[column].flags & OB_GRID_RIGHT))
		pad(width - chars, out);
	if (last)
		(void)fputc('\n', out);
	ob_buf_done(&cut);
}

void ob_grid_print(struct ob_grid *table, size_t width, FILE *out)
{
	const size_t columns = table->column_count;
	const char *cell = ob_buf_str(&table->cells);
	size_t shown = columns;

	assert(columns > 0);
	if ((table->columns[columns - 1].flags & OB_GRID_LAST) && !table->last_used)
		shown--;
	if (width)
		fit(table, shown, width);
	for (size_t i = 0; i < shown; i++)
		print_cell(table, i, i + 1 == shown, table->columns[i].title, out);
	for (size_t i = 0; i < table->cell_count; i++) {
		size_t column = i % columns;

		if (column < shown)
			print_cell(table, column, column + 1 == shown, cell, out);
		cell += strlen(cell) + 1;
	}
}

void ob_grid_done(struct ob_grid *table)
{
	ob_buf_done(&table->cells);
}

size_t ob_terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && *columns) {
		unsigned long n = strtoul(columns, NULL, 10);
		if (n >= 20 && n <= 10000)
			return n;
	}
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 0;
}
