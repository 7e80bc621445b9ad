/* SPDX-License-Identifier: MIT */
#include "relay/histogram.h"

const int64_t ob_histogram_us[OB_HISTOGRAM_BOUNDS] = {
	1000,    2500,    5000,    10000,    25000,    50000,    100000,    250000,    500000,
	1000000, 2500000, 5000000, 10000000, 30000000, 60000000, 300000000, 900000000, 3600000000,
};

const int64_t ob_histogram_messages[OB_HISTOGRAM_BOUNDS] = {
	0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10000, 20000, 50000,
};

void ob_histogram_add(struct ob_histogram *sum, const struct ob_histogram *part)
{
	for (size_t i = 0; i <= OB_HISTOGRAM_BOUNDS; i++)
		sum->counts[i] += part->counts[i];
	sum->sum += part->sum;
}
