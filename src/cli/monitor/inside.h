/* SPDX-License-Identifier: MIT */
/* The web monitor inside a process that does something else: work or consume. */
#ifndef OB_CLI_MONITOR_INSIDE_H
#define OB_CLI_MONITOR_INSIDE_H

#include "config/config.h"

struct ob_monitor;
struct ob_monitor_relay;

/* All zero: there is none. */
struct ob_inside {
	struct ob_monitor *monitor;
	int64_t next_us;       /* boot clock: when it is told again */
	unsigned char key[32]; /* of sessions: they outlive a reload */
	bool has_key;
};

/*
 * Start the monitor of a configuration in place of the one before; none if it listens nowhere. What
 * is wrong is logged, and the process goes on. The configuration is borrowed until it is stopped.
 * `consumer`: which one this process runs, or NULL.
 */
void ob_inside_start(struct ob_inside *inside, const struct ob_config *config, const char *consumer,
		     const struct ob_log *log);
void ob_inside_stop(struct ob_inside *inside);
/* Is it to be told how the process is? Each second, from the main loop. */
bool ob_inside_is_due(struct ob_inside *inside);
/* How it is; a process without relays has none to tell of. */
void ob_inside_tell(struct ob_inside *inside, const struct ob_monitor_relay *relays, size_t count,
		    bool stopping);
/* When it is due; INT64_MAX: there is none. */
int64_t ob_inside_next_us(const struct ob_inside *inside);

#endif
