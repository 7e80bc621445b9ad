/* SPDX-License-Identifier: MIT */
/* Signals as something to poll: no handlers, nothing interrupted. */
#ifndef OB_BASE_SIGNALS_H
#define OB_BASE_SIGNALS_H

#include "base/err.h"

#include <stdbool.h>

enum ob_stop {
	OB_STOP_NO,
	OB_STOP_DRAIN, /* finish what is in flight, then leave */
	OB_STOP_NOW,   /* leave; leases expire */
};

struct ob_signals {
	int fd;            /* poll it for reading, then call ob_signals_read() */
	enum ob_stop stop; /* NOW: by a signal at least a second after the first */
	int64_t stop_us;   /* boot clock: when the first came */
	bool reload;       /* set by SIGHUP; whoever reloads clears it */
};

/*
 * Block SIGTERM, SIGINT and SIGHUP in this thread and receive them through the
 * fd; ignore SIGPIPE. Call before the first thread starts: threads inherit it.
 */
int ob_signals_init(struct ob_signals *signals, struct ob_err *err);
/* Take in what has arrived; never waits. */
void ob_signals_read(struct ob_signals *signals);
/* Closes the fd. The signals stay blocked: a late one must not cut the exit short. */
void ob_signals_done(struct ob_signals *signals);

#endif
