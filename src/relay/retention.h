/* SPDX-License-Identifier: MIT */
/*
 * Retention: a thread with a connection of its own that removes what every reader has behind it. It
 * must not share a connection with the leases: a slow DELETE would cost them.
 */
#ifndef OB_RELAY_RETENTION_H
#define OB_RELAY_RETENTION_H

#include "base/log.h"
#include "config/config.h"
#include "relay/metrics.h"

struct ob_retention;

typedef int ob_retention_open_fn(void *arg, struct ob_store **ret_store, struct ob_err *err);

struct ob_retention_conf {
	const char *relay; /* for the log */
	const struct ob_config_retention *retention;
	ob_retention_open_fn *open; /* called by the thread, which owns what it returns */
	void *arg;
	struct ob_metrics *metrics;
	const struct ob_clock *clock;
	const struct ob_log *log; /* NULL: silent */
};

/* Start the thread. On success the caller owns *ret_retention. */
int ob_retention_new(const struct ob_retention_conf *conf, struct ob_retention **ret_retention,
		     struct ob_err *err);
/* Waits for the batch that runs. NULL is allowed. */
void ob_retention_free(struct ob_retention *retention);

#endif
