/* SPDX-License-Identifier: MIT */
/* Lookups in the arguments of a read. */
#include "store/share.h"

bool ob_read_excludes(const struct ob_read *read, int64_t seq)
{
	size_t low = 0, high = read->exclude_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (read->exclude[middle] == seq)
			return true;
		if (read->exclude[middle] < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

int ob_read_find(const struct ob_read *read, uint32_t partition)
{
	for (size_t i = 0; i < read->part_count; i++) {
		if (read->parts[i].partition == partition)
			return (int)i;
	}
	return -1;
}
