/* SPDX-License-Identifier: MIT */
/* The monitor's own parts; inside src/monitor only. */
#ifndef OB_MONITOR_IMPL_H
#define OB_MONITOR_IMPL_H

#include "base/listen.h"
#include "monitor/auth.h"
#include "monitor/monitor.h"
#include "monitor/pool.h"
#include "monitor/throttle.h"
#include "monitor/watch.h"

#include <pthread.h>

struct MHD_Daemon;
struct ob_jobs;

enum {
	OB_STATUS_CODES = 600,
	OB_SSE_MAX = 64, /* browsers that listen at once */
	OB_STALLED_US = 30000000,
};

/* A connection, so that slow ones can be cut off. */
struct ob_peer {
	struct ob_peer *next, *before;
	int fd;
	int64_t since_us; /* boot clock: of its start, or of the end of its last request */
	bool busy;        /* in a request */
	bool stream;      /* that may last */
};

struct ob_monitor_note {
	struct ob_metrics_data data;
	int64_t stalled_us;
	bool running;
	char name[65], store[65], sink[65];
};

struct ob_monitor {
	const struct ob_config *config;
	const struct ob_config_monitor *conf;
	const struct ob_log *log;
	const char *consumer; /* that this process runs; NULL: none */
	struct ob_listen at;
	int fd;
	char address[256];
	struct MHD_Daemon *daemon;
	struct ob_auth auth;
	struct ob_pool *pools; /* one for each store */
	struct ob_watch *watch;
	struct ob_jobs *jobs;
	int64_t start_us; /* boot clock */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;  /* there is a new state, or it stops */
	bool stop;
	struct ob_peer *links;
	uint64_t codes[OB_STATUS_CODES];
	struct ob_throttle throttle; /* of wrong tokens */
	unsigned sse_clients;
	bool has_relays, stopping, noted;
	int64_t noted_us; /* boot clock */
	struct ob_monitor_note *notes;
	size_t note_count;
	struct ob_buf doctor; /* the last run as JSON; empty: none */
	bool doctor_runs;
	uint64_t verbs[3]; /* by enum ob_verb: messages changed from here */
};

/* The pool of the store of that name; NULL: the only one. NULL when there is none, or several. */
struct ob_pool *ob_monitor_pool(struct ob_monitor *monitor, const char *name);

/* http.c */
int ob_http_start(struct ob_monitor *monitor, struct ob_err *err);
void ob_http_stop(struct ob_monitor *monitor);
/* Cut off connections that are too slow; called each second. */
void ob_http_cut(struct ob_monitor *monitor);

/* health.c: the text and the status of each. */
unsigned ob_health_live(struct ob_monitor *monitor, struct ob_buf *out);
unsigned ob_health_ready(struct ob_monitor *monitor, struct ob_buf *out);
unsigned ob_health_started(struct ob_monitor *monitor, struct ob_buf *out);

/* metrics.c */
void ob_metrics_text(struct ob_monitor *monitor, struct ob_buf *out);

#endif
