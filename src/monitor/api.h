/* SPDX-License-Identifier: MIT */
/* What the parts of the API share: the same thing looks the same everywhere. */
#ifndef OB_MONITOR_API_H
#define OB_MONITOR_API_H

#include "base/jout.h"
#include "monitor/state.h"

/* Texts by their bytes: below, equal or above 0. */
int ob_api_compare(struct ob_str a, struct ob_str b);

/* Append a message without its payload, as `reader` (may be NULL) sees it. */
void ob_api_brief(struct ob_jout *j, const char *reader, const struct ob_message *message);
/* Append its members to an open object: those of the log, those of the reader. */
void ob_api_log_members(struct ob_jout *j, const struct ob_message *message);
void ob_api_state_members(struct ob_jout *j, const char *reader, const struct ob_message *message);

#endif
