/* SPDX-License-Identifier: MIT */
/* Messages a second, from counters that workers write with their heartbeats. */
#ifndef OB_MONITOR_RATES_H
#define OB_MONITOR_RATES_H

#include "store/store.h"

enum { OB_RATES_RING = 16 };

struct ob_rate_worker {
	struct ob_uuid id;
	uint64_t published;
};

struct ob_rate_reader {
	char name[65];
	uint64_t total; /* what was published since we look */
	struct {
		int64_t at_us;
		uint64_t total;
	} ring[OB_RATES_RING];
	size_t count;
};

/* All zero: nothing is known. */
struct ob_rates {
	struct ob_rate_worker *workers;
	size_t worker_count;
	struct ob_rate_reader *readers;
	size_t reader_count;
};

void ob_rates_done(struct ob_rates *rates);
/* What the workers say now; `now_us` is the boot clock. */
void ob_rates_note(struct ob_rates *rates, const struct ob_worker *workers, size_t count,
		   int64_t now_us);
/* Of a reader, over the last quarter of a minute; below 0: not known yet. */
double ob_rates_read(const struct ob_rates *rates, struct ob_str name);

#endif
