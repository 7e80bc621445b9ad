/* SPDX-License-Identifier: MIT */
/* UTF-8: check, count, cut, and make safe what peers and users send us. */
#ifndef OB_BASE_UTF8_H
#define OB_BASE_UTF8_H

#include "base/buf.h"

/* Length in bytes of the valid sequence at p (1..4), or 0. At most `n` bytes are read. */
size_t ob_utf8_step(const char *p, size_t n);
/* Valid, shortest form, no surrogates. NUL is a valid character. */
bool ob_utf8_valid(struct ob_str s);
/* Number of code points of valid text. */
size_t ob_utf8_count(struct ob_str s);
/*
 * Does the valid sequence of `size` bytes at p move a cursor or break a line?
 * C0, DEL, C1, and the line and paragraph separators.
 */
bool ob_utf8_is_control(const char *p, size_t size);
/*
 * Append at most `max_chars` characters of `s`: invalid bytes become U+FFFD,
 * control characters (as above) become a space, so the result is one safe
 * line. Never cuts inside a character.
 */
void ob_utf8_sanitize(struct ob_buf *out, struct ob_str s, size_t max_chars);

#endif
