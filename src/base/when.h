/* SPDX-License-Identifier: MIT */
/* Instants and ages as people read and write them. */
#ifndef OB_BASE_WHEN_H
#define OB_BASE_WHEN_H

#include "base/buf.h"

enum { OB_WHEN_SIZE = 32 };

/* "2026-05-01T12:00:00.123456Z" of microseconds since 1970 UTC. */
void ob_when_iso(int64_t us, char out[OB_WHEN_SIZE]);
/* "450ms", "12s", "3m12s", "2h05m", "3d04h" of a span in microseconds; below zero is "0s". */
void ob_when_age(int64_t us, char out[OB_WHEN_SIZE]);
/* An RFC 3339 instant with at most nine digits of a second, from year 1000 to 9999; false for all
 * else.
 */
bool ob_when_parse(struct ob_str text, int64_t *ret_us);

#endif
