/* SPDX-License-Identifier: MIT */
/*
 * The web monitor: pages, a JSON API, metrics and health over HTTP. It has threads and database
 * connections of its own; relays in the same process never wait for it.
 */
#ifndef OB_MONITOR_MONITOR_H
#define OB_MONITOR_MONITOR_H

#include "config/config.h"
#include "relay/metrics.h"

struct ob_monitor;

enum { OB_MONITOR_KEY = 32 };

struct ob_monitor_conf {
	const struct ob_config *config;      /* borrowed; outlives the monitor */
	const struct ob_config_store *store; /* one of its stores; NULL: all */
	const char *listen;                  /* NULL: as configured */
	const struct ob_log *log;
	const unsigned char *key; /* OB_MONITOR_KEY bytes that sign sessions; NULL: made now */
	bool relays; /* this process has a main loop: ob_monitor_note() will say how it is */
	const char *consumer; /* the consumer that this process runs; NULL: none */
};

/* A new key for sessions. */
void ob_monitor_make_key(unsigned char key[OB_MONITOR_KEY]);
/* Listen and start. OUTBOX_ECONFIG or OUTBOX_ESTORE say why not, in one line. */
int ob_monitor_new(const struct ob_monitor_conf *conf, struct ob_monitor **ret_monitor,
		   struct ob_err *err);
/* Ends every stream and waits for requests that run; NULL is allowed. */
void ob_monitor_free(struct ob_monitor *monitor);
/* "http://127.0.0.1:8025/"; borrowed. */
const char *ob_monitor_address(const struct ob_monitor *monitor);

/* What this process knows of one of its relays. */
struct ob_monitor_relay {
	const struct ob_config_relay *conf; /* borrowed during the call only */
	struct ob_metrics_data data;
	int64_t stalled_us; /* since its slowest worker stepped */
	bool running;       /* false: its store is away */
};

/* How all relays of this process are now; each second from the main loop. `stopping`: it drains. */
void ob_monitor_note(struct ob_monitor *monitor, const struct ob_monitor_relay *relays,
		     size_t count, bool stopping);

/* The metrics of these stores as text, without HTTP: asks each store once. */
int ob_monitor_print_metrics(const struct ob_monitor_conf *conf, struct ob_buf *out,
			     struct ob_err *err);

#endif
