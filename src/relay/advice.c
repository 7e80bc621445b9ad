/* SPDX-License-Identifier: MIT */
/* Findings to the log. */
#include "relay/advice.h"

#include <stdio.h>

enum { ADVICE_MAX = 1000 };

void ob_advice_log(const struct ob_log *log, const char *relay, const char *what,
		   const struct ob_findings *findings)
{
	for (size_t i = 0; log && i < findings->count; i++) {
		const struct ob_finding *finding = &findings->list[i];
		char line[ADVICE_MAX];

		if (finding->level == OB_LEVEL_OK)
			continue;
		(void)snprintf(line, sizeof(line), "%.*s; %s", (int)finding->text.n,
			       finding->text.p, finding->check->advice);
		ob_log(log, OB_LOG_WARN, what, OB_KV("relay", relay), OB_KV("advice", line));
	}
}
