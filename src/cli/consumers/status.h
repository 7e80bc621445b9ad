/* SPDX-License-Identifier: MIT */
/* How outbox consume is: for the service manager, and as a line on a terminal. */
#ifndef OB_CLI_CONSUMERS_STATUS_H
#define OB_CLI_CONSUMERS_STATUS_H

#include "cli/out/rate.h"
#include "consume/consume.h"

struct ob_consume_status {
	bool listens;        /* a service manager does */
	bool draws;          /* on a terminal */
	int64_t watchdog_us; /* between two signs of life; 0: nobody asks */
	int64_t alive_us, next_us;
	struct ob_rate rate;
	char said[240];
};

/* It is ready. `draw`: show a line on the terminal, if stdout is one. */
void ob_consume_status_begin(struct ob_consume_status *status, bool draw);
/* In every turn of the loop: a sign of life, the state as one line, more time while it drains. */
void ob_consume_status_tick(struct ob_consume_status *status, const char *name,
			    const struct ob_consume_metrics *metrics, bool stopping);
/* The sign of life alone. */
void ob_consume_status_alive(struct ob_consume_status *status);
void ob_consume_status_end(struct ob_consume_status *status);
/* "1,234/s, 56,789 handled, 12 wait since 3s, 2 parked, handler down" */
void ob_consume_status_text(const struct ob_consume_status *status,
			    const struct ob_consume_metrics *metrics, bool stopping,
			    struct ob_buf *out);

#endif
