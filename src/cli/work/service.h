/* SPDX-License-Identifier: MIT */
/* What the service manager (systemd) hears from outbox work. */
#ifndef OB_CLI_WORK_SERVICE_H
#define OB_CLI_WORK_SERVICE_H

#include "cli/out/rate.h"

struct ob_work;

enum { OB_SERVICE_STATUS = 160 };

/* All zero: nobody listens. */
struct ob_service {
	bool listens;
	int64_t watchdog_us; /* between two signs of life; 0: nobody asks */
	int64_t alive_us;    /* boot clock: the next sign of life */
	int64_t status_us;   /* the next line about the state */
	struct ob_rate rate; /* of all relays */
	char said[OB_SERVICE_STATUS];
};

/* The relays are started. */
void ob_service_begin(struct ob_work *w);
/* A reload begins, and is over. */
void ob_service_reloading(struct ob_work *w);
void ob_service_reloaded(struct ob_work *w);
void ob_service_stopping(struct ob_work *w);
/* Called in every turn of the loop: signs of life, but only while every worker steps; the state as
 * one line; more time while it drains. */
void ob_service_tick(struct ob_work *w);
/* When the next tick is due; INT64_MAX: never. */
int64_t ob_service_next_us(const struct ob_work *w);

#endif
