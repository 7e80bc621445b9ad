/* SPDX-License-Identifier: MIT */
/* exit() runs what main() registered, so that no server is left behind. */
#include "bench/fatal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bench_fatal(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)fputs("outbox-bench: ", stderr);
	(void)vfprintf(stderr, fmt, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(EXIT_FAILURE);
}

void *bench_need(void *memory)
{
	if (!memory)
		bench_fatal("out of memory");
	return memory;
}
