/* SPDX-License-Identifier: MIT */
/* Filling and extending struct ob_err. Messages are cut, never overflowed. */
#include "base/err.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * Peers and users bring newlines, escape sequences and broken UTF-8, and a cut
 * may split a character: whatever came, a message is one line of valid text.
 */
static void make_one_line(char *msg, size_t size)
{
	size_t left = strlen(msg);
	bool full = left == size - 1;
	char *from = msg, *to = msg;

	while (left) {
		size_t step = ob_utf8_step(from, left);
		bool plain = step && !ob_utf8_is_control(from, step);

		if (plain) {
			memmove(to, from, step);
			to += step;
		} else if (step || !full || left > 3) { /* else: the part of a cut character */
			*to++ = step ? ' ' : '?';
		}
		step = step ? step : 1;
		from += step;
		left -= step;
	}
	while (to > msg && to[-1] == ' ')
		to--;
	*to = '\0';
}

int ob_err_set(struct ob_err *err, int status, enum ob_err_kind kind, const char *fmt, ...)
{
	va_list ap;

	err->status = status;
	err->kind = kind;
	err->hung_up = err->timed_out = false;
	err->native[0] = '\0';
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	make_one_line(err->msg, sizeof(err->msg));
	return status;
}

int ob_err_errno(struct ob_err *err, int status, enum ob_err_kind kind, const char *fmt, ...)
{
	int saved = errno;
	const char *name = strerrorname_np(saved);
	va_list ap;

	err->status = status;
	err->kind = kind;
	err->hung_up = err->timed_out = false;
	(void)snprintf(err->native, sizeof(err->native), "%s", name ? name : "errno");
	va_start(ap, fmt);
	int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->msg)) {
		errno = saved; /* %m reads it */
		(void)snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %m");
	}
	make_one_line(err->msg, sizeof(err->msg));
	return status;
}

int ob_err_context(struct ob_err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;

	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	bool whole = false;
	if (n >= 0 && (size_t)n < sizeof(err->msg)) {
		size_t room = sizeof(err->msg) - (size_t)n;
		whole = snprintf(err->msg + n, room, ": %s", old) < (int)room;
	}
	if (!whole) /* leave room for the dots */
		err->msg[sizeof(err->msg) - 4] = '\0';
	make_one_line(err->msg, whole ? sizeof(err->msg) : sizeof(err->msg) - 3);
	if (!whole)
		(void)snprintf(err->msg + strlen(err->msg), 4, "...");
	return err->status;
}

const char *ob_err_kind_name(enum ob_err_kind kind)
{
	switch (kind) {
	case OB_ERR_NONE:
		return "none";
	case OB_ERR_DOWN:
		return "down";
	case OB_ERR_RETRY:
		return "retry";
	case OB_ERR_REJECT:
		return "reject";
	case OB_ERR_LOST:
		return "lost";
	case OB_ERR_FATAL:
		return "fatal";
	}
	return "unknown";
}
