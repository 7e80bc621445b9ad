/* SPDX-License-Identifier: MIT */
/* The whole state as JSON: what every page shows on top, and what the event stream sends. */
#ifndef OB_MONITOR_STATE_H
#define OB_MONITOR_STATE_H

#include "base/jout.h"
#include "monitor/impl.h"

/* Append one object, as a role sees it. */
void ob_state_json(struct ob_jout *j, struct ob_monitor *monitor, enum ob_role role);

/* Numbers that are no integers, and null for what is not known. */
void ob_jout_number(struct ob_jout *j, const char *key, double value);
void ob_jout_null(struct ob_jout *j, const char *key);
/* Microseconds since 1970; 0 is null. */
void ob_jout_us(struct ob_jout *j, const char *key, int64_t us);

/* The relay of the configuration that a reader of a store is; NULL: none. */
const struct ob_config_relay *ob_state_relay(const struct ob_config *config,
					     const struct ob_config_store *store,
					     struct ob_str reader);

#endif
