/* SPDX-License-Identifier: MIT */
/* Strict both ways: no line breaks, no missing padding, no stray bits. */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ob_base64_encode(struct ob_buf *out, struct ob_str bytes)
{
	const unsigned char *p = (const unsigned char *)bytes.p;
	char chunk[1024];
	size_t used = 0;

	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t left = bytes.n - i;
		unsigned v = (unsigned)p[i] << 16;

		if (left > 1)
			v |= (unsigned)p[i + 1] << 8;
		if (left > 2)
			v |= p[i + 2];
		chunk[used++] = alphabet[v >> 18];
		chunk[used++] = alphabet[v >> 12 & 63];
		chunk[used++] = (char)(left > 1 ? alphabet[v >> 6 & 63] : '=');
		chunk[used++] = (char)(left > 2 ? alphabet[v & 63] : '=');
		if (used == sizeof(chunk)) {
			ob_buf_add(out, (struct ob_str){ chunk, used });
			used = 0;
		}
	}
	ob_buf_add(out, (struct ob_str){ chunk, used });
}

static int value_of(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (int)(at - alphabet) : -1;
}

/* Four characters of which the last `pad` are '='. */
static bool decode_four(const char *p, size_t pad, char *out)
{
	unsigned v = 0;

	for (size_t i = 0; i < 4; i++) {
		int bits = i < 4 - pad ? value_of(p[i]) : 0;
		if (bits < 0 || (i >= 4 - pad && p[i] != '='))
			return false;
		v = v << 6 | (unsigned)bits;
	}
	if (v & ((1U << pad * 8) - 1))
		return false;
	for (size_t i = 0; i < 3 - pad; i++)
		out[i] = (char)(v >> (16 - 8 * i) & 0xff);
	return true;
}

bool ob_base64_decode(struct ob_str text, char *out, size_t *ret_size)
{
	size_t size = 0;

	if (text.n % 4)
		return false;
	for (size_t i = 0; i < text.n; i += 4) {
		size_t pad = 0;

		if (i + 4 == text.n && text.p[i + 3] == '=')
			pad = text.p[i + 2] == '=' ? 2 : 1;
		if (!decode_four(text.p + i, pad, out + size))
			return false;
		size += 3 - pad;
	}
	*ret_size = size;
	return true;
}
