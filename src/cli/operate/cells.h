/* SPDX-License-Identifier: MIT */
/* Counts in the cells of a table. */
#ifndef OB_CLI_OPERATE_CELLS_H
#define OB_CLI_OPERATE_CELLS_H

#include "cli/out/grid.h"

/* "1,234"; below zero is "0". */
void ob_cell_count(struct ob_grid *grid, int64_t count);
/* A count of a snapshot: "1,234" or "10,000+". */
void ob_cell_capped(struct ob_grid *grid, uint64_t count);

#endif
