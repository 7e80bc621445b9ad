/* SPDX-License-Identifier: MIT */
/*
 * The servers of the tests assert with Check, which needs a test to be running. Here none is:
 * this stands in for Check's library, and a failed assertion ends the bench.
 */
#include "bench/fatal.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

void _mark_point(const char *file, int line)
{
	(void)file;
	(void)line;
}

void _ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
	char text[512] = "";
	va_list args;

	va_start(args, msg);
	if (msg)
		(void)vsnprintf(text, sizeof(text), msg, args);
	va_end(args);
	bench_fatal("%s:%d: %s %s", file, line, expr, text);
}
