/* SPDX-License-Identifier: MIT */
/* Filling the public struct outbox_error; every library carries its own copy. */
#include "lib/fail.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Longest text we make before it is cut. */
enum { TEXT_SIZE = 1024 };

/* Copy as one safe line: no control characters, no broken or halved characters. */
static void set_text(struct outbox_error *err, const char *text)
{
	size_t left = strlen(text), used = 0;

	while (left > 0) {
		size_t step = ob_utf8_step(text, left);
		size_t take = step ? step : 1;

		if (used + take >= sizeof(err->message))
			break;
		memcpy(err->message + used, text, take);
		if (step == 0)
			err->message[used] = '?';
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			err->message[used] = ' ';
		used += take;
		text += take;
		left -= take;
	}
	err->message[used] = '\0';
}

int ob_fail(struct outbox_error *err, int status, size_t index, const char *fmt, ...)
{
	char text[TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err->status = status;
	err->index = index;
	err->native[0] = '\0';
	set_text(err, text);
	return status;
}

void ob_fail_prefix(struct outbox_error *err)
{
	char text[TEXT_SIZE];

	if (err->index == OUTBOX_NO_INDEX)
		return;
	(void)snprintf(text, sizeof(text), "message %zu: %s", err->index, err->message);
	set_text(err, text);
}
