/* SPDX-License-Identifier: MIT */
/* Names and values of headers. */
#include "sink/head.h"

#include <strings.h>

static void add_escape(struct ob_buf *out, unsigned char c)
{
	static const char hex[] = "0123456789ABCDEF";
	const char text[] = { '%', hex[c >> 4], hex[c & 15] };

	ob_buf_add(out, (struct ob_str){ text, sizeof(text) });
}

static bool is_name_char(unsigned char c)
{
	unsigned char letter = c | 0x20;

	return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       c == '.';
}

static bool is_value_char(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '%';
}

/* Runs that need no encoding go in one piece. */
static void add_encoded(struct ob_buf *out, struct ob_str text, bool (*is_plain)(unsigned char))
{
	for (size_t i = 0, from = 0; i <= text.n; i++) {
		if (i < text.n && is_plain((unsigned char)text.p[i]))
			continue;
		if (i > from)
			ob_buf_add(out, (struct ob_str){ text.p + from, i - from });
		if (i < text.n)
			add_escape(out, (unsigned char)text.p[i]);
		from = i + 1;
	}
}

void ob_head_add_name(struct ob_buf *out, struct ob_str name)
{
	add_encoded(out, name, is_name_char);
}

void ob_head_add_value(struct ob_buf *out, struct ob_str value)
{
	add_encoded(out, value, is_value_char);
}

bool ob_head_is_printable(struct ob_str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < ' ' || text.p[i] > '~')
			return false;
	}
	return true;
}

static bool is_name(struct ob_str name, const char *other)
{
	return name.n == strlen(other) && strncasecmp(name.p, other, name.n) == 0;
}

bool ob_head_is_trace(struct ob_str name)
{
	return is_name(name, "traceparent") || is_name(name, "tracestate") ||
	       is_name(name, "baggage");
}
