/* SPDX-License-Identifier: MIT */
/* Every metric in one table: its name, type and help are what /metrics and the manual say. */
#ifndef OB_MONITOR_METRICS_H
#define OB_MONITOR_METRICS_H

#include "monitor/impl.h"

enum ob_metric_type { OB_METRIC_COUNTER, OB_METRIC_GAUGE, OB_METRIC_HISTOGRAM };

/* What is known when metrics are written. */
struct ob_exposition {
	struct ob_monitor *monitor; /* NULL: nothing of a server */
	const struct ob_config *config;
	const struct ob_watch_store *stores; /* sampled */
	size_t store_count;
	const struct ob_monitor_note *notes; /* of the relays of this process */
	size_t note_count;
	struct ob_buf *out;
};

struct ob_metric {
	const char *name, *help;
	enum ob_metric_type type;
	void (*write)(const struct ob_exposition *e, const struct ob_metric *metric);
	size_t offset; /* of a member, where `write` reads one */
};

/* The last has no name. */
extern const struct ob_metric ob_metrics_list[];

/* metrics_consumers.c: likewise, from what consumers told. */
extern const struct ob_metric ob_consumer_metrics_list[];

/* Append a label; the first opens the brace, and whoever writes the value closes it. */
void ob_metric_label(struct ob_buf *out, const char *name, struct ob_str value, bool first);

/* Append all of them. */
void ob_exposition_write(const struct ob_exposition *exposition);

#endif
