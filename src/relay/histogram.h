/* SPDX-License-Identifier: MIT */
/* How long things take, in fixed buckets: cheap to count, and sums of several are exact. */
#ifndef OB_RELAY_HISTOGRAM_H
#define OB_RELAY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { OB_HISTOGRAM_BOUNDS = 18 };

/* Upper bounds: microseconds of a time, messages of a batch. */
extern const int64_t ob_histogram_us[OB_HISTOGRAM_BOUNDS];
extern const int64_t ob_histogram_messages[OB_HISTOGRAM_BOUNDS];

struct ob_histogram {
	uint64_t counts[OB_HISTOGRAM_BOUNDS + 1]; /* the last: above all bounds */
	uint64_t sum;
};

/* Below zero, which clocks that differ can give, counts as zero. */
static inline void ob_histogram_note(struct ob_histogram *h, const int64_t *bounds, int64_t value)
{
	size_t at = 0;

	value = value < 0 ? 0 : value;
	while (at < OB_HISTOGRAM_BOUNDS && value > bounds[at])
		at++;
	h->counts[at]++;
	h->sum += (uint64_t)value;
}

void ob_histogram_add(struct ob_histogram *sum, const struct ob_histogram *part);

#endif
