/* SPDX-License-Identifier: MIT */
/*
 * Named fault points. A release build has none (the macro is empty). In a
 * build with -Dfault_points=enabled the environment variable OUTBOX_FAULT
 * says what happens where: "settle.before_commit:3:kill" kills the process
 * (SIGKILL) the third time it passes that point; other actions: stop (SIGSTOP),
 * abort, fail (the point reports true, once), fail+ (true from then on).
 */
#ifndef OB_BASE_FAULT_H
#define OB_BASE_FAULT_H

#include <stdbool.h>

#if OB_FAULT_POINTS
/* True when the point shall pretend to fail. */
bool ob_fault_hit(const char *name);
#define OB_FAULT(name) ob_fault_hit(name)
#else
#define OB_FAULT(name) false
#endif

#endif
