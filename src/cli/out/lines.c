/* SPDX-License-Identifier: MIT */
/* A window over the stream that grows only while one line does not fit. */
#include "cli/out/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST = 64 << 10 };

void ob_lines_init(struct ob_lines *lines, int fd, const char *name, size_t max)
{
	*lines = (struct ob_lines){ .fd = fd, .name = name, .max = max };
}

static int make_room(struct ob_lines *l, struct ob_err *err)
{
	if (l->start) {
		memmove(l->data, l->data + l->start, l->len);
		l->start = 0;
	}
	if (l->len < l->cap)
		return 0;
	size_t cap = l->cap ? l->cap * 2 : FIRST;
	char *data = realloc(l->data, cap);
	if (!data)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "%s: out of memory", l->name);
	l->data = data;
	l->cap = cap;
	return 0;
}

static int read_more(struct ob_lines *l, struct ob_err *err)
{
	int r = make_room(l, err);

	if (r < 0)
		return r;
	ssize_t n = read(l->fd, l->data + l->len, l->cap - l->len);
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "%s", l->name);
	l->end = n == 0;
	l->len += (size_t)n;
	return 0;
}

int ob_lines_next(struct ob_lines *l, struct ob_str *ret_line, struct ob_err *err)
{
	size_t seen = 0; /* bytes of this line known to hold no line break */
	const char *nl = NULL;

	for (;;) {
		if (l->len > seen)
			nl = memchr(l->data + l->start + seen, '\n', l->len - seen);
		size_t n = nl ? (size_t)(nl - (l->data + l->start)) : l->len;
		if (n > l->max)
			return ob_err_set(err, OUTBOX_ETOOLONG, OB_ERR_REJECT,
					  "%s:%" PRIu64 ": the line is longer than %zu MB", l->name,
					  l->number + 1, l->max >> 20);
		if (nl || l->end)
			break;
		seen = l->len;
		int r = read_more(l, err);
		if (r < 0)
			return r;
	}
	if (!nl && l->len == 0)
		return 0;
	struct ob_str line = { l->data + l->start,
			       nl ? (size_t)(nl - l->data) - l->start : l->len };
	size_t used = line.n + (nl ? 1 : 0);
	l->start += used;
	l->len -= used;
	l->number++;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	*ret_line = line;
	return 1;
}

void ob_lines_done(struct ob_lines *lines)
{
	free(lines->data);
	lines->data = NULL;
}
