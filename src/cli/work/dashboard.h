/* SPDX-License-Identifier: MIT */
/*
 * The dashboard of `outbox work` as text: a pure function of what is to be shown
 * and of the size of the screen. Nothing that is shown can move the cursor.
 */
#ifndef OB_CLI_WORK_DASHBOARD_H
#define OB_CLI_WORK_DASHBOARD_H

#include "cli/out/rate.h"
#include "relay/metrics.h"
#include "store/store.h"

/* CAP: counting what waits stops there, so that asking costs the same whatever waits. */
enum { OB_DASH_WORKERS = 16, OB_DASH_HOST = 64, OB_DASH_CAP = 10001 };

/* Who has a partition. */
enum ob_dash_owner { OB_DASH_FREE, OB_DASH_MINE, OB_DASH_OTHER };

struct ob_dash_worker {
	struct ob_uuid id;
	char host[OB_DASH_HOST];
	int32_t pid;
	bool mine;       /* of this process */
	int64_t beat_us; /* until its heartbeat runs out */
	uint64_t published, failed;
	uint32_t partitions;
	bool told; /* what it tells with its heartbeat is known: */
	struct ob_worker_report report;
};

/* What the store said of a relay's reader. */
struct ob_sample {
	bool valid;       /* false: it has not answered yet, or not for long */
	int64_t taken_us; /* boot clock */
	uint64_t backlog; /* pending, failed and parked messages */
	bool capped;      /* there are more than that */
	uint64_t delayed, dead, held_keys;
	int64_t oldest_us;                 /* age of the oldest of the backlog; 0: none */
	uint8_t owners[OB_PARTITIONS_MAX]; /* enum ob_dash_owner */
	uint32_t partition_count;
	struct ob_dash_worker workers[OB_DASH_WORKERS];
	size_t worker_count; /* may be more than there is room for */
};

struct ob_dash_relay {
	const char *name, *store, *sink; /* borrowed; any bytes */
	struct ob_rate rate;
	struct ob_metrics_data data; /* of relays elsewhere: ob_dash_gather() */
	struct ob_sample sample;
};

struct ob_dash {
	const char *title; /* "outbox work" */
	bool elsewhere;    /* the relays are not in this process */
	const struct ob_dash_relay *relays;
	size_t relay_count;
	int64_t now_us; /* wall clock */
	int64_t up_us;
	const char *state;  /* "", "draining" ... */
	const char *sorted; /* what the relays are sorted by; "": as configured */
	size_t first;       /* the first relay that is shown where not all of them fit */
	bool help;          /* the keys instead of the relays */
};

struct ob_dash_style {
	size_t width, height;
	bool colour;
	bool ascii; /* the terminal does not speak UTF-8 */
};

/*
 * Append at most `height` lines of at most `width` columns, separated by "\n", in as much
 * detail as fits. Escape sequences are SGR alone, and only with colour.
 */
void ob_dash_draw(const struct ob_dash *dash, const struct ob_dash_style *style,
		  struct ob_buf *out);

#endif
