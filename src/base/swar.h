/* SPDX-License-Identifier: MIT */
/* Eight bytes at a time in one register. The byte at the lowest address is the lowest. */
#ifndef OB_BASE_SWAR_H
#define OB_BASE_SWAR_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define OB_SWAR_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Eight bytes from any address. */
static inline uint64_t ob_swar_load(const void *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return le64toh(x);
}

static inline bool ob_swar_all_ascii(uint64_t x)
{
	return (x & OB_SWAR_EACH(0x80)) == 0;
}

/*
 * The top bit of each byte that cannot stand for itself inside a JSON string:
 * a control character, a quote, a backslash, or a part of a non-ASCII
 * character. A borrow may mark bytes above a marked one wrongly, so only the
 * lowest mark counts.
 */
static inline uint64_t ob_swar_json_marks(uint64_t x)
{
	uint64_t quote = x ^ OB_SWAR_EACH('"'), backslash = x ^ OB_SWAR_EACH('\\');
	uint64_t marks = x | (x - OB_SWAR_EACH(0x20)) | (quote - OB_SWAR_EACH(1)) |
			 (backslash - OB_SWAR_EACH(1));

	return marks & OB_SWAR_EACH(0x80);
}

/* Which byte, 0 to 7, carries the lowest mark; `marks` is not 0. */
static inline unsigned ob_swar_first(uint64_t marks)
{
	return (unsigned)__builtin_ctzll(marks) / 8;
}

#endif
