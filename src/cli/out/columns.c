/* SPDX-License-Identifier: MIT */
/* Widths by ranges of code points: rough, but never too narrow for what terminals draw wide. */
#include "cli/out/columns.h"

#include "base/utf8.h"

struct range {
	uint32_t first, last;
};

/* Marks above and below, joiners, and what turns the direction of text around. */
static const struct range none[] = {
	{ 0x00AD, 0x00AD },   { 0x0300, 0x036F }, { 0x0483, 0x0489 }, { 0x0591, 0x05BD },
	{ 0x0610, 0x061C },   { 0x064B, 0x065F }, { 0x0E31, 0x0E31 }, { 0x0E34, 0x0E3A },
	{ 0x0E47, 0x0E4E },   { 0x180E, 0x180E }, { 0x1AB0, 0x1AFF }, { 0x1DC0, 0x1DFF },
	{ 0x200B, 0x200F },   { 0x202A, 0x202E }, { 0x2060, 0x206F }, { 0x20D0, 0x20FF },
	{ 0xFE00, 0xFE0F },   { 0xFE20, 0xFE2F }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB },
	{ 0xE0000, 0xE0FFF },
};

static const struct range wide[] = {
	{ 0x1100, 0x115F },   { 0x231A, 0x231B },   { 0x2329, 0x232A },   { 0x23E9, 0x23F3 },
	{ 0x25FD, 0x25FE },   { 0x2614, 0x2615 },   { 0x2648, 0x2653 },   { 0x267F, 0x267F },
	{ 0x2693, 0x2693 },   { 0x26A1, 0x26A1 },   { 0x26AA, 0x26AB },   { 0x26BD, 0x26BE },
	{ 0x26C4, 0x26C5 },   { 0x26CE, 0x26CE },   { 0x26D4, 0x26D4 },   { 0x26EA, 0x26EA },
	{ 0x26F2, 0x26FD },   { 0x2705, 0x2705 },   { 0x270A, 0x270B },   { 0x2728, 0x2728 },
	{ 0x274C, 0x274E },   { 0x2753, 0x2757 },   { 0x2795, 0x2797 },   { 0x27B0, 0x27BF },
	{ 0x2B1B, 0x2B1C },   { 0x2B50, 0x2B55 },   { 0x2E80, 0x303E },   { 0x3041, 0x33FF },
	{ 0x3400, 0x4DBF },   { 0x4E00, 0x9FFF },   { 0xA000, 0xA4CF },   { 0xA960, 0xA97F },
	{ 0xAC00, 0xD7A3 },   { 0xF900, 0xFAFF },   { 0xFE10, 0xFE19 },   { 0xFE30, 0xFE6F },
	{ 0xFF00, 0xFF60 },   { 0xFFE0, 0xFFE6 },   { 0x16FE0, 0x18DFF }, { 0x1AFF0, 0x1B2FF },
	{ 0x1F000, 0x1FAFF }, { 0x20000, 0x3FFFD },
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count && ranges[i].first <= code; i++) {
		if (code <= ranges[i].last)
			return true;
	}
	return false;
}

size_t ob_columns_of(uint32_t code)
{
	if (code < 0x300)
		return code != 0xAD;
	if (in_ranges(none, sizeof(none) / sizeof(none[0]), code))
		return 0;
	return in_ranges(wide, sizeof(wide) / sizeof(wide[0]), code) ? 2 : 1;
}

static uint32_t decode(const char *p, size_t size)
{
	static const uint8_t masks[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
	uint32_t code = (uint8_t)p[0] & masks[size];

	for (size_t i = 1; i < size; i++)
		code = code << 6 | ((uint8_t)p[i] & 0x3F);
	return code;
}

/* The next character made safe: what to print, its columns, and how many bytes it was. */
static size_t next_char(struct ob_str s, bool ascii, struct ob_str *ret_text, size_t *ret_columns)
{
	size_t size = ob_utf8_step(s.p, s.n);

	*ret_columns = 1;
	if (size == 0) {
		*ret_text = ascii ? OB_STR("?") : OB_STR("\xEF\xBF\xBD");
		return 1;
	}
	if (ob_utf8_is_control(s.p, size)) {
		*ret_text = OB_STR(" ");
		return size;
	}
	*ret_text = (struct ob_str){ s.p, size };
	if (size > 1)
		*ret_columns = ob_columns_of(decode(s.p, size));
	if (size > 1 && ascii && *ret_columns) {
		*ret_columns = 1;
		*ret_text = OB_STR("?");
	}
	return size;
}

size_t ob_columns_fit(struct ob_buf *out, struct ob_str s, size_t max, bool ascii)
{
	size_t used = 0, keep_len = out->len, keep_used = 0;

	while (s.n) {
		struct ob_str text;
		size_t columns, size = next_char(s, ascii, &text, &columns);

		if (used + columns > max) {
			/* Back to where one column is left for the mark. */
			if (max == 0 || out->failed)
				return used;
			out->len = keep_len;
			ob_buf_adds(out, ascii ? "~" : "\xE2\x80\xA6");
			return keep_used + 1;
		}
		if (columns)
			ob_buf_add(out, text);
		used += columns;
		if (used < max) {
			keep_len = out->len;
			keep_used = used;
		}
		s.p += size;
		s.n -= size;
	}
	return used;
}
