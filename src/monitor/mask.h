/* SPDX-License-Identifier: MIT */
/* Values of JSON keys that are not for everybody's eyes. */
#ifndef OB_MONITOR_MASK_H
#define OB_MONITOR_MASK_H

#include "base/buf.h"

/*
 * Append `json` as it stands, but the value of each key that matches one of `patterns` (separated
 * by commas, * for any text, case does not matter) as "***", whatever it is. False: it is no JSON,
 * and nothing was appended.
 */
bool ob_mask_json(struct ob_buf *out, struct ob_str json, const char *patterns);

#endif
