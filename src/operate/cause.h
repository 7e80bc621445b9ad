/* SPDX-License-Identifier: MIT */
/* What errors that differ in a number only have in common. */
#ifndef OB_OPERATE_CAUSE_H
#define OB_OPERATE_CAUSE_H

#include "base/buf.h"

/*
 * Append the error with every number in it as "#": runs of digits, UUIDs, and words of at least
 * eight hexadecimal digits of which one is a decimal digit. "HTTP 422: order 1042" becomes
 * "HTTP #: order #".
 */
void ob_cause_of(struct ob_str error, struct ob_buf *out);

#endif
