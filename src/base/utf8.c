/* SPDX-License-Identifier: MIT */
/* Checking and cleaning UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF). */
#include "base/utf8.h"

#include "base/swar.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static bool is_tail(uint8_t c)
{
	return (c & 0xC0) == 0x80;
}

size_t ob_utf8_step(const char *p, size_t n)
{
	const uint8_t *b = (const uint8_t *)p;
	/* The second byte is what keeps out long forms, surrogates and beyond U+10FFFF. */
	uint8_t low = 0x80, high = 0xBF;
	size_t size;

	if (n == 0)
		return 0;
	if (b[0] < 0x80)
		return 1;
	if (b[0] >= 0xC2 && b[0] <= 0xDF)
		size = 2;
	else if (b[0] >= 0xE0 && b[0] <= 0xEF)
		size = 3;
	else if (b[0] >= 0xF0 && b[0] <= 0xF4)
		size = 4;
	else
		return 0;
	if (n < size)
		return 0;

	if (b[0] == 0xE0)
		low = 0xA0;
	else if (b[0] == 0xED)
		high = 0x9F;
	else if (b[0] == 0xF0)
		low = 0x90;
	else if (b[0] == 0xF4)
		high = 0x8F;
	if (b[1] < low || b[1] > high)
		return 0;
	if (size > 2 && !is_tail(b[2]))
		return 0;
	if (size > 3 && !is_tail(b[3]))
		return 0;
	return size;
}

bool ob_utf8_valid(struct ob_str s)
{
	const char *p = s.p;
	size_t left = s.n;

	while (left) {
		if (left >= 8 && ob_swar_all_ascii(ob_swar_load(p))) {
			p += 8;
			left -= 8;
			continue;
		}
		size_t step = ob_utf8_step(p, left);
		if (step == 0)
			return false;
		p += step;
		left -= step;
	}
	return true;
}

size_t ob_utf8_count(struct ob_str s)
{
	size_t count = 0;

	for (size_t i = 0; i < s.n; i++)
		count += !is_tail((uint8_t)s.p[i]);
	return count;
}

bool ob_utf8_is_control(const char *p, size_t size)
{
	const uint8_t *b = (const uint8_t *)p;

	if (size == 1)
		return b[0] < 0x20 || b[0] == 0x7F;
	if (size == 2)
		return b[0] == 0xC2 && b[1] < 0xA0;
	return size == 3 && b[0] == 0xE2 && b[1] == 0x80 && (b[2] == 0xA8 || b[2] == 0xA9);
}

void ob_utf8_sanitize(struct ob_buf *out, struct ob_str s, size_t max_chars)
{
	const char *p = s.p, *end = s.n ? s.p + s.n : s.p;
	const char *kept = p; /* from here to p: good, not yet appended */

	for (size_t chars = 0; p < end && chars < max_chars; chars++) {
		size_t step = ob_utf8_step(p, (size_t)(end - p));
		bool bad = step == 0;

		if (bad || ob_utf8_is_control(p, step)) {
			ob_buf_add(out, (struct ob_str){ kept, (size_t)(p - kept) });
			ob_buf_adds(out, bad ? replacement : " ");
			p += bad ? 1 : step;
			kept = p;
			continue;
		}
		p += step;
	}
	ob_buf_add(out, (struct ob_str){ kept, (size_t)(p - kept) });
}
