/* SPDX-License-Identifier: MIT */
/* What a store or a sink has to say about promises that are weaker than they seem. */
#ifndef OB_RELAY_ADVICE_H
#define OB_RELAY_ADVICE_H

#include "base/finding.h"
#include "base/log.h"

/* A warning for each that is not ok; `what` is the message of all of them. `log` NULL: silent. */
void ob_advice_log(const struct ob_log *log, const char *relay, const char *what,
		   const struct ob_findings *findings);

#endif
