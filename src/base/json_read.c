/* SPDX-License-Identifier: MIT */
/*
 * A scanner over text that the strict validator has already accepted, so it
 * only has to find where each member begins and ends.
 */
#include "base/json_read.h"

static void skip_space(struct ob_json_cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
}

/* The string at p with its quotes. */
static struct ob_str cut_string(struct ob_json_cursor *c)
{
	const char *start = c->p++;

	while (c->p < c->end && *c->p != '"')
		c->p += *c->p == '\\' ? 2 : 1;
	c->p++;
	return (struct ob_str){ start, (size_t)(c->p - start) };
}

/* The value at p, whatever it is. */
static struct ob_str cut_value(struct ob_json_cursor *c)
{
	const char *start = c->p;
	size_t depth = 0;

	do {
		if (*c->p == '"') {
			(void)cut_string(c);
			continue;
		}
		if (*c->p == '{' || *c->p == '[')
			depth++;
		else if (*c->p == '}' || *c->p == ']')
			depth--;
		c->p++;
		if (depth || c->p[-1] == '}' || c->p[-1] == ']')
			continue;
		/* a number or a word: to its end */
		while (c->p < c->end && !strchr(" \t\r\n,}]", *c->p))
			c->p++;
	} while (depth && c->p < c->end);
	return (struct ob_str){ start, (size_t)(c->p - start) };
}

void ob_json_begin(struct ob_json_cursor *cursor, struct ob_str object)
{
	*cursor = (struct ob_json_cursor){ object.p, object.p + object.n };
	skip_space(cursor);
	cursor->p++; /* the brace */
	skip_space(cursor);
}

bool ob_json_next(struct ob_json_cursor *cursor, struct ob_json_member *ret)
{
	if (*cursor->p == '}')
		return false;
	ret->name = cut_string(cursor);
	skip_space(cursor);
	cursor->p++; /* the colon */
	skip_space(cursor);
	ret->value = cut_value(cursor);
	skip_space(cursor);
	if (*cursor->p == ',')
		cursor->p++;
	skip_space(cursor);
	return true;
}

bool ob_json_next_item(struct ob_json_cursor *cursor, struct ob_str *ret)
{
	if (*cursor->p == ']')
		return false;
	*ret = cut_value(cursor);
	skip_space(cursor);
	if (*cursor->p == ',')
		cursor->p++;
	skip_space(cursor);
	return true;
}

/* ---- strings --------------------------------------------------------- */

static unsigned hex4(const char *p)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];
		v = v << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	return v;
}

static size_t put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* The code point of the escape at p: "\u" and four digits, or a pair of them. */
static unsigned unicode_escape(const char *p, size_t *ret_used)
{
	unsigned c = hex4(p + 2);

	*ret_used = 6;
	if (c < 0xd800 || c > 0xdbff)
		return c;
	*ret_used = 12;
	return 0x10000 + ((c - 0xd800) << 10) + (hex4(p + 8) - 0xdc00);
}

static char plain_escape(char c)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = strchr(from, c);

	if (at)
		c = to[at - from];
	return c;
}

size_t ob_json_decode(struct ob_str raw, char *out)
{
	const char *p = raw.p + 1, *end = raw.p + raw.n - 1;
	size_t n = 0;

	while (p < end) {
		size_t used = 2;

		if (*p != '\\') {
			out[n++] = *p++;
			continue;
		}
		if (p[1] == 'u')
			n += put_utf8(out + n, unicode_escape(p, &used));
		else
			out[n++] = plain_escape(p[1]);
		p += used;
	}
	return n;
}
