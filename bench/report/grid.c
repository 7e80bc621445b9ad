/* SPDX-License-Identifier: MIT */
/* Widths are counted in characters, of which none here is wide. */
#include "bench/report/grid.h"

#include "bench/fatal.h"

#include <stdarg.h>
#include <string.h>

void bench_grid_put(struct bench_grid *grid, size_t row, size_t column, const char *fmt, ...)
{
	va_list args;

	if (row >= BENCH_GRID_ROWS || column >= BENCH_GRID_COLUMNS)
		bench_fatal("a table is too large");
	va_start(args, fmt);
	(void)vsnprintf(grid->cells[row][column], BENCH_CELL_SIZE, fmt, args);
	va_end(args);
	grid->rows = row >= grid->rows ? row + 1 : grid->rows;
	grid->columns = column >= grid->columns ? column + 1 : grid->columns;
}

static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_padded(FILE *out, const char *text, size_t width, int left)
{
	size_t pad = width - width_of(text);

	(void)fprintf(out, " %*s%s%*s |", left ? 0 : (int)pad, "", text, left ? (int)pad : 0, "");
}

static void print_rule(FILE *out, const size_t *widths, const struct bench_grid *grid)
{
	(void)fputc('|', out);
	for (size_t c = 0; c < grid->columns; c++) {
		for (size_t i = 0; i < widths[c] + 1; i++)
			(void)fputc('-', out);
		(void)fputs(grid->left >> c & 1 ? "-|" : ":|", out);
	}
	(void)fputc('\n', out);
}

void bench_grid_print(FILE *out, const struct bench_grid *grid)
{
	size_t widths[BENCH_GRID_COLUMNS] = { 0 };

	for (size_t r = 0; r < grid->rows; r++) {
		for (size_t c = 0; c < grid->columns; c++) {
			size_t width = width_of(grid->cells[r][c]);

			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
	for (size_t r = 0; r < grid->rows; r++) {
		(void)fputc('|', out);
		for (size_t c = 0; c < grid->columns; c++)
			print_padded(out, grid->cells[r][c], widths[c], grid->left >> c & 1);
		(void)fputc('\n', out);
		if (r == 0)
			print_rule(out, widths, grid);
	}
}
