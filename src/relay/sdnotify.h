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
/* How often the manager wants a WATCHDOG=1 of this process at least; 0: it does not. */
int64_t ob_sd_watchdog_us(void);

#endif
