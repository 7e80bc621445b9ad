/* SPDX-License-Identifier: MIT */
/* The bounded buffer. One byte more than `len` is always kept for the NUL. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool ob_buf_reserve(struct ob_buf *b, size_t more)
{
	if (b->failed)
		return false;
	if (more > b->max - b->len) {
		b->failed = true;
		return false;
	}
	if (b->len + more < b->cap)
		return true;

	size_t cap = b->cap ? b->cap : 64;
	while (cap <= b->len + more)
		cap *= 2;
	char *data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void ob_buf_add(struct ob_buf *b, struct ob_str s)
{
	if (!ob_buf_reserve(b, s.n))
		return;
	if (s.n)
		memcpy(b->data + b->len, s.p, s.n);
	b->len += s.n;
	b->data[b->len] = '\0';
}

void ob_buf_adds(struct ob_buf *b, const char *text)
{
	ob_buf_add(b, ob_str(text));
}

void ob_buf_addc(struct ob_buf *b, char c)
{
	ob_buf_add(b, (struct ob_str){ &c, 1 });
}

void ob_buf_addf(struct ob_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	if (!ob_buf_reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void ob_buf_clear(struct ob_buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

const char *ob_buf_str(const struct ob_buf *b)
{
	return b->data ? b->data : "";
}

struct ob_str ob_buf_view(const struct ob_buf *b)
{
	return (struct ob_str){ ob_buf_str(b), b->len };
}

char *ob_buf_take(struct ob_buf *b)
{
	char *out = b->failed ? NULL : b->data;

	if (out)
		*b = OB_BUF_INIT(b->max);
	return out;
}

void ob_buf_done(struct ob_buf *b)
{
	free(b->data);
	*b = OB_BUF_INIT(b->max);
}
