/* SPDX-License-Identifier: MIT */
#include "cli/operate/cells.h"

#include "cli/out/pen.h"
#include "operate/snapshot.h"

void ob_cell_count(struct ob_grid *grid, int64_t count)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(count > 0 ? (uint64_t)count : 0, text);
	ob_grid_cell(grid, ob_str(text));
}

void ob_cell_capped(struct ob_grid *grid, uint64_t count)
{
	if (count >= OB_SNAPSHOT_CAP)
		ob_grid_cell(grid, OB_STR("10,000+"));
	else
		ob_cell_count(grid, (int64_t)count);
}
