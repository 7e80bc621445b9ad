/* SPDX-License-Identifier: MIT */
/* Numbers of things in sentences. */
#ifndef OB_BASE_COUNT_H
#define OB_BASE_COUNT_H

#include "base/buf.h"

/* Append "1 message", "312 messages". */
void ob_count_add(struct ob_buf *out, uint64_t count, const char *thing);

#endif
