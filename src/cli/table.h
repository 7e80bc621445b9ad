/* SPDX-License-Identifier: MIT */
/* A table of text for people, as wide as its cells and no wider than the terminal. */
#ifndef OB_CLI_TABLE_H
#define OB_CLI_TABLE_H

#include "base/buf.h"

#include <stdio.h>

enum { OB_TABLE_COLUMNS_MAX = 16, OB_TABLE_CELL_MAX = 200 };

enum {
	OB_TABLE_RIGHT = 1 << 0,  /* numbers */
	OB_TABLE_SHRINK = 1 << 1, /* may be cut when the terminal is narrow; the last first */
};

struct ob_table_column {
	const char *title;
	unsigned flags;
};

struct ob_table {
	const struct ob_table_column *columns;
	size_t column_count;
	size_t width[OB_TABLE_COLUMNS_MAX]; /* in characters */
	struct ob_buf cells;                /* row after row, each ends with a NUL */
	size_t cell_count;
};

/* `columns` is borrowed. */
void ob_table_init(struct ob_table *table, const struct ob_table_column *columns, size_t count);
/* The next cell: made safe for a terminal and cut at OB_TABLE_CELL_MAX; absent is "-". */
void ob_table_cell(struct ob_table *table, struct ob_str text);
void ob_table_int(struct ob_table *table, int64_t value);
/* Print titles and rows. `width` 0: nothing is cut. */
void ob_table_print(struct ob_table *table, size_t width, FILE *out);
void ob_table_done(struct ob_table *table);

/* The columns of the terminal on stdout, or of $COLUMNS; 0 when stdout is no terminal. */
size_t ob_terminal_width(void);

#endif
