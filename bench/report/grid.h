/* SPDX-License-Identifier: MIT */
/* A table of texts, printed as Markdown whose columns stand straight. */
#ifndef OB_BENCH_GRID_H
#define OB_BENCH_GRID_H

#include <stdio.h>

enum { BENCH_GRID_COLUMNS = 24, BENCH_GRID_ROWS = 64, BENCH_CELL_SIZE = 160 };

struct bench_grid {
	char cells[BENCH_GRID_ROWS][BENCH_GRID_COLUMNS][BENCH_CELL_SIZE];
	size_t rows, columns; /* the first row is the heading */
	unsigned left;        /* bit n: column n is text and stands left */
};

/* A cell; grows the table. */
void bench_grid_put(struct bench_grid *grid, size_t row, size_t column, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void bench_grid_print(FILE *out, const struct bench_grid *grid);

#endif
