/* SPDX-License-Identifier: MIT */
/* A table of text for people, as wide as its cells and no wider than the terminal. */
#ifndef OB_CLI_OUT_GRID_H
#define OB_CLI_OUT_GRID_H

#include "base/buf.h"

#include <stdio.h>

enum { OB_GRID_COLUMNS_MAX = 16, OB_GRID_CELL_MAX = 200 };

enum {
	OB_GRID_RIGHT = 1 << 0,  /* numbers */
	OB_GRID_SHRINK = 1 << 1, /* may be cut when the terminal is narrow; the last first */
	OB_GRID_LAST = 1 << 2,   /* the last column only: left out when no row has it */
};

struct ob_grid_column {
	const char *title;
	unsigned flags;
};

struct ob_grid {
	const struct ob_grid_column *columns;
	size_t column_count;
	size_t width[OB_GRID_COLUMNS_MAX]; /* in characters */
	struct ob_buf cells;               /* row after row, each ends with a NUL */
	size_t cell_count;
	bool last_used; /* some row has a text in the last column */
};

/* `columns` is borrowed. */
void ob_grid_init(struct ob_grid *table, const struct ob_grid_column *columns, size_t count);
/* The next cell: made safe for a terminal and cut at OB_GRID_CELL_MAX; absent is "-". */
void ob_grid_cell(struct ob_grid *table, struct ob_str text);
void ob_grid_int(struct ob_grid *table, int64_t value);
/* Print titles and rows. `width` 0: nothing is cut. */
void ob_grid_print(struct ob_grid *table, size_t width, FILE *out);
void ob_grid_done(struct ob_grid *table);

/* The columns of the terminal on stdout, or of $COLUMNS; 0 when stdout is no terminal. */
size_t ob_terminal_width(void);

#endif
