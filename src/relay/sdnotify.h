/* SPDX-License-Identifier: MIT */
/* Telling the service manager: ready, alive, stopping. Does nothing when nobody asked. */
#ifndef OB_RELAY_SDNOTIFY_H
#define OB_RELAY_SDNOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Send "READY=1", "WATCHDOG=1", "STOPPING=1" or "STATUS=..." to $NOTIFY_SOCKET. False when
 * there is none or it does not listen: never worth failing for.
 */
bool ob_sd_notify(const char *state);
/* A configuration is read anew; READY=1 ends it. */
bool ob_sd_reloading(void);
/* Ask for ten more seconds to stop in; ends by itself when it is not asked again. */
bool ob_sd_more_time(void);
/* How often the manager wants a WATCHDOG=1 of this process at least; 0: it does not. */
int64_t ob_sd_watchdog_us(void);

#endif
